// The CUDA kernels over images, at odd sizes, against loops in double.
#include <fmt/format.h>

#include "tests/engine/cuda/kernel_check.h"

namespace tearless::engine::test::kernels_images_test {
namespace {

/// The index of an element of images of that shape.
size_t element(const ImageShape& shape, int64_t n, int64_t y, int64_t x, int64_t c) {
  return static_cast<size_t>(((n * shape.height + y) * shape.width + x) * shape.channels + c);
}

struct ImageCase {
  int64_t images;
  ImageShape image;
};
size_t size_of(int64_t images, const ImageShape& shape) {
  return static_cast<size_t>(images * shape.pixels() * shape.channels);
}

// --- patches ---

template <class T>
void check_patches(const ImageCase& c, int64_t size, bool aligned) {
  SCOPED_TRACE(fmt::format("{} images of {} × {} × {}, windows of {}, aligned {}, {} bytes", c.images, c.image.height,
                           c.image.width, c.image.channels, size, aligned, sizeof(T)));
  const ImageShape windows{c.image.height - size + 1, c.image.width - size + 1, size * size * c.image.channels};
  const size_t shift = aligned ? 0 : 1;
  const std::vector<double> x = normal_numbers<T>(size_of(c.images, c.image), 1),
                            upstream = normal_numbers<T>(size_of(c.images, windows), 2);
  const Outputs got = run_twice([&] {
    const Array<T> in = Array<T>::of(x, shift), d_out = Array<T>::of(upstream, shift);
    Array<T> out(upstream.size(), shift), d_x(x.size(), shift);
    backend()->kernels<T>().patches({c.images, c.image, size, in.data(), out.data()}, nullptr);
    backend()->kernels<T>().patches_backward({c.images, c.image, size, d_out.data(), d_x.data()}, nullptr);
    backend()->synchronise();
    return Outputs{out.values(), d_x.values()};
  });
  std::vector<double> out(upstream.size()), d_x(x.size());
  for (int64_t n = 0; n < c.images; ++n) {
    for (int64_t y = 0; y < windows.height; ++y) {
      for (int64_t left = 0; left < windows.width; ++left) {
        for (int64_t i = 0; i < windows.channels; ++i) {
          const int64_t pixel = i / c.image.channels;
          const size_t to = element(windows, n, y, left, i);
          const size_t from = element(c.image, n, y + pixel / size, left + pixel % size, i % c.image.channels);
          out[to] = x[from];
          d_x[from] += upstream[to];
        }
      }
    }
  }
  EXPECT_EQ(got[0], out);
  expect_close<T>("d_x", got[1], d_x, arithmetic(size * size), 1);
}

class PatchesKernel : public OnEachBackend {};
TEARLESS_ON_EACH_BACKEND(PatchesKernel);

TEST_P(PatchesKernel, AreTheWindowsOfTheImages) {
  for (const int64_t channels : {1, 3, 4, 8, 20, 136}) {
    check_patches<float>({2, {7, 6, channels}}, 5, channels != 4);
    check_patches<bf16>({2, {6, 7, channels}}, 5, channels != 8);
    check_patches<float>({3, {3, 5, channels}}, 2, true);
    check_patches<bf16>({1, {3, 3, channels}}, 3, true);
    check_patches<float>({2, {1, 4, channels}}, 1, true);
  }
  check_patches<float>({2, {28, 28, 1}}, 5, true);
  check_patches<bf16>({2, {12, 12, 24}}, 5, true);
}

// --- max pooling ---

template <class T>
void check_max_pool(const ImageCase& c, bool aligned, bool nans) {
  SCOPED_TRACE(fmt::format("{} images of {} × {} × {}, aligned {}, NaN {}, {} bytes", c.images, c.image.height,
                           c.image.width, c.image.channels, aligned, nans, sizeof(T)));
  const ImageShape pooled{c.image.height / 2, c.image.width / 2, c.image.channels};
  const size_t shift = aligned ? 0 : 1;
  std::vector<double> x = normal_numbers<T>(size_of(c.images, c.image), 1);
  for (double& value : x) value = std::round(1.5 * value);  // few distinct numbers: most windows have ties
  for (size_t i = 0; nans && i < x.size(); i += 5) x[i] = NAN;
  const std::vector<double> upstream = normal_numbers<T>(size_of(c.images, pooled), 2);
  const Outputs got = run_twice([&] {
    const Array<T> in = Array<T>::of(x, shift), d_out = Array<T>::of(upstream, shift);
    Array<T> out(upstream.size(), shift), no_winners(upstream.size(), shift), d_x(x.size(), shift);
    const Array<uint8_t> winners(upstream.size());
    backend()->kernels<T>().max_pool({c.images, c.image, in.data(), out.data(), winners.data()}, nullptr);
    backend()->kernels<T>().max_pool({c.images, c.image, in.data(), no_winners.data()}, nullptr);
    backend()->kernels<T>().max_pool_backward({c.images, c.image, winners.data(), d_out.data(), d_x.data()}, nullptr);
    backend()->synchronise();
    return Outputs{out.values(), no_winners.values(), d_x.values()};
  });
  std::vector<double> d_x(x.size());
  for (int64_t n = 0; n < c.images; ++n) {
    for (int64_t y = 0; y < pooled.height; ++y) {
      for (int64_t left = 0; left < pooled.width; ++left) {
        for (int64_t channel = 0; channel < pooled.channels; ++channel) {
          size_t best = element(c.image, n, 2 * y, 2 * left, channel);
          for (int64_t i = 1; i < 4; ++i) {
            const size_t pixel = element(c.image, n, 2 * y + i / 2, 2 * left + i % 2, channel);
            if (x[pixel] > x[best] || std::isnan(x[pixel])) best = pixel;
          }
          const size_t window = element(pooled, n, y, left, channel);
          d_x[best] = upstream[window];
          for (const size_t output : {0, 1}) {
            if (std::isnan(x[best])) {
              ASSERT_TRUE(std::isnan(got[output][window])) << window;
            } else {
              ASSERT_EQ(got[output][window], x[best]) << window;
            }
          }
        }
      }
    }
  }
  EXPECT_EQ(got[2], d_x);
}

class MaxPoolKernel : public OnEachBackend {};
TEARLESS_ON_EACH_BACKEND(MaxPoolKernel);

TEST_P(MaxPoolKernel, IsTheLargestOfFourPixels) {
  for (const int64_t channels : {1, 3, 4, 8, 20, 136}) {
    for (const bool nans : {false, true}) {
      check_max_pool<float>({2, {6, 4, channels}}, channels != 4, nans);
      check_max_pool<bf16>({2, {5, 7, channels}}, channels != 8, nans);
      check_max_pool<float>({3, {3, 2, channels}}, true, nans);
    }
  }
  check_max_pool<float>({2, {24, 24, 20}}, true, false);
  check_max_pool<bf16>({1, {9, 8, 24}}, true, false);
}

}  // namespace
}  // namespace tearless::engine::test::kernels_images_test
