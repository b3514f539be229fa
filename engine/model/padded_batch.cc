#include "engine/model/padded_batch.h"

#include <algorithm>

#include "engine/ops/bucket_sizes.h"
#include "engine/ops/embedding.h"

namespace tearless::engine {
namespace {

constexpr int32_t kNoLabel = -1;
constexpr int64_t kMinLength = 32;  // minimum sentence length of a bucket

}  // namespace

void pad(PackedRows& rows, int64_t count) {
  const auto size = static_cast<size_t>(count);
  rows.tokens.resize(size, kPad);
  rows.positions.resize(size, 0);
  rows.sentence_ids.resize(size, 0);
  rows.by_token = rows_by_token(rows);
}

void pad(AttentionSpans& spans, int64_t count, int64_t queries, int64_t keys, int64_t max_query_length,
         int64_t max_key_length) {
  // Empty spans after the last row, so that all spans together cover the bucket.
  spans.spans.resize(static_cast<size_t>(count), {static_cast<int32_t>(queries), 0, static_cast<int32_t>(keys), 0, 0});
  spans.max_query_length = max_query_length;
  spans.max_key_length = max_key_length;
  spans.padded = true;
}

int64_t padded_length(int64_t longest) { return power_of_two(std::max<int64_t>(longest, kMinLength)); }

Bucket bucket_of(const ReadyBatch& batch) {
  return {.source_rows = bucket_size(batch.source.row_count(), 16, 32),
          .target_rows = bucket_size(batch.target.row_count(), 16, 32),
          .spans = bucket_size(batch.source.sentence_count() + 1, 4, 8),
          .max_source_length = padded_length(batch.source_spans.max_key_length),
          .max_target_length = padded_length(batch.target_spans.max_key_length)};
}

ReadyBatch padded(ReadyBatch batch, const Bucket& b) {
  pad(batch.source, b.source_rows);
  pad(batch.target, b.target_rows);
  batch.labels.resize(static_cast<size_t>(b.target_rows), kNoLabel);
  pad(batch.source_spans, b.spans, b.source_rows, b.source_rows, b.max_source_length, b.max_source_length);
  pad(batch.target_spans, b.spans, b.target_rows, b.target_rows, b.max_target_length, b.max_target_length);
  pad(batch.cross_spans, b.spans, b.target_rows, b.source_rows, b.max_target_length, b.max_source_length);
  return batch;
}

}  // namespace tearless::engine
