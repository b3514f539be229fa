// Sizes that many batches share, so that one captured walk serves them all.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace tearless::engine {

/// The least power of two that is not below x, x ≥ 1. Longest sentences are rounded so, and so are tables of positions,
/// which therefore reach to the end of every bucket that a sentence of theirs falls into.
inline int64_t power_of_two(int64_t x) { return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(x))); }

/// x rounded up to one of `parts` sizes between a power of two and the next, which are no closer than `least`.
inline int64_t bucket_size(int64_t x, int64_t parts, int64_t least) {
  const int64_t step = std::max(least, power_of_two(x) / (2 * parts));
  return (x + step - 1) / step * step;
}

}  // namespace tearless::engine
