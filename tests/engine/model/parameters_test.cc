// Parameters: declared one by one or joined, laid out when all are known.
#include "engine/model/parameters.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace tearless::engine::parameters_test {
namespace {

const Initial kNormal{Initial::Kind::kNormal, 1};

std::vector<std::string> names(const Parameters& parameters) {
  std::vector<std::string> all;
  for (const ParameterSpec& spec : parameters.specs()) all.push_back(spec.name);
  return all;
}

TEST(Parameters, AreLaidOutInTheOrderOfTheirDeclarationAndThoseThatMisalignLast) {
  Parameters parameters(1, at::kCPU);
  parameters.declare({"gain", {1}, kNormal});
  parameters.declare_joined({{"q", {4, 4}, kNormal}, {"k", {4, 4}, kNormal}});
  parameters.declare_joined({{"q.bias", {4}, kNormal}, {"k.bias", {4}, kNormal}});
  parameters.declare({"w", {2, 4}, kNormal});
  EXPECT_EQ(parameters.count(), 1 + 2 * 16 + 2 * 4 + 8);
  parameters.allocate();
  EXPECT_EQ(names(parameters), (std::vector<std::string>{"q", "k", "w", "gain", "q.bias", "k.bias"}));
  EXPECT_EQ(parameters.values().numel(), parameters.count());
}

TEST(Parameters, AValueFromBeforeTheAllocationIsAViewOfTheBuffersAndSoAreItsCopies) {
  Parameters parameters(1, at::kCPU, RowPrecision::kBf16);
  parameters.declare({"first", {8}, kNormal});
  const Value joined = parameters.declare_joined({{"q", {2, 4}, kNormal}, {"k", {2, 4}, kNormal}});
  const Value copy = joined;
  parameters.allocate();
  for (const Value& value : {joined, copy}) {
    EXPECT_EQ(value.data().sizes(), (std::vector<int64_t>{4, 4}));
    EXPECT_TRUE(at::equal(value.data().flatten(), parameters.values().slice(0, 8, 24)));
    EXPECT_TRUE(at::equal(value.data()[0], parameters.get("q").data()[0]));
    EXPECT_TRUE(at::equal(value.data()[2], parameters.get("k").data()[0]));
    EXPECT_TRUE(at::equal(value.bf16_copy().flatten(), parameters.bf16_copy().slice(0, 8, 24)));
  }
  copy.grad_buffer().fill_(3);
  EXPECT_EQ(parameters.gradients().sum().item<float>(), 3.0f * 16);
  EXPECT_FALSE(parameters.get("no such parameter"));
}

TEST(Parameters, AJoinedParameterStartsAsItWouldAlone) {
  Parameters joined(7, at::kCPU), alone(7, at::kCPU);
  joined.declare_joined({{"q", {3, 5}, kNormal}, {"k", {3, 5}, kNormal}});
  joined.allocate();
  alone.declare({"k", {3, 5}, kNormal});
  alone.allocate();
  EXPECT_TRUE(at::equal(joined.get("k").data(), alone.get("k").data()));
}

TEST(Parameters, AreDeclaredOnceBeforeTheAllocationAndJoinedOnlyInOneShape) {
  Parameters parameters(1, at::kCPU);
  parameters.declare({"w", {8}, {}});
  EXPECT_THROW(parameters.declare({"w", {8}, {}}), std::logic_error);
  EXPECT_THROW(parameters.declare_joined({{"a", {8}, {}}, {"b", {9}, {}}}), std::logic_error);
  parameters.allocate();
  EXPECT_THROW(parameters.declare({"late", {8}, {}}), std::logic_error);
}

}  // namespace
}  // namespace tearless::engine::parameters_test
