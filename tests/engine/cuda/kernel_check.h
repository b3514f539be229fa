// What the tests of the CUDA kernels share: the backends that they run on, arrays in those backends' memory, random
// numbers, and tolerances. The expected values are computed by plain loops in double beside each test.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "base/error.h"
#include "engine/cuda/cuda_library.h"
#include "tests/engine/cuda/bodies.h"

namespace tearless::engine::test {

/// Where kernels run, and memory that both they and the test can read.
struct TestedKernels : Backend {
  void* (*allocate)(size_t bytes);  // 256-byte aligned
  void (*release)(void*);
  void (*synchronise)();

  template <class T>
  const Kernels<T>& kernels() const {
    if constexpr (std::is_same_v<T, float>) {
      return *float_kernels;
    } else {
      return *bf16_kernels;
    }
  }
};

inline const TestedKernels& kernels_on_host() {
  static const TestedKernels backend = {cuda_bodies(),
                                        [](size_t bytes) {
                                          void* memory = nullptr;
                                          if (::posix_memalign(&memory, 256, std::max<size_t>(bytes, 1)) != 0)
                                            std::abort();
                                          return memory;
                                        },
                                        &std::free, [] {}};
  return backend;
}

/// The GPU, on page-locked host memory, which it reads and writes in place. Null where there is no GPU.
inline const TestedKernels* kernels_on_gpu() {
  static const TestedKernels* const backend = []() -> const TestedKernels* {
    try {
      if (cuda_devices().empty()) return nullptr;
    } catch (const UserError&) {
      return nullptr;
    }
    // The CUDA runtime came in with the library.
    static const auto host_alloc =
        reinterpret_cast<int (*)(void**, size_t, unsigned)>(::dlsym(RTLD_DEFAULT, "cudaHostAlloc"));
    static const auto free_host = reinterpret_cast<int (*)(void*)>(::dlsym(RTLD_DEFAULT, "cudaFreeHost"));
    static const auto synchronise = reinterpret_cast<int (*)()>(::dlsym(RTLD_DEFAULT, "cudaDeviceSynchronize"));
    if (!host_alloc || !free_host || !synchronise) return nullptr;
    static const TestedKernels cuda = {cuda_backend(),
                                       [](size_t bytes) {
                                         void* memory = nullptr;
                                         if (host_alloc(&memory, std::max<size_t>(bytes, 1), 0) != 0) std::abort();
                                         return memory;
                                       },
                                       [](void* memory) { free_host(memory); },
                                       [] { EXPECT_EQ(synchronise(), 0) << "a kernel failed while it ran"; }};
    return &cuda;
  }();
  return backend;
}

/// The backend of the test that runs now.
inline const TestedKernels*& backend() {
  static const TestedKernels* chosen = &kernels_on_host();
  return chosen;
}

/// Runs each test on the processor and, where there is one, on the GPU.
class OnEachBackend : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    backend() = GetParam() == std::string("host") ? &kernels_on_host() : kernels_on_gpu();
    if (!backend()) GTEST_SKIP() << "there is no GPU";
  }
  void TearDown() override { backend() = &kernels_on_host(); }
};
#define TEARLESS_ON_EACH_BACKEND(suite)                                      \
  INSTANTIATE_TEST_SUITE_P(Backends, suite, testing::Values("host", "cuda"), \
                           [](const testing::TestParamInfo<const char*>& info) { return std::string(info.param); })

/// Numbers of type T as the kernels see them. `shift` elements off a 256-byte boundary. Without slack behind the last:
/// the address sanitizer sees a step too far.
template <class T>
class Array {
 public:
  explicit Array(size_t size, size_t shift = 0)
      : size_(size), memory_(backend()->allocate((size + shift) * sizeof(T)), backend()->release), shift_(shift) {}
  Array(const std::vector<T>& values, size_t shift = 0) : Array(values.size(), shift) {
    std::copy(values.begin(), values.end(), data());
  }
  /// Rounded to T.
  static Array of(const std::vector<double>& values, size_t shift = 0) {
    Array array(values.size(), shift);
    for (size_t i = 0; i < values.size(); ++i) array.data()[i] = static_cast<T>(static_cast<float>(values[i]));
    return array;
  }

  T* data() const { return static_cast<T*>(memory_.get()) + shift_; }
  size_t size() const { return size_; }
  double operator[](size_t i) const { return static_cast<double>(static_cast<float>(data()[i])); }
  std::vector<double> values() const {
    std::vector<double> values(size_);
    for (size_t i = 0; i < size_; ++i) values[i] = (*this)[i];
    return values;
  }

