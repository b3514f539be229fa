// The order of sentences, images or other examples, by their numbers. Shuffles are pure functions of seed and pass,
// identical on every machine and with every standard library.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "engine/ops/random.h"

namespace tearless::engine {

/// 0, 1, …, count - 1.
inline std::vector<int32_t> in_order(int64_t count) {
  std::vector<int32_t> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

/// Consecutive parts of `size` numbers; the last may be smaller.
inline std::vector<std::vector<int32_t>> cut_in_order(const std::vector<int32_t>& numbers, int64_t size) {
  std::vector<std::vector<int32_t>> parts;
  const auto each = static_cast<size_t>(size);
  for (size_t begin = 0; begin < numbers.size(); begin += each) {
    const size_t end = std::min(begin + each, numbers.size());
    parts.emplace_back(numbers.begin() + static_cast<std::ptrdiff_t>(begin),
                       numbers.begin() + static_cast<std::ptrdiff_t>(end));
  }
  return parts;
}

/// Fisher–Yates. `which` distinguishes the shuffles of one pass. An index below n is drawn as ⌊bits · n / 2³²⌋; its
/// bias, below n / 2³², does not matter for the order of sentences.
template <class T>
void shuffle(std::vector<T>& items, const RandomStream& stream, uint32_t pass, uint32_t which) {
  for (size_t left = items.size(); left > 1; --left) {
    const uint64_t bits = stream.draw(static_cast<uint32_t>(left), which, pass, /*update=*/0);
    std::swap(items[left - 1], items[static_cast<size_t>(bits * left >> 32)]);
  }
}

}  // namespace tearless::engine
