// Pads a batch to the sizes of a bucket, so that one captured update serves all batches of the bucket. Padding does not
// change results: no sentence sees a padding row, and the gradients of padding rows are 0.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/model/ready_batch.h"

namespace tearless::engine {

/// The sizes that an update is captured for.
struct Bucket {
  int64_t source_rows = 0, target_rows = 0;
  int64_t spans = 0;                                     // attention spans; more than there are sentences
  int64_t max_source_length = 0, max_target_length = 0;  // powers of two, as the position tables

  std::vector<int64_t> sizes() const { return {source_rows, target_rows, spans, max_source_length, max_target_length}; }
};

/// The bucket of a batch, a function of its sizes alone. Rows are rounded up by at most 1/16 (for small batches by at
/// most 31 rows), so that a few hundred captured graphs serve a whole corpus.
Bucket bucket_of(const ReadyBatch& batch);

/// Fills rows up to `count`, PackedRows::by_token included.
void pad(PackedRows& rows, int64_t count);
/// Fills spans up to `count` with empty ones, so that they cover `queries` rows that see `keys` rows.
void pad(AttentionSpans& spans, int64_t count, int64_t queries, int64_t keys, int64_t max_query_length,
         int64_t max_key_length);
/// The length of a bucket's longest sentence.
int64_t padded_length(int64_t longest);

/// The batch padded to the sizes of `bucket`, with PackedRows::by_token filled in.
ReadyBatch padded(ReadyBatch batch, const Bucket& bucket);

/// Calls f(vector) for every vector of a padded batch that kernels read: always the same vectors in the same order,
/// with the same sizes for the same bucket.
template <class F>
void for_each_part(const ReadyBatch& batch, F&& f) {
  for_each_part(batch.source, f);
  for_each_part(batch.target, f);
  f(batch.labels);
  f(batch.source_spans.spans);
  f(batch.target_spans.spans);
  f(batch.cross_spans.spans);
}

}  // namespace tearless::engine