 private:
  size_t size_;
  std::unique_ptr<void, void (*)(void*)> memory_;
  size_t shift_;
};

/// Normal numbers, as T stores them.
template <class T>
std::vector<double> normal_numbers(size_t count, uint64_t seed, double scale = 1) {
  std::mt19937_64 bits(seed);
  std::normal_distribution<double> normal(0, scale);
  std::vector<double> x(count);
  for (double& value : x)
    value = static_cast<double>(static_cast<float>(static_cast<T>(static_cast<float>(normal(bits)))));
  return x;
}

/// The dropout counters of rows of sentences far apart in the corpus, one beyond 2²⁰.
struct RowCounters {
  std::vector<int32_t> positions, sentence_ids;
  explicit RowCounters(int64_t rows) {
    for (int64_t t = 0; t < rows; ++t) {
      positions.push_back(static_cast<int32_t>(t % 7));
      sentence_ids.push_back(static_cast<int32_t>(17 + t / 7 * 1'000'003));
    }
  }
};

inline Dropout some_dropout(double p) {
  Dropout dropout;
  dropout.stream.seed = 3;
  dropout.stream.stream = 0x12345678;
  dropout.update = 41;
  dropout.threshold = static_cast<uint32_t>(std::llround(p * 0x1p32));
  dropout.scale = static_cast<float>(1 / (1 - p));
  return dropout;
}

/// The dropout multiplier of one element, by the CPU's Philox (random.h).
inline double keep_of(const Dropout& dropout, int64_t inner, int64_t outer, int64_t line) {
  if (!dropout.active()) return 1;
  return keep_scales(dropout, static_cast<uint32_t>(inner / 4), static_cast<uint32_t>(outer),
                     static_cast<uint32_t>(line))[static_cast<size_t>(inner % 4)];
}

/// Half a unit in the last place of T.
template <class T>
inline constexpr double kRounding = std::is_same_v<T, float> ? 0x1p-24 : 0x1p-8;

/// What float arithmetic may add to a result, as a share of the largest in its array: each of n terms and of the eight
/// or so steps around them is off by 2⁻²⁴ at most, in either direction, so their sum by about √n of it; times 4 for the
/// tails.
inline double arithmetic(int64_t terms) { return 4 * (std::sqrt(static_cast<double>(terms)) + 8) * 0x1p-24; }

/// |got - expected| ≤ storage rounding + `error` · the largest of `expected` (or `unit` where that is larger) + what
/// `more` allows this element.
template <class T>
void expect_close(const char* what, std::span<const double> got, std::span<const double> expected, double error,
                  double unit = 0, std::span<const double> more = {}) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  for (const double x : expected) unit = std::max(unit, std::abs(x));
  for (size_t i = 0; i < expected.size(); ++i) {
    const double of_element = more.empty() ? 0 : more[i];
    const double allowed =
        kRounding<T> * (std::abs(expected[i]) + of_element) * (1 + error) + error * unit + of_element;
    if (std::abs(got[i] - expected[i]) <= allowed) continue;
    FAIL() << what << ", element " << i << ": " << got[i] << " instead of " << expected[i] << ", off by "
           << std::abs(got[i] - expected[i]) << " where " << allowed << " is allowed";
  }
}

/// The arrays that a call has written; compared bit for bit between the two orders of threads, and between two calls on
/// a GPU.
using Outputs = std::vector<std::vector<double>>;

/// Runs `call` for both orders. Its outputs must be the same, NaNs aside.
template <class F>
Outputs run_twice(F&& call) {
  set_thread_order(ThreadOrder::kForwards);
  const Outputs first = call();
  set_thread_order(ThreadOrder::kBackwards);
  const Outputs second = call();
  set_thread_order(ThreadOrder::kForwards);
  EXPECT_EQ(first.size(), second.size());
  for (size_t i = 0; i < first.size(); ++i) {
    for (size_t j = 0; j < first[i].size(); ++j) {
      const bool same = std::memcmp(&first[i][j], &second[i][j], sizeof(double)) == 0;
      EXPECT_TRUE(same) << "output " << i << ", element " << j << " depends on the order of threads";
      if (!same) return first;
    }
  }
  return first;
}

}  // namespace tearless::engine::test
