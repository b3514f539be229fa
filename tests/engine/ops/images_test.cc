// Convolutions and max pooling against PyTorch's and against plain loops in double: values, gradients, ties, NaN, and
// no gradient where none is wanted.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "engine/ops/images.h"
#include "engine/ops/linear.h"
#include "tests/engine/ops/op_check.h"

namespace tearless::engine::images_test {
namespace {

using test::random_tensor;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// Rows of pixels as PyTorch has images: [N, C, H, W].
at::Tensor channels_first(const at::Tensor& rows, const ImageShape& image) {
  return rows.view({-1, image.height, image.width, image.channels}).permute({0, 3, 1, 2}).contiguous();
}
at::Tensor as_rows(const at::Tensor& images) { return images.permute({0, 2, 3, 1}).reshape({-1, images.size(1)}); }

std::vector<double> numbers(const at::Tensor& x) {
  const at::Tensor doubles = x.to(at::kDouble).contiguous();
  return {doubles.const_data_ptr<double>(), doubles.const_data_ptr<double>() + doubles.numel()};
}

TEST(Patches, AndAMatmulAreAConvolution) {
  struct Case {
    int64_t images;
    ImageShape image;
    int64_t size, channels_out;
  };
  for (const Case& c :
       {Case{3, {12, 11, 1}, 5, 20}, {2, {6, 9, 20}, 5, 7}, {2, {4, 4, 3}, 4, 2}, {1, {5, 3, 2}, 1, 3}}) {
    const int64_t in = c.image.channels, rows = c.images * c.image.pixels();
    const at::Tensor x = random_tensor({rows, in}, 1), bias = random_tensor({c.channels_out}, 2);
    const at::Tensor weight = random_tensor({c.channels_out, c.size * c.size * in}, 3);
    const at::Tensor x_first = channels_first(x, c.image).requires_grad_(true);
    const at::Tensor w_first = weight.view({c.channels_out, c.size, c.size, in}).permute({0, 3, 1, 2}).contiguous();
    w_first.requires_grad_(true);
    const at::AutoGradMode record(true);
    const at::Tensor y_first = at::conv2d(x_first, w_first, bias);
    const at::Tensor upstream = random_tensor(as_rows(y_first).sizes().vec(), test::kUpstreamSeed);
    const ImageShape windows = c.image.windows(c.size);
    EXPECT_EQ(windows.height, y_first.size(2));
    EXPECT_EQ(windows.width, y_first.size(3));
    const auto expected = torch::autograd::grad(
        {y_first}, {x_first, w_first}, {channels_first(upstream, {windows.height, windows.width, c.channels_out})});

    test::for_each_cpu_backend([&] {
      const auto convolution = [&](Tape& tape, const std::vector<Value>& v) {
        return linear(tape, patches(tape, v[0], c.image, c.size), v[1], v[2]);
      };
      const auto got = test::forward_backward(convolution, {x, weight, bias}, Tape::Ops::kFast, at::kDouble);
      EXPECT_LT(test::distance(got.output, as_rows(y_first.detach())), test::kDoubleTolerance);
      EXPECT_LT(test::distance(got.gradients[0], as_rows(expected[0])), test::kDoubleTolerance);
      EXPECT_LT(test::distance(got.gradients[1], expected[1].permute({0, 2, 3, 1}).reshape(weight.sizes())),
                test::kDoubleTolerance);
    });
  }
}

TEST(Patches, OrderTheirColumnsByRowColumnAndChannel) {
  // Pixels 0 … 8 of a 3 × 3 image, with channels p and p + 0.5.
  std::vector<double> pixels;
  for (int p = 0; p < 9; ++p) pixels.insert(pixels.end(), {p + 0.0, p + 0.5});
  const Value x(at::tensor(pixels, at::kDouble).view({9, 2}));
  for (const auto ops : {Tape::Ops::kFast, Tape::Ops::kReference}) {
    Tape tape(Tape::Kind::kForward, ops);
    const at::Tensor out = patches(tape, x, {3, 3, 2}, 2).data();
    ASSERT_EQ(out.sizes(), (std::vector<int64_t>{4, 8}));
    EXPECT_EQ(numbers(out[0]), (std::vector<double>{0, 0.5, 1, 1.5, 3, 3.5, 4, 4.5}));
    EXPECT_EQ(numbers(out[1]), (std::vector<double>{1, 1.5, 2, 2.5, 4, 4.5, 5, 5.5}));
    EXPECT_EQ(numbers(out[2]), (std::vector<double>{3, 3.5, 4, 4.5, 6, 6.5, 7, 7.5}));
    EXPECT_EQ(numbers(out[3]), (std::vector<double>{4, 4.5, 5, 5.5, 7, 7.5, 8, 8.5}));
  }
}

TEST(Patches, AndTheMatmulAfterThemDoNothingForAGradientThatIsNotWanted) {
  const ImageShape image{5, 5, 1};
  for (const auto ops : {Tape::Ops::kFast, Tape::Ops::kReference}) {
    Tape tape(Tape::Kind::kRecording, ops);
    const Value pixels(random_tensor({2 * 25, 1}, 1), /*requires_grad=*/false);
    const Value weight(random_tensor({4, 9}, 2));
    const Value windows = patches(tape, pixels, image, 3);
    const Value y = linear(tape, windows, weight, {});
    EXPECT_FALSE(windows.requires_grad());
    EXPECT_TRUE(y.requires_grad());
    y.add_grad(at::ones_like(y.data()));
    tape.backward();
    EXPECT_FALSE(windows.has_grad());
    EXPECT_FALSE(pixels.has_grad());
    EXPECT_LT(test::distance(weight.grad(), windows.data().sum(0, true).expand({4, 9})), test::kDoubleTolerance);
  }
}

TEST(Patches, WithAnUnusedResultGiveNoGradient) {
  Tape tape(Tape::Kind::kRecording);
  const Value x(random_tensor({25, 1}, 1));
  patches(tape, x, {5, 5, 1}, 3);
  max_pool(tape, x, {5, 5, 1});
  tape.backward();
  EXPECT_FALSE(x.has_grad());
}

TEST(Images, OfAnotherShapeThanTheirRowsOrTooSmallForAWindowAreRefused) {
  const Value x(random_tensor({2 * 12, 3}, 1));
  for (const auto ops : {Tape::Ops::kFast, Tape::Ops::kReference}) {
    Tape tape(Tape::Kind::kForward, ops);
    EXPECT_NO_THROW(patches(tape, x, {3, 4, 3}, 3));
    EXPECT_THROW(patches(tape, x, {3, 4, 3}, 4), std::logic_error);
    EXPECT_NO_THROW(max_pool(tape, x, {2, 6, 3}));
    EXPECT_THROW(max_pool(tape, x, {1, 12, 3}), std::logic_error);
    for (const ImageShape& other : {ImageShape{3, 4, 1}, {5, 3, 3}}) {
      EXPECT_THROW(patches(tape, x, other, 2), std::logic_error);
      EXPECT_THROW(max_pool(tape, x, other), std::logic_error);
    }
  }
}

// --- max pooling ---

/// One window of four pixels, forward and backward: its maximum, and the gradient of each pixel.
struct Window {
  double maximum;
  std::vector<double> gradients;
};
Window pooled(const std::vector<double>& pixels, Tape::Ops ops, at::ScalarType type) {
  Tape tape(Tape::Kind::kRecording, ops);
  const Value x(at::tensor(pixels, at::kDouble).view({4, 1}).to(type));
  const Value y = max_pool(tape, x, {2, 2, 1});
  y.add_grad(at::full({1, 1}, 3.0, at::TensorOptions(type)));
  tape.backward();
  return {y.data().item<double>(), numbers(x.grad())};
}

TEST(MaxPool, GivesTheGradientOfEqualMaximaToTheFirst) {
  using Numbers = std::vector<double>;
  for (const auto ops : {Tape::Ops::kFast, Tape::Ops::kReference}) {
    for (const auto type : {at::kFloat, at::kDouble}) {
      test::for_each_cpu_backend([&] {
        EXPECT_EQ(pooled({1, 1, 1, 1}, ops, type).gradients, (Numbers{3, 0, 0, 0}));
        EXPECT_EQ(pooled({0, 2, 2, 2}, ops, type).gradients, (Numbers{0, 3, 0, 0}));
        EXPECT_EQ(pooled({0, 1, 2, 2}, ops, type).gradients, (Numbers{0, 0, 3, 0}));
        EXPECT_EQ(pooled({0, -1, -2, 2}, ops, type).gradients, (Numbers{0, 0, 0, 3}));
        EXPECT_EQ(pooled({2, -1, 2, 1}, ops, type).gradients, (Numbers{3, 0, 0, 0}));
        EXPECT_EQ(pooled({-INFINITY, -INFINITY, -INFINITY, -INFINITY}, ops, type).maximum, -INFINITY);
        EXPECT_EQ(pooled({-INFINITY, 0, INFINITY, 5}, ops, type).gradients, (Numbers{0, 0, 3, 0}));
        EXPECT_EQ(pooled({-3, -2, -4, -2.5}, ops, type).maximum, -2);
      });
    }
  }
}

TEST(MaxPool, OfAWindowWithNanIsNan) {
  using Numbers = std::vector<double>;
  for (const auto ops : {Tape::Ops::kFast, Tape::Ops::kReference}) {
    for (const auto type : {at::kFloat, at::kDouble}) {
      test::for_each_cpu_backend([&] {
        for (size_t i = 0; i < 4; ++i) {
          Numbers pixels = {1, 5, 3, 2}, expected = {0, 0, 0, 0};
          pixels[i] = kNan;
          expected[i] = 3;
          const Window window = pooled(pixels, ops, type);
          EXPECT_TRUE(std::isnan(window.maximum)) << i;
          EXPECT_EQ(window.gradients, expected) << i;
        }
        EXPECT_EQ(pooled({kNan, 1, kNan, INFINITY}, ops, type).gradients, (Numbers{0, 0, 3, 0}));
      });
    }
  }
}

TEST(MaxPool, AgreesWithPlainLoops) {
  for (const ImageShape& image : {ImageShape{5, 4, 3}, {4, 5, 1}, {2, 3, 40}, {7, 7, 17}}) {
    constexpr int64_t kImages = 2;
    // Few distinct numbers, so that most windows have ties.
    const at::Tensor x = (random_tensor({kImages * image.pixels(), image.channels}, 4) * 1.5).round();
    const ImageShape pooled = image.pooled();
    const at::Tensor upstream = random_tensor({kImages * pooled.pixels(), image.channels}, test::kUpstreamSeed);
    std::vector<double> out(static_cast<size_t>(upstream.numel())), d_x(static_cast<size_t>(x.numel()));
    const auto at = [&](const ImageShape& shape, int64_t n, int64_t row, int64_t column, int64_t c) {
      return static_cast<size_t>(((n * shape.height + row) * shape.width + column) * shape.channels + c);
    };
    for (int64_t n = 0; n < kImages; ++n) {
      for (int64_t row = 0; row < pooled.height; ++row) {
        for (int64_t column = 0; column < pooled.width; ++column) {
          for (int64_t c = 0; c < image.channels; ++c) {
            size_t best = at(image, n, 2 * row, 2 * column, c);
            for (int64_t i = 1; i < 4; ++i) {
              const size_t pixel = at(image, n, 2 * row + i / 2, 2 * column + i % 2, c);
              if (x.const_data_ptr<double>()[pixel] > x.const_data_ptr<double>()[best]) best = pixel;
            }
            out[at(pooled, n, row, column, c)] = x.const_data_ptr<double>()[best];
            d_x[best] = upstream.const_data_ptr<double>()[at(pooled, n, row, column, c)];
          }
        }
      }
    }
    const auto op = [&](Tape& tape, const std::vector<Value>& in) { return max_pool(tape, in[0], image); };
    test::for_each_cpu_backend([&] {
      for (const auto ops : {Tape::Ops::kFast, Tape::Ops::kReference}) {
        const auto got = test::forward_backward(op, {x}, ops, at::kDouble);
        EXPECT_EQ(numbers(got.output), out);
        EXPECT_EQ(numbers(got.gradients[0]), d_x);
      }
    });
  }
}

TEST(MaxPool, OnATapeWithoutBackwardGivesTheSame) {
  const ImageShape image{6, 5, 3};
  const Value x(random_tensor({60, 3}, 5));
  Tape recording(Tape::Kind::kRecording), forward(Tape::Kind::kForward);
  EXPECT_TRUE(at::equal(max_pool(recording, x, image).data(), max_pool(forward, x, image).data()));
}

}  // namespace
}  // namespace tearless::engine::images_test
