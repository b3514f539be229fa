// What [observe] logs of an update, against sums written out here.
#include "engine/train/observe.h"

#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <cmath>

namespace tearless::engine::observe_test {
namespace {

TEST(ParameterGroup, IsThePartOfTheModelThatAParameterBelongsTo) {
  const std::map<std::string, std::string> groups = {
      {"encoder.1.ffn.w1.weight", "encoder.1.ffn"},
      {"encoder.1.ffn.norm.gain", "encoder.1.ffn"},
      {"decoder.12.cross_attention.q.bias", "decoder.12.cross_attention"},
      {"decoder.final.norm.bias", "decoder.final.norm"},
      {"embedding.shared", "embedding.shared"},
      {"embedding.source.language", "embedding.source.language"},
      {"output.weight", "output"},
      {"output.bias", "output"}};
  for (const auto& [parameter, group] : groups) EXPECT_EQ(parameter_group(parameter), group);
}

TEST(ObservedGroups, HaveTheNormOfTheirGradientAndOfTheirRelativeChange) {
  Parameters parameters(/*seed=*/1, at::kCPU);
  const Value weight = parameters.declare({"a.b.c.weight", {8}, {Initial::Kind::kConstant, 2}});
  const Value bias = parameters.declare({"a.b.c.bias", {8}, {Initial::Kind::kConstant, 1}});
  const Value zero = parameters.declare({"out.bias", {8}, {Initial::Kind::kConstant, 0}});
  parameters.allocate();
  weight.grad().fill_(3);
  bias.grad().fill_(-4);
  zero.grad().fill_(1);
  const ObservedGroups groups(parameters, /*divisor=*/2);
  weight.data().add_(0.5);
  zero.data().add_(1);
  parameters.gradients().zero_();  // the optimiser's step ends so
  std::map<std::string, double> metrics;
  groups.add_metrics(metrics);
  ASSERT_EQ(metrics.size(), 3u) << "a group of zeros has no ratio";
  EXPECT_DOUBLE_EQ(metrics.at("grad_norm.a.b.c"), std::sqrt(8 * 9 + 8 * 16) / 2);
  EXPECT_DOUBLE_EQ(metrics.at("grad_norm.out"), std::sqrt(8) / 2);
  EXPECT_DOUBLE_EQ(metrics.at("update_ratio.a.b.c"), std::sqrt(8 * 0.25) / std::sqrt(8 * 4 + 8 * 1));
}

}  // namespace
}  // namespace tearless::engine::observe_test
