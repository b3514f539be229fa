// What [observe] logs of an update, against sums written out here.
#include "engine/train/observe.h"

#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/error_of.h"

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

TEST(LayerOf, IsTheStackAndTheNumberOfAPlaceInALayer) {
  EXPECT_EQ(layer_of("encoder.1.ffn.w1.weight"), "encoder.1");
  EXPECT_EQ(layer_of("decoder.12.cross_attention"), "decoder.12");
  for (const char* outside : {"decoder.final.norm.bias", "embedding.shared", "output.weight", "conv1.weight", "encoder",
                              "encoder.", "encoder.1a.ffn"}) {
    EXPECT_EQ(layer_of(outside), "") << outside;
  }
}

TEST(ObservedGroup, IsWhatTheSettingsChoose) {
  using By = ObserveOptions::GroupBy;
  const auto group = [](By by, const char* only, const char* parameter) {
    return observed_group({.group_by = by, .only = only}, parameter);
  };
  EXPECT_EQ(group(By::kSublayer, "", "encoder.1.ffn.w1.weight"), "encoder.1.ffn");
  EXPECT_EQ(group(By::kLayer, "", "encoder.1.ffn.w1.weight"), "encoder.1");
  EXPECT_EQ(group(By::kLayer, "", "encoder.final.norm.gain"), "encoder.final.norm");
  EXPECT_EQ(group(By::kLayer, "encoder.2, encoder.1", "encoder.1.ffn.w1.weight"), "encoder.1");
  EXPECT_EQ(group(By::kLayer, "encoder.1", "encoder.12.ffn.w1.weight"), "");
  EXPECT_EQ(group(By::kSublayer, "encoder.1", "encoder.1.ffn.w1.weight"), "") << "a layer is no sublayer";
  EXPECT_EQ(group(By::kSublayer, "output", "output.bias"), "output");
}

/// 8 numbers each, in groups a.1 and out.
struct Weights {
  Weights() : parameters(/*seed=*/1, at::kCPU) {
    weight = parameters.declare({"a.1.c.weight", {8}, {Initial::Kind::kConstant, 2}});
    bias = parameters.declare({"a.1.c.bias", {8}, {Initial::Kind::kConstant, 1}});
    zero = parameters.declare({"out.bias", {8}, {Initial::Kind::kConstant, 0}});
    other = parameters.declare({"a.1.d.bias", {8}, {Initial::Kind::kConstant, 1}});
    parameters.allocate();
  }
  Parameters parameters;
  Value weight, bias, zero, other;
};

TEST(ParameterGroups, HaveTheNormsOfTheirPartsOfABuffer) {
  Weights weights;
  weights.weight.grad().fill_(3);
  weights.bias.grad().fill_(-4);
  weights.zero.grad().fill_(1);
  weights.other.grad().fill_(2);
  const at::Tensor& gradients = weights.parameters.gradients();
  const auto by_sublayer = ParameterGroups(weights.parameters, parameter_group).norms(gradients);
  ASSERT_EQ(by_sublayer.size(), 3u);
  EXPECT_DOUBLE_EQ(by_sublayer.at("a.1.c"), std::sqrt(8 * 9 + 8 * 16));
  EXPECT_DOUBLE_EQ(by_sublayer.at("a.1.d"), std::sqrt(8 * 4));
  EXPECT_DOUBLE_EQ(by_sublayer.at("out"), std::sqrt(8));
  const auto by_layer = ParameterGroups(weights.parameters, layer_of).norms(gradients);
  ASSERT_EQ(by_layer.size(), 1u) << "out is in no layer";
  EXPECT_DOUBLE_EQ(by_layer.at("a.1"), std::sqrt(8 * 9 + 8 * 16 + 8 * 4)) << "with a gap";
}

TEST(ObservedStep, HasTheNormOfTheChangeOfEachGroupAndOfItsRelativeChange) {
  Weights weights;
  const ParameterGroups groups(weights.parameters, parameter_group);
  const ObservedStep step(weights.parameters, groups);
  weights.weight.data().add_(0.5);
  weights.zero.data().sub_(1);
  std::map<std::string, double> metrics;
  step.add_metrics(metrics);
  ASSERT_EQ(metrics.size(), 5u) << "a group of zeros has no ratio";
  EXPECT_DOUBLE_EQ(metrics.at("step_norm.a.1.c"), std::sqrt(8 * 0.25));
  EXPECT_DOUBLE_EQ(metrics.at("step_norm.a.1.d"), 0);
  EXPECT_DOUBLE_EQ(metrics.at("step_norm.out"), std::sqrt(8));
  EXPECT_DOUBLE_EQ(metrics.at("update_ratio.a.1.c"), std::sqrt(8 * 0.25) / std::sqrt(8 * 4 + 8 * 1));
  EXPECT_DOUBLE_EQ(metrics.at("update_ratio.a.1.d"), 0);
}

TEST(ObservedGroups, ThatAModelDoesNotHaveOrOfWhichNothingIsLoggedAreRefused) {
  Weights weights;
  const auto refusal = [&](const ObserveOptions& observe) {
    return tearless::test::error_of([&] { check_observed_groups(observe, weights.parameters); });
  };
  using By = ObserveOptions::GroupBy;
  EXPECT_EQ(refusal({}), "");
  EXPECT_EQ(refusal({.groups = true, .only = "a.1.c, out"}), "");
  EXPECT_EQ(refusal({.window_means = true, .group_by = By::kLayer, .only = "a.1"}), "");
  EXPECT_EQ(refusal({.groups = true, .only = "a.1"}),
            "observe.only = \"a.1\": the model has no group \"a.1\"; write them as \"a, b\", "
            "each one of: a.1.c, out, a.1.d");
  EXPECT_EQ(refusal({.groups = true, .group_by = By::kLayer, .only = "out,a.1"}),
            "observe.only = \"out,a.1\": the model has no group \"out,a.1\"; write them as \"a, b\", each one of: a.1, "
            "out");
  for (const char* key : {"group_by", "only"}) {
    const ObserveOptions useless{.variances = true,
                                 .group_by = key == std::string("only") ? By::kSublayer : By::kLayer,
                                 .only = key == std::string("only") ? "out" : ""};
    EXPECT_EQ(refusal(useless), std::string("observe.") + key +
                                    " chooses groups of parameters, but nothing of them is logged; set observe.groups "
                                    "or observe.window_means, or remove it");
  }
}

}  // namespace
}  // namespace tearless::engine::observe_test
