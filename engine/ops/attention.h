// Multi-head attention over packed rows: softmax(q kᵀ / √d_h) v for each sentence and head (docs/spec/knobs.md §10).
// The projections to q, k, v and from the output are not here (engine/model/self_attention.cc, cross_attention.cc).
#pragma once

#include <cstdint>
#include <vector>

#include "engine/ops/dropout.h"
#include "engine/ops/kernels.h"
#include "engine/ops/packed_rows.h"
#include "engine/ops/tape.h"

namespace tearless::engine {

/// Which rows attend to which: the queries of spans[i] see the keys of spans[i] and nothing else. A span with queries
/// needs at least one key. Query ranges must not overlap; key ranges may (beams of one sentence).
struct AttentionSpans {
  std::vector<AttentionSpan> spans;
  /// Search alone: key j of a span is row key_rows[key_begin + j]. Empty: row key_begin + j.
  std::vector<int32_t> key_rows;
  /// The queries of a span are the last of its keys (those before them are a memory): each sees the keys up to its own.
  bool causal = false;
  /// Upper bounds of query_count and key_count, which determine the kernels' launch shapes and shared memory.
  int64_t max_query_length = 0, max_key_length = 0;
  /// Some query rows are in no span; their output is 0. If false, every row is in one.
  bool padded = false;

  /// Each sentence attends to itself.
  static AttentionSpans self(const PackedRows& rows, bool causal);
  /// Sentence i of `queries` attends to sentence i of `keys`. REQUIRES: equal numbers of sentences (std::logic_error).
  static AttentionSpans cross(const PackedRows& queries, const PackedRows& keys);
  /// How many pairs of a query and a key that it sees there are.
  int64_t seen_pairs() const;
  /// Appends a span and raises the maximum lengths.
  void add(const AttentionSpan& span);
};

/// Columns `column` … `column` + D - 1 of wider rows, so that q, k and v can be slices of one matmul's result.
struct ColumnSlice {
  Value rows;  // [T, ≥ column + D]
  int64_t column = 0;
};

/// q [T, D], k and v [S, D] → [T, D], D = heads · d_h. Dropout acts on the probabilities. `spans` defines which of the
/// T queries see which of the S keys, and must outlive the tape. std::logic_error for other shapes, and for key_rows on
/// a recording tape.
Value attention(Tape& tape, const ColumnSlice& q, const ColumnSlice& k, const ColumnSlice& v, int64_t d_model,
                int64_t heads, const AttentionSpans& spans, const Dropout& dropout);

}  // namespace tearless::engine
