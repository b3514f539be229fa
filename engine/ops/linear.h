// y = x Wᵀ + b: the products, which LibTorch does well on every device.
#pragma once

#include "engine/ops/tape.h"

namespace tearless::engine {

/// Makes products give the same bits for any number of threads. Call once, before the first product: MKL reads its
/// environment then. MKL_CBWR that is already set is left as it is.
void fix_product_order();

/// x [T, in], weight [out, in], bias [out] or empty → [T, out]. Weight and bias are taken in x's type, and their
/// gradients made in their own: bf16 rows have fp32 gradients of weights.
Value linear(Tape& tape, const Value& x, const Value& weight, const Value& bias);

/// Adds the column sums of rows [T, W] to sum [W], in a fixed order.
void add_column_sums(const at::Tensor& rows, at::Tensor& sum);

/// table [V, D] → its rows begin … end - 1: a view, whose gradient is a view of the table's.
Value slice_rows(Tape& tape, const Value& table, int64_t begin, int64_t end);
/// table [V, D], indices [K] → the rows table[indices] [K, D].
Value gather_rows(Tape& tape, const Value& table, const at::Tensor& indices);

}  // namespace tearless::engine
