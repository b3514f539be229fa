// Multi-head attention that knows positions by their distance alone, and so can look back into a memory of earlier
// segments: Dai et al. 2019, "Transformer-XL", §3.3. In a query's score against a key at distance a, the key's absolute
// position is replaced by row a of R, the projected encodings of distances, and the query's by two learned vectors:
//
//   absolute                          relative
//   (a)  E_iᵀ W_qᵀ W_k E_j            the same                q_i · k_j
//   (b)  E_iᵀ W_qᵀ W_k U_j            U_j → R_{i-j}           q_i · r_a
//   (c)  U_iᵀ W_qᵀ W_k E_j            U_iᵀ W_qᵀ → u           u · k_j
//   (d)  U_iᵀ W_qᵀ W_k U_j            both                    w · r_a
//
// docs/spec/tasks.md §1.2 has the formula and the conventions of the released code. The projections are not here.
#pragma once

#include <cstdint>

#include "engine/ops/attention.h"
#include "engine/ops/tape.h"

namespace tearless::engine {

/// q [T, D], k and v [S, D], r [P, D], u and w [D] → [T, D], D = heads · d_h:
///   score(i, j) = ((q_i + u) · k_j + (q_i + w) · r_a) / √d_h,   out_i = Σ_j drop(softmax_j(score))(i, j) v_j
/// in each head, where a = keys_before() + i - j is the distance from query i of a span back to key j. A query sees the
/// keys up to its own (a ≥ 0), with `window` > 0 only those with a < window. Where a ≥ P the last row of r is taken
/// (the clamp of the paper's evaluation).
///
/// `spans` must be causal, without key_rows, and share no key where the tape records; it must outlive the tape. Rows of
/// k and v in no span are not read, and get no gradient. A value that requires none gets none. std::logic_error for
/// other spans or shapes.
Value relative_attention(Tape& tape, const ColumnSlice& q, const ColumnSlice& k, const ColumnSlice& v, const Value& r,
                         const Value& u, const Value& w, int64_t d_model, int64_t heads, const AttentionSpans& spans,
                         int64_t window, const Dropout& dropout);

}  // namespace tearless::engine
