// All dependency trees of a number of words, for tests of what holds of each.
#pragma once

#include <cstdint>
#include <vector>

namespace tearless::test {

/// The heads of each tree with one root, word i at i - 1; 0: the root. There are n^(n - 1) of n words.
inline std::vector<std::vector<int32_t>> all_trees(int32_t words) {
  std::vector<std::vector<int32_t>> trees;
  std::vector<int32_t> heads(static_cast<size_t>(words), 0);
  while (true) {
    int roots = 0;
    bool reaches = true;
    for (int32_t word = 1; word <= words; ++word) {
      roots += heads[static_cast<size_t>(word - 1)] == 0;
      int32_t at = word, steps = 0;
      for (; at != 0 && steps <= words; ++steps) at = heads[static_cast<size_t>(at - 1)];
      reaches &= at == 0;
    }
    if (roots == 1 && reaches) trees.push_back(heads);
    size_t digit = 0;
    while (digit < heads.size() && heads[digit] == words) heads[digit++] = 0;
    if (digit == heads.size()) return trees;
    ++heads[digit];
  }
}

}  // namespace tearless::test
