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
#include <map>
#include <regex>
#include <set>

#include "tests/engine/ops/op_check.h"
#include "tests/support/paths.h"

namespace tearless::engine::norm_test {
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

/// A kind of norm with one way of ε and deviation.
struct Variant {
  const NormKind* kind;
  NormDenominator denominator;
  std::string name;

  NormOp make(const Value& gain, const Value& bias, int64_t width) const {
    return kind->make(gain, bias, denominator, width);
  }
};

std::vector<Variant> variants() {
  std::vector<Variant> all;
  for (const auto& kind : norm_kinds()) {
    for (const auto& [mode, mode_name] :
         {std::pair{EpsMode::kSqrtAdd, ""}, {EpsMode::kStdAdd, "_std_add"}, {EpsMode::kClamp, "_clamp"}}) {
      for (const auto& [deviation, deviation_name] :
           {std::pair{Deviation::kBiased, ""}, {Deviation::kUnbiased, "_unbiased"}}) {
        if (mode != EpsMode::kSqrtAdd && !kind->has_eps_mode) continue;
        if (deviation != Deviation::kBiased && !kind->has_deviation) continue;
        all.push_back(
            {kind.get(), {kind->default_eps, mode, deviation}, std::string(kind->name) + mode_name + deviation_name});
      }
    }
  }
  return all;
}

Value value_of(const at::Tensor& t) { return t.defined() ? Value(t) : Value(); }

at::Tensor forward(const Variant& norm, const at::Tensor& x, const at::Tensor& gain, const at::Tensor& bias,
                   Tape::Ops ops = Tape::Ops::kFast) {
  Tape tape(Tape::Kind::kForward, ops);
  return norm_rows(tape, Value(x), norm.make(value_of(gain), value_of(bias), x.size(1))).data();
}

Variant plain(std::string_view kind) {
  return {&norm_kinds().at(kind), norm_kinds().at(kind).default_denominator(), std::string(kind)};
}

class EveryNorm : public testing::TestWithParam<Variant> {};

INSTANTIATE_TEST_SUITE_P(All, EveryNorm, testing::ValuesIn(variants()),
                         [](const testing::TestParamInfo<Variant>& info) { return info.param.name; });

// The backward must be autograd over the formula, and finite differences of it in which what the formula gives to
// stop_gradient() is held fixed.
TEST_P(EveryNorm, HasTheGradientOfItsFormula) {
  const Variant& norm = GetParam();
  for (const auto& [rows, width] : {std::pair<int64_t, int64_t>{1, 4}, {3, 7}, {70, 10}}) {
    SCOPED_TRACE(testing::Message() << rows << " rows of " << width);
    const std::vector<at::Tensor> inputs = {random_tensor({rows, width}, 1), gain_of(*norm.kind, width, 2),
                                            bias_of(*norm.kind, width, 3)};
    StoppedValues stopped([&] { norm.kind->formula(inputs[0], inputs[1], inputs[2], norm.denominator); });
    test::OpCase c{norm.name, inputs, [&, d = width](Tape& tape, const std::vector<Value>& in) {
                     return norm_rows(tape, in[0], norm.make(in[1], in[2], d));
                   }};
    if (!stopped.empty()) {
      c.differenced = [&](Tape&, const std::vector<Value>& in) {
        const auto data = [](const Value& v) { return v ? v.data() : at::Tensor(); };
        Value out;
        stopped.hold([&] { out = Value(norm.kind->formula(data(in[0]), data(in[1]), data(in[2]), norm.denominator)); });
        return out;
      };
    }
    test::expect_right_backward(c);
  }
}

TEST_P(EveryNorm, KeepsTheShapeAndNormalisesEachRowAlone) {
  const Variant& norm = GetParam();
  const at::Tensor x = random_tensor({5, 6}, 1).to(at::kFloat);
  const auto single = [](const at::Tensor& t) { return t.defined() ? t.to(at::kFloat) : t; };
  const at::Tensor gain = single(gain_of(*norm.kind, 6, 2)), bias = single(bias_of(*norm.kind, 6, 3));
  const at::Tensor y = forward(norm, x, gain, bias);
  EXPECT_EQ(y.sizes(), x.sizes());
  for (int64_t t = 0; t < 5; ++t) {
    EXPECT_TRUE(at::equal(forward(norm, x.slice(0, t, t + 1).contiguous(), gain, bias), y.slice(0, t, t + 1)))
        << "row " << t;
  }
}

TEST_P(EveryNorm, StaysFiniteOnARowOfZerosAndOnAConstantRow) {
  const Variant& norm = GetParam();
  for (const auto ops : {Tape::Ops::kFast, Tape::Ops::kReference}) {
    for (const double constant : {0.0, 3.0, 1e-20}) {
      const test::ForwardBackward result = test::forward_backward(
          [&](Tape& tape, const std::vector<Value>& in) { return norm_rows(tape, in[0], norm.make(in[1], in[2], 6)); },
          {at::full({2, 6}, constant, at::kDouble), gain_of(*norm.kind, 6, 2), bias_of(*norm.kind, 6, 3)}, ops,
          at::kFloat);
      EXPECT_TRUE(result.output.isfinite().all().item<bool>()) << constant;
      EXPECT_TRUE(result.gradients[0].isfinite().all().item<bool>()) << constant;
    }
  }
}

TEST_P(EveryNorm, HasAMeaningAndAPositiveEpsilon) {
  const NormKind& kind = *GetParam().kind;
  EXPECT_FALSE(kind.meaning.empty());
  EXPECT_GT(kind.default_eps, 0);
  EXPECT_GT(kind.initial_gain(512), 0);
}

TEST(NormKinds, OfThePapersRunAsFusedKernels) {
  for (const char* kind : {"none", "layer_norm", "ln_simple", "detach_norm", "detach_mean", "detach_var", "ada_norm",
                           "rms_norm", "scale_norm", "scale_norm_fixed"}) {
    EXPECT_TRUE(norm_kinds().at(kind).row(norm_kinds().at(kind).default_denominator(), 512).has_value()) << kind;
  }
}

TEST(NormKinds, EveryKindOfAFileHasItsLineInNormsDef) {
  const std::filesystem::path folder = source_root() / "engine" / "norm";
  const auto names_in = [](const std::string& text, const char* pattern) {
    std::set<std::string> names;
    const std::regex name(pattern);
    for (std::sregex_iterator it(text.begin(), text.end(), name), end; it != end; ++it) names.insert((*it)[1]);
    return names;
  };
  std::set<std::string> made;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".cc" || entry.path().stem() == "norm") continue;
    const std::set<std::string> of_file = names_in(read_text(entry.path()), R"((\w+)_kind\(\) \{)");
    EXPECT_FALSE(of_file.empty()) << entry.path().filename();
    made.insert(of_file.begin(), of_file.end());
  }
  EXPECT_EQ(made, names_in(read_text(folder / "norms.def"), R"(NORM\((\w+)\))"));
}

