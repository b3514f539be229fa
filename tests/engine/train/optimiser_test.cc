// Updates of each kind of optimiser against a few made by hand in double.
#include "engine/train/optimiser.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <stdexcept>
#include <string>

#include "engine/ops/backend.h"
#include "engine/train/options.h"
#include "tests/support/error_of.h"

namespace tearless::engine::optimiser_test {
namespace {

constexpr double kLearningRate = 0.03;

TrainOptions settings(const std::map<std::string, nlohmann::json>& written_values) {
  TrainOptions train;
  WrittenSettings written;
  written.values = written_values;
  read_settings(written, [&](SettingsVisitor& v) { describe(v, train, false); });
  return train;
}

/// One parameter and its gradients of four updates; the second is so small that ε matters.
constexpr double kFirst = 0.7;
constexpr double kGradients[] = {0.5, 1e-4, -0.25, 0.125};

/// The parameter after four updates, each of a gradient `divisor` times as large.
double trained(const TrainOptions& train, double divisor = 1) {
  at::Tensor parameter = at::tensor({kFirst}, at::kFloat), gradient = at::tensor({0.0}, at::kFloat);
  OptimiserState state(train.optimiser.chosen(), parameter);
  for (int64_t n = 1; n <= 4; ++n) {
    gradient.fill_(divisor * kGradients[n - 1]);
    const double norm = std::abs(kGradients[n - 1]);
    optimiser_step(train, kLearningRate, n, norm, divisor, gradient, parameter, state);
    EXPECT_EQ(gradient.item<float>(), 0);
  }
  return parameter.item<float>();
}

/// The same by hand. `step`(m, v, t): what is subtracted.
double by_hand(double beta1, double beta2, double weight_decay,
               const std::function<double(double m, double v, double t)>& step, double clip_norm = 0) {
  double theta = kFirst, m = 0, v = 0, t = 0;
  for (double g : kGradients) {
    t += 1;
    if (clip_norm > 0) g *= std::min(1.0, clip_norm / (std::abs(g) + 1e-6));
    m = beta1 * m + (1 - beta1) * g;
    v = beta2 * v + (1 - beta2) * g * g;
    theta -= kLearningRate * weight_decay * theta;
    theta -= step(m, v, t);
  }
  return theta;
}

TEST(OptimiserKinds, RefuseANameThatIsNotInTheirList) {
  EXPECT_EQ(tearless::test::error_of<std::logic_error>([] { optimiser_kinds().at("sgd3"); }), "no kind is called sgd3");
}

TEST(Optimiser, AdamAddsEpsToTheCorrectedRootAndFairseqsToTheRootAsItIs) {
  for (const double decay : {0.0, 0.4}) {
    const std::map<std::string, nlohmann::json> common = {{"clip_norm", 0},
                                                          {"adam.beta1", 0.8},
                                                          {"adam.beta2", 0.98},
                                                          {"adam.eps", 0.05},
                                                          {"optimiser.weight_decay", decay}};
    const double torch = by_hand(0.8, 0.98, decay, [](double m, double v, double t) {
      return kLearningRate * (m / (1 - std::pow(0.8, t))) / (std::sqrt(v / (1 - std::pow(0.98, t))) + 0.05);
    });
    const double fairseq = by_hand(0.8, 0.98, decay, [](double m, double v, double t) {
      const double size = kLearningRate * std::sqrt(1 - std::pow(0.98, t)) / (1 - std::pow(0.8, t));
      return size * m / (std::sqrt(v) + 0.05);
    });
    auto other = common;
    other["optimiser.kind"] = "fairseq_adam";
    EXPECT_NEAR(trained(settings(common)), torch, 1e-7) << decay;
    EXPECT_NEAR(trained(settings(other)), fairseq, 1e-7) << decay;
    EXPECT_GT(std::abs(torch - fairseq), 1e-3) << "the example tells them apart";

    const Backend& whole = cpu_backend();
    Backend without = whole;
    without.optimiser = nullptr;
    use_cpu_backend(without);
    EXPECT_NEAR(trained(settings(common)), torch, 1e-7) << "by its formula";
    EXPECT_NEAR(trained(settings(other)), fairseq, 1e-7) << "by its formula";
    use_cpu_backend(whole);
  }
}

TEST(Optimiser, SgdHasAMomentumAClippedGradientAndADecay) {
  double sum = 0;
  const double expected = by_hand(
      0, 0, 0.4,
      [&](double g, double, double) {
        sum = 0.6 * sum + g;
        return kLearningRate * sum;
      },
      0.2);
  EXPECT_NEAR(trained(settings({{"clip_norm", 0.2},
                                {"optimiser.kind", "sgd"},
                                {"optimiser.sgd.momentum", 0.6},
                                {"optimiser.weight_decay", 0.4}})),
              expected, 1e-7);
}

TEST(Optimiser, AdagradDividesByTheRootOfTheSumOfSquares) {
  double sum = 0;
  const double expected = by_hand(0, 0, 0, [&](double g, double, double) {
    sum += g * g;
    return kLearningRate * g / std::sqrt(sum + 0.5);
  });
  const std::map<std::string, nlohmann::json> adagrad = {{"clip_norm", 0}, {"optimiser.kind", "adagrad"}};
  auto with_eps = adagrad;
  with_eps["optimiser.adagrad.eps"] = 0.5;
  EXPECT_NEAR(trained(settings(with_eps)), expected, 1e-7);
  EXPECT_GT(std::abs(trained(settings(adagrad)) - expected), 1e-3) << "ε is 1e-6";
}

TEST(Optimiser, L2AddsToTheClippedGradientOfEachKind) {
  constexpr double kL2 = 0.3, kClip = 0.2;
  for (const auto& kind : optimiser_kinds()) {
    for (const double divisor : {1.0, 64.0}) {
      const TrainOptions with = settings({{"optimiser.kind", kind->name}, {"clip_norm", kClip}, {"optimiser.l2", kL2}});
      const TrainOptions without = settings({{"optimiser.kind", kind->name}, {"clip_norm", 0}});
      at::Tensor theta = at::tensor({kFirst}, at::kFloat), gradient = at::tensor({0.0}, at::kFloat);
      OptimiserState state(without.optimiser.chosen(), theta);
      for (int64_t n = 1; n <= 4; ++n) {  // the same by its gradient alone
        const double g = kGradients[n - 1];
        gradient.fill_(g * std::min(1.0, kClip / (std::abs(g) + 1e-6)) + kL2 * theta.item<double>());
        optimiser_step(without, kLearningRate, n, 0, 1, gradient, theta, state);
      }
      EXPECT_NEAR(trained(with, divisor), theta.item<float>(), 1e-6) << kind->name;
    }
  }
}

// lr · weight_decay is about an fp32 ulp of 1 in the runs of ADA: a factor 1 - lr · weight_decay would be half as much
// or twice as much.
TEST(Optimiser, AWeightDecayNearTheLastBitOfOneIsExact) {
  TrainOptions train = settings({{"optimiser.weight_decay", 1e-4}});
  at::Tensor parameter = at::tensor({1.0}, at::kFloat), gradient = at::tensor({0.0}, at::kFloat);
  for (const double learning_rate : {1.5e-3, 8e-4, 4e-4}) {
    EXPECT_EQ(adam_factors(adam_step_of(train, learning_rate, 1)).decay, static_cast<float>(learning_rate * 1e-4));
  }
  OptimiserState state(train.optimiser.chosen(), parameter);
  for (int64_t n = 1; n <= 1000; ++n) optimiser_step(train, 8e-4, n, 0, 1, gradient, parameter, state);
  EXPECT_NEAR(parameter.item<float>(), std::exp(-1000 * 8e-8), 3e-5) << "rounding of θ itself";
  EXPECT_LT(parameter.item<float>(), 1);
}

TEST(Optimiser, DividesGradientsBeforeItClipsThem) {
  for (const auto& kind : optimiser_kinds()) {
    for (const double clip : {0.0, 0.2}) {
      const TrainOptions train = settings({{"optimiser.kind", kind->name}, {"clip_norm", clip}});
      EXPECT_NEAR(trained(train, 64), trained(train), 1e-7) << kind->name;
    }
  }
}

TEST(Optimiser, KeepsAsManyBuffersAsItSays) {
  const at::Tensor parameters = at::tensor({1.0, 2.0, 3.0}, at::kFloat);
  for (const auto& kind : optimiser_kinds()) {
    const OptimiserState state(*kind, parameters);
    EXPECT_EQ(static_cast<int64_t>(state.buffers.size()), kind->buffers) << kind->name;
    for (const at::Tensor& buffer : state.buffers) EXPECT_TRUE(at::equal(buffer, parameters * 0));
  }
  EXPECT_EQ(optimiser_kinds().at("adam").buffers, 2);
  EXPECT_EQ(optimiser_kinds().at("sgd").buffers, 1);
  EXPECT_EQ(optimiser_kinds().at("adagrad").buffers, 1);
}

}  // namespace
}  // namespace tearless::engine::optimiser_test
