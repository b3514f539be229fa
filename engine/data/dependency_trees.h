// Dependency trees, and the reader of their files: CoNLL-X and CoNLL-U, which have the same ten columns. Knows nothing
// about token numbers or transitions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tearless::engine {

/// Which column has the part of speech.
enum class TagColumn {
  kFine,   // the fifth: POSTAG, XPOS
  kCoarse  // the fourth: CPOSTAG, UPOS
};

/// A sentence with a tree. Word i, counted from 1, has forms[i - 1] and so on.
struct DependencyTree {
  std::vector<std::string> forms, tags, labels;
  std::vector<int32_t> heads;  // 0: the root
  bool has_punct = false;      // a word is PUNCT in the fourth column, whichever has `tags`

  int32_t size() const { return static_cast<int32_t>(heads.size()); }
};

/// Whether no arc of a tree with these heads crosses another, with the root before the first word.
bool is_projective(const std::vector<int32_t>& heads);

/// The trees of a file. Sentences end at an empty line; lines that begin with "#" before a sentence, words of several
/// tokens ("3-4") and empty nodes ("5.1") are left out. Throws UserError, naming `file` and line, for a line of fewer
/// than eight columns, a number that is not that of the next word, an empty form, tag or label, a comment inside a
/// sentence, a head that is no number or beyond the sentence, a word that is its own head, a cycle, more or fewer roots
/// than one, bytes that are not UTF-8, and for a file without sentences.
std::vector<DependencyTree> read_trees(std::string_view bytes, const std::string& file, TagColumn tags);

}  // namespace tearless::engine
