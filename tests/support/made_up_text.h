// Text that is learned quickly, made up by rule: sentences with dependency trees, and letters.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace tearless::test {

/// Sentence `i` of a treebank, in CoNLL-U. Every seventh is not projective.
inline std::string tree_of_three_patterns(uint32_t i) {
  constexpr std::array kNouns = {"dog", "cat", "Bird", "horse", "fish"};
  constexpr std::array kVerbs = {"sees", "hears", "likes"};
  struct Word {
    std::string form;
    const char *coarse, *fine;
    int32_t head;
    const char* label;
  };
  const std::string noun = kNouns[i % 5], other = kNouns[i * 3 % 5], verb = kVerbs[i % 3];
  std::vector<Word> words;
  if (i % 7 == 6) {
    words = {{noun, "NOUN", "NN", 3, "obj"},
             {other, "NOUN", "NN", 4, "nsubj"},
             {verb, "VERB", "VBZ", 0, "root"},
             {"well", "ADV", "RB", 3, "advmod"}};
  } else if (i % 3 == 0) {
    words = {{"The", "DET", "DT", 2, "det"}, {noun, "NOUN", "NN", 3, "nsubj"},    {verb, "VERB", "VBZ", 0, "root"},
             {"a", "DET", "DT", 5, "det"},   {other, "NOUN", "NN", 3, "obj:dir"}, {".", "PUNCT", ".", 3, "punct"}};
  } else if (i % 3 == 1) {
    words = {{noun, "NOUN", "NN", 2, "nsubj"}, {verb, "VERB", "VBZ", 0, "root"}, {other, "NOUN", "NN", 2, "obj"}};
  } else {
    words = {{"big", "ADJ", "JJ", 2, "amod"},
             {noun, "NOUN", "NN", 4, "nsubj"},
             {",", "PUNCT", ",", 2, "punct"},
             {verb, "VERB", "VBZ", 0, "root"},
             {"well", "ADV", "RB", 4, "advmod"}};
  }
  std::string text = fmt::format("# sent_id = {}\n", i);
  for (size_t w = 0; w < words.size(); ++w) {
    const Word& word = words[w];
    text += fmt::format("{}\t{}\t_\t{}\t{}\t_\t{}\t{}\t_\t_\n", w + 1, word.form, word.coarse, word.fine, word.head,
                        word.label);
  }
  return text + "\n";
}

/// Text in which a letter is mostly followed by the next of "abcde", and lines have 11 letters.
inline std::string mostly_alphabetical(size_t letters, uint32_t seed) {
  std::mt19937 bits(seed);
  std::string text;
  char letter = 'a';
  for (size_t i = 0; i < letters; ++i) {
    letter = static_cast<char>('a' + (bits() % 8 == 0 ? bits() % 5 : static_cast<size_t>(letter - 'a' + 1) % 5));
    text += letter;
    if (i % 11 == 10) text += '\n';
  }
  return text;
}

}  // namespace tearless::test
