#include <algorithm>

#include "base/error.h"
#include "engine/data/dependency_trees.h"
#include "tests/fuzz/bytes.h"
#include "tests/fuzz/targets.h"

namespace tearless::fuzz {
namespace {

using engine::DependencyTree;
using engine::TagColumn;

void require_a_tree(const DependencyTree& tree) {
  const auto words = static_cast<size_t>(tree.size());
  require(words > 0 && tree.forms.size() == words && tree.tags.size() == words && tree.labels.size() == words,
          "a word lacks its form, tag or label");
  require(std::count(tree.heads.begin(), tree.heads.end(), 0) == 1, "a tree has other roots than one");
  std::vector<bool> reached(words + 1);
  reached[0] = true;
  for (size_t pass = 0; pass < words; ++pass) {
    for (size_t word = 1; word <= words; ++word) {
      if (reached.at(static_cast<size_t>(tree.heads[word - 1]))) reached[word] = true;
    }
  }
  require(std::count(reached.begin(), reached.end(), false) == 0, "a word is not below the root");
}

bool has_crossing_arcs(const DependencyTree& tree) {
  for (int32_t a = 1; a <= tree.size(); ++a) {
    for (int32_t b = 1; b <= tree.size(); ++b) {
      const auto [first, last] = std::minmax(a, tree.heads[static_cast<size_t>(a - 1)]);
      const auto [other_first, other_last] = std::minmax(b, tree.heads[static_cast<size_t>(b - 1)]);
      if (first < other_first && other_first < last && last < other_last) return true;
    }
  }
  return false;
}

std::string written(const std::vector<DependencyTree>& trees) {
  std::string text;
  for (const DependencyTree& tree : trees) {
    for (int32_t word = 1; word <= tree.size(); ++word) {
      const auto i = static_cast<size_t>(word - 1);
      text += fmt::format("{}\t{}\t_\t_\t{}\t_\t{}\t{}\t_\t_\n", word, tree.forms[i], tree.tags[i], tree.heads[i],
                          tree.labels[i]);
    }
    text += '\n';
  }
  return text;
}

}  // namespace

/// The first byte says which column has the tags.
int fuzz_trees(const uint8_t* data, size_t size) {
  std::string_view bytes = text_of(data, size);
  const TagColumn tags = take_byte(bytes) % 2 == 0 ? TagColumn::kFine : TagColumn::kCoarse;
  std::vector<DependencyTree> trees;
  try {
    trees = engine::read_trees(bytes, "trees", tags);
  } catch (const UserError&) {
    return 0;
  }
  require(!trees.empty(), "a file without sentences is read");
  for (const DependencyTree& tree : trees) {
    require_a_tree(tree);
    if (tree.size() <= 100) {
      require(engine::is_projective(tree.heads) != has_crossing_arcs(tree), "projective is not without crossing arcs");
    }
  }
  const std::vector<DependencyTree> again = engine::read_trees(written(trees), "written", TagColumn::kFine);
  require(again.size() == trees.size(), "there are other trees after they were written and read");
  for (size_t i = 0; i < trees.size(); ++i) {
    require(again[i].forms == trees[i].forms && again[i].tags == trees[i].tags && again[i].labels == trees[i].labels &&
                again[i].heads == trees[i].heads,
            "a tree differs after it was written and read");
  }
  return 0;
}

}  // namespace tearless::fuzz
