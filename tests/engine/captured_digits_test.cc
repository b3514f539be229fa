// Captured updates of the task digits, as captured_updater_test.cc has them for translation: the bits of the same
// padded batches operation by operation, and the updates of batches without padding.
#include <ATen/ops/isfinite.h>
#include <gtest/gtest.h>

#include "engine/ops/random.h"
#include "engine/task/digits.h"
#include "engine/train/captured_updater.h"
#include "engine/train/updater.h"
#include "tests/engine/captured_run.h"
#include "tests/engine/on_devices.h"

namespace tearless::engine::captured_digits_test {
namespace {

using test::Trained;
using Sites = DigitNetworkOptions::NormSites;

/// Images of noise with a digit each.
DigitSet noise(uint32_t count, int64_t pixels) {
  const RandomStream random(3, "noise");
  DigitSet set;
  for (uint32_t i = 0; i < count; ++i) {
    for (int64_t p = 0; p < pixels; ++p) {
      set.pixels.push_back(static_cast<uint8_t>(random.draw(static_cast<uint32_t>(p), 0, i, 0)));
    }
    set.labels.push_back(static_cast<int32_t>(random.draw(0, 1, i, 0) % 10));
  }
  return set;
}

class CapturedDigits : public test::OnDevices {
 protected:
  CapturedDigits() {
    options_.model.conv1_channels = 3;
    options_.model.conv2_channels = 4;
    options_.model.kernel = 2;
    options_.model.hidden = 5;
    options_.model.conv_dropout = options_.model.hidden_dropout = 0.2;
    options_.batch.images = 5;
    train_.clip_norm = 0.7;
  }

  /// 13 images: batches of 5, 5 and 3.
  std::unique_ptr<DigitsTask> task() {
    execution_.device = on_processor() ? ExecutionOptions::Device::kCpu : ExecutionOptions::Device::kCuda;
    execution_.precision = GetParam().precision == RowPrecision::kBf16 ? ExecutionOptions::Precision::kBf16
                                                                       : ExecutionOptions::Precision::kFp32;
    const DigitSet set = noise(13, 8 * 7);
    return std::make_unique<DigitsTask>(options_, train_, execution_,
                                        Digits{.height = 8, .width = 7, .train = set, .dev = set, .test = set});
  }

  /// Nine updates, three passes, `together` of them in flight at once.
  Trained train(int64_t most_captured, int64_t together) {
    const std::unique_ptr<DigitsTask> trained = task();
    const at::Tensor& values = trained->parameters().values();
    Moments moments(values);
    CapturedUpdater updater(*trained, train_, moments, capture_for(values), most_captured);
    Trained out;
    for (int64_t n = 1; n <= 9; ++n) {
      if (n % 3 == 1) {
        EXPECT_EQ(trained->start_pass(n / 3), 3);
      }
      updater.start(n, (n - 1) % 3, 0.02);
      if (n % together != 0 && n != 9) continue;
      for (const UpdateResult& result : updater.collect()) out.results.push_back(result);
    }
    out.parameters = values;
    out.first = moments.first;
    out.second = moments.second;
    out.captured = updater.captured();
    return out;
  }

  static void expect_same_bits(const Trained& a, const Trained& b) {
    a.expect_same_bits(b);
    ASSERT_EQ(a.results.size(), 9u);
    for (const UpdateResult& result : a.results) EXPECT_EQ(result.fallback_ops, 0);
    EXPECT_TRUE(at::isfinite(a.parameters).all().item<bool>());
  }

  DigitsTaskOptions options_;
  TrainOptions train_;
  ExecutionOptions execution_;
};

TEST_P(CapturedDigits, HaveTheBitsOfTheSamePaddedBatchesOperationByOperation) {
  const Trained captured = train(/*most_captured=*/512, /*together=*/4);
  EXPECT_EQ(captured.captured, 1) << "the smaller last batch of a pass is padded to the others' size";
  expect_same_bits(captured, train(/*most_captured=*/0, /*together=*/1));
  EXPECT_EQ(captured.results[2].sums.predictions, 3);
}

TEST_P(CapturedDigits, OfEveryArchitectureAndNormSiteAreTheSame) {
  for (const Sites sites : {Sites::kLinear, Sites::kInputs}) {
    options_.model.norm_sites = sites;
    options_.model.norm.kind = sites == Sites::kLinear ? "scale_norm" : "rms_norm";
    expect_same_bits(train(512, 3), train(0, 1));
  }
  options_.model.arch = DigitNetworkOptions::Arch::kConvConvFc;
  options_.model.hidden_dropout = 0;
  expect_same_bits(train(512, 3), train(0, 1));
}

TEST_P(CapturedDigits, EqualTheUpdatesOfTheBatchWithoutPadding) {
  const double tolerance = GetParam().precision == RowPrecision::kFp32 ? 1e-5 : 1e-2;  // of another order of sums
  options_.model.conv2_channels = 12;  // so many that dropout and ReLU leave no row of zeros, whose norm is NaN
  options_.model.hidden = 16;
  for (const char* kind : {"layer_norm", "scale_norm", "ada_norm"}) {
    SCOPED_TRACE(kind);
    options_.model.norm.kind = kind;
    options_.model.norm.eps = 0;  // a norm of padding is finite all the same
    options_.model.norm_sites = Sites::kInputs;
    const auto padded = task(), plain = task();
    Moments padded_moments(padded->parameters().values()), plain_moments(plain->parameters().values());
    CapturedUpdater captured(*padded, train_, padded_moments, capture_for(padded->parameters().values()), 512);
    TapeProfile profile;  // asks for operations one by one
    const auto eager = make_updater(*plain, train_, execution_, plain_moments, &profile);
    padded->start_pass(0);
    plain->start_pass(0);
    for (int64_t n = 1; n <= 3; ++n) {
      captured.start(n, n - 1, 0.003);
      eager->start(n, n - 1, 0.003);
      const UpdateResult a = captured.collect().at(0), b = eager->collect().at(0);
      EXPECT_EQ(a.sums.predictions, b.sums.predictions);
      EXPECT_EQ(a.rows, b.rows);
      EXPECT_NEAR(a.sums.values.at(0), b.sums.values.at(0), tolerance * b.sums.values[0]) << "update " << n;
      EXPECT_NEAR(a.gradient_norm, b.gradient_norm, 3 * tolerance * b.gradient_norm) << "update " << n;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, CapturedDigits, test::device_settings(), test::device_setting_name);

}  // namespace
}  // namespace tearless::engine::captured_digits_test
