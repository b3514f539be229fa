// The order of a vocabulary: what labelled sentences, treebanks and character text share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tearless::engine {

/// The texts that occur at least `min_count` times, by decreasing count, ties by byte order. `counts` has pairs of a
/// text and its count.
template <class Counts>
std::vector<std::string> by_count(const Counts& counts, int64_t min_count) {
  std::vector<std::pair<int64_t, std::string>> order;
  for (const auto& [text, count] : counts) {
    if (count >= min_count) order.emplace_back(-count, text);
  }
  std::sort(order.begin(), order.end());
  std::vector<std::string> texts;
  for (auto& [count, text] : order) texts.push_back(std::move(text));
  return texts;
}

}  // namespace tearless::engine
