// Properties that every kind of norm must have, and reference values for each kind. A new kind is tested by the first
// part as soon as it has a line in norms.def.
#include "engine/norm/norm.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <set>

#include "tests/engine/ops/op_check.h"
#include "tests/support/paths.h"

namespace tearless::engine {
namespace {

using tearless::test::read_text;
using tearless::test::source_root;
using test::random_tensor;

at::Tensor gain_of(const NormKind& kind, int64_t width, uint64_t seed) {
  const int64_t size = kind.gain_size(width);
  return size == 0 ? at::Tensor() : random_tensor({size}, seed) + 1.5;
}

at::Tensor bias_of(const NormKind& kind, int64_t width, uint64_t seed) {
  return kind.bias ? random_tensor({width}, seed) : at::Tensor();
}

at::Tensor forward(const NormKind& kind, const at::Tensor& x, const at::Tensor& gain, const at::Tensor& bias,
                   Tape::Ops ops = Tape::Ops::kFast) {
  Tape tape(Tape::Kind::kForward, ops);
  const auto value = [](const at::Tensor& t) { return t.defined() ? Value(t) : Value(); };
  return norm_rows(tape, Value(x), kind.make(value(gain), value(bias), kind.default_eps)).data();
}

class EveryNorm : public testing::TestWithParam<NormKind> {};

INSTANTIATE_TEST_SUITE_P(All, EveryNorm, testing::ValuesIn(norm_kinds().begin(), norm_kinds().end()),
                         [](const testing::TestParamInfo<NormKind>& info) { return std::string(info.param.name); });

TEST_P(EveryNorm, HasTheGradientOfItsFormula) {
  const NormKind& kind = GetParam();
  for (const auto& [rows, width] : {std::pair<int64_t, int64_t>{1, 4}, {3, 7}, {70, 10}}) {
    SCOPED_TRACE(testing::Message() << rows << " rows of " << width);
    test::expect_right_backward({std::string(kind.name),
                                 {random_tensor({rows, width}, 1), gain_of(kind, width, 2), bias_of(kind, width, 3)},
                                 [&](Tape& tape, const std::vector<Value>& in) {
                                   return norm_rows(tape, in[0], kind.make(in[1], in[2], kind.default_eps));
                                 }});
  }
}

TEST_P(EveryNorm, KeepsTheShapeAndNormalisesEachRowAlone) {
  const NormKind& kind = GetParam();
  const at::Tensor x = random_tensor({5, 6}, 1).to(at::kFloat);
  const auto single = [](const at::Tensor& t) { return t.defined() ? t.to(at::kFloat) : t; };
  const at::Tensor gain = single(gain_of(kind, 6, 2)), bias = single(bias_of(kind, 6, 3));
  const at::Tensor y = forward(kind, x, gain, bias);
  EXPECT_EQ(y.sizes(), x.sizes());
  for (int64_t t = 0; t < 5; ++t) {
    EXPECT_TRUE(at::equal(forward(kind, x.slice(0, t, t + 1).contiguous(), gain, bias), y.slice(0, t, t + 1)))
        << "row " << t;
  }
}

TEST_P(EveryNorm, StaysFiniteOnARowOfZerosAndOnAConstantRow) {
  const NormKind& kind = GetParam();
  for (const auto ops : {Tape::Ops::kFast, Tape::Ops::kReference}) {
    for (const double constant : {0.0, 3.0, 1e-20}) {
      const test::ForwardBackward result = test::forward_backward(
          [&](Tape& tape, const std::vector<Value>& in) {
            return norm_rows(tape, in[0], kind.make(in[1], in[2], kind.default_eps));
          },
          {at::full({2, 6}, constant, at::kDouble), gain_of(kind, 6, 2), bias_of(kind, 6, 3)}, ops, at::kFloat);
      EXPECT_TRUE(result.output.isfinite().all().item<bool>()) << constant;
      EXPECT_TRUE(result.gradients[0].isfinite().all().item<bool>()) << constant;
    }
  }
}

TEST_P(EveryNorm, HasAMeaningAndAPositiveEpsilon) {
  EXPECT_FALSE(GetParam().meaning.empty());
  EXPECT_GT(GetParam().default_eps, 0);
  EXPECT_GT(GetParam().initial_gain(512), 0);
}

TEST(NormKinds, EveryFileHasItsLineInNormsDef) {
  const std::filesystem::path folder = source_root() / "engine" / "norm";
  std::set<std::string> lines, files;
  const std::string list = read_text(folder / "norms.def");
  const std::regex line(R"(NORM\((\w+)\))");
  for (std::sregex_iterator it(list.begin(), list.end(), line), end; it != end; ++it) lines.insert((*it)[1]);
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::filesystem::path file = entry.path();
    if (file.extension() == ".cc" && file.stem() != "norm") files.insert(file.stem());
  }
  EXPECT_EQ(files, lines);
}

// --- numbers ---------------------------------------------------------------------------------------------------------

// The reference vector of docs/spec/knobs.md §2.2, to its six printed digits; ε = 0 there.
struct Reference {
  const char* kind;
  std::vector<double> gain, bias;
  std::vector<double> output, dx, dgain;
};

TEST(NormKinds, MatchTheReferenceVectors) {
  const at::Tensor x = at::tensor({1.0, 2.0, 4.0, -3.0}, at::kDouble).view({1, 4});
  const at::Tensor delta = at::tensor({0.3, -0.1, 0.2, 0.5}, at::kDouble).view({1, 4});
  const std::vector<Reference> references = {
      {"none", {}, {}, {1, 2, 4, -3}, {0.3, -0.1, 0.2, 0.5}, {}},
      {"layer_norm",
       {1, 1, 1, 1},
       {0, 0, 0, 0},
       {0, 0.392232, 1.176697, -1.568929},
       {0.029417, -0.104847, 0.058081, 0.017349},
       {0, -0.0392232, 0.2353394, -0.7844645}},
      {"scale_norm",
       {2},
       {},
       {0.365148, 0.730297, 1.460593, -1.095445},
       {0.116847, -0.021909, 0.102242, 0.160665},
       {-0.109545}},
      // RMSNorm with all gains g' is ScaleNorm with g'·√d: here g' = 1 is g = 2 (docs/spec/knobs.md §2).
      {"rms_norm",
       {1, 1, 1, 1},
       {},
       {0.365148, 0.730297, 1.460593, -1.095445},
       {0.116847, -0.021909, 0.102242, 0.160665},
       {0.109545, -0.0730297, 0.2921187, -0.5477226}},
  };
  for (const Reference& r : references) {
    for (const auto ops : {Tape::Ops::kFast, Tape::Ops::kReference}) {
      SCOPED_TRACE(testing::Message() << r.kind << (ops == Tape::Ops::kFast ? ", fast" : ", reference"));
      const auto value = [](const std::vector<double>& v) {
        return v.empty() ? Value() : Value(at::tensor(v, at::kDouble));
      };
      const Value in(x.clone()), gain = value(r.gain), bias = value(r.bias);
      Tape tape(Tape::Kind::kRecording, ops);
      const Value out = norm_rows(tape, in, norm_kind(r.kind).make(gain, bias, 1e-12));
      EXPECT_LT((out.data() - at::tensor(r.output, at::kDouble)).abs().max().item<double>(), 1e-6);
      out.add_grad(delta.clone());
      tape.backward();
      EXPECT_LT((in.grad() - at::tensor(r.dx, at::kDouble)).abs().max().item<double>(), 1e-6);
      if (gain) {
        EXPECT_LT((gain.grad() - at::tensor(r.dgain, at::kDouble)).abs().max().item<double>(), 1e-6);
      }
      if (bias) {
        EXPECT_LT((bias.grad() - delta[0]).abs().max().item<double>(), 1e-6);
      }
    }
  }
}

TEST(LayerNorm, AddsEpsilonInsideTheRoot) {
  // Variance 1e-6 of a row (±1e-3): 1e-3 / √(1e-6 + 1e-5).
  const at::Tensor x = at::tensor({1e-3, -1e-3}, at::kDouble).view({1, 2});
  const at::Tensor y =
      forward(norm_kind("layer_norm"), x, at::full({2}, 1.0, at::kDouble), at::zeros({2}, at::kDouble));
  EXPECT_NEAR(y[0][0].item<double>(), 1e-3 / std::sqrt(1.1e-5), 1e-9);
}

TEST(ScaleNorm, ClampsTheLengthFromBelowAndThenScalesByEpsilon) {
  const NormKind& kind = norm_kind("scale_norm");
  const Value x(at::tensor({3e-6, 4e-6}, at::kDouble).view({1, 2}));  // length 5e-6 < ε
  const Value gain(at::tensor({2.0}, at::kDouble));
  Tape tape(Tape::Kind::kRecording);
  const Value y = norm_rows(tape, x, kind.make(gain, {}, kind.default_eps));
  EXPECT_NEAR(y.data()[0][0].item<double>(), 0.6, 1e-12);
  y.add_grad(at::tensor({1.0, 1.0}, at::kDouble).view({1, 2}));
  tape.backward();
  EXPECT_NEAR(x.grad()[0][0].item<double>(), 2e5, 1e-6);  // that of x·g/ε
  EXPECT_NEAR(gain.grad()[0].item<double>(), 0.7, 1e-12);
}

TEST(ScaleNorm, StartsAtTheSquareRootOfTheWidth) {
  EXPECT_DOUBLE_EQ(norm_kind("scale_norm").initial_gain(512), std::sqrt(512.0));
  EXPECT_DOUBLE_EQ(norm_kind("rms_norm").initial_gain(512), 1.0);
}

}  // namespace
}  // namespace tearless::engine
