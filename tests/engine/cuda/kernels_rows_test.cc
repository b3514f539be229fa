// The CUDA kernels over rows, at odd sizes, against loops in double.
#include <fmt/format.h>

#include "tests/engine/cuda/kernel_check.h"
#include "tests/support/sanitized.h"

namespace tearless::engine::test::kernels_rows_test {
namespace {

// --- random numbers and storage ---

TEST(Bf16, RoundsToTheNearestAndTiesToEven) {
  const auto there_and_back = [](float x) { return static_cast<float>(bf16(x)); };
  EXPECT_EQ(there_and_back(1.0f), 1.0f);
  EXPECT_EQ(there_and_back(1.0f + 0x1p-8f), 1.0f) << "a tie goes to the even neighbour below";
  EXPECT_EQ(there_and_back(1.0f + 3 * 0x1p-8f), 1.0f + 0x1p-6f) << "a tie goes to the even neighbour above";
  EXPECT_EQ(there_and_back(1.0f + 0x1.02p-8f), 1.0f + 0x1p-7f);
  EXPECT_EQ(there_and_back(-0.0f), -0.0f);
  EXPECT_EQ(there_and_back(INFINITY), INFINITY);
  EXPECT_EQ(there_and_back(0x1.FFFFFEp127f), INFINITY);
  EXPECT_EQ(there_and_back(0x1p-133f), 0x1p-133f) << "its smallest number";
  EXPECT_EQ(bf16(NAN).bits, 0x7FFF);
}

// --- add_norm ---

struct NormKind {
  const char* name;
  RowNorm norm;
};
using D = RowNorm::Denominator;
const NormKind kNorms[] = {
    {"layer_norm", {true, D::kRootAddEps, 1e-5}},
    {"rms_norm", {false, D::kRootAddEps, 1e-3}},
    {"scale_norm", {false, D::kLengthClamped, 0.1}},
    {"none", {false, D::kOne, 0}},
    {"centred_length", {true, D::kLengthClamped, 0.1}},
    {"std_add", {.centred = true, .denominator = D::kDeviationAddEps, .eps = 0.02, .unbiased = true}},
    {"clamp", {.centred = false, .denominator = D::kDeviationClamped, .eps = 0.02}},
    {"unbiased_clamp", {.centred = true, .denominator = D::kDeviationClamped, .eps = 0.02, .unbiased = true}},
    {"unbiased", {.centred = true, .denominator = D::kRootAddEps, .eps = 1e-3, .unbiased = true}},
    {"detach_mean", {.centred = true, .denominator = D::kRootAddEps, .eps = 1e-5, .mean_has_gradient = false}},
    {"detach_var",
     {.centred = true, .denominator = D::kDeviationAddEps, .eps = 0.1, .denominator_has_gradient = false}},
    {"detached_length", {.denominator = D::kLengthClamped, .eps = 0.1, .denominator_has_gradient = false}},
    {"fixed_length", {.denominator = D::kLengthClamped, .eps = 0.1, .scale = 3}},
    {"ada_norm", {.centred = true, .denominator = D::kRootAddEps, .eps = 1e-5, .scale = 2, .shrink = 0.1}},
};
/// Whether the norm may have a gain.
bool may_have_gain(const RowNorm& norm) { return norm.scale == 1 && norm.shrink == 0; }

struct AddNormCase {
  int64_t rows, width;
  NormKind kind;
  int64_t gain_size;
  bool bias, with_y, with_sum, with_normed;
  double p;
  bool aligned;
  int alias;        // backward: d_residual is an array of its own, d_normed, or d_sum
  bool with_d_sum;  // backward
  std::string name() const {
    return fmt::format("{} rows of {}, {}, gain {}{}{}{}{}, p {}{}, alias {}{}", rows, width, kind.name, gain_size,
                       bias ? ", bias" : "", with_y ? ", y" : "", with_sum ? ", sum" : "",
                       with_normed ? "" : ", no norm", p, aligned ? "" : ", shifted", alias,
                       with_d_sum ? ", d_sum" : "");
  }
};

/// One row in double: x̂, the statistics, and their derivative (kernels.h).
struct ReferenceRow {
  double mean = 0, inverse = 1, weight = 0;
  ReferenceRow(const double* x, int64_t width, const RowNorm& norm) {
    const double d = static_cast<double>(width);
    for (int64_t c = 0; norm.centred && c < width; ++c) mean += x[c] / d;
    double squares = 0;
    for (int64_t c = 0; c < width; ++c) squares += (x[c] - mean) * (x[c] - mean);
    const double n = norm.unbiased ? d - 1 : d, s = std::sqrt(squares / n);
    switch (norm.denominator) {
      case D::kOne:
        break;
      case D::kRootAddEps:
        inverse = 1 / std::sqrt(s * s + norm.eps);
        weight = 1 / n;
        break;
      case D::kDeviationAddEps:
        inverse = 1 / (s + norm.eps);
        weight = s > 0 ? (s + norm.eps) / (n * s) : 0;
        break;
      case D::kDeviationClamped:
        inverse = 1 / std::max(s, norm.eps);
        weight = s > norm.eps ? 1 / n : 0;
        break;
      case D::kLengthClamped:
        inverse = 1 / std::max(std::sqrt(squares), norm.eps);
        weight = std::sqrt(squares) > norm.eps ? 1 : 0;
        break;
    }
    if (!norm.denominator_has_gradient) weight = 0;
  }
  /// The factor of x̂ in the output of a norm without a gain, for element x.
  double factor(const RowNorm& norm, double x) const { return norm.scale * (1 - norm.shrink * (x - mean) * inverse); }
  void backward(const double* x, const double* scaled, int64_t width, const RowNorm& norm, double* d_x) const {
    double sum = 0, dot = 0;
    for (int64_t c = 0; c < width; ++c) {
      sum += scaled[c];
      dot += scaled[c] * (x[c] - mean) * inverse;
    }
    for (int64_t c = 0; c < width; ++c) {
      const double of_mean = norm.centred && norm.mean_has_gradient ? sum / static_cast<double>(width) : 0;
      d_x[c] = inverse * (scaled[c] - of_mean - (x[c] - mean) * inverse * weight * dot);
    }
  }
};

// What has no gradient is held at its value for the unchanged row.
TEST(ReferenceNorm, HasTheDerivativeThatDifferencesShow) {
  for (const NormKind& kind : kNorms) {
    const auto& norm = kind.norm;
    for (const double size : {1.0, 1e-3}) {  // 1e-3: a clamped row
      constexpr int64_t kWidth = 7;
      const std::vector<double> x = normal_numbers<float>(kWidth, 1, size);
      const std::vector<double> upstream = normal_numbers<float>(kWidth, 2);
      const ReferenceRow at_x(x.data(), kWidth, norm);
      std::vector<double> scaled(kWidth), d_x(kWidth);
      for (int64_t c = 0; c < kWidth; ++c) scaled[c] = at_x.factor(norm, x[c]) * upstream[c];
      at_x.backward(x.data(), scaled.data(), kWidth, norm, d_x.data());
      for (int64_t c = 0; c < kWidth; ++c) {
        const double step = 1e-6 * size;
        const auto value = [&](double offset) {
          std::vector<double> moved = x;
          moved[c] += offset;
          const ReferenceRow row(moved.data(), kWidth, norm);
          const double mean = norm.mean_has_gradient ? row.mean : at_x.mean;
          const double inverse = norm.denominator_has_gradient ? row.inverse : at_x.inverse;
          double sum = 0;
          for (int64_t k = 0; k < kWidth; ++k) sum += scaled[k] * (moved[k] - mean) * inverse;
          return sum;
        };
        EXPECT_NEAR(d_x[c], (value(step) - value(-step)) / (2 * step), 1e-6 * std::max(1.0, std::abs(d_x[c])))
            << kind.name;
      }
    }
  }
}

/// The arguments of forward and backward, as doubles that their types store exactly.
template <class T>
struct AddNormInputs {
  explicit AddNormInputs(const AddNormCase& c)
      : width(static_cast<size_t>(c.width)),
        size(static_cast<size_t>(c.rows) * width),
        residual(normal_numbers<T>(size, 1)),
        y(normal_numbers<T>(size, 2)),
        gain(normal_numbers<float>(static_cast<size_t>(c.gain_size), 3)),
        bias(normal_numbers<float>(width, 4)),
        d_normed(normal_numbers<T>(size, 5)),
        d_sum(normal_numbers<T>(size, 6)),
        d_gain_before(normal_numbers<float>(static_cast<size_t>(c.gain_size), 7)),
        d_bias_before(normal_numbers<float>(width, 8)),
        counters(c.rows),
        dropout(some_dropout(c.p)) {
    const auto stored = [](float x) { return static_cast<double>(static_cast<float>(T(x))); };
    // The first row is tiny, the second far from 0: a channel too many under its mean or its squares would show.
    for (size_t i = 0; i < width; ++i) residual[i] = y[i] = stored(1e-3f * static_cast<float>(residual[i]));
    for (size_t i = width; c.rows > 1 && i < 2 * width; ++i) residual[i] = stored(16 + static_cast<float>(residual[i]));
  }

