#include "engine/data/dependency_trees.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/numbers.h"
#include "base/utf8.h"
#include "base/words.h"
#include "engine/data/text_lines.h"

namespace tearless::engine {
namespace {

constexpr size_t kForm = 1, kCoarseTag = 3, kFineTag = 4, kHead = 6, kLabel = 7, kColumns = 8;

std::vector<std::string_view> columns_of(std::string_view line) {
  std::vector<std::string_view> columns;
  for (size_t begin = 0; begin <= line.size();) {
    const size_t end = std::min(line.find('\t', begin), line.size());
    columns.push_back(line.substr(begin, end - begin));
    begin = end + 1;
  }
  return columns;
}

/// "3-4" of a word of several tokens, "5.1" of an empty node: they are in no tree.
bool is_range_or_empty_node(std::string_view id) {
  const size_t at = id.find_first_of("-.");
  return at != id.npos && number_of<int32_t>(id.substr(0, at)) && number_of<int32_t>(id.substr(at + 1));
}

/// One sentence, while its lines are read.
struct Sentence {
  DependencyTree tree;
  std::vector<size_t> lines;  // of each word, from 1

  void add(std::string_view line, size_t number, const std::string& file, TagColumn tags);
  void require_a_tree(const std::string& file) const;
};

void Sentence::add(std::string_view line, size_t number, const std::string& file, TagColumn tags) {
  const std::string location = fmt::format("{}:{}", file, number);
  if (!valid_utf8(line)) fail("{}: not valid UTF-8; convert the file, for example with iconv", location);
  if (line.starts_with('#')) {
    fail("{}: a comment inside a sentence: is an empty line between two sentences missing?", location);
  }
  const std::vector<std::string_view> columns = columns_of(line);
  if (columns.size() < kColumns) {
    fail("{}: {}, where CoNLL-X and CoNLL-U have ten with a tab between two, and eight are needed", location,
         counted(std::ssize(columns), "column"));
  }
  if (is_range_or_empty_node(columns[0])) return;
  if (number_of<int32_t>(columns[0]) != tree.size() + 1) {
    fail("{}: the word's number is \"{}\" and should be {}: is an empty line between two sentences missing?", location,
         printable(columns[0]), tree.size() + 1);
  }
  const size_t tag = tags == TagColumn::kFine ? kFineTag : kCoarseTag;
  for (const auto& [column, what] : {std::pair(kForm, "word"), {tag, "tag"}, {kLabel, "label"}}) {
    if (columns[column].empty()) fail("{}: the {} in column {} is empty; write _ for none", location, what, column + 1);
  }
  const std::optional<int32_t> head = number_of<int32_t>(columns[kHead]);
  if (!head || *head < 0) {
    fail("{}: the head \"{}\" is no number of a word; a sentence without a tree cannot be used", location,
         printable(columns[kHead]));
  }
  if (*head == tree.size() + 1) fail("{}: the word is its own head", location);
  tree.forms.emplace_back(columns[kForm]);
  tree.tags.emplace_back(columns[tag]);
  tree.has_punct |= columns[kCoarseTag] == "PUNCT";
  tree.labels.emplace_back(columns[kLabel]);
  tree.heads.push_back(*head);
  lines.push_back(number);
}

void Sentence::require_a_tree(const std::string& file) const {
  const auto location = [&](int32_t word) { return fmt::format("{}:{}", file, lines[static_cast<size_t>(word - 1)]); };
  int32_t root = 0;
  for (int32_t word = 1; word <= tree.size(); ++word) {
    const int32_t head = tree.heads[static_cast<size_t>(word - 1)];
    if (head > tree.size())
      fail("{}: the head {} is beyond the sentence of {} words", location(word), head, tree.size());
    if (head != 0) continue;
    if (root != 0) fail("{}: a second root; the first is word {}, and a tree has one", location(word), root);
    root = word;
  }
  if (root == 0) fail("{}: a sentence without a root: one word must have the head 0", location(1));
  // A word from which the root is not reached in so many steps is on a cycle, or leads to one.
  for (int32_t word = 1; word <= tree.size(); ++word) {
    int32_t at = word;
    for (int32_t steps = 0; at != 0; ++steps) {
      if (steps > tree.size()) fail("{}: the heads of this word make a cycle", location(word));
      at = tree.heads[static_cast<size_t>(at - 1)];
    }
  }
}

}  // namespace

bool is_projective(const std::vector<int32_t>& heads) {
  for (int32_t word = 1; word <= static_cast<int32_t>(heads.size()); ++word) {
    const auto [first, last] = std::minmax(word, heads[static_cast<size_t>(word - 1)]);
    for (int32_t between = first + 1; between < last; ++between) {
      const int32_t head = heads[static_cast<size_t>(between - 1)];
      if (head < first || head > last) return false;
    }
  }
  return true;
}

std::vector<DependencyTree> read_trees(std::string_view bytes, const std::string& file, TagColumn tags) {
  std::vector<DependencyTree> trees;
  Sentence sentence;
  const auto end_sentence = [&] {
    if (sentence.tree.size() == 0) return;
    sentence.require_a_tree(file);
    trees.push_back(std::move(std::exchange(sentence, {}).tree));
  };
  size_t number = 0;
  for (const std::string_view line : text_lines(bytes)) {
    ++number;
    if (line.empty()) {
      end_sentence();
    } else if (sentence.tree.size() > 0 || !line.starts_with('#')) {
      sentence.add(line, number, file, tags);
    }
  }
  end_sentence();
  if (trees.empty()) fail("{} has no sentence: a file in CoNLL-U or CoNLL-X has a word a line", file);
  return trees;
}

}  // namespace tearless::engine
