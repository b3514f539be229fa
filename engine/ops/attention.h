// Multi-head attention over packed rows: softmax(q kᵀ / √d_h) v for each sentence and head (knobs.md §10).
#pragma once

#include <cstdint>
#include <vector>

#include "engine/ops/dropout.h"
#include "engine/ops/kernels.h"
#include "engine/ops/packed_rows.h"
#include "engine/ops/tape.h"

namespace tearless::engine {

/// Which rows attend to which: span i's queries see span i's keys and nothing else. Every span of queries must have at
/// least one key. Spans of queries must not overlap; spans of keys may (beams of one sentence).
struct AttentionSpans {
  std::vector<AttentionSpan> spans;
  std::vector<int32_t> key_rows;  // search: key j of a span is row key_rows[key_begin + j]; empty: row key_begin + j
  bool causal = false;            // query i sees keys 0 … i only; query_count == key_count then
  /// No span is longer; what kernels are sized by.
  int64_t longest_query = 0, longest_key = 0;
  /// Query rows may belong to no span: their output is 0. Else every row has one.
  bool padded = false;

  static AttentionSpans self(const PackedRows& rows, bool causal);
  static AttentionSpans cross(const PackedRows& queries, const PackedRows& keys);
  void add(const AttentionSpan& span);
};

/// Columns `column` … `column` + D - 1 of wider rows: lets q, k and v be parts of one product.
struct Columns {
  Value rows;  // [T, ≥ column + D]
  int64_t column = 0;
};

/// q [T, D], k and v [S, D] → [T, D], D = heads · d_h. Dropout acts on the probabilities. `spans` says
/// which of the T queries see which of the S keys, and must outlive the tape.
Value attention(Tape& tape, const Columns& q, const Columns& k, const Columns& v, int64_t d_model, int64_t heads,
                const AttentionSpans& spans, const Dropout& dropout);

}  // namespace tearless::engine
