// y = x Wᵀ + b, by the matmul library of the device (matmul.h, cuBLAS), and selections of a table's rows.
#pragma once

#include "engine/ops/tape.h"

namespace tearless::engine {

/// How the rows of a result lie in memory. On a GPU a stride that is a multiple of 16 bytes lets cuBLAS and the kernels
/// load 16 bytes at a time; elsewhere both are the same.
enum class RowStride { kWidth, kAligned };

/// x [T, in], weight [out, in], bias [out] or empty → [T, out]. Weight and bias are read in x's type (Value::as());
/// their gradients are in their own, so bf16 activations give fp32 gradients of weights.
Value linear(Tape& tape, const Value& x, const Value& weight, const Value& bias, RowStride stride = RowStride::kWidth);

/// c = a b, or c += a b where `add`: [m, k] · [k, n] → [m, n], on the device of c. a and b have one type; c has the
/// same, or fp32 where they are bf16. Throws for other shapes (std::logic_error, c10::Error).
void matmul(const at::Tensor& a, const at::Tensor& b, at::Tensor& c, bool add);

/// sum[c] += Σ_t rows[t, c]: rows [T, W], sum [W]. In a fixed order.
void add_column_sums(const at::Tensor& rows, at::Tensor& sum);

/// table [V, D] → its rows begin … end - 1, as a view whose gradient is a view of the table's.
Value slice_rows(Tape& tape, const Value& table, int64_t begin, int64_t end);
/// table [V, D], indices int64 [K], distinct → table[indices] [K, D].
Value gather_rows(Tape& tape, const Value& table, const at::Tensor& indices);

}  // namespace tearless::engine
