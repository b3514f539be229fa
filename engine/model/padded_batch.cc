#include "engine/model/padded_batch.h"

#include <algorithm>

#include "engine/ops/embedding.h"

namespace tearless::engine {

int64_t padded_rows(const PackedRows& rows) { return bucket_size(rows.row_count(), 16, 32); }

int64_t padded_spans(const PackedRows& rows) { return bucket_size(rows.sentence_count() + 1, 4, 8); }

int64_t padded_length(const AttentionSpans& self) {
  constexpr int64_t kMinLength = 32;
  return power_of_two(std::max(self.max_key_length, kMinLength));
}

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

void pad(std::vector<int32_t>& labels, int64_t count) { labels.resize(static_cast<size_t>(count), -1); }

int64_t predictions_of(const std::vector<int32_t>& labels) {
  return std::count_if(labels.begin(), labels.end(), [](int32_t label) { return label >= 0; });
}

}  // namespace tearless::engine