// --- numbers ---------------------------------------------------------------------------------------------------------

/// The settings [model.norm] from the lines of a file.
NormOptions options_of(const std::string& toml) {
  NormOptions options;
  read_settings(parse_toml_settings(toml, "test"), [&](SettingsVisitor& v) { describe(v, options); });
  return options;
}

std::map<std::string, nlohmann::json> settings_of(NormOptions options) {
  std::map<std::string, nlohmann::json> values;
  for (const DescribedField& f : list_settings([&](SettingsVisitor& v) { describe(v, options); })) {
    values[f.key] = f.value;
  }
  return values;
}

// The reference vector of docs/spec/knobs.md §2.2, to its six printed digits; ε = 0 there unless stated.
struct Reference {
  const char* settings;
  std::vector<double> gain, bias;
  std::vector<double> output, dx, dgain;
};

TEST(NormKinds, MatchTheReferenceVectors) {
  const at::Tensor x = at::tensor({1.0, 2.0, 4.0, -3.0}, at::kDouble).view({1, 4});
  const at::Tensor delta = at::tensor({0.3, -0.1, 0.2, 0.5}, at::kDouble).view({1, 4});
  const std::vector<double> y = {0, 0.392232, 1.176697, -1.568929};
  const std::vector<Reference> references = {
      {"kind = 'none'", {}, {}, {1, 2, 4, -3}, {0.3, -0.1, 0.2, 0.5}, {}},
      {"kind = 'layer_norm'",
       {1, 1, 1, 1},
       {0, 0, 0, 0},
       y,
       {0.029417, -0.104847, 0.058081, 0.017349},
       {0, -0.0392232, 0.2353394, -0.7844645}},
      {"kind = 'ln_simple'", {}, {}, y, {0.029417, -0.104847, 0.058081, 0.017349}, {}},
      {"kind = 'detach_mean'", {}, {}, y, {0.117670, -0.016594, 0.146333, 0.105601}, {}},
      {"kind = 'detach_var'", {}, {}, y, {0.029417, -0.127475, -0.009806, 0.107864}, {}},
      {"kind = 'detach_norm'", {}, {}, y, {0.117670, -0.039223, 0.078446, 0.196116}, {}},
      {"kind = 'ada_norm'", {}, {}, {0, 0.376848, 1.038235, -1.815083}, {0.023648, -0.103338, 0.060299, 0.019390}, {}},
      // The released code: unbiased deviation + 1e-5.
      {"kind = 'ada_norm'\neps = 1e-5\neps_mode = 'std_add'\ndeviation = 'unbiased'\nada_norm.c = 2",
       {},
       {},
       {0, 0.656287, 1.830401, -3.086684},
       {},
       {}},
      {"kind = 'ada_norm'\nada_norm.c = 1\nada_norm.k = 0", {}, {}, y, {0.029417, -0.104847, 0.058081, 0.017349}, {}},
      {"kind = 'scale_norm'",
       {2},
       {},
       {0.365148, 0.730297, 1.460593, -1.095445},
       {0.116847, -0.021909, 0.102242, 0.160665},
       {-0.109545}},
      // g = √4 = 2.
      {"kind = 'scale_norm_fixed'",
       {},
       {},
       {0.365148, 0.730297, 1.460593, -1.095445},
       {0.116847, -0.021909, 0.102242, 0.160665},
       {}},
      // RMSNorm with all gains g' is ScaleNorm with g'·√d: here g' = 1 is g = 2 (docs/spec/knobs.md §2).
      {"kind = 'rms_norm'",
       {1, 1, 1, 1},
       {},
       {0.365148, 0.730297, 1.460593, -1.095445},
       {0.116847, -0.021909, 0.102242, 0.160665},
       {0.109545, -0.0730297, 0.2921187, -0.5477226}},
  };
  std::set<std::string_view> covered;
  std::set<std::string> varied;  // settings that some vector has at another value than the default
  for (const Reference& r : references) {
    covered.insert(options_of(r.settings).chosen().name);
    const auto defaults = settings_of(NormOptions()), settings = settings_of(options_of(r.settings));
    for (const auto& [key, value] : settings) {
      if (value != defaults.at(key)) varied.insert(key);
    }
    for (const auto ops : {Tape::Ops::kFast, Tape::Ops::kReference}) {
      SCOPED_TRACE(testing::Message() << r.settings << (ops == Tape::Ops::kFast ? ", fast" : ", reference"));
      const auto value = [](const std::vector<double>& v) {
        return v.empty() ? Value() : Value(at::tensor(v, at::kDouble));
      };
      NormOptions options = options_of(r.settings);
      if (!options.eps) options.eps = 1e-12;
      const ChosenNorm norm = options.at({}, /*fix_norm=*/false);
      const Value in(x.clone()), gain = value(r.gain), bias = value(r.bias);
      Tape tape(Tape::Kind::kRecording, ops);
      const Value out = norm_rows(tape, in, norm.kind.make(gain, bias, norm.denominator, 4));
      EXPECT_LT((out.data() - at::tensor(r.output, at::kDouble)).abs().max().item<double>(), 1e-6);
      if (r.dx.empty()) continue;
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
  for (const auto& kind : norm_kinds()) {
    EXPECT_TRUE(covered.contains(kind->name))
        << kind->name << " has no reference vector: add one to this test, computed by hand or by another program";
  }
  // tests/engine/run/every_setting.h trains with kernels: it does not notice a formula that ignores an option.
  for (const auto& [key, value] : settings_of(NormOptions())) {
    if (key.find('.') == std::string::npos) continue;  // of several kinds
    EXPECT_TRUE(varied.contains(key)) << key << " has its default in all reference vectors: add one with another value";
  }
}

// --- the theorems of ADA (docs/spec/tables.md §2.5), exact for ε = 0 and the biased deviation ---

/// Output and ∂ℓ/∂x of that kind with ε = 0 for rows x and ∂ℓ/∂y = δ, in double.
std::pair<at::Tensor, at::Tensor> with_gradient(std::string_view kind, const at::Tensor& x, const at::Tensor& delta) {
  const Value in(x.clone());
  Tape tape(Tape::Kind::kRecording);
  const Value out = norm_rows(tape, in, norm_kinds().at(kind).make({}, {}, {.eps = 0}, x.size(1)));
  out.add_grad(delta.clone());
  tape.backward();
  return {out.data(), in.grad()};
}

TEST(AdaNormPaper, Theorem1GivesMeanAndVarianceOfTheGradients) {
  const at::Tensor x = random_tensor({20, 64}, 11) * 3 + 1, delta = random_tensor({20, 64}, 12) + 0.5;
  const auto mean = [](const at::Tensor& t) { return t.mean(-1); };
  const auto variance = [&](const at::Tensor& t) { return (t - t.mean(-1, true)).square().mean(-1); };
  const at::Tensor variance_of_x = variance(x), deviation = variance_of_x.sqrt();
  const at::Tensor y = (x - x.mean(-1, true)) / deviation.unsqueeze(-1);
  const at::Tensor c = mean(y * delta);
  const at::Tensor kept_mean = mean(delta) / deviation, no_mean = kept_mean * 0;
  const at::Tensor full = variance(delta) / variance_of_x, less = (variance(delta) - c.square()) / variance_of_x;
  for (const auto& [kind, expected_mean, expected_variance] : {std::tuple{"detach_norm", kept_mean, full},
                                                               {"ln_simple", no_mean, less},
                                                               {"detach_mean", kept_mean, less},
                                                               {"detach_var", no_mean, full}}) {
    const at::Tensor dx = with_gradient(kind, x, delta).second;
    EXPECT_LT((mean(dx) - expected_mean).abs().max().item<double>(), 1e-10) << kind;
    EXPECT_LT((variance(dx) - expected_variance).abs().max().item<double>(), 1e-10) << kind;
  }
}

TEST(AdaNormPaper, Theorem2TheMeanOfTheFactorIsCAndThatOfTheOutputMinusCk) {
  const at::Tensor x = random_tensor({20, 64}, 13) * 2 - 5, zeros = x * 0;
  const auto [z, dx] = with_gradient("ada_norm", x, zeros);  // C = 1, k = 0.1
  const at::Tensor y = with_gradient("ln_simple", x, zeros).first;
  EXPECT_LT(((z / y).mean(-1) - 1).abs().max().item<double>(), 1e-10);
  EXPECT_LT((z.mean(-1) + 0.1).abs().max().item<double>(), 1e-10);
}

// --- where a norm stands ---------------------------------------------------------------------------------------------

TEST(NormScope, ChoosesTheNormsThatHaveTheKind) {
  const NormSite in_encoder{}, after_encoder{.after_stack = true}, in_decoder{.in_decoder = true},
      after_decoder{.in_decoder = true, .after_stack = true, .decoder_output = true};
  for (const auto& [scope, expected] : {std::pair{"all", std::array{true, true, true, true}},
                                        {"final_only", std::array{false, true, false, true}},
                                        {"encoder", std::array{true, true, false, false}},
                                        {"decoder", std::array{false, false, true, true}}}) {
    const NormOptions options =
        options_of(std::string("kind = 'rms_norm'\neps = 0.5\neps_mode = 'clamp'\nscope = '") + scope + "'");
    size_t i = 0;
    for (const NormSite& site : {in_encoder, after_encoder, in_decoder, after_decoder}) {
      const ChosenNorm norm = options.at(site, false);
      EXPECT_EQ(norm.kind.name, expected[i] ? "rms_norm" : "layer_norm") << scope << " " << i;
      EXPECT_EQ(norm.denominator.eps, expected[i] ? 0.5 : 1e-5) << "eps is of the chosen kind";
      EXPECT_EQ(norm.denominator.eps_mode, expected[i] ? EpsMode::kClamp : EpsMode::kSqrtAdd);
      ++i;
    }
  }
}

TEST(ScaleNormFixed, LearnsItsLengthAtTheDecodersOutputUnderFixNormAlone) {
  const NormOptions options = options_of("kind = 'scale_norm_fixed'");
  const NormSite output{.in_decoder = true, .decoder_output = true};
  EXPECT_EQ(options.at(output, /*fix_norm=*/true).kind.name, "scale_norm");
  EXPECT_EQ(options.at(output, /*fix_norm=*/false).kind.name, "scale_norm_fixed");
  EXPECT_EQ(options.at({.in_decoder = true}, /*fix_norm=*/true).kind.name, "scale_norm_fixed");
  EXPECT_EQ(options_of("kind = 'rms_norm'").at(output, true).kind.name, "rms_norm");
}

// A setting that does not apply is no part of a run's id: two runs that differ in one that does would be one run.
TEST(NormOptions, ApplyToTheKindsThatHaveThem) {
  const std::map<std::string, std::set<std::string>> expected = {
      {"none", {"kind", "scope"}},
      {"layer_norm", {"kind", "eps", "eps_mode", "deviation"}},
      {"ln_simple", {"kind", "scope", "eps", "eps_mode", "deviation"}},
      {"detach_norm", {"kind", "scope", "eps", "eps_mode", "deviation"}},
      {"detach_mean", {"kind", "scope", "eps", "eps_mode", "deviation"}},
      {"detach_var", {"kind", "scope", "eps", "eps_mode", "deviation"}},
      {"ada_norm", {"kind", "scope", "eps", "eps_mode", "deviation", "ada_norm.c", "ada_norm.k"}},
      {"rms_norm", {"kind", "scope", "eps", "eps_mode"}},
      {"scale_norm", {"kind", "scope", "eps"}},
      {"scale_norm_fixed", {"kind", "scope", "eps"}},
  };
  for (const auto& norm : norm_kinds()) {
    const std::string kind(norm->name);
    const auto keys = expected.find(kind);
    if (keys == expected.end()) {
      ADD_FAILURE() << kind << " has no line in this test: add one with the settings [model.norm] that it has";
      continue;
    }
    NormOptions options = options_of("kind = '" + kind + "'");
    std::set<std::string> applying;
    for (const DescribedField& f : list_settings([&](SettingsVisitor& v) { describe(v, options); })) {
      if (f.field.switched_off_by.empty()) applying.insert(f.key);
    }
    EXPECT_EQ(applying, keys->second) << kind;
  }
}

TEST(NormOptions, HaveNoEffectWhereTheyDoNotApply) {
  const NormDenominator of_rms = options_of("kind = 'rms_norm'\ndeviation = 'unbiased'").at({}, false).denominator;
  EXPECT_EQ(of_rms.deviation, Deviation::kBiased);
  const NormDenominator of_length = options_of("kind = 'scale_norm'\neps_mode = 'std_add'").at({}, false).denominator;
  EXPECT_EQ(of_length.eps_mode, EpsMode::kSqrtAdd);
  const NormOptions plain_norms = options_of("kind = 'layer_norm'\neps = 0.5\nscope = 'decoder'");
  EXPECT_EQ(plain_norms.at({.in_decoder = false}, false).denominator.eps, 0.5) << "of every layer_norm";
}

TEST(NormOptions, CopiesHaveOptionsOfTheirOwn) {
  const auto z_of = [](const NormOptions& options) {
    const ChosenNorm norm = options.at({}, false);
    Tape tape(Tape::Kind::kForward);
    return norm_rows(tape, Value(random_tensor({1, 8}, 3)), norm.kind.make({}, {}, norm.denominator, 8)).data();
  };
  const at::Tensor of_default = z_of(options_of("kind = 'ada_norm'"));  // C = 1
  NormOptions one = options_of("kind = 'ada_norm'\nada_norm.c = 2");
  const NormOptions copy = one;
  one = options_of("kind = 'ada_norm'\nada_norm.c = 3");
  EXPECT_LT((z_of(copy) - 2 * of_default).abs().max().item<double>(), 1e-12);
  EXPECT_LT((z_of(one) - 3 * of_default).abs().max().item<double>(), 1e-12);
}

// --- single kinds ----------------------------------------------------------------------------------------------------

TEST(LayerNorm, AddsEpsilonInsideTheRoot) {
  // Variance 1e-6 of a row (±1e-3): 1e-3 / √(1e-6 + 1e-5).
  const at::Tensor x = at::tensor({1e-3, -1e-3}, at::kDouble).view({1, 2});
  const at::Tensor y = forward(plain("layer_norm"), x, at::full({2}, 1.0, at::kDouble), at::zeros({2}, at::kDouble));
  EXPECT_NEAR(y[0][0].item<double>(), 1e-3 / std::sqrt(1.1e-5), 1e-9);
}

TEST(ScaleNorm, ClampsTheLengthFromBelowAndThenScalesByEpsilon) {
  const NormKind& kind = norm_kinds().at("scale_norm");
  const Value x(at::tensor({3e-6, 4e-6}, at::kDouble).view({1, 2}));  // length 5e-6 < ε
  const Value gain(at::tensor({2.0}, at::kDouble));
  Tape tape(Tape::Kind::kRecording);
  const Value y = norm_rows(tape, x, kind.make(gain, {}, kind.default_denominator(), 2));
  EXPECT_NEAR(y.data()[0][0].item<double>(), 0.6, 1e-12);
  y.add_grad(at::tensor({1.0, 1.0}, at::kDouble).view({1, 2}));
  tape.backward();
  EXPECT_NEAR(x.grad()[0][0].item<double>(), 2e5, 1e-6);  // that of x·g/ε
  EXPECT_NEAR(gain.grad()[0].item<double>(), 0.7, 1e-12);
}

TEST(ScaleNorm, StartsAtTheSquareRootOfTheWidth) {
  EXPECT_DOUBLE_EQ(norm_kinds().at("scale_norm").initial_gain(512), std::sqrt(512.0));
  EXPECT_DOUBLE_EQ(norm_kinds().at("rms_norm").initial_gain(512), 1.0);
}

}  // namespace
}  // namespace tearless::engine::norm_test
