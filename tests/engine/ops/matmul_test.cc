// Matmuls by MKL and OpenBLAS, and in bf16 by oneDNN: which of them is chosen, that they are right, and that their bits
// depend on nothing but the operands.
#include "engine/ops/matmul.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/sin.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <set>
#include <stdexcept>

#include "base/error.h"
#include "engine/ops/linear.h"
#include "tests/engine/ops/matmul_libraries.h"
#include "tests/support/error_of.h"
#include "tests/support/paths.h"
#include "tests/support/sanitized.h"

namespace tearless::engine::matmul_test {
namespace {

using Vendor = Processor::Vendor;

TEST(MatmulLibraryFor, IsOpenBlasOnEveryProcessorWithAvx2ThatIsNotIntels) {
  struct Case {
    const char* processor;
    Processor has;
    MatmulLibrary chosen;
  };
  for (const Case& c : {Case{"Intel with AVX2", {Vendor::kIntel, true, false}, MatmulLibrary::kMkl},
                        Case{"Intel with AVX-512", {Vendor::kIntel, true, true}, MatmulLibrary::kMkl},
                        Case{"AMD Zen 2", {Vendor::kAmd, true, false}, MatmulLibrary::kOpenBlas},
                        Case{"AMD Zen 4 and 5", {Vendor::kAmd, true, true}, MatmulLibrary::kOpenBlas},
                        Case{"an unknown one", {Vendor::kOther, true, true}, MatmulLibrary::kOpenBlas},
                        Case{"an unknown one, old", {Vendor::kOther, false, false}, MatmulLibrary::kMkl}}) {
    EXPECT_EQ(matmul_library_for(c.has, /*openblas_is_there=*/true), c.chosen) << c.processor;
    EXPECT_EQ(matmul_library_for(c.has, /*openblas_is_there=*/false), MatmulLibrary::kMkl) << c.processor;
  }
}

TEST(MatmulLibraryFor, IsTheLibraryInUseUnlessAnotherIsChosen) {
  use_matmul_library(std::nullopt);
  const bool is_mkl = matmul_library_for(this_processor(), why_no_openblas().empty()) == MatmulLibrary::kMkl;
  EXPECT_THAT(matmul_library_name(), testing::MatchesRegex(is_mkl ? "MKL [0-9.]+" : "OpenBLAS [0-9.]+ [A-Za-z0-9]+"));
  std::set<std::string> names;
  test::for_each_matmul_library([&] { names.insert(matmul_library_name()); });
  EXPECT_EQ(names.size(), why_no_openblas().empty() ? 2u : 1u);
}

/// A matrix of random numbers, the same ones but at an address that is no multiple of 16 if `unaligned`, as rows or as
/// columns, whose rows (columns) are `gap` elements further apart than they are long.
class Random {
 public:
  Random(int64_t rows, int64_t columns, bool transposed, int64_t gap, bool unaligned, uint32_t seed)
      : stride_((transposed ? rows : columns) + gap), transposed_(transposed), offset_(unaligned ? 3 : 0) {
    std::mt19937 bits(seed);
    std::uniform_real_distribution<float> numbers(-1, 1);
    data_.resize(static_cast<size_t>((transposed ? columns : rows) * stride_ + 16));
    for (size_t i = static_cast<size_t>(offset_); i < data_.size(); ++i) data_[i] = numbers(bits);
  }
  Matrix matrix() const { return {data_.data() + offset_, stride_, transposed_}; }
  float at(int64_t i, int64_t j) const {
    const Matrix m = matrix();
    return m.data[transposed_ ? j * stride_ + i : i * stride_ + j];
  }

 private:
  int64_t stride_;
  bool transposed_;
  int64_t offset_;
  std::vector<float> data_;
};

struct Shape {
  int64_t rows, in, out;
};

enum class Pass { kForward, kWeightGradient, kInputGradient };
constexpr Pass kPasses[] = {Pass::kForward, Pass::kWeightGradient, Pass::kInputGradient};

/// The operands of one of the three matmuls of y = x Wᵀ: x Wᵀ, dW += dyᵀ x, dx = dy W.
struct Operands {
  int64_t rows, columns, inner;
  bool a_transposed, b_transposed, add;
};
Operands operands(const Shape& s, Pass pass) {
  switch (pass) {
    case Pass::kForward:
      return {s.rows, s.out, s.in, false, true, false};
    case Pass::kWeightGradient:
      return {s.out, s.in, s.rows, true, false, true};
    case Pass::kInputGradient:
      break;
  }
  return {s.rows, s.in, s.out, false, false, false};
}

std::vector<float> multiplied(const Operands& o, const Random& a, const Random& b, int threads,
                              bool unaligned = false) {
  at::set_num_threads(threads);
  const int64_t offset = unaligned ? 5 : 0;
  std::vector<float> c(static_cast<size_t>(o.rows * o.columns + offset), 0.5f);
  multiply(o.rows, o.columns, o.inner, a.matrix(), b.matrix(), o.add, c.data() + offset, o.columns);
  return {c.begin() + offset, c.end()};
}

class Matmuls : public testing::Test {
 public:
  ~Matmuls() override { at::set_num_threads(before_); }

