// Pads rows and spans to the sizes of a bucket, so that one captured update serves all batches of the bucket. Padding
// does not change results: no sentence sees a padding row, and the gradients of padding rows are 0.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "engine/ops/attention.h"
#include "engine/ops/packed_rows.h"

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

// The sizes of a bucket. Rows are rounded up by at most 1/16 (for small batches by at most 31 rows), so that a few
// hundred captured graphs serve a whole corpus.

int64_t padded_rows(const PackedRows& rows);
/// Attention spans: more than there are sentences.
int64_t padded_spans(const PackedRows& rows);
/// The length of the longest sentence: a power of two, as the position tables.
int64_t padded_length(const AttentionSpans& self);

/// Fills rows up to `count`, PackedRows::by_token included.
void pad(PackedRows& rows, int64_t count);
/// Fills spans up to `count` with empty ones, so that they cover `queries` rows that see `keys` rows.
void pad(AttentionSpans& spans, int64_t count, int64_t queries, int64_t keys, int64_t max_query_length,
         int64_t max_key_length);
/// Fills labels up to `count` with rows that are left out of the loss.
void pad(std::vector<int32_t>& labels, int64_t count);
/// The number of labels that are predicted.
int64_t predictions_of(const std::vector<int32_t>& labels);

}  // namespace tearless::engine
