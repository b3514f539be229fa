// The two operations of a residual network's seam: residual + drop(y), and N(x).
//
// A norm that can be written per row as  g ⊙ (x - [centred] μ) / denominator + b  describes itself by a RowNorm and is
// fused; any other gives a formula only, and runs by it. Where a norm stands: engine/model/residual.h.
#pragma once

#include <functional>
#include <optional>

#include "engine/ops/dropout.h"
#include "engine/ops/packed_rows.h"
#include "engine/ops/tape.h"

namespace tearless::engine {

/// How a norm treats one row x of width d; ms = (1/d) Σ (x - [centred] μ)².
struct RowNorm {
  enum class Denominator {
    kOne,           // 1: no norm at all
    kRootAddEps,    // √(ms + ε): LayerNorm (centred), RMSNorm
    kLengthClamped  // max(‖x‖₂, ε): ScaleNorm, FixNorm. A clamped row's derivative is that of x/ε
  };
  bool centred = false;
  Denominator denominator = Denominator::kOne;
  double eps = 0;
};

/// One norm of a model as the operations see it. gain is [D], [1] or empty; bias is [D] or empty.
struct NormOp {
  using Formula = std::function<at::Tensor(const at::Tensor& x, const at::Tensor& gain, const at::Tensor& bias)>;
  Formula formula;             // the judge, and the fallback: x [T, D] → [T, D]
  std::optional<RowNorm> row;  // absent: runs by its formula
  Value gain, bias;
};

/// norm(x) for rows x [T, D].
Value norm_rows(Tape& tape, const Value& x, const NormOp& norm);

/// residual + drop(y): [T, D] each; `rows` names the rows' random numbers and must outlive the tape.
Value add_dropped(Tape& tape, const Value& residual, const Value& y, const Dropout& dropout, const PackedRows& rows);

}  // namespace tearless::engine