 protected:
  const int before_ = at::get_num_threads();
};

TEST_F(Matmuls, AreTheSumsOfProductsForAnyStrideAndOrder) {
  test::for_each_matmul_library([] {
    for (const Shape& s : {Shape{1, 1, 1}, Shape{1, 7, 5}, Shape{33, 1, 9}, Shape{13, 300, 1}, Shape{70, 65, 200},
                           Shape{5, 700, 3}, Shape{130, 96, 530}}) {
      for (const Pass pass : kPasses) {
        for (const int64_t gap : {0, 3}) {
          const Operands o = operands(s, pass);
          const Random a(o.rows, o.inner, o.a_transposed, gap, false, 1),
              b(o.inner, o.columns, o.b_transposed, gap, true, 2);
          const std::vector<float> c = multiplied(o, a, b, 2);
          double worst = 0;
          for (int64_t i = 0; i < o.rows; ++i) {
            for (int64_t j = 0; j < o.columns; ++j) {
              double sum = o.add ? 0.5 : 0;
              for (int64_t k = 0; k < o.inner; ++k) sum += double{a.at(i, k)} * double{b.at(k, j)};
              worst = std::max(worst, std::abs(sum - double{c[static_cast<size_t>(i * o.columns + j)]}));
            }
          }
          EXPECT_LT(worst, 1e-6 * static_cast<double>(o.inner) + 1e-6) << s.rows << " × " << s.in << " × " << s.out;
        }
      }
    }
  });
}

TEST_F(Matmuls, OfShapesThatDoNotMatchAreRefused) {
  test::for_each_matmul_library([] {
    const at::Tensor a = at::ones({4, 6});
    const auto multiplied_into = [&](const at::Tensor& b, at::Tensor c) { matmul(a, b, c, /*add=*/false); };
    EXPECT_NO_THROW(multiplied_into(at::ones({6, 8}), at::empty({4, 8})));
    EXPECT_THROW(multiplied_into(at::ones({5, 8}), at::empty({4, 8})), std::logic_error);
    EXPECT_THROW(multiplied_into(at::ones({6, 8}), at::empty({3, 8})), std::logic_error);
    EXPECT_THROW(multiplied_into(at::ones({6, 8}), at::empty({4, 7})), std::logic_error);
    EXPECT_THROW(multiplied_into(at::ones({6, 8}), at::empty({8, 4}).t()), std::logic_error);
    EXPECT_THROW(multiplied_into(at::ones({6, 16}).slice(1, 0, 16, 2), at::empty({4, 8})), std::logic_error);
  });
}

TEST(ColumnSums, OfAnotherWidthThanTheirRowsAreRefused) {
  at::Tensor sums = at::ones({5});
  EXPECT_NO_THROW(add_column_sums(at::ones({4, 5}), sums));
  EXPECT_THROW(add_column_sums(at::ones({4, 6}), sums), std::logic_error);
  EXPECT_THROW(add_column_sums(at::ones({5, 4}).t(), sums), std::logic_error);
}

TEST_F(Matmuls, WriteNothingBesideTheirRows) {
  test::for_each_matmul_library([] {
    const Random a(260, 128, false, 0, false, 1), b(128, 400, false, 0, false, 2);
    constexpr int64_t kStride = 411;
    std::vector<float> c(260 * kStride, 7);
    multiply(260, 400, 128, a.matrix(), b.matrix(), false, c.data(), kStride);
    for (int64_t i = 0; i < 260; ++i) {
      for (int64_t j = 400; j < kStride; ++j) ASSERT_EQ(c[static_cast<size_t>(i * kStride + j)], 7) << i << ", " << j;
    }
  });
}

/// y = x Wᵀ of all models that the grids and the bench have: rows of a batch, channels in and out.
std::vector<Shape> shapes_that_occur() {
  std::vector<Shape> shapes;
  const auto model = [&](std::initializer_list<int64_t> rows, int64_t d, int64_t f, int64_t layers, int64_t types) {
    for (const int64_t t : rows) {
      for (const int64_t out : {d, 2 * d, 3 * d, 2 * d * layers, f, types}) shapes.push_back({t, d, out});
      shapes.push_back({t, f, d});
    }
  };
  model({1, 4, 48, 53}, 32, 128, 1, 1000);
  if (tearless::test::kSanitized) return shapes;  // the libraries' code is not instrumented
  model({128, 131}, 64, 256, 2, 2000);
  model({8, 384, 397}, 128, 512, 3, 4000);
  model({512}, 256, 1024, 3, 8000);
  model({500}, 512, 2048, 6, 8000);
  for (const int64_t rows : {32 * 576, 29 * 576}) shapes.push_back({rows, 25, 20});  // the digits' convolutions
  for (const int64_t rows : {32 * 64, 29 * 64}) shapes.push_back({rows, 500, 50});
  shapes.push_back({32, 800, 500});
  shapes.push_back({32, 500, 10});
  shapes.push_back({1649, 300, 2});
  return shapes;
}

TEST_F(Matmuls, HaveTheSameBitsTwiceForAnyNumberOfThreadsAndAtAnyAddress) {
  test::for_each_matmul_library([] {
    const bool is_mkl = matmul_library_name().starts_with("MKL");
    for (const Shape& s : shapes_that_occur()) {
      for (const Pass pass : kPasses) {
        const Operands o = operands(s, pass);
        const Random a(o.rows, o.inner, o.a_transposed, 0, false, 1),
            b(o.inner, o.columns, o.b_transposed, 0, false, 2);
        const Random a_moved(o.rows, o.inner, o.a_transposed, 0, true, 1);
        const std::vector<float> one = multiplied(o, a, b, 1);
        const auto expect_the_same = [&](const std::vector<float>& other, const std::string& what) {
          EXPECT_EQ(std::memcmp(one.data(), other.data(), one.size() * sizeof(float)), 0)
              << what << ": " << s.rows << " × " << s.in << " × " << s.out << ", pass " << static_cast<int>(pass);
        };
        expect_the_same(multiplied(o, a, b, 1), "again");
        for (const int64_t threads : {int64_t{2}, 3 + s.in / s.rows % 2}) {  // three or four
          expect_the_same(multiplied(o, a, b, static_cast<int>(threads)), std::to_string(threads));
        }
        // Where MKL_CBWR does not help, MKL's matmuls with a vector depend on the address. The engine's tensors do not
        // move: each begins at a multiple of 64 bytes, or at the same place in the flat buffer of parameters.
        if (is_mkl && this_processor().vendor != Vendor::kIntel) continue;
        expect_the_same(multiplied(o, a_moved, b, 1, /*unaligned=*/true), "another address");
      }
    }
  });
}

/// Operands of the matmuls of linear.h, as the model calls them.
struct Tensors {
  explicit Tensors(const Shape& s) : x(numbers(s.rows, s.in)), w(numbers(s.out, s.in)), dy(numbers(s.rows, s.out)) {}
  static at::Tensor numbers(int64_t rows, int64_t columns) {
    return at::sin(at::arange(rows * columns, at::kFloat) * 1.7f).view({rows, columns});
  }
  at::Tensor x, w, dy;  // [rows, in], [out, in], [rows, out]

