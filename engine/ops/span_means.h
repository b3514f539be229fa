// The mean of each sentence's rows, one row for a sentence, for a classifier; and that of the rows that each row sees,
// its own and those before: the average attention of DS eq. 16 (docs/spec/knobs.md §11.2).
#pragma once

#include "engine/ops/attention.h"
#include "engine/ops/tape.h"

namespace tearless::engine {

/// x [T, D] → [spans, D]: row i is the mean of the rows key_begin … key_begin + key_count - 1 of spans[i], or 0 where
/// the span is empty (padding of a bucket). Gradients of rows in no span are 0. NaN in a row reaches its own span's
/// mean only. `spans` must outlive the tape. REQUIRES: no key_rows (std::logic_error); on a
/// recording tape no row is in two spans.
Value span_means(Tape& tape, const Value& x, const AttentionSpans& spans);

/// x [T, D] → [T, D], the rows of the queries of `spans`, which are causal: row t is the mean of the keys of its span
/// up to its own. `sums`: a slot's rows [any, D] (fp32 where x is bf16), if the keys are rows of it: row k holds the
/// sum of the keys up to k. The rows of the keys before the queries are read, those of the queries written. Gradients
/// reach x alone. Rows in no span are 0. `spans` must outlive the tape. std::logic_error if spans are not causal, if
/// one has keys before its queries and there are no sums, or for key_rows on a recording tape.
Value running_means(Tape& tape, const Value& x, const AttentionSpans& spans, const at::Tensor& sums = {});

}  // namespace tearless::engine
