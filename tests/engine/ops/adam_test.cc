// Clipping and Adam against the formulas written out in double.
#include "engine/ops/adam.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "engine/ops/backend.h"
#include "tests/engine/ops/op_check.h"

namespace tearless::engine::adam_test {
namespace {

using test::random_tensor;

TEST(Adam, WithoutKernelsMakesTheSameUpdate) {
  const AdamStep step{.learning_rate = 0.5, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3, .clip_norm = 1.0, .update = 3};
  struct Numbers {
    at::Tensor g = random_tensor({37}, 1).to(at::kFloat), theta = random_tensor({37}, 2).to(at::kFloat);
    at::Tensor m = random_tensor({37}, 3).to(at::kFloat), v = (random_tensor({37}, 4).square() + 1).to(at::kFloat);
    double norm = global_norm(g);

    explicit Numbers(const AdamStep& step) { adam_step(step, norm, g, theta, m, v); }
  };
  const Backend& whole = cpu_backend();
  const Numbers by_kernels(step);
  Backend without = whole;
  without.optimiser = nullptr;
  use_cpu_backend(without);
  const Numbers by_formula(step);
  use_cpu_backend(whole);
  EXPECT_NEAR(by_formula.norm, by_kernels.norm, 1e-12 * by_kernels.norm);
  EXPECT_LT(test::distance(by_formula.theta, by_kernels.theta), test::kFloatTolerance);
  EXPECT_LT(test::distance(by_formula.m, by_kernels.m), test::kFloatTolerance);
  EXPECT_LT(test::distance(by_formula.v, by_kernels.v), test::kFloatTolerance);
  EXPECT_EQ(by_formula.g.count_nonzero().item<int64_t>(), 0);
  EXPECT_GT(test::distance(by_formula.theta, random_tensor({37}, 2)), 0.1) << "it moved";
}

TEST(Adam, FollowsTheFormulaOverManyUpdatesClippedAndNot) {
  constexpr int64_t kSize = 37;
  for (const double clip : {0.0, 1.0, 1e3}) {
    at::Tensor theta = random_tensor({kSize}, 1).to(at::kFloat);
    at::Tensor m = at::zeros({kSize}, at::kFloat), v = at::zeros({kSize}, at::kFloat);
    at::Tensor expected = theta.to(at::kDouble);
    at::Tensor m_expected = expected * 0, v_expected = expected * 0;
    for (int64_t n = 1; n <= 20; ++n) {
      at::Tensor g = random_tensor({kSize}, 100 + static_cast<uint64_t>(n)).to(at::kFloat);
      const double norm = g.to(at::kDouble).norm().item<double>();
      EXPECT_NEAR(global_norm(g), norm, 1e-12 * norm);
      const AdamStep step{.learning_rate = 0.01 * static_cast<double>(n),
                          .beta1 = 0.8,
                          .beta2 = 0.95,
                          .eps = 1e-3,
                          .clip_norm = clip,
                          .update = n};
      const at::Tensor clipped = g.to(at::kDouble) * (clip == 0 ? 1.0 : std::min(1.0, clip / (norm + 1e-6)));
      adam_step(step, norm, g, theta, m, v);
      EXPECT_EQ(g.count_nonzero().item<int64_t>(), 0) << "the gradients stay for the next update";
      m_expected = 0.8 * m_expected + 0.2 * clipped;
      v_expected = 0.95 * v_expected + 0.05 * clipped.square();
      const double correction1 = 1 - std::pow(0.8, n), correction2 = 1 - std::pow(0.95, n);
      expected =
          expected - step.learning_rate * (m_expected / correction1) / ((v_expected / correction2).sqrt() + 1e-3);
    }
    EXPECT_LT(test::distance(theta, expected), 1e-6) << "clip " << clip;
    EXPECT_LT(test::distance(m, m_expected), 1e-6);
    EXPECT_LT(test::distance(v, v_expected), 1e-6);
  }
}

TEST(Adam, WithBuffersOfDifferentSizesIsRefused) {
  const auto buffer = [](int64_t size) { return at::zeros({size}, at::kFloat); };
  EXPECT_NO_THROW(adam_call({}, buffer(7), buffer(7), buffer(7), buffer(7)));
  EXPECT_THROW(adam_call({}, buffer(6), buffer(7), buffer(7), buffer(7)), std::logic_error);
  EXPECT_THROW(adam_call({}, buffer(7), buffer(7), buffer(8), buffer(7)), std::logic_error);
  EXPECT_THROW(adam_call({}, buffer(7), buffer(7), buffer(7), buffer(14).slice(0, 0, 14, 2)), std::logic_error);
  EXPECT_THROW(global_norm(buffer(14).slice(0, 0, 14, 2)), std::logic_error);
}

TEST(GlobalNorm, ShowsANumberThatIsNotFinite) {
  at::Tensor g = at::zeros({40'000}, at::kFloat);
  g[39'999] = std::nanf("");
  EXPECT_TRUE(std::isnan(global_norm(g)));
}

}  // namespace
}  // namespace tearless::engine::adam_test
