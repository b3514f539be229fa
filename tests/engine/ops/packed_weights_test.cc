// Matmuls with weights that are laid out once: the numbers of the library, and the same bits whatever the other rows
// are.
#include "engine/ops/packed_weights.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "engine/ops/linear.h"
#include "tests/engine/ops/op_check.h"

namespace tearless::engine::packed_weights_test {
namespace {

using test::random_tensor;

Value floats(const std::vector<int64_t>& shape, uint64_t seed) {
  return Value(random_tensor(shape, seed).to(at::kFloat));
}

at::Tensor packed(PackedWeights& weights, const Value& x, const Value& weight, const Value& bias) {
  Tape tape(Tape::Kind::kForward);
  tape.set_packed_weights(&weights);
  return linear(tape, x, weight, bias).data();
}

TEST(PackedWeights, GiveTheNumbersOfTheFormulaForEveryNumberOfRowsAndOutputs) {
  test::for_each_cpu_backend([] {
    for (const int64_t outputs : {1, 3, 16, 31, 32, 33, 200}) {
      for (const int64_t inputs : {1, 7, 64, 129}) {
        const Value weight = floats({outputs, inputs}, 1), bias = floats({outputs}, 2);
        PackedWeights weights;
        for (const int64_t rows : {1, 2, 5, 6, 7, 12, 13, 30}) {
          SCOPED_TRACE(fmt::format("{} rows, {} inputs, {} outputs", rows, inputs, outputs));
          const Value x = floats({rows, inputs}, 3);
          const at::Tensor expected = x.data().to(at::kDouble).matmul(weight.data().to(at::kDouble).t());
          EXPECT_LT(test::distance(packed(weights, x, weight, {}), expected), 1e-6 * static_cast<double>(inputs));
          EXPECT_LT(test::distance(packed(weights, x, weight, bias), expected + bias.data().to(at::kDouble)),
                    1e-6 * static_cast<double>(inputs));
        }
      }
    }
  });
}

TEST(PackedWeights, TakeRowsThatLieApart) {
  const Value weight = floats({40, 6}, 1), wide = floats({9, 11}, 2);
  PackedWeights weights;
  const Value x(wide.data().slice(1, 3, 9));
  EXPECT_TRUE(at::equal(packed(weights, x, weight, {}), packed(weights, Value(x.data().contiguous()), weight, {})));
}

TEST(PackedWeights, GiveARowTheSameBitsInEveryBatch) {
  const Value weight = floats({100, 64}, 1), bias = floats({100}, 2), x = floats({29, 64}, 3);
  PackedWeights weights;
  const at::Tensor whole = packed(weights, x, weight, bias);
  for (int64_t first = 0; first < 29; ++first) {
    for (const int64_t count : {1, 4, 6, 11}) {
      if (first + count > 29) continue;
      const Value some(x.data().slice(0, first, first + count).contiguous());
      EXPECT_TRUE(at::equal(packed(weights, some, weight, bias), whole.slice(0, first, first + count)));
    }
  }
}

TEST(PackedWeights, AreLaidOutOnce) {
  const Value weight = floats({20, 8}, 1), other = floats({20, 8}, 2);
  PackedWeights weights;
  const at::Tensor panels = weights.panels_of(weight.data());
  EXPECT_EQ(weights.panels_of(weight.data()).const_data_ptr(), panels.const_data_ptr());
  EXPECT_NE(weights.panels_of(other.data()).const_data_ptr(), panels.const_data_ptr());
  const at::Tensor first_rows = weight.data().slice(0, 0, 5);  // which begin where the whole begins
  EXPECT_NE(weights.panels_of(first_rows).const_data_ptr(), panels.const_data_ptr());
  EXPECT_FALSE(weights.panels_of(weight.data().to(at::kDouble)).defined()) << "no kernel for doubles is asked for";
}

TEST(PackedWeights, AreNotReadWhileATapeRecords) {
  const Value weight = floats({20, 8}, 1), x = floats({3, 8}, 2);
  PackedWeights weights;
  const at::Tensor before = packed(weights, x, weight, {});
  weight.data().mul_(2);
  Tape tape(Tape::Kind::kRecording);
  tape.set_packed_weights(&weights);
  EXPECT_LT(test::distance(linear(tape, x, weight, {}).data(), 2 * before), 1e-6);
}

}  // namespace
}  // namespace tearless::engine::packed_weights_test
