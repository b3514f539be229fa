// Token embedding + sinusoidal position, with dropout on the sum (docs/spec/knobs.md §6), and word dropout.
#pragma once

#include "engine/ops/dropout.h"
#include "engine/ops/packed_rows.h"
#include "engine/ops/tape.h"

namespace tearless::engine {

/// The arrangement of sinusoids in a position vector PE[p] of d channels (docs/spec/knobs.md §6).
enum class PositionForm {
  kInterleaved,  // PE[p, 2i] = sin(p / 10000^(2i/d)), PE[p, 2i+1] = cos of the same (TwT)
  kHalves,       // PE[p, i] = sin(p e^(-ir)), PE[p, m+i] = cos of the same, m = ⌊d/2⌋, r = ln(10000) / (m - 1);
                 // the last channel of an odd d is 0 (fairseq, T2T)
  kSinOnly       // as kInterleaved with sin in place of cos: a bug of TwT's first released code
};

/// The vectors of the positions first, first + 1, …: float [count, d_model] on the CPU.
at::Tensor sinusoid_positions(int64_t count, int64_t d_model, PositionForm form = PositionForm::kInterleaved,
                              int64_t first = 0);

/// The rows of a side that a learned vector is added to.
enum class AddedTo {
  kAllRows,
  kAllButFirst  // those of position 0 are without it. REQUIRES: their token is kNoToken, or they are no sentence's
};

/// drop(scale · table[token] + positions[position] + vector), without the first term for kNoToken: table [V, D],
/// positions [P, D] with P > every position, vector [D] or empty → [T, D] of the given type. `rows` must outlive the
/// tape; word dropout has already been applied to its tokens.
Value embedding(Tape& tape, const Value& table, const PackedRows& rows, const at::Tensor& positions, double scale,
                const Dropout& dropout, at::ScalarType type, const Value& vector = {},
                AddedTo added_to = AddedTo::kAllRows);

/// The rows ordered by token, then by row, for PackedRows::by_token.
std::vector<int32_t> rows_by_token(const PackedRows& rows);

/// Word dropout (TwT App. A; docs/spec/knobs.md §9): a copy of `rows` in which each token but PAD and kNoToken is
/// replaced by `unknown` with the dropout's probability.
PackedRows drop_words(PackedRows rows, const Dropout& dropout, int32_t unknown);

}  // namespace tearless::engine
