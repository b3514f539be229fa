// Batch sizes rounded up to a few buckets, so that one captured CUDA graph serves all batches of a bucket.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace tearless::engine {

/// The smallest power of two ≥ x, for x ≥ 1. Used for the maximum sentence length of a bucket and for the length of
/// position tables, which are therefore long enough for the bucket of any sentence that they were made for.
inline int64_t power_of_two(int64_t x) { return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(x))); }

/// x rounded up to one of `parts` equidistant sizes between a power of two and the next, at least `least` apart: adds
/// less than max(least, x / parts).
inline int64_t bucket_size(int64_t x, int64_t parts, int64_t least) {
  const int64_t step = std::max(least, power_of_two(x) / (2 * parts));
  return (x + step - 1) / step * step;
}

}  // namespace tearless::engine
