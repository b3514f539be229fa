// Token embedding + sinusoidal position, with dropout on the sum (docs/spec/knobs.md §6), and word dropout.
#pragma once

#include "engine/ops/dropout.h"
#include "engine/ops/packed_rows.h"
#include "engine/ops/tape.h"

namespace tearless::engine {

/// Interleaved sinusoids (docs/spec/knobs.md §6), float [positions, d] on the CPU:
///   PE[p, 2i] = sin(p / 10000^(2i/d)),  PE[p, 2i+1] = cos(p / 10000^(2i/d))
at::Tensor sinusoid_positions(int64_t positions, int64_t d_model);

/// drop(scale · table[token] + positions[position]): table [V, D], positions [P, D] with P > every position → [T, D] of
/// the given type. `rows` must outlive the tape; word dropout has already been applied to its tokens.
Value embedding(Tape& tape, const Value& table, const PackedRows& rows, const at::Tensor& positions, double scale,
                const Dropout& dropout, at::ScalarType type);

/// The rows ordered by token, then by row, for PackedRows::by_token.
std::vector<int32_t> rows_by_token(const PackedRows& rows);

/// Word dropout (TwT App. A; docs/spec/knobs.md §9): a copy of `rows` in which each token is replaced by `unknown` with
/// the dropout's probability.
PackedRows drop_words(const PackedRows& rows, const Dropout& dropout, int32_t unknown);

}  // namespace tearless::engine
