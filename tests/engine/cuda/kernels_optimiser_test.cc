// The CUDA kernels of the squared norm and of Adam against loops in double.
#include <fmt/format.h>

#include "tests/engine/cuda/kernel_check.h"

namespace tearless::engine::test::kernels_optimiser_test {
namespace {

class OptimiserKernel : public OnEachBackend {};
TEARLESS_ON_EACH_BACKEND(OptimiserKernel);

constexpr float kBeta1 = 0.8f, kBeta2 = 0.95f;

/// Other ones for each update.
AdamFactors factors(int n) {
  return {.step_size = 0.01f * static_cast<float>(n),
          .inverse_sqrt_correction2 = 1.25f,
          .eps = 1e-3f * static_cast<float>(n),
          .decay = 2e-3f * static_cast<float>(n)};
}

TEST_P(OptimiserKernel, SquaredNormIsExactToDouble) {
  for (const size_t size : {0, 1, 3, 4, 1000, 16'384, 16'385, 200'003}) {
    for (const size_t shift : {0, 1}) {
      const std::vector<double> g = normal_numbers<float>(size, 1);
      const Outputs got = run_twice([&] {
        const Array<float> gradients = Array<float>::of(g, shift);
        Array<double> sum(1);
        backend()->optimiser->squared_norm({static_cast<int64_t>(size), gradients.data(), sum.data()}, nullptr);
        backend()->synchronise();
        return Outputs{{sum.data()[0]}};
      });
      double sum = 0;
      for (const double x : g) sum += x * x;
      EXPECT_NEAR(got[0][0], sum, 1e-13 * sum) << size;
    }
  }
}

TEST_P(OptimiserKernel, SquaredNormShowsANumberThatIsNotFinite) {
  Array<float> gradients(40'000);
  std::fill_n(gradients.data(), 40'000, 0.0f);
  Array<double> sum(1);
  for (const float bad : {NAN, INFINITY}) {
    gradients.data()[39'999] = bad;
    backend()->optimiser->squared_norm({40'000, gradients.data(), sum.data()}, nullptr);
    backend()->synchronise();
    EXPECT_FALSE(std::isfinite(sum.data()[0]));
  }
}

/// θ, m, v after one update, in double.
struct ReferenceAdam {
  std::vector<double> theta, m, v;
  void update(const std::vector<double>& g, double clip, const AdamFactors& f) {
    for (size_t i = 0; i < g.size(); ++i) {
      const double clipped = clip * g[i];
      m[i] = kBeta1 * m[i] + (1 - kBeta1) * clipped;
      v[i] = kBeta2 * v[i] + (1 - kBeta2) * clipped * clipped;
      theta[i] -= f.decay * theta[i] + f.step_size * m[i] / (std::sqrt(v[i]) * f.inverse_sqrt_correction2 + f.eps);
    }
  }
};

/// The four buffers of an optimiser.
struct Buffers {
  Array<float> theta, m, v, g;
  Buffers(size_t size, size_t shift)
      : theta(Array<float>::of(normal_numbers<float>(size, 1), shift)),
        m(Array<float>::of(std::vector<double>(size), shift)),
        v(Array<float>::of(std::vector<double>(size), shift)),
        g(size, shift) {}
  Adam call() const {
    return {.size = static_cast<int64_t>(theta.size()),
            .theta = theta.data(),
            .first_moment = m.data(),
            .second_moment = v.data(),
            .gradients = g.data(),
            .beta1 = kBeta1,
            .beta2 = kBeta2,
            .one_minus_beta1 = 1 - kBeta1,
            .one_minus_beta2 = 1 - kBeta2,
            .factors = {}};
  }
  void set_gradients(const std::vector<double>& values) {
    for (size_t i = 0; i < values.size(); ++i) g.data()[i] = static_cast<float>(values[i]);
  }
};

TEST_P(OptimiserKernel, AdamFollowsTheFormulaAndZeroesGradients) {
  for (const size_t size : {1, 3, 4, 37, 2048, 5001}) {
    const size_t shift = size % 3;
    const Outputs got = run_twice([&] {
      Buffers buffers(size, shift);
      for (int n = 1; n <= 5; ++n) {
        buffers.set_gradients(normal_numbers<float>(size, 100 + static_cast<uint64_t>(n)));
        Adam adam = buffers.call();
        adam.clip = 0.5f;
        adam.factors = factors(n);
        backend()->optimiser->adam(adam, nullptr);
        backend()->synchronise();
      }
      return Outputs{buffers.theta.values(), buffers.m.values(), buffers.v.values(), buffers.g.values()};
    });
    ReferenceAdam expected{normal_numbers<float>(size, 1), std::vector<double>(size), std::vector<double>(size)};
    for (int n = 1; n <= 5; ++n)
      expected.update(normal_numbers<float>(size, 100 + static_cast<uint64_t>(n)), 0.5, factors(n));
    expect_close<float>("theta", got[0], expected.theta, arithmetic(5));
    expect_close<float>("first moment", got[1], expected.m, arithmetic(5));
    expect_close<float>("second moment", got[2], expected.v, arithmetic(5));
    EXPECT_EQ(got[3], std::vector<double>(size)) << "the gradients stay for the next update";
  }
}

TEST_P(OptimiserKernel, AdamOnDeviceClipsByTheNormThatItFinds) {
  constexpr size_t kSize = 5001;
  for (const double clip_norm : {0.0, 1.0, 1e3}) {
    const Outputs got = run_twice([&] {
      Buffers buffers(kSize, 0);
      Array<UpdateInputs> inputs(1);
      Array<UpdateOutcome> outcome(1);
      Array<uint16_t> half(kSize, clip_norm == 0 ? 1 : 0);
      outcome.data()[0] = {};
      for (int n = 1; n <= 3; ++n) {
        buffers.set_gradients(normal_numbers<float>(kSize, 100 + static_cast<uint64_t>(n)));
        inputs.data()[0] = {.loss_scale = 0, .adam = factors(n), .update = static_cast<uint32_t>(n)};
        backend()->optimiser->squared_norm({kSize, buffers.g.data(), &outcome.data()->squared_norm}, nullptr);
        backend()->optimiser->adam_on_device({.adam = buffers.call(),
                                              .clip_norm = clip_norm,
                                              .inputs = inputs.data(),
                                              .outcome = outcome.data(),
                                              .theta_bf16 = half.data()},
                                             nullptr);
        backend()->synchronise();
        EXPECT_EQ(outcome.data()->frozen_at, 0u);
      }
      for (size_t i = 0; i < kSize; ++i) EXPECT_EQ(half.data()[i], bf16_bits(buffers.theta.data()[i]));
      return Outputs{buffers.theta.values(), buffers.m.values(), buffers.v.values(), buffers.g.values()};
    });
    ReferenceAdam expected{normal_numbers<float>(kSize, 1), std::vector<double>(kSize), std::vector<double>(kSize)};
    for (int n = 1; n <= 3; ++n) {
      const std::vector<double> g = normal_numbers<float>(kSize, 100 + static_cast<uint64_t>(n));
      double squares = 0;
      for (const double x : g) squares += x * x;
      expected.update(g, clip_norm > 0 ? std::min(1.0, clip_norm / (std::sqrt(squares) + 1e-6)) : 1.0, factors(n));
    }
    expect_close<float>("theta", got[0], expected.theta, arithmetic(5));
    expect_close<float>("first moment", got[1], expected.m, arithmetic(5));
    expect_close<float>("second moment", got[2], expected.v, arithmetic(5));
    EXPECT_EQ(got[3], std::vector<double>(kSize));
  }
}

TEST_P(OptimiserKernel, AdamOnDeviceFreezesAtTheFirstUpdateThatIsNotFinite) {
  constexpr size_t kSize = 5001;
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    const Outputs got = run_twice([&] {
      Buffers buffers(kSize, 0);
      Array<UpdateInputs> inputs(1);
      Array<UpdateOutcome> outcome(1);
      outcome.data()[0] = {};
      Outputs out;
      for (uint32_t n = 7; n <= 10; ++n) {
        buffers.set_gradients(normal_numbers<float>(kSize, n));
        if (n >= 8 && n <= 9) buffers.g.data()[4000] = bad;
        inputs.data()[0] = {.loss_scale = 0, .adam = factors(1), .update = n};
        backend()->optimiser->squared_norm({kSize, buffers.g.data(), &outcome.data()->squared_norm}, nullptr);
        backend()->optimiser->adam_on_device(
            {.adam = buffers.call(), .clip_norm = 1, .inputs = inputs.data(), .outcome = outcome.data()}, nullptr);
        backend()->synchronise();
        EXPECT_EQ(outcome.data()->frozen_at, n == 7 ? 0u : 8u);
        EXPECT_EQ(buffers.g.values(), std::vector<double>(kSize)) << "gradients are zero after a frozen update too";
        out.push_back(buffers.theta.values());
        out.push_back(buffers.m.values());
        out.push_back(buffers.v.values());
      }
      return out;
    });
    EXPECT_NE(got[0], normal_numbers<float>(kSize, 1)) << "the finite update before moved the weights";
    for (size_t i = 3; i < got.size(); ++i) EXPECT_EQ(got[i], got[i % 3]);
  }
}

}  // namespace
}  // namespace tearless::engine::test::kernels_optimiser_test