  /// The dropout multiplier of element i.
  double keep(size_t i) const {
    return keep_of(dropout, static_cast<int64_t>(i % width), counters.positions[i / width],
                   counters.sentence_ids[i / width]);
  }
  /// residual + drop(y) as it is stored; in float so that it falls on the same number of T.
  std::vector<double> sum(bool with_y) const {
    std::vector<double> x = residual;
    for (size_t i = 0; with_y && i < size; ++i) {
      const float dropped = static_cast<float>(keep(i)) * static_cast<float>(y[i]);
      x[i] = static_cast<double>(static_cast<float>(T(static_cast<float>(residual[i]) + dropped)));
    }
    return x;
  }

  size_t width, size;
  std::vector<double> residual, y, gain, bias, d_normed, d_sum, d_gain_before, d_bias_before;
  RowCounters counters;
  Dropout dropout;
};

/// The kernel's sum, normed and statistics (mean, inverse, weight of each row); empty where not asked for.
template <class T>
Outputs run_add_norm(const AddNormCase& c, const AddNormInputs<T>& in) {
  const size_t shift = c.aligned ? 0 : 1;
  const Array<T> residual = Array<T>::of(in.residual, shift), y = Array<T>::of(in.y, shift);
  const Array<float> gain = Array<float>::of(in.gain, shift), bias = Array<float>::of(in.bias, shift);
  const Array<int32_t> positions(in.counters.positions), sentence_ids(in.counters.sentence_ids);
  Array<T> sum(in.size, shift), normed(in.size, shift);
  Array<RowStatistics<float>> statistics(static_cast<size_t>(c.rows));
  AddNorm<T> a{.rows = c.rows, .width = c.width, .residual = residual.data()};
  if (c.with_y) {
    a.y = y.data();
    a.dropout = in.dropout;
    a.counters = {positions.data(), sentence_ids.data()};
    // In bf16 a GPU that fuses multiply and add may store a neighbour: the expected values go on from what it stored.
    if (c.with_sum || sizeof(T) == 2) a.sum = sum.data();
  }
  if (c.with_normed) {
    a.norm = c.kind.norm;
    if (c.gain_size > 0) a.gain = gain.data();
    a.gain_size = c.gain_size;
    if (c.bias) a.bias = bias.data();
    a.normed = normed.data();
    a.statistics = statistics.data();
  }
  backend()->kernels<T>().add_norm(a, nullptr);
  backend()->synchronise();
  Outputs out(3);
  if (a.sum) out[0] = sum.values();
  if (!a.normed) return out;
  out[1] = normed.values();
  for (int64_t t = 0; t < c.rows; ++t) {
    const RowStatistics<float>& s = statistics.data()[t];
    out[2].insert(out[2].end(), {s.mean, s.inverse, s.weight});
  }
  return out;
}

/// The kernel's d_residual, d_y, d_gain and d_bias; empty where not asked for. `x` is the sum of forward.
template <class T>
Outputs run_add_norm_backward(const AddNormCase& c, const AddNormInputs<T>& in, const std::vector<double>& x,
                              const std::vector<RowStatistics<float>>& row_statistics, bool ahead) {
  const size_t shift = c.aligned ? 0 : 1;
  const Array<T> sum = Array<T>::of(x, shift);
  const Array<float> gain = Array<float>::of(in.gain, shift);
  const Array<int32_t> positions(in.counters.positions), sentence_ids(in.counters.sentence_ids);
  const Array<RowStatistics<float>> statistics(row_statistics);
  Array<T> d_normed = Array<T>::of(in.d_normed, shift), d_sum = Array<T>::of(in.d_sum, shift);
  Array<T> d_residual(in.size, shift), d_y(in.size, shift);
  Array<float> d_gain = Array<float>::of(in.d_gain_before, shift), d_bias = Array<float>::of(in.d_bias_before, shift);
  AddNormBackward<T> b{.rows = c.rows, .width = c.width, .ahead = ahead};
  if (c.with_normed) {
    b.x = sum.data();
    b.statistics = statistics.data();
    b.norm = c.kind.norm;
    if (c.gain_size > 0) b.gain = gain.data();
    b.gain_size = c.gain_size;
    b.d_normed = d_normed.data();
    if (c.gain_size > 0) b.d_gain = d_gain.data();
    if (c.bias) b.d_bias = d_bias.data();
  }
  if (c.with_d_sum || !c.with_normed) b.d_sum = d_sum.data();
  b.d_residual = c.alias == 1 && c.with_normed ? d_normed.data()
                 : c.alias == 2 && b.d_sum     ? d_sum.data()
                                               : d_residual.data();
  if (c.with_y) {
    b.dropout = in.dropout;
    b.counters = {positions.data(), sentence_ids.data()};
    b.d_y = d_y.data();
  }
  backend()->kernels<T>().add_norm_backward(b, nullptr);
  backend()->synchronise();
  Outputs out(4);
  for (size_t i = 0; i < in.size; ++i) out[0].push_back(static_cast<double>(static_cast<float>(b.d_residual[i])));
  if (b.d_y) out[1] = d_y.values();
  if (b.d_gain) out[2] = d_gain.values();
  if (b.d_bias) out[3] = d_bias.values();
  return out;
}

/// The expected values for the rows of `x`, by loops in double.
template <class T>
struct ExpectedAddNorm {
  std::vector<double> normed, d_residual, d_y, d_gain, d_bias;
  std::vector<RowStatistics<float>> statistics;

