// Runs of the task parse small enough for a test: sentences of three patterns, and settings of a tiny network.
#pragma once

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/task/parse.h"
#include "tests/engine/run/small_runs.h"

namespace tearless::engine::test {

/// Sentence `i` of a treebank, in CoNLL-U. Every seventh is not projective.
inline std::string small_sentence(uint32_t i) {
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

/// 24 sentences for training, 9 for dev and 8 for test.
inline void write_treebank(const std::filesystem::path& folder, uint32_t first = 0, const std::string& prefix = "") {
  for (const auto& [set, count] : {std::pair("train", 24u), {"dev", 9u}, {"test", 8u}}) {
    std::string text;
    for (uint32_t i = 0; i < count; ++i) text += small_sentence(first++);
    write_text(folder / (prefix + set + ".conllu"), text);
  }
}

/// Twelve updates in three passes of four batches, the last a smaller one, over the files of write_treebank(); a tiny
/// network in which everything is switched on.
inline Settings small_parser() {
  return {{"task", "parse"},
          {"data.name", "sentences"},
          {"data.train", "train.conllu"},
          {"data.dev", "dev.conllu"},
          {"data.test", "test.conllu"},
          {"model.embedding", 6},
          {"model.hidden", 10},
          {"model.dropout.hidden", 0.1},
          {"train.seed", 1},
          {"train.batch.examples", 60},
          {"train.epoch_updates", 3},
          {"train.max_epochs", 4},
          {"train.early_stop", 0},
          {"train.schedule.kind", "nowarmup"},
          {"train.schedule.lr", 0.02},
          {"run.log_updates", 1}};
}

inline ParseOptions& parse_options(const RunOptions& options) { return options.as<ParseKind>("this test").options; }

}  // namespace tearless::engine::test
