// The mean of each sentence's rows: one row for a sentence, for a classifier.
#pragma once

#include "engine/ops/attention.h"
#include "engine/ops/tape.h"

namespace tearless::engine {

/// x [T, D] → [spans, D]: row i is the mean of the rows key_begin … key_begin + key_count - 1 of spans[i], or 0 where
/// the span is empty (padding of a bucket). Gradients of rows in no span are 0. NaN in a row reaches its own span's
/// mean only. `spans` must outlive the tape. REQUIRES: no key_rows (std::logic_error); on a
/// recording tape no row is in two spans.
Value span_means(Tape& tape, const Value& x, const AttentionSpans& spans);

}  // namespace tearless::engine
