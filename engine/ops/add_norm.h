// A sublayer connection in one pass over the rows: x = residual + drop(y), and N(x).
//
// A norm of the form  g ⊙ (x - [centred] μ) / denominator + b  per row is described by a RowNorm (kernels.h) and runs
// as a fused kernel. Any other norm has a formula only, and runs by it. Placement (post, pre): engine/model/residual.h.
#pragma once

#include <functional>
#include <optional>

#include "engine/ops/dropout.h"
#include "engine/ops/kernels.h"
#include "engine/ops/packed_rows.h"
#include "engine/ops/tape.h"

namespace tearless::engine {

/// One norm of a model with its parameters.
struct NormOp {
  using Formula = std::function<at::Tensor(const at::Tensor& x, const at::Tensor& gain, const at::Tensor& bias)>;
  Formula formula;             // the reference implementation, and the fallback: x [T, D] → [T, D]
  std::optional<RowNorm> row;  // absent: runs by its formula
  Value gain, bias;            // gain: [D], [1] or empty; bias: [D] or empty
};

struct Normed {
  Value sum;     // x [T, D]
  Value normed;  // N(x) [T, D]; the same value as `sum` where the norm is the identity
};
/// x = residual + drop(y) and N(x). residual, y: [T, D]. `rows` gives the dropout counters and must outlive the tape.
Normed add_norm(Tape& tape, const Value& residual, const Value& y, const Dropout& dropout, const PackedRows& rows,
                const NormOp& norm);

/// norm(x) for rows x [T, D].
Value norm_rows(Tape& tape, const Value& x, const NormOp& norm);

/// drop(x), x [T, D]; x itself where the dropout is off.
Value drop_rows(Tape& tape, const Value& x, const Dropout& dropout, const PackedRows& rows);

/// residual + drop(y) alone; arguments as in add_norm().
Value add_dropped(Tape& tape, const Value& residual, const Value& y, const Dropout& dropout, const PackedRows& rows);

}  // namespace tearless::engine
