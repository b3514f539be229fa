// A residual network's seam in one pass over the rows: x = residual + drop(y), and N(x).
//
// A norm that can be written per row as  g ⊙ (x - [centred] μ) / denominator + b  describes itself by a RowNorm
// (kernels.h) and is fused; any other gives a formula only, and runs by it. Where a norm stands:
// engine/model/residual.h.
#pragma once

#include <functional>
#include <optional>

#include "engine/ops/dropout.h"
#include "engine/ops/kernels.h"
#include "engine/ops/packed_rows.h"
#include "engine/ops/tape.h"

namespace tearless::engine {

/// One norm of a model as the operations see it. gain is [D], [1] or empty; bias is [D] or empty.
struct NormOp {
  using Formula = std::function<at::Tensor(const at::Tensor& x, const at::Tensor& gain, const at::Tensor& bias)>;
  Formula formula;             // the judge, and the fallback: x [T, D] → [T, D]
  std::optional<RowNorm> row;  // absent: runs by its formula
  Value gain, bias;
};

struct Normed {
  Value sum;     // x [T, D]
  Value normed;  // N(x) [T, D]; x itself for the norm that does nothing
};
/// x = residual + drop(y) with its norm: [T, D] each; `rows` names the rows' random numbers and must outlive the tape.
Normed add_norm(Tape& tape, const Value& residual, const Value& y, const Dropout& dropout, const PackedRows& rows,
                const NormOp& norm);

/// norm(x) for rows x [T, D].
Value norm_rows(Tape& tape, const Value& x, const NormOp& norm);

/// residual + drop(y) alone.
Value add_dropped(Tape& tape, const Value& residual, const Value& y, const Dropout& dropout, const PackedRows& rows);

}  // namespace tearless::engine
