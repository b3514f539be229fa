// Token embedding + position, with dropout on the sum (knobs.md §6: no code base drops the position separately).
#pragma once

#include "engine/ops/dropout.h"
#include "engine/ops/packed_rows.h"
#include "engine/ops/tape.h"

namespace tearless::engine {

/// Interleaved sinusoids: PE[p, 2i] = sin(p / 10000^(2i/d)), PE[p, 2i+1] = cos(p / 10000^(2i/d)) (knobs.md §6). Returns
/// [positions, d] in float.
at::Tensor sinusoid_positions(int64_t positions, int64_t d_model);

/// drop(scale · table[token] + positions[position]): table [V, D], positions [P, D] with P > every position → [T, D] of
/// the given type. `rows` must outlive the tape. The tokens are taken from `rows` (word dropout has already acted on
/// them).
Value embedding(Tape& tape, const Value& table, const PackedRows& rows, const at::Tensor& positions, double scale,
                const Dropout& dropout, at::ScalarType type);

/// Row numbers ordered by token, then by row: PackedRows::by_token.
std::vector<int32_t> rows_by_token(const PackedRows& rows);

/// Word dropout (TwT App. A): each input token becomes `unknown` where its draw falls below the threshold; acts on a
/// copy, so the stored batch stays whole.
PackedRows drop_words(const PackedRows& rows, const Dropout& dropout, int32_t unknown);

}  // namespace tearless::engine