  ExpectedAddNorm(const AddNormCase& c, const AddNormInputs<T>& in, const std::vector<double>& x)
      : normed(in.size), d_residual(in.d_sum), d_gain(in.d_gain_before), d_bias(in.d_bias_before) {
    for (size_t t = 0; t < static_cast<size_t>(c.rows); ++t) add_row(c, in, t, x.data() + t * in.width);
    d_y = d_residual;
    for (size_t i = 0; i < in.size; ++i) d_y[i] *= in.keep(i);
  }

 private:
  void add_row(const AddNormCase& c, const AddNormInputs<T>& in, size_t t, const double* row) {
    const size_t width = in.width;
    const ReferenceRow reference(row, c.width, c.kind.norm);
    statistics.push_back({static_cast<float>(reference.mean), static_cast<float>(reference.inverse),
                          static_cast<float>(reference.weight)});
    std::vector<double> scaled(width), d_row(width);
    for (size_t i = 0; i < width; ++i) {
      const double g = c.gain_size == 0 ? reference.factor(c.kind.norm, row[i]) : in.gain[c.gain_size == 1 ? 0 : i];
      const double unit = (row[i] - reference.mean) * reference.inverse;
      const double d = in.d_normed[t * width + i];
      normed[t * width + i] = unit * g + (c.bias ? in.bias[i] : 0);
      scaled[i] = g * d;
      if (c.gain_size > 0) d_gain[c.gain_size == 1 ? 0 : i] += unit * d;
      d_bias[i] += d;
    }
    if (!c.with_normed) return;
    reference.backward(row, scaled.data(), c.width, c.kind.norm, d_row.data());
    for (size_t i = 0; i < width; ++i) {
      d_residual[t * width + i] = d_row[i] + (c.with_d_sum ? in.d_sum[t * width + i] : 0);
    }
  }
};

void expect_statistics(const std::vector<double>& got, const std::vector<RowStatistics<float>>& expected,
                       double error) {
  for (size_t t = 0; t < expected.size(); ++t) {
    const double unit = std::abs(1.0 / got[3 * t + 1]);
    EXPECT_NEAR(got[3 * t], expected[t].mean, error * std::max(1.0, unit));
    EXPECT_NEAR(got[3 * t + 1] / expected[t].inverse, 1, error);
    EXPECT_NEAR(got[3 * t + 2], expected[t].weight, 1e-6);
  }
}

template <class T>
void check_add_norm(const AddNormCase& c) {
  SCOPED_TRACE(c.name() + (sizeof(T) == 4 ? ", float" : ", bf16"));
  const AddNormInputs<T> in(c);
  const Outputs forward = run_twice([&] { return run_add_norm(c, in); });
  std::vector<double> x = in.sum(c.with_y);
  if (!forward[0].empty()) {
    expect_close<T>("sum", forward[0], x, arithmetic(1));
    x = forward[0];
  }
  const ExpectedAddNorm<T> expected(c, in, x);
  if (c.with_normed) {
    expect_close<T>("normed", forward[1], expected.normed, arithmetic(c.width));
    expect_statistics(forward[2], expected.statistics, arithmetic(c.width));
  }

  const auto run_backward = [&](bool ahead) {
    return run_twice([&] { return run_add_norm_backward(c, in, x, expected.statistics, ahead); });
  };
  const Outputs backward = run_backward(false);
  expect_close<T>("d_residual", backward[0], expected.d_residual, arithmetic(c.width));
  if (c.with_y) expect_close<T>("d_y", backward[1], expected.d_y, arithmetic(c.width));
  // The sum over rows of a clamped or tiny row may be small beside its terms.
  if (c.with_normed && c.gain_size > 0)
    expect_close<float>("d_gain", backward[2], expected.d_gain, arithmetic(c.width + c.rows),
                        1 + static_cast<double>(c.gain_size == 1 ? std::sqrt(c.rows * c.width) : 0));
  if (c.with_normed && c.bias) expect_close<float>("d_bias", backward[3], expected.d_bias, arithmetic(c.rows), 1);
  if (sizeof(T) == 4 || !c.aligned || !c.with_normed) return;
  const Outputs ahead = run_backward(true);
  for (size_t i = 0; i < ahead.size(); ++i) {
    expect_close<T>("ahead", ahead[i], backward[i], arithmetic(c.width + c.rows), 1);
  }
}

class AddNormKernel : public OnEachBackend {};
TEARLESS_ON_EACH_BACKEND(AddNormKernel);

TEST_P(AddNormKernel, IsItsFormulaForwardAndBackward) {
  uint32_t turn = 0;  // the settings that matter less take turns
  std::vector<int64_t> widths = {1, 7, 8, 33, 128, 130, 2056};
  if (!tearless::test::kSanitized) widths.insert(widths.end(), {256, 512, 1000, 1024, 1030});
  for (const int64_t width : widths) {
    for (const NormKind& kind : kNorms) {
      if (kind.norm.unbiased && width == 1) continue;  // its deviation is not defined
      for (const double p : {0.0, 0.3}) {
        ++turn;
        const int64_t gains[] = {width, 1, 0};
        const bool plain = !may_have_gain(kind.norm);
        const AddNormCase c{.rows = turn % 5 == 0                  ? 1
                                    : turn % 5 == 1 && width < 200 ? 83
                                                                   : 6,
                            .width = width,
                            .kind = kind,
                            .gain_size = plain ? 0 : gains[turn % 3],
                            .bias = !plain && turn % 2 == 0,
                            .with_y = p > 0 || turn % 4 != 1,
                            .with_sum = turn % 7 != 3,
                            .with_normed = turn % 11 != 4,
                            .p = p,
                            .aligned = turn % 3 != 2,
                            .alias = static_cast<int>(turn % 3),
                            .with_d_sum = turn % 4 < 2};
        check_add_norm<float>(c);
        check_add_norm<bf16>(c);
      }
    }
  }
}

TEST_P(AddNormKernel, SumsManyRowsInBlocks) {
  AddNormCase c{.rows = 9000,
                .width = 4,
                .kind = kNorms[0],
                .gain_size = 4,
                .bias = true,
                .with_y = true,
                .with_sum = true,
                .with_normed = true,
                .p = 0,
                .aligned = true,
                .alias = 0,
                .with_d_sum = false};
  check_add_norm<float>(c);
  c.gain_size = 1;
  c.rows = 700;
  check_add_norm<bf16>(c);
}

// --- bias, ReLU, dropout ---

template <class T>
void check_bias_relu_dropout(int64_t rows, int64_t columns, double p, bool aligned, bool in_place,
                             bool with_bias = true) {
  SCOPED_TRACE(fmt::format("{} rows of {}, p {}, aligned {}, in place {}, bias {}, {} bytes", rows, columns, p, aligned,
                           in_place, with_bias, sizeof(T)));
  const size_t size = static_cast<size_t>(rows * columns), width = static_cast<size_t>(columns),
               shift = aligned ? 0 : 3;
  const std::vector<double> x = normal_numbers<T>(size, 1),
                            bias = with_bias ? normal_numbers<float>(width, 2) : std::vector<double>(width);
  const std::vector<double> upstream = normal_numbers<T>(size, 3), d_bias_before = normal_numbers<float>(width, 4);
  const RowCounters counters(rows);
  const Array<int32_t> positions(counters.positions), sentence_ids(counters.sentence_ids);
  const Dropout dropout = some_dropout(p);

  const Outputs got = run_twice([&] {
    Array<T> in = Array<T>::of(x, shift), other(size, shift), d_out = Array<T>::of(upstream, shift),
             d_other(size, shift);
    const Array<float> b = Array<float>::of(bias, shift);
    Array<float> d_bias = Array<float>::of(d_bias_before, shift);
    T* out = in_place ? in.data() : other.data();
    T* d_x = in_place ? d_out.data() : d_other.data();
    backend()->kernels<T>().bias_relu_dropout({rows,
                                               columns,
                                               in.data(),
                                               with_bias ? b.data() : nullptr,
                                               dropout,
                                               {positions.data(), sentence_ids.data()},
                                               out},
                                              nullptr);
    backend()->kernels<T>().bias_relu_dropout_backward(
        {rows, columns, out, dropout, d_out.data(), d_x, with_bias ? d_bias.data() : nullptr}, nullptr);
    backend()->synchronise();
    return Outputs{(in_place ? in : other).values(), (in_place ? d_out : d_other).values(), d_bias.values()};
  });

  std::vector<double> out(size), d_x(size), d_bias = d_bias_before;
  for (size_t i = 0; i < size; ++i) {
    const size_t t = i / width;
    const double keep =
        keep_of(dropout, static_cast<int64_t>(i % width), counters.positions[t], counters.sentence_ids[t]);
    out[i] = keep * std::max(x[i] + bias[i % width], 0.0);
    d_x[i] = out[i] > 0 ? keep * upstream[i] : 0;
    if (with_bias) d_bias[i % width] += d_x[i];
  }
  expect_close<T>("out", got[0], out, arithmetic(1));
  expect_close<T>("d_x", got[1], d_x, arithmetic(1));
  expect_close<float>("d_bias", got[2], d_bias, arithmetic(rows), 1);
}

class BiasReluDropoutKernel : public OnEachBackend {};
TEARLESS_ON_EACH_BACKEND(BiasReluDropoutKernel);

TEST_P(BiasReluDropoutKernel, IsItsFormulaForwardAndBackward) {
  uint32_t turn = 0;
  for (const int64_t width : {1, 7, 8, 33, 512, 1030, 2056, 4096}) {
    for (const int64_t rows : {1, 5, 70}) {
      for (const double p : {0.0, 0.3}) {
        ++turn;
        check_bias_relu_dropout<float>(rows, width, p, turn % 3 != 0, turn % 2 == 0);
        check_bias_relu_dropout<bf16>(rows, width, p, turn % 3 != 1, turn % 2 == 1);
      }
    }
  }
}

TEST_P(BiasReluDropoutKernel, TakesNoBias) {
  for (const int64_t width : {1, 7, 8, 33, 1030}) {
    check_bias_relu_dropout<float>(70, width, 0, width != 7, width == 8, /*with_bias=*/false);
    check_bias_relu_dropout<bf16>(5, width, 0.3, width != 7, width == 8, /*with_bias=*/false);
  }
}

TEST_P(BiasReluDropoutKernel, ReadsTheUpdateWhereItStands) {
  constexpr int64_t kWidth = 64;
  const Array<float> x = Array<float>::of(std::vector<double>(kWidth, 1.0)),
                     bias = Array<float>::of(std::vector<double>(kWidth));
  const Array<int32_t> zero(std::vector<int32_t>{0});
  Array<uint32_t> update(1);
  const auto run = [&](const Dropout& dropout) {
    Array<float> out(kWidth);
    backend()->float_kernels->bias_relu_dropout(
        {1, kWidth, x.data(), bias.data(), dropout, {zero.data(), zero.data()}, out.data()}, nullptr);
    backend()->synchronise();
    return out.values();
  };
  Dropout by_value = some_dropout(0.5), by_pointer = by_value;
  by_pointer.update_at = update.data();
  std::vector<double> before;
  for (const uint32_t n : {1u, 2u, 70'000u}) {
    by_value.update = *update.data() = n;
    const std::vector<double> masked = run(by_pointer);
    EXPECT_EQ(masked, run(by_value));
    EXPECT_NE(masked, before);
    before = masked;
  }
}

// --- column sums ---

template <class T>
void check_column_sums(int64_t rows, int64_t columns, int64_t stride, bool aligned) {
  SCOPED_TRACE(fmt::format("{} rows of {}, {} apart, aligned {}", rows, columns, stride, aligned));
  const size_t size = static_cast<size_t>((rows - 1) * stride + columns);
  const std::vector<double> data = normal_numbers<T>(size, 1),
                            before = normal_numbers<float>(static_cast<size_t>(columns), 2);
  const Outputs got = run_twice([&] {
    const Array<T> x = Array<T>::of(data, aligned ? 0 : 1);
    Array<float> sum = Array<float>::of(before);
    backend()->kernels<T>().column_sums({rows, columns, stride, x.data(), sum.data()}, nullptr);
    backend()->synchronise();
    return Outputs{sum.values()};
  });
  std::vector<double> sum = before;
  for (int64_t t = 0; t < rows; ++t) {
    for (int64_t c = 0; c < columns; ++c) sum[static_cast<size_t>(c)] += data[static_cast<size_t>(t * stride + c)];
  }
  expect_close<float>("sum", got[0], sum, arithmetic(rows), 1);
}

class ColumnSumsKernel : public OnEachBackend {};
TEARLESS_ON_EACH_BACKEND(ColumnSumsKernel);

TEST_P(ColumnSumsKernel, AddsRowsThatLieApart) {
  for (const int64_t rows : {1, 3, 17, 1000}) {
    for (const int64_t width : {1, 7, 8, 33, 512, 1030, 3000}) {
      if (rows == 1000 && width > 600) continue;
      for (const int64_t apart : {width, (width + 23) / 8 * 8}) {
        check_column_sums<float>(rows, width, apart, apart % 3 != 0);
        check_column_sums<bf16>(rows, width, apart, apart % 3 != 1);
      }
    }
  }
  check_column_sums<float>(20'000, 5, 8, true);
}

// --- span means ---

/// Spans of these lengths, one after another but for a row between them that is in none.
template <class T>
void check_span_means(const std::vector<int32_t>& lengths, int64_t columns, bool aligned) {
  SCOPED_TRACE(fmt::format("{} spans, width {}, aligned {}, {} bytes", lengths.size(), columns, aligned, sizeof(T)));
  std::vector<AttentionSpan> spans;
  int32_t rows = 0;
  for (const int32_t length : lengths) {
    spans.push_back({.query_begin = 0, .query_count = 1, .key_begin = rows, .key_count = length, .sentence_id = 0});
    rows += length + 1;
  }
  const size_t width = static_cast<size_t>(columns), size = static_cast<size_t>(rows) * width, shift = aligned ? 0 : 1;
  const std::vector<double> x = normal_numbers<T>(size, 1), before = normal_numbers<T>(size, 2),
                            upstream = normal_numbers<T>(spans.size() * width, 3);
  const Array<AttentionSpan> list(spans);
  const auto span_count = static_cast<int64_t>(spans.size());
  const Outputs got = run_twice([&] {
    const Array<T> in = Array<T>::of(x, shift), d_out = Array<T>::of(upstream, shift);
    Array<T> out(spans.size() * width, shift), d_x = Array<T>::of(before, shift);
    backend()->kernels<T>().span_means({list.data(), span_count, rows, columns, in.data(), out.data()}, nullptr);
    backend()->kernels<T>().span_means_backward({list.data(), span_count, rows, columns, d_out.data(), d_x.data()},
                                                nullptr);
    backend()->synchronise();
    return Outputs{out.values(), d_x.values()};
  });
  std::vector<double> out(spans.size() * width), d_x = before;
  for (size_t i = 0; i < spans.size(); ++i) {
    for (int32_t t = 0; t < spans[i].key_count; ++t) {
      for (size_t c = 0; c < width; ++c) {
        const size_t at = static_cast<size_t>(spans[i].key_begin + t) * width + c;
        out[i * width + c] += x[at] / spans[i].key_count;
        d_x[at] += upstream[i * width + c] / spans[i].key_count;
      }
    }
  }
  expect_close<T>("out", got[0], out, arithmetic(*std::max_element(lengths.begin(), lengths.end())), 1);
  expect_close<T>("d_x", got[1], d_x, arithmetic(1));
}

class SpanMeansKernel : public OnEachBackend {};
TEARLESS_ON_EACH_BACKEND(SpanMeansKernel);

TEST_P(SpanMeansKernel, AreTheFormulaForwardAndBackward) {
  for (const int64_t width : {1, 7, 8, 33, 512, 1030}) {
    check_span_means<float>({1}, width, true);
    check_span_means<float>({0, 3, 1, 0, 40, 0}, width, width % 3 != 0);
    check_span_means<bf16>({5, 0, 1, 0, 17}, width, width % 3 != 1);
  }
  check_span_means<bf16>(std::vector<int32_t>(70, 2), 64, true);
}

// --- running means ---

/// Sentences of these lengths whose first `before` rows are known by their sum alone; the sums lie in rows that
/// `key_rows` lists, or one after another.
template <class T>
void check_running_means(const std::vector<int32_t>& lengths, int32_t before, bool listed, int64_t columns,
                         bool aligned) {
  SCOPED_TRACE(fmt::format("{} spans after {} rows, width {}, listed {}, aligned {}, {} bytes", lengths.size(), before,
                           columns, listed, aligned, sizeof(T)));
  std::vector<AttentionSpan> spans;
  std::vector<int32_t> key_rows;
  int32_t rows = 0, keys = 0;
  for (const int32_t length : lengths) {
    spans.push_back({rows, length, keys, before + length, 0});
    rows += length;
    keys += before + length;
  }
  for (int32_t k = 0; k < keys; ++k) key_rows.push_back(listed ? keys - 1 - k : k);
  const size_t width = static_cast<size_t>(columns), size = static_cast<size_t>(rows) * width, shift = aligned ? 0 : 1;
  const std::vector<double> x = normal_numbers<T>(size, 1), d_before = normal_numbers<T>(size, 2),
                            upstream = normal_numbers<T>(size, 3),
                            kept = normal_numbers<float>(static_cast<size_t>(keys) * width, 4);
  const Array<AttentionSpan> list(spans);
  const Array<int32_t> key_list(key_rows);
  const auto count = static_cast<int64_t>(spans.size());
  const Outputs got = run_twice([&] {
    const Array<T> in = Array<T>::of(x, shift), d_out = Array<T>::of(upstream, shift);
    Array<T> out(size, shift), d_x = Array<T>::of(d_before, shift);
    Array<float> sums = Array<float>::of(kept, shift);
    const bool has_sums = listed || before > 0;
    backend()->kernels<T>().running_means({list.data(), count, rows, columns, listed ? key_list.data() : nullptr,
                                           in.data(), has_sums ? sums.data() : nullptr, out.data()},
                                          nullptr);
    backend()->kernels<T>().running_means_backward({list.data(), count, rows, columns, d_out.data(), d_x.data()},
                                                   nullptr);
    backend()->synchronise();
    return Outputs{out.values(), d_x.values(), sums.values()};
  });
  std::vector<double> out(size), d_x = d_before, sums = kept;
  for (const AttentionSpan& span : spans) {
    const auto kept_at = [&](int32_t key, size_t c) {
      return static_cast<size_t>(key_rows[static_cast<size_t>(span.key_begin + key)]) * width + c;
    };
    for (size_t c = 0; c < width; ++c) {
      double sum = before > 0 ? kept[kept_at(before - 1, c)] : 0;
      for (int32_t q = 0; q < span.query_count; ++q) {
        const size_t at = static_cast<size_t>(span.query_begin + q) * width + c;
        sum += x[at];
        out[at] = sum / (before + q + 1);
        if (listed || before > 0) sums[kept_at(before + q, c)] = sum;
        for (int32_t p = 0; p <= q; ++p) {
          d_x[static_cast<size_t>(span.query_begin + p) * width + c] += upstream[at] / (before + q + 1);
        }
      }
    }
  }
  const double longest = *std::max_element(lengths.begin(), lengths.end());
  expect_close<T>("out", got[0], out, arithmetic(longest), 1);
  expect_close<T>("d_x", got[1], d_x, arithmetic(longest), 1);
  expect_close<float>("sums", got[2], sums, arithmetic(longest), 1);
}

class RunningMeansKernel : public OnEachBackend {};
TEARLESS_ON_EACH_BACKEND(RunningMeansKernel);

TEST_P(RunningMeansKernel, AreTheFormulaForwardAndBackwardAndKeepTheSums) {
  for (const int64_t width : {1, 7, 8, 33, 512}) {
    check_running_means<float>({1}, 0, false, width, true);
    check_running_means<float>({3, 1, 0, 40}, 0, false, width, width % 3 != 0);
    check_running_means<float>({3, 1, 5}, 2, false, width, width % 3 != 1);
    check_running_means<float>({1, 1, 1}, 4, true, width, true);
    check_running_means<bf16>({5, 0, 1, 17}, 0, false, width, width % 3 != 1);
    check_running_means<bf16>({1, 1, 2}, 1, true, width, width % 3 != 0);
  }
  check_running_means<float>({1, 1}, 0, true, 8, true);
}

// --- gates ---

template <class T>
void check_gates(int64_t rows, int64_t columns, bool aligned) {
  SCOPED_TRACE(fmt::format("{} rows, width {}, aligned {}, {} bytes", rows, columns, aligned, sizeof(T)));
  const auto width = static_cast<size_t>(columns), size = static_cast<size_t>(rows) * width;
  const size_t shift = aligned ? 0 : 1;
  std::vector<double> gates = normal_numbers<T>(2 * size, 1);
  const std::vector<double> x = normal_numbers<T>(2 * size, 2), upstream = normal_numbers<T>(size, 3),
                            before = normal_numbers<T>(2 * size, 4);
  gates.front() = 200;  // e⁻ᶻ below and above what float has
  gates.back() = -200;
  const Outputs got = run_twice([&] {
    const Array<T> z = Array<T>::of(gates, shift), in = Array<T>::of(x, shift), d_out = Array<T>::of(upstream, shift);
    Array<T> out(size, shift), d_gates(2 * size, shift), d_x = Array<T>::of(before, shift);
    backend()->kernels<T>().gated_sum({rows, columns, z.data(), in.data(), out.data()}, nullptr);
    backend()->kernels<T>().gated_sum_backward(
        {rows, columns, z.data(), in.data(), d_out.data(), d_gates.data(), d_x.data()}, nullptr);
    backend()->synchronise();
    return Outputs{out.values(), d_gates.values(), d_x.values()};
  });
  std::vector<double> out(size), d_gates(2 * size), d_x = before;
  for (size_t t = 0; t < static_cast<size_t>(rows); ++t) {
    for (size_t c = 0; c < 2 * width; ++c) {
      const size_t at = 2 * t * width + c, to = t * width + c % width;
      const double s = 1 / (1 + std::exp(-gates[at]));
      out[to] += s * x[at];
      d_gates[at] = upstream[to] * x[at] * s * (1 - s);
      d_x[at] += upstream[to] * s;
    }
  }
  expect_close<T>("out", got[0], out, arithmetic(2), 1);
  expect_close<T>("d_gates", got[1], d_gates, arithmetic(2), 1);
  expect_close<T>("d_x", got[2], d_x, arithmetic(2), 1);
}

class GatesKernel : public OnEachBackend {};
TEARLESS_ON_EACH_BACKEND(GatesKernel);

TEST_P(GatesKernel, AreTheFormulaForwardAndBackward) {
  for (const int64_t width : {1, 7, 8, 33, 512}) {
    check_gates<float>(1, width, true);
    check_gates<float>(37, width, width % 3 != 0);
    check_gates<bf16>(37, width, width % 3 != 1);
  }
}

// --- cross-entropy ---

/// The target distribution of a row, and what is left out of it.
struct Masses {
  double gold = 1, each = 0;
  int32_t without = -1;
  double entropy = 0;
  bool weighted = false;  // rows have weights
};
Masses spread_evenly(double mass, int64_t vocab_size) { return {1 - mass, mass / static_cast<double>(vocab_size)}; }

/// Rows of `width` numbers, laid `stride` apart with NaN between them, and back.
std::vector<double> laid_apart(const std::vector<double>& rows, size_t width, size_t stride) {
  std::vector<double> apart(rows.size() / width * stride, NAN);
  for (size_t i = 0; i < rows.size(); ++i) apart[i / width * stride + i % width] = rows[i];
  return apart;
}
std::vector<double> moved_together(const std::vector<double>& apart, size_t width, size_t stride) {
  std::vector<double> rows;
  for (size_t i = 0; i < apart.size(); ++i) {
    if (i % stride < width) rows.push_back(apart[i]);
  }
  return rows;
}

/// `stride`: from one row of logits to the next; 0: as they are wide.
template <class T>
void check_cross_entropy(int64_t rows, int64_t vocab_size, const Masses& masses, bool gradient, double offset,
                         bool on_device, int64_t stride = 0) {
  if (stride == 0) stride = vocab_size;
  SCOPED_TRACE(fmt::format(
      "{} rows of {} tokens, masses {} and {} but for {}, weighted {}, gradient {}, offset {}, {} "
      "bytes",
      rows, vocab_size, masses.gold, masses.each, masses.without, masses.weighted, gradient, offset, sizeof(T)));
  const size_t width = static_cast<size_t>(vocab_size), size = static_cast<size_t>(rows) * width;
  std::vector<double> logits = normal_numbers<T>(size, 1, 3);
  for (double& z : logits) z = static_cast<double>(static_cast<float>(static_cast<T>(static_cast<float>(z + offset))));
  std::vector<int32_t> labels;
  std::vector<float> weights;
  for (int64_t t = 0; t < rows; ++t) {
    labels.push_back(t % 4 == 2 ? -1 : static_cast<int32_t>((t * 7919) % vocab_size));
    if (labels.back() >= 0 && labels.back() == masses.without) labels.back() = static_cast<int32_t>(vocab_size - 1);
    weights.push_back(masses.weighted ? 1.0f / static_cast<float>(1 + t % 3) : 1.0f);
  }
  const Array<float> row_weights(weights);
  const double loss_scale = 1.0 / static_cast<double>(rows);
  const Array<int32_t> gold(labels);

  const Outputs got = run_twice([&] {
    Array<T> z = Array<T>::of(laid_apart(logits, width, static_cast<size_t>(stride)));
    Array<RowLoss> losses(static_cast<size_t>(rows)), sum(1);
    const Array<double> loss_scale_at(std::vector<double>{loss_scale});
    sum.data()[0] = {100, 200};
    CrossEntropy<T> a{.rows = rows,
                      .vocab_size = vocab_size,
                      .stride = stride,
                      .logits = z.data(),
                      .labels = gold.data(),
                      .gold = masses.gold,
                      .each = masses.each,
                      .without = masses.without,
                      .entropy = masses.entropy,
                      .row_weights = masses.weighted ? row_weights.data() : nullptr,
                      .loss_scale = on_device ? NAN : loss_scale,
                      .gradient = gradient,
                      .row_losses = losses.data()};
    if (on_device) {
      a.loss_scale_at = loss_scale_at.data();
      a.sum = sum.data();
    }
    backend()->kernels<T>().cross_entropy(a, nullptr);
    backend()->synchronise();
    Outputs out{
        moved_together(z.values(), width, static_cast<size_t>(stride)), {}, {}, {sum.data()->loss, sum.data()->nll}};
    for (int64_t t = 0; t < rows; ++t) {
      out[1].push_back(losses.data()[t].loss);
      out[2].push_back(losses.data()[t].nll);
    }
    return out;
  });

  std::vector<double> d = logits, loss, nll;
  double loss_sum = 100, nll_sum = 200;
  for (size_t t = 0; t < static_cast<size_t>(rows); ++t) {
    const double* z = logits.data() + t * width;
    const double top = *std::max_element(z, z + width);
    double sum = 0, all = 0;
    for (size_t v = 0; v < width; ++v) sum += std::exp(z[v] - top);
    const double log_sum = std::log(sum) + top;
    const auto without = static_cast<size_t>(masses.without);
    for (size_t v = 0; v < width; ++v) all += v == without ? 0 : log_sum - z[v];
    const bool counts = labels[t] >= 0;
    const double of_gold = counts ? log_sum - z[labels[t]] : 0;
    nll.push_back(of_gold);
    loss.push_back(counts ? masses.gold * of_gold + masses.each * all - masses.entropy : 0);
    loss_sum += loss.back();
    nll_sum += nll.back();
    for (size_t v = 0; gradient && v < width; ++v) {
      const double target = (v == without ? 0 : masses.each) + (static_cast<int32_t>(v) == labels[t] ? masses.gold : 0);
      const double scale = loss_scale * static_cast<double>(weights[t]);
      d[t * width + v] = counts ? scale * (std::exp(z[v] - log_sum) - target) : 0;
    }
  }
  // An offset that all share costs nothing: differences alone are looked at.
  expect_close<T>("gradient", got[0], d, gradient ? arithmetic(vocab_size) : 0);
  expect_close<float>("loss", got[1], loss, arithmetic(vocab_size), 1);
  expect_close<float>("nll", got[2], nll, arithmetic(vocab_size), 1);
  if (!on_device) return;
  EXPECT_NEAR(got[3][0], loss_sum, arithmetic(vocab_size) * loss_sum);
  EXPECT_NEAR(got[3][1], nll_sum, arithmetic(vocab_size) * nll_sum);
}

class CrossEntropyKernel : public OnEachBackend {};
TEARLESS_ON_EACH_BACKEND(CrossEntropyKernel);

TEST_P(CrossEntropyKernel, IsItsFormula) {
  for (const int64_t vocab_size : {1, 7, 8, 33, 512, 1030, 5000}) {
    for (const int64_t rows : {1, 9}) {
      for (const double smoothing : {0.0, 0.1}) {
        check_cross_entropy<float>(rows, vocab_size, spread_evenly(smoothing, vocab_size), true, 0, rows == 9);
        check_cross_entropy<bf16>(rows, vocab_size, spread_evenly(smoothing, vocab_size), true, 0, rows == 1);
      }
    }
  }
  for (const auto& [vocab_size, stride] : {std::pair{1, 8}, {7, 8}, {33, 40}, {1030, 1032}, {1030, 1031}, {8, 24}}) {
    check_cross_entropy<float>(9, vocab_size, spread_evenly(0.1, vocab_size), true, 0, true, stride);
    check_cross_entropy<bf16>(9, vocab_size, spread_evenly(0.1, vocab_size), true, 0, true, stride);
  }
  check_cross_entropy<float>(300, 8, spread_evenly(0.1, 8), true, 0, true);
  check_cross_entropy<float>(5, 33, spread_evenly(0.1, 33), false, 0, false);
  check_cross_entropy<float>(5, 1024, spread_evenly(0.1, 1024), true, 1e4, false);
  check_cross_entropy<float>(5, 1024, spread_evenly(0.1, 1024), true, -1e4, false);
}

TEST_P(CrossEntropyKernel, LeavesOneTokenWithoutMassAndWeighsRows) {
  for (const int64_t vocab_size : {7, 8, 33, 1030}) {
    for (const int64_t rows : {1, 9}) {
      Masses masses{.gold = 0.6, .each = 0.4 / static_cast<double>(vocab_size - 1), .without = 0, .entropy = 0.25};
      for (const int32_t without : {0, 3, -1}) {
        masses.without = without;
        masses.weighted = rows == 9;
        check_cross_entropy<float>(rows, vocab_size, masses, true, 0, rows == 9);
        check_cross_entropy<bf16>(rows, vocab_size, masses, true, 0, rows == 1);
      }
    }
  }
}

TEST_P(CrossEntropyKernel, TakesLogitsOfMinusInfinityAndShowsWhatIsNoNumber) {
  constexpr int64_t kVocabSize = 1024;
  Array<float> z(2 * kVocabSize);
  for (int64_t v = 0; v < kVocabSize; ++v) {
    z.data()[v] = v < 1000 ? -INFINITY : 0.0f;
    z.data()[kVocabSize + v] = v == 77 ? NAN : 0.0f;
  }
  const Array<int32_t> labels(std::vector<int32_t>{1001, 5});
  Array<RowLoss> losses(2);
  backend()->kernels<float>().cross_entropy({.rows = 2,
                                             .vocab_size = kVocabSize,
                                             .stride = kVocabSize,
                                             .logits = z.data(),
                                             .labels = labels.data(),
                                             .loss_scale = 1,
                                             .gradient = true,
                                             .row_losses = losses.data()},
                                            nullptr);
  backend()->synchronise();
  EXPECT_NEAR(losses.data()[0].nll, std::log(24.0), 1e-6);
  EXPECT_EQ(z.data()[0], 0.0f);
  EXPECT_NEAR(z.data()[1001], 1 / 24.0 - 1, 1e-6);
  EXPECT_TRUE(std::isnan(losses.data()[1].loss));
}

// --- best tokens ---

template <class T>
void check_best_tokens(const std::vector<double>& logits, int64_t vocab_size, int64_t count, int32_t forbidden,
                       bool aligned = true, int64_t stride = 0) {
  if (stride == 0) stride = vocab_size;
  const size_t width = static_cast<size_t>(vocab_size), rows = logits.size() / width, best = static_cast<size_t>(count);
  SCOPED_TRACE(fmt::format("{} rows of {} tokens, best {}, without {}, aligned {}, {} bytes", rows, vocab_size, count,
                           forbidden, aligned, sizeof(T)));
  const Outputs got = run_twice([&] {
    const Array<T> z = Array<T>::of(laid_apart(logits, width, static_cast<size_t>(stride)), aligned ? 0 : 1);
    Array<int32_t> tokens(rows * best);
    Array<float> log_p(rows * best);
    backend()->kernels<T>().best_tokens({.rows = static_cast<int64_t>(rows),
                                         .vocab_size = vocab_size,
                                         .stride = stride,
                                         .count = count,
                                         .forbidden = forbidden,
                                         .logits = z.data(),
                                         .tokens = tokens.data(),
                                         .log_p = log_p.data()},
                                        nullptr);
    backend()->synchronise();
    return Outputs{{tokens.data(), tokens.data() + tokens.size()}, log_p.values()};
  });

  std::vector<double> tokens, log_p;
  for (size_t row = 0; row < rows; ++row) {
    std::vector<double> z(logits.begin() + static_cast<std::ptrdiff_t>(row * width),
                          logits.begin() + static_cast<std::ptrdiff_t>((row + 1) * width));
    for (double& x : z) x = std::isnan(x) ? -INFINITY : x;
    const double top = std::max(*std::max_element(z.begin(), z.end()), -1e30);
    double sum = 0;
    for (const double x : z) sum += std::exp(x - top);
    std::vector<int32_t> order;
    for (int32_t v = 0; v < vocab_size; ++v) {
      if (v != forbidden) order.push_back(v);
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](int32_t a, int32_t b) { return z[static_cast<size_t>(a)] > z[static_cast<size_t>(b)]; });
    for (size_t rank = 0; rank < best; ++rank) {
      const bool there = rank < order.size();
      tokens.push_back(there ? order[rank] : -1);
      const double logit = there ? z[static_cast<size_t>(order[rank])] : -INFINITY;
      log_p.push_back(std::isinf(logit) ? -INFINITY : logit - top - std::log(sum));
    }
  }
  EXPECT_EQ(got[0], tokens);
  for (size_t i = 0; i < log_p.size(); ++i) {
    if (std::isinf(log_p[i])) {
      EXPECT_EQ(got[1][i], log_p[i]) << i;
    } else {
      EXPECT_NEAR(got[1][i], log_p[i], arithmetic(vocab_size) * std::max(1.0, std::abs(log_p[i]))) << i;
    }
  }
}

class BestTokensKernel : public OnEachBackend {};
TEARLESS_ON_EACH_BACKEND(BestTokensKernel);

TEST_P(BestTokensKernel, AreThoseOfASort) {
  for (const int64_t vocab_size : {1, 7, 63, 1000, 8000}) {
    for (const int64_t count : {1, 4, 5, 64}) {
      const size_t size = static_cast<size_t>(3 * vocab_size);
      // bf16 has many ties among thousands of tokens.
      check_best_tokens<float>(normal_numbers<float>(size, 1, 3), vocab_size, count, -1);
      check_best_tokens<bf16>(normal_numbers<bf16>(size, 2, 3), vocab_size, count, 0, vocab_size % 8 == 0);
      check_best_tokens<bf16>(normal_numbers<bf16>(size, 3, 3), vocab_size, count, static_cast<int32_t>(vocab_size - 1),
                              false);
    }
  }
  for (const auto& [vocab_size, stride] : {std::pair{1, 8}, {7, 8}, {63, 64}, {998, 1000}, {998, 999}}) {
    const size_t size = static_cast<size_t>(3 * vocab_size);
    check_best_tokens<float>(normal_numbers<float>(size, 1, 3), vocab_size, 5, -1, true, stride);
    check_best_tokens<bf16>(normal_numbers<bf16>(size, 2, 3), vocab_size, 5, 0, true, stride);
  }
  // A shift of all logits costs nothing.
  std::vector<double> far = normal_numbers<float>(3000, 4);
  for (double& z : far) z = static_cast<float>(z + 5e3);
  check_best_tokens<float>(far, 1000, 5, -1);
}

TEST_P(BestTokensKernel, GivesTiesToTheSmallerToken) {
  constexpr int64_t kVocabSize = 1000;
  for (const int64_t count : {1, 5, 64}) {
    for (const double all : {0.0, 3.0, -2.5}) {
      check_best_tokens<float>(std::vector<double>(2 * kVocabSize, all), kVocabSize, count, -1);
      check_best_tokens<bf16>(std::vector<double>(2 * kVocabSize, all), kVocabSize, count, 0);
    }
    std::vector<double> few(2 * kVocabSize);
    for (size_t i = 0; i < few.size(); ++i) few[i] = i * 7919 % 3 == 0 ? -0.0 : i % 17 == 0 ? 1 : 0;
    check_best_tokens<float>(few, kVocabSize, count, -1);
    check_best_tokens<bf16>(few, kVocabSize, count, 17);
  }
}

TEST_P(BestTokensKernel, TakesMinusInfinityAndWhatIsNoNumber) {
  constexpr size_t kVocabSize = 264;
  std::vector<double> z = normal_numbers<bf16>(5 * kVocabSize, 1);
  std::fill_n(z.begin(), kVocabSize, -INFINITY);
  for (size_t v = 3; v < kVocabSize; ++v) z[kVocabSize + v] = -INFINITY;
  for (size_t v = 0; v < kVocabSize; v += 2) z[2 * kVocabSize + v] = NAN;
  std::fill_n(z.begin() + 3 * kVocabSize, kVocabSize, NAN);
  z[4 * kVocabSize] = NAN;
  for (const int64_t count : {1, 5, 64}) {
    check_best_tokens<float>(z, kVocabSize, count, -1);
    check_best_tokens<bf16>(z, kVocabSize, count, 1);
  }
  check_best_tokens<float>(std::vector<double>(5, -INFINITY), 5, 7, 2);
}

TEST_P(BestTokensKernel, RefusesCountsThatItHasNoRoomFor) {
  for (const int64_t count : {int64_t{0}, kMaxBestTokens + 1}) {
    EXPECT_THROW(backend()->float_kernels->best_tokens({.rows = 1, .vocab_size = 1, .count = count}, nullptr),
                 std::invalid_argument);
  }
}

// --- embedding ---

/// `of_none`: each row of which that is a divisor has no token; 0: all have one.
template <class T>
void check_embedding(int64_t rows, int64_t columns, int32_t vocabulary, double p, bool aligned, int64_t of_none = 0) {
  SCOPED_TRACE(fmt::format("{} rows of {}, {} tokens, p {}, aligned {}, {} bytes, without tokens {}", rows, columns,
                           vocabulary, p, aligned, sizeof(T), of_none));
  const size_t width = static_cast<size_t>(columns), size = static_cast<size_t>(rows) * width, shift = aligned ? 0 : 1;
  const size_t table_size = static_cast<size_t>(vocabulary) * width;
  const std::vector<double> table = normal_numbers<float>(table_size, 1),
                            position_table = normal_numbers<float>(7 * width, 2);
  const std::vector<double> upstream = normal_numbers<T>(size, 3), before = normal_numbers<float>(table_size, 4);
  const double scale = std::sqrt(static_cast<double>(columns));
  const RowCounters counters(rows);
  std::vector<int32_t> tokens, by_token;
  for (int64_t t = 0; t < rows; ++t) {
    tokens.push_back(of_none > 0 && t % of_none == 0 ? kNoToken : static_cast<int32_t>(t * t % vocabulary));
    by_token.push_back(static_cast<int32_t>(t));
  }
  std::stable_sort(by_token.begin(), by_token.end(), [&](int32_t a, int32_t b) { return tokens[a] < tokens[b]; });
  const Array<int32_t> positions(counters.positions), sentence_ids(counters.sentence_ids), token(tokens),
      order(by_token);
  const DropoutCounters row_counters{positions.data(), sentence_ids.data()};
  const Dropout dropout = some_dropout(p);

  const Outputs got = run_twice([&] {
    const Array<float> words = Array<float>::of(table, shift), place = Array<float>::of(position_table, shift);
    const Array<T> d_out = Array<T>::of(upstream, shift);
    Array<T> out(size, shift);
    Array<float> d_table = Array<float>::of(before, shift);
    backend()->kernels<T>().embedding(
        {rows, columns, words.data(), place.data(), token.data(), scale, dropout, row_counters, out.data()}, nullptr);
    backend()->kernels<T>().embedding_backward(
        {rows, columns, d_out.data(), token.data(), order.data(), scale, dropout, row_counters, d_table.data()},
        nullptr);
    backend()->synchronise();
    return Outputs{out.values(), d_table.values()};
  });

  std::vector<double> out(size), d_table = before;
  for (size_t i = 0; i < size; ++i) {
    const size_t t = i / width, c = i % width;
    const double keep = keep_of(dropout, static_cast<int64_t>(c), counters.positions[t], counters.sentence_ids[t]);
    const double place = position_table[static_cast<size_t>(counters.positions[t]) * width + c];
    if (tokens[t] == kNoToken) {
      out[i] = keep * place;
      continue;
    }
    const size_t at = static_cast<size_t>(tokens[t]) * width + c;
    out[i] = keep * (scale * table[at] + place);
    d_table[at] += scale * keep * upstream[i];
  }
  expect_close<T>("out", got[0], out, arithmetic(1));
  expect_close<float>("d_table", got[1], d_table, arithmetic(rows), 1);
}

class EmbeddingKernel : public OnEachBackend {};
TEARLESS_ON_EACH_BACKEND(EmbeddingKernel);

TEST_P(EmbeddingKernel, IsItsFormulaForwardAndBackward) {
  for (const int64_t width : {1, 7, 8, 33, 128, 512, 1030}) {
    for (const double p : {0.0, 0.3}) {
      check_embedding<float>(1, width, 5, p, true);
      check_embedding<float>(30, width, 11, p, width % 3 != 0);
      check_embedding<bf16>(30, width, 1000, p, width % 3 != 1);
    }
  }
}
TEST_P(EmbeddingKernel, SumsTokensThatFillMoreThanAWindow) {
  check_embedding<float>(1100, 8, 1, 0.3, true);  // one segment over many windows
  check_embedding<bf16>(1000, 16, 7, 0, true);    // segments that start anywhere
  check_embedding<float>(256, 4, 1, 0, true);     // exactly a window
  check_embedding<float>(600, 4, 2, 0, true);
}
TEST_P(EmbeddingKernel, HasThePositionAloneWhereThereIsNoTokenAndNoGradientOfIt) {
  check_embedding<float>(30, 33, 11, 0.3, true, 3);
  check_embedding<bf16>(30, 8, 5, 0, true, 2);
  check_embedding<float>(20, 7, 5, 0.3, false, 1);    // not one has a token
  check_embedding<float>(1100, 8, 3, 0.3, true, 2);   // more than a window without
  check_embedding<bf16>(1000, 16, 7, 0, false, 500);  // less than a window's start
}

}  // namespace
}  // namespace tearless::engine::test::kernels_rows_test
