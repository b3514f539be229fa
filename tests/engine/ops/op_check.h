// Compares one operation with three independent references: autograd over its formula, central finite differences, and
// itself in the other precision. Also random tensors and packed rows for tests of operations.
#pragma once

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "engine/ops/backend.h"
#include "engine/ops/packed_rows.h"
#include "engine/ops/tape.h"
#include "tests/support/sanitized.h"

namespace tearless::engine::test {

/// Normal numbers, in double; the same for the same seed.
inline at::Tensor random_tensor(const std::vector<int64_t>& shape, uint64_t seed) {
  at::Tensor x = at::empty(shape, at::kDouble);
  std::mt19937_64 bits(seed);
  std::normal_distribution<double> normal;
  for (int64_t i = 0; i < x.numel(); ++i) x.mutable_data_ptr<double>()[i] = normal(bits);
  return x;
}

/// Sentences of these lengths with random tokens, with sentence ids that are far apart (one beyond 2²⁰, since dropout
/// masks depend on them).
inline PackedRows packed_rows(const std::vector<int32_t>& lengths, int32_t vocabulary = 11, uint64_t seed = 5) {
  PackedRows rows;
  rows.offsets = {0};
  std::mt19937_64 bits(seed);
  std::uniform_int_distribution<int32_t> token(0, vocabulary - 1);
  for (size_t i = 0; i < lengths.size(); ++i) {
    for (int32_t p = 0; p < lengths[i]; ++p) {
      rows.tokens.push_back(token(bits));
      rows.positions.push_back(p);
      rows.sentence_ids.push_back(static_cast<int32_t>(17 + i * 1'000'003));
    }
    rows.offsets.push_back(static_cast<int32_t>(rows.tokens.size()));
  }
  return rows;
}

/// max |a - b| over max |b|: how far apart two tensors are in units of the second's largest element, or of `unit` where
/// that is larger.
inline double distance(const at::Tensor& a, const at::Tensor& b, double unit = 0) {
  const double largest = b.abs().max().item<double>();
  return (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>() / std::max({largest, unit, 1e-30});
}

using Operation = std::function<Value(Tape&, const std::vector<Value>&)>;

struct OpCase {
  std::string name;
  std::vector<at::Tensor> inputs;  // double; undefined where an optional input is absent
  Operation op;
  Operation reference = {};    // where the operation has no formula of its own on a tape of Ops::kReference
  size_t first_parameter = 1;  // inputs from here on are parameters: fp32 where rows are bf16
  Operation differenced = {};  // what finite differences vary, if not `op`: one with parts of it held fixed
};

struct ForwardBackward {
  at::Tensor output;
  std::vector<at::Tensor> gradients;  // undefined for absent inputs
};

/// Of the gradient that the output gets. Apart from all inputs: an upstream gradient equal to the input hides the
/// derivative of a norm, which has none along its row.
inline constexpr uint64_t kUpstreamSeed = 1000;

inline ForwardBackward forward_backward(const Operation& op, const std::vector<at::Tensor>& inputs, Tape::Ops ops,
                                        at::ScalarType type, at::Device device = at::kCPU,
                                        size_t first_parameter = SIZE_MAX) {
  Tape tape(Tape::Kind::kRecording, ops);
  std::vector<Value> values;
  for (const at::Tensor& x : inputs) {
    const bool wide = type == at::kBFloat16 && values.size() >= first_parameter;
    values.push_back(x.defined() ? Value(x.to(wide ? at::kFloat : type).to(device).clone()) : Value());
  }
  const Value output = op(tape, values);
  ForwardBackward result{output.data().cpu().clone(), {}};
  output.add_grad(random_tensor(output.data().sizes().vec(), kUpstreamSeed).to(type).to(device));
  tape.backward();
  for (const Value& value : values) {
    result.gradients.push_back(value && value.has_grad() ? value.grad().cpu() : at::Tensor());
  }
  return result;
}

/// The operation's derivative along element `i` of `input`, by central differences in double. `upstream` is the
/// gradient that its output gets.
inline double finite_difference(const OpCase& c, size_t input, int64_t i, const at::Tensor& upstream) {
  constexpr double kStep = 1e-5;
  const auto at_offset = [&](double offset) {
    std::vector<Value> values;
    for (size_t j = 0; j < c.inputs.size(); ++j) {
      at::Tensor x = c.inputs[j].defined() ? c.inputs[j].clone() : at::Tensor();
      if (j == input) x.mutable_data_ptr<double>()[i] += offset;
      values.push_back(x.defined() ? Value(x) : Value());
    }
    Tape tape(Tape::Kind::kForward);
    const at::Tensor y = (c.differenced ? c.differenced : c.op)(tape, values).data();
    return (y * upstream).sum().item<double>();
  };
  return (at_offset(kStep) - at_offset(-kStep)) / (2 * kStep);
}

/// Float: 24-bit rounding over sums of some hundred terms. Double: 53-bit rounding likewise. Bf16: sums are of fp32,
/// but what an operation stores between two of its passes is rounded to 8 bits, a half unit being 2⁻⁹ = 0.002, and
/// some numbers are stored three times.
inline constexpr double kFloatTolerance = 2e-5, kDoubleTolerance = 1e-12, kBf16Tolerance = 0.012;

/// Calls f once with the kernels for each instruction set that this processor has.
inline void for_each_cpu_backend(const std::function<void()>& f) {
  const std::string_view before = cpu_backend().name;
  for (const Backend& backend : cpu_backends()) {
    if (!backend.supported) continue;
    SCOPED_TRACE(fmt::format("kernels for {}", backend.name));
    use_cpu_backend(backend.name);
    f();
  }
  use_cpu_backend(before);
}

/// One type on one device, with the kernels in use, against the formula on the CPU.
inline void expect_agreement_with_reference(const OpCase& c, at::ScalarType type, double tolerance,
                                            at::Device device = at::kCPU) {
  const ForwardBackward fast = forward_backward(c.op, c.inputs, Tape::Ops::kFast, type, device, c.first_parameter);
  const ForwardBackward reference = forward_backward(c.reference ? c.reference : c.op, c.inputs, Tape::Ops::kReference,
                                                     type, at::kCPU, c.first_parameter);
  EXPECT_EQ(fast.output.scalar_type(), type);
  EXPECT_LT(distance(fast.output, reference.output), tolerance) << "output";
  // A gradient that is 0 by cancellation (a softmax over one key) is so within the rounding of what cancels.
  double largest = 0;
  for (const at::Tensor& g : reference.gradients) {
    if (g.defined()) largest = std::max(largest, g.abs().max().item<double>());
  }
  for (size_t j = 0; j < c.inputs.size(); ++j) {
    if (!c.inputs[j].defined()) continue;
    ASSERT_TRUE(fast.gradients[j].defined() && reference.gradients[j].defined()) << "no gradient reached input " << j;
    EXPECT_LT(distance(fast.gradients[j], reference.gradients[j], 1e-3 * largest), tolerance)
        << "gradient of input " << j;
  }
}

/// With the kernels that are in use.
inline void expect_right_backward(const OpCase& c) {
  at::set_num_threads(1);  // for so little work one thread is faster
  expect_agreement_with_reference(c, at::kFloat, kFloatTolerance);
  expect_agreement_with_reference(c, at::kDouble, kDoubleTolerance);

  const ForwardBackward fast = forward_backward(c.op, c.inputs, Tape::Ops::kFast, at::kDouble);
  const at::Tensor upstream = random_tensor(fast.output.sizes().vec(), kUpstreamSeed);
  constexpr int64_t kTried = tearless::test::kSanitized ? 4 : 40;
  std::mt19937_64 bits(3);
  for (size_t j = 0; j < c.inputs.size(); ++j) {
    if (!c.inputs[j].defined()) continue;
    const int64_t size = c.inputs[j].numel();
    const double largest = fast.gradients[j].abs().max().item<double>();
    const int64_t tried = std::min(size, kTried);  // all of a small input, a sample of a large one
    for (int64_t k = 0; k < tried; ++k) {
      const int64_t i = size == tried ? k : static_cast<int64_t>(bits() % static_cast<uint64_t>(size));
      EXPECT_NEAR(fast.gradients[j].const_data_ptr<double>()[i], finite_difference(c, j, i, upstream),
                  1e-7 * std::max(1.0, largest))
          << "element " << i << " of input " << j;
    }
  }
}

}  // namespace tearless::engine::test