  at::Tensor multiplied(Pass pass, int threads) const {
    at::set_num_threads(threads);
    at::Tensor c;
    switch (pass) {
      case Pass::kForward:
        matmul(x, w.t(), c = at::empty({x.size(0), w.size(0)}), /*add=*/false);
        break;
      case Pass::kWeightGradient:
        matmul(dy.t(), x, c = at::ones_like(w), /*add=*/true);
        break;
      case Pass::kInputGradient:
        matmul(dy, w, c = at::empty_like(x), /*add=*/false);
        break;
    }
    return c;
  }
};

TEST_F(Matmuls, InBf16RoundOperandsAndResultAndSumInFp32) {
  if (!this_processor().bf16) GTEST_SKIP() << "this processor has no AVX512_BF16";
  const Tensors tensors({70, 900, 33});
  const auto rounded = [](const at::Tensor& x) { return x.to(at::kBFloat16).to(at::kDouble); };
  // Half a unit in the last of 8 bits, and a little for the order of the sum.
  const auto is_near = [](const at::Tensor& c, const at::Tensor& exact) {
    return (c.to(at::kDouble) - exact).abs().le(exact.abs() * 0x1p-8 + 1e-4).all().item<bool>();
  };
  const at::Tensor in_fp32 = tensors.multiplied(Pass::kForward, 2);
  test::with_bf16_matmuls([&] {
    const at::Tensor y = tensors.multiplied(Pass::kForward, 2);
    EXPECT_TRUE(at::equal(y, y.to(at::kBFloat16).to(at::kFloat))) << "the result is not rounded";
    EXPECT_FALSE(at::equal(y, in_fp32.to(at::kBFloat16).to(at::kFloat))) << "the operands are not rounded";
    EXPECT_TRUE(is_near(y, rounded(tensors.x).matmul(rounded(tensors.w).t())));
    EXPECT_TRUE(
        is_near(tensors.multiplied(Pass::kWeightGradient, 2) - 1, rounded(tensors.dy).t().matmul(rounded(tensors.x))));
    EXPECT_TRUE(is_near(tensors.multiplied(Pass::kInputGradient, 2), rounded(tensors.dy).matmul(rounded(tensors.w))));
  });
  EXPECT_TRUE(at::equal(tensors.multiplied(Pass::kForward, 2), in_fp32)) << "bf16 is still in use";
}

TEST_F(Matmuls, InBf16HaveTheSameBitsTwiceAndForAnyNumberOfThreads) {
  if (!this_processor().bf16) GTEST_SKIP() << "this processor has no AVX512_BF16";
  test::with_bf16_matmuls([] {
    for (const Shape& s : shapes_that_occur()) {
      const Tensors tensors(s);
      for (const Pass pass : kPasses) {
        const at::Tensor one = tensors.multiplied(pass, 1);
        for (const int64_t threads : {int64_t{1}, int64_t{2}, 3 + s.in / s.rows % 2}) {
          EXPECT_TRUE(at::equal(tensors.multiplied(pass, static_cast<int>(threads)), one))
              << threads << " threads: " << s.rows << " × " << s.in << " × " << s.out;
        }
      }
    }
  });
}

TEST_F(Matmuls, InBf16LeaveTheNumberOfThreadsAsItWas) {
  if (!this_processor().bf16) GTEST_SKIP() << "this processor has no AVX512_BF16";
  const int before = at::get_num_threads();
  at::set_num_threads(2);
  test::with_bf16_matmuls([] {
    for (const int64_t size : {8, 256}) {
      at::Tensor result = at::empty({size, size});
      matmul(at::ones({size, size}), at::ones({size, size}), result, /*add=*/false);
      EXPECT_EQ(at::get_num_threads(), 2) << size;
    }
  });
  at::set_num_threads(before);
}

TEST_F(Matmuls, InBf16NeedAProcessorThatHasThem) {
  if (this_processor().bf16) GTEST_SKIP() << "this processor has AVX512_BF16";
  EXPECT_EQ(
      tearless::test::error_of([] { use_bf16_matmuls(true); }),
      "run.precision = \"bf16\" on the CPU needs a processor with AVX512_BF16 instructions, which this one lacks");
  EXPECT_FALSE(uses_bf16_matmuls());
}

TEST_F(Matmuls, UseOneOpenMpRuntime) {
  const Random a(512, 512, false, 0, false, 1), b(512, 512, false, 0, false, 2);
  test::for_each_matmul_library([&] { multiplied({512, 512, 512, false, false, false}, a, b, 2); });
  test::with_bf16_matmuls([] { Tensors({512, 512, 512}).multiplied(Pass::kForward, 2); });
  std::set<std::string> runtimes;
  std::istringstream maps(tearless::test::read_text("/proc/self/maps"));
  for (std::string line; std::getline(maps, line);) {
    const std::string file = line.substr(line.find_last_of('/') + 1);
    if (file.starts_with("libgomp") || file.starts_with("libiomp") || file.starts_with("libomp")) {
      runtimes.insert(line.substr(line.find('/')));
    }
  }
  EXPECT_EQ(runtimes.size(), 1u) << testing::PrintToString(runtimes);
}

}  // namespace
}  // namespace tearless::engine::matmul_test
