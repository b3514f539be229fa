// Starting values: mean, spread and shape of each init of docs/spec/knobs.md §7, and that they depend on seed and name
// alone.
#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "engine/model/classifier.h"
#include "tests/engine/model/tiny_model.h"

namespace tearless::engine::initialisation_test {
namespace {

constexpr int64_t kWidth = 96, kInner = 200, kVocabulary = 300;

ModelOptions options_of(Init init, QkvFan fan = QkvFan::kSeparate) {
  ModelOptions options;
  options.encoder_layers = options.decoder_layers = 1;
  options.d_model = kWidth;
  options.d_ff = kInner;
  options.heads = 4;
  options.init = init;
  options.init_qkv_fan = fan;
  return options;
}

Parameters parameters_of(const ModelOptions& options, uint32_t seed = 3) {
  Parameters parameters(seed, at::kCPU);
  const Transformer model(parameters, options, OutputVocabulary::from(std::vector<uint8_t>(kVocabulary, 1), false), 0);
  parameters.allocate();
  return parameters;
}

enum class Form { kNormal, kUniform };

/// Mean 0, standard deviation `std`, and the fourth moment of the form (3σ⁴, or 9/5 σ⁴); five standard errors.
void expect_moments(const Parameters& parameters, const std::string& name, double std, Form form) {
  SCOPED_TRACE(name);
  const at::Tensor x = parameters.get(name).data().to(at::kDouble).flatten() / std;
  const double n = static_cast<double>(x.numel());
  EXPECT_NEAR(x.mean().item<double>(), 0, 5 / std::sqrt(n));
  EXPECT_NEAR(x.square().mean().item<double>(), 1, 5 * std::sqrt((form == Form::kNormal ? 2.0 : 0.8) / n));
  EXPECT_NEAR(x.pow(4).mean().item<double>(), form == Form::kNormal ? 3.0 : 1.8,
              5 * std::sqrt((form == Form::kNormal ? 96.0 : 5.76) / n));
  if (form == Form::kUniform) {
    EXPECT_LE(x.abs().max().item<double>(), std::sqrt(3.0) * (1 + 1e-6));
    EXPECT_GT(x.abs().max().item<double>(), std::sqrt(3.0) * (1 - 20 / n)) << "but for one draw in e^20";
  }
}

double xavier(double in, double out) { return std::sqrt(2 / (in + out)); }

void expect_attention(const Parameters& parameters, double qkv, double o, Form form) {
  for (const char* block : {"encoder.1.self_attention", "decoder.1.self_attention", "decoder.1.cross_attention"}) {
    for (const char* part : {"q", "k", "v"})
      expect_moments(parameters, fmt::format("{}.{}.weight", block, part), qkv, form);
    expect_moments(parameters, fmt::format("{}.o.weight", block), o, form);
  }
}

void expect_ffn(const Parameters& parameters, Form form) {
  for (const char* block : {"encoder.1.ffn", "decoder.1.ffn"}) {
    for (const char* part : {"w1", "w2"})
      expect_moments(parameters, fmt::format("{}.{}.weight", block, part), xavier(kWidth, kInner), form);
  }
}

TEST(Initialisation, XavierSeesEachMatrixAloneOrStacked) {
  const double d = kWidth;
  for (const auto& [init, form] :
       {std::pair{Init::kXavierNormal, Form::kNormal}, {Init::kXavierUniform, Form::kUniform}}) {
    const auto expect = [&, init = init, form = form](QkvFan fan, double qkv, double o) {
      const Parameters parameters = parameters_of(options_of(init, fan));
      expect_attention(parameters, qkv, o, form);
      expect_ffn(parameters, form);
    };
    expect(QkvFan::kSeparate, xavier(d, d), xavier(d, d));
    expect(QkvFan::kFused3, xavier(d, 3 * d), xavier(d, d));
    expect(QkvFan::kFused4, xavier(d, 4 * d), xavier(d, 4 * d));
  }
}

TEST(Initialisation, OnlySelfAttentionOfFused3SelfIsStacked) {
  const double d = kWidth;
  const Parameters parameters = parameters_of(options_of(Init::kXavierUniform, QkvFan::kFused3Self));
  for (const char* part : {"q", "k", "v"}) {
    for (const char* stack : {"encoder", "decoder"}) {
      expect_moments(parameters, fmt::format("{}.1.self_attention.{}.weight", stack, part), xavier(d, 3 * d),
                     Form::kUniform);
    }
    expect_moments(parameters, fmt::format("decoder.1.cross_attention.{}.weight", part), xavier(d, d), Form::kUniform);
  }
  for (const char* block : {"encoder.1.self_attention", "decoder.1.self_attention", "decoder.1.cross_attention"}) {
    expect_moments(parameters, fmt::format("{}.o.weight", block), xavier(d, d), Form::kUniform);
  }
  expect_ffn(parameters, Form::kUniform);
}

using DsForm = DsInitOptions::Form;
using DsStacks = DsInitOptions::Stacks;

// The multipliers of docs/spec/knobs.md §7.1. The bound of a 300 × 300 matrix is √(6/600) = 0.1.
TEST(DsInit, ScalesTheBoundByTheLayerAsThePaperOrItsCode) {
  LayerOptions options;
  options.init = Init::kDsInit;
  const auto bound = [&](int64_t layer) {
    const Initial initial = initial_matrix(options, {Stack::kDecoder, layer, MatrixRole::kFeedForward}, 300, 300);
    EXPECT_EQ(initial.kind, Initial::Kind::kUniform);
    return initial.scale;
  };
  struct Multiplier {
    int64_t layer;
    double paper, code;
  };
  for (const auto& [layer, paper, code] :
       {Multiplier{1, 1, 1}, Multiplier{6, 0.408, 0.639}, Multiplier{12, 0.289, 0.537}, Multiplier{18, 0.236, 0.485},
        Multiplier{20, 0.224, 0.473}, Multiplier{30, 0.183, 0.427}}) {
    options.ds_init = {.form = DsForm::kPaper, .alpha = 1};
    EXPECT_NEAR(bound(layer), 0.1 * paper, 0.00005) << layer;
    options.ds_init.alpha = 0.36;
    EXPECT_NEAR(bound(layer), 0.1 * 0.36 * paper, 0.00005) << layer;
    options.ds_init = {.form = DsForm::kCode, .alpha = 1};
    EXPECT_NEAR(bound(layer), 0.1 * code, 0.00005) << layer;
    options.ds_init.alpha = 0.36;
    EXPECT_NEAR(bound(layer), 0.1 * 0.6 * code, 0.00005) << layer << ": the square root of alpha";
  }
}

/// The standard deviations of all matrices of a model of 1 + 3 and 1 + 3 layers. `factors`: of layers 1 and 4.
void expect_depth_scaled(const ModelOptions& options, std::array<double, 2> encoder, std::array<double, 2> decoder) {
  const Parameters parameters = parameters_of(options);
  const double d = kWidth, qkv = options.init_qkv_fan == QkvFan::kFused3Self ? xavier(d, 3 * d) : xavier(d, d);
  for (const size_t i : {0u, 1u}) {
    const int layer = i == 0 ? 1 : 4;
    const auto expect = [&](const std::string& block, const char* part, double std) {
      expect_moments(parameters, fmt::format("{}.{}.weight", block, part), std, Form::kUniform);
    };
    for (const auto& [stack, factor] : {std::pair("encoder", encoder[i]), std::pair("decoder", decoder[i])}) {
      const std::string of_layer = fmt::format("{}.{}.", stack, layer);
      for (const char* part : {"q", "k", "v"}) expect(of_layer + "self_attention", part, factor * qkv);
      expect(of_layer + "self_attention", "o", factor * xavier(d, d));
      for (const char* part : {"w1", "w2"}) expect(of_layer + "ffn", part, factor * xavier(kWidth, kInner));
    }
    for (const char* part : {"q", "k", "v", "o"})
      expect(fmt::format("decoder.{}.cross_attention", layer), part, decoder[i] * xavier(d, d));
  }
  expect_moments(parameters, "embedding.shared", 1 / std::sqrt(d), Form::kNormal);
}

TEST(DsInit, ReachesEveryMatrixOfTheChosenStacksAndNoEmbedding) {
  ModelOptions options = options_of(Init::kDsInit);
  options.encoder_layers = options.decoder_layers = 4;
  options.ds_init.alpha = 0.5;
  expect_depth_scaled(options, {0.5, 0.25}, {0.5, 0.25});  // α/√l
  options.init_qkv_fan = QkvFan::kFused3Self;              // as the published code
  options.ds_init = {.form = DsForm::kCode, .alpha = 0.25};
  expect_depth_scaled(options, {0.5, 0.5 / std::sqrt(2.0)}, {0.5, 0.5 / std::sqrt(2.0)});  // √α · l^-¼
  options.ds_init.stacks = DsStacks::kEncoder;
  expect_depth_scaled(options, {0.5, 0.5 / std::sqrt(2.0)}, {1, 1});
  options.ds_init.stacks = DsStacks::kDecoder;
  expect_depth_scaled(options, {1, 1}, {0.5, 0.5 / std::sqrt(2.0)});
}

TEST(DsInit, DrawsTheSameNumbersAsXavierUniform) {
  ModelOptions options = options_of(Init::kXavierUniform);
  options.encoder_layers = 4;
  const Parameters xavier_uniform = parameters_of(options);
  options.init = Init::kDsInit;
  const Parameters scaled = parameters_of(options);
  EXPECT_TRUE(at::allclose(scaled.get("encoder.4.ffn.w1.weight").data() * 2,
                           xavier_uniform.get("encoder.4.ffn.w1.weight").data(), 1e-6, 0));
  EXPECT_TRUE(
      at::equal(scaled.get("encoder.1.ffn.w1.weight").data(), xavier_uniform.get("encoder.1.ffn.w1.weight").data()));
}

TEST(Initialisation, SmallInitMakesAllFourProjectionsSmall) {
  const Parameters parameters = parameters_of(options_of(Init::kSmallInit));
  expect_attention(parameters, std::sqrt(2 / (5.0 * kWidth)), std::sqrt(2 / (5.0 * kWidth)), Form::kNormal);
  expect_ffn(parameters, Form::kNormal);
}

/// U(±bound).
void expect_uniform(const Parameters& parameters, const std::string& name, double bound) {
  expect_moments(parameters, name, bound / std::sqrt(3.0), Form::kUniform);
}

TEST(Initialisation, TorchDefaultSeesTheInputsOfEachMapAloneAndDrawsItsBias) {
  for (const QkvFan fan : {QkvFan::kSeparate, QkvFan::kFused4}) {
    ModelOptions options = options_of(Init::kTorchDefault, fan);
    options.tied_embeddings = Tying::kNone;
    const Parameters parameters = parameters_of(options);
    const auto expect_map = [&](const std::string& map, int64_t fan_in) {
      for (const char* part : {".weight", ".bias"}) {
        expect_uniform(parameters, map + part, 1 / std::sqrt(static_cast<double>(fan_in)));
      }
    };
    for (const char* block : {"encoder.1.self_attention", "decoder.1.self_attention", "decoder.1.cross_attention"}) {
      for (const char* part : {"q", "k", "v", "o"}) expect_map(fmt::format("{}.{}", block, part), kWidth);
    }
    for (const char* block : {"encoder.1.ffn", "decoder.1.ffn"}) {
      expect_map(fmt::format("{}.w1", block), kWidth);
      expect_map(fmt::format("{}.w2", block), kInner);
    }
    expect_uniform(parameters, "output.bias", 1 / std::sqrt(static_cast<double>(kWidth)));
    for (const char* table : {"output.weight", "embedding.source", "embedding.target"}) {
      expect_moments(parameters, table, 1 / std::sqrt(static_cast<double>(kWidth)), Form::kNormal);
    }
    for (const char* norm : {"encoder.1.ffn.norm.bias", "decoder.final.norm.bias"}) {
      EXPECT_TRUE(parameters.get(norm).data().eq(0).all().item<bool>()) << norm;
    }
  }
}

TEST(Initialisation, KaimingIsThatOfEveryMatrixWithoutBiases) {
  for (const QkvFan fan : {QkvFan::kSeparate, QkvFan::kFused3}) {  // says nothing here
    ModelOptions options = options_of(Init::kKaiming, fan);
    options.tied_embeddings = Tying::kNone;
    const Parameters parameters = parameters_of(options);
    for (const char* block : {"encoder.1.self_attention", "decoder.1.self_attention", "decoder.1.cross_attention"}) {
      for (const char* part : {"q", "k", "v", "o"}) {
        expect_uniform(parameters, fmt::format("{}.{}.weight", block, part), 1 / std::sqrt(double{kWidth}));
      }
    }
    for (const char* block : {"encoder.1.ffn", "decoder.1.ffn"}) {
      expect_uniform(parameters, fmt::format("{}.w1.weight", block), 1 / std::sqrt(double{kWidth}));
      expect_uniform(parameters, fmt::format("{}.w2.weight", block), 1 / std::sqrt(double{kInner}));
    }
    for (const ParameterSpec& spec : parameters.specs()) {
      if (!spec.name.ends_with(".bias")) continue;
      EXPECT_TRUE(parameters.get(spec.name).data().eq(0).all().item<bool>()) << spec.name;
    }
    for (const char* table : {"output.weight", "embedding.source", "embedding.target"}) {
      expect_moments(parameters, table, 1 / std::sqrt(double{kWidth}), Form::kNormal);
    }
  }
}

TEST(Initialisation, KaimingReleasedIsThatOfAttentionAlone) {
  for (const QkvFan fan : {QkvFan::kSeparate, QkvFan::kFused3}) {
    const Parameters parameters = parameters_of(options_of(Init::kKaimingReleased, fan));
    for (const char* block : {"encoder.1.self_attention", "decoder.1.self_attention", "decoder.1.cross_attention"}) {
      for (const char* part : {"q", "k", "v", "o"}) {
        expect_uniform(parameters, fmt::format("{}.{}.weight", block, part), 1 / std::sqrt(double{kWidth}));
      }
    }
    for (const char* map : {"encoder.1.ffn.w1", "encoder.1.ffn.w2", "decoder.1.ffn.w1", "decoder.1.ffn.w2"}) {
      expect_uniform(parameters, fmt::format("{}.weight", map), std::sqrt(6.0 / (kWidth + kInner)));
    }
    for (const ParameterSpec& spec : parameters.specs()) {
      if (!spec.name.ends_with(".bias")) continue;
      EXPECT_TRUE(parameters.get(spec.name).data().eq(0).all().item<bool>()) << spec.name;
    }
  }
}

// The bounds are those of fairseq's own formula: Xavier uniform of gain 1/√2 on a matrix [d, d], √(6 / (d + d)) / √2.
TEST(Initialisation, FairseqsHasSmallerInputsOfAttentionAndNoPad) {
  const double d = kWidth;
  for (const Init init : {Init::kFairseq, Init::kFairseq09}) {
    for (const QkvFan fan : {QkvFan::kSeparate, QkvFan::kFused4}) {  // says nothing here
      ModelOptions options = options_of(init, fan);
      options.tied_embeddings = Tying::kNone;
      const Parameters parameters = parameters_of(options);
      for (const char* block : {"encoder.1.self_attention", "decoder.1.self_attention", "decoder.1.cross_attention"}) {
        for (const char* part : {"q", "k", "v"}) {
          expect_uniform(parameters, fmt::format("{}.{}.weight", block, part), std::sqrt(6 / (d + d)) / std::sqrt(2.0));
          const std::string bias = fmt::format("{}.{}.bias", block, part);
          if (init == Init::kFairseq09) {
            expect_uniform(parameters, bias, 1 / std::sqrt(d));
          } else {
            EXPECT_TRUE(parameters.get(bias).data().eq(0).all().item<bool>()) << bias;
          }
        }
        expect_uniform(parameters, fmt::format("{}.o.weight", block), std::sqrt(6 / (d + d)));
      }
      for (const char* map : {"encoder.1.ffn.w1", "encoder.1.ffn.w2", "decoder.1.ffn.w1", "decoder.1.ffn.w2"}) {
        expect_uniform(parameters, fmt::format("{}.weight", map), std::sqrt(6.0 / (kWidth + kInner)));
      }
      for (const ParameterSpec& spec : parameters.specs()) {
        const bool of_inputs =
            spec.name.ends_with("q.bias") || spec.name.ends_with("k.bias") || spec.name.ends_with("v.bias");
        if (!spec.name.ends_with(".bias") || of_inputs) continue;
        EXPECT_TRUE(parameters.get(spec.name).data().eq(0).all().item<bool>()) << spec.name;
      }
      for (const char* table : {"embedding.source", "embedding.target", "output.weight"}) {
        expect_moments(parameters, table, 1 / std::sqrt(d), Form::kNormal);
        const bool of_inputs = table != std::string("output.weight");
        EXPECT_EQ(parameters.get(table).data()[kPad].eq(0).any().item<bool>(), of_inputs) << table;
        EXPECT_FALSE(parameters.get(table).data()[kBos].eq(0).any().item<bool>()) << table;
      }
    }
  }
}

// As runs of earlier builds have it.
TEST(Initialisation, FairseqsOutputMatrixHasNoPadIfAsked) {
  ModelOptions options = options_of(Init::kFairseq);
  options.tied_embeddings = Tying::kNone;
  const at::Tensor drawn = parameters_of(options).get("output.weight").data().clone();
  options.init_output_pad = ModelOptions::InitialPad::kZero;
  const at::Tensor zeroed = parameters_of(options).get("output.weight").data().clone();
  EXPECT_TRUE(zeroed[kPad].eq(0).all().item<bool>());
  EXPECT_TRUE(zeroed.slice(0, kPad + 1).equal(drawn.slice(0, kPad + 1))) << "the other rows are the same";
  for (const Tying tying : {Tying::kAll, Tying::kTarget}) {
    options.tied_embeddings = tying;
    options.init_output_pad = ModelOptions::InitialPad::kRandom;
    const char* const output = tying == Tying::kAll ? "embedding.shared" : "embedding.target";
    EXPECT_TRUE(parameters_of(options).get(output).data()[kPad].eq(0).all().item<bool>()) << "it is an input, too";
  }
}

// fairseq's output matrix has a PAD that is drawn, where it is not an input, too.
TEST(Initialisation, OfPadIsZeroInTheInputsIfAsked) {
  for (const Tying tying : {Tying::kAll, Tying::kTarget, Tying::kNone}) {
    ModelOptions options = options_of(Init::kKaiming);
    options.tied_embeddings = tying;
    const Parameters random = parameters_of(options);
    options.init_pad = ModelOptions::InitialPad::kZero;
    const Parameters zero = parameters_of(options);
    int inputs = 0;
    for (const ParameterSpec& spec : zero.specs()) {
      const at::Tensor drawn = random.get(spec.name).data(), asked = zero.get(spec.name).data();
      if (spec.name.starts_with("embedding.")) {
        ++inputs;
        EXPECT_TRUE(asked[kPad].eq(0).all().item<bool>()) << spec.name;
        EXPECT_FALSE(drawn[kPad].eq(0).any().item<bool>()) << spec.name;
        EXPECT_TRUE(at::equal(asked.slice(0, kPad + 1), drawn.slice(0, kPad + 1))) << spec.name;
      } else {
        EXPECT_TRUE(at::equal(asked, drawn)) << spec.name;
      }
    }
    EXPECT_EQ(inputs, tying == Tying::kAll ? 1 : 2);
  }
}

// Otherwise other initial values would move with the setting.
TEST(Initialisation, OfTheOtherRowsIsTheSameWherePadIsZero) {
  ModelOptions options = options_of(Init::kXavierUniform);
  const at::Tensor with_pad = parameters_of(options).get("embedding.shared").data();
  options.decoder_start = DecoderStart::kZero;
  const at::Tensor without = parameters_of(options).get("embedding.shared").data();
  EXPECT_TRUE(at::equal(with_pad.slice(0, 1), without.slice(0, 1)));
  EXPECT_FALSE(with_pad[kPad].eq(0).any().item<bool>());
  EXPECT_TRUE(without[kPad].eq(0).all().item<bool>());
}

TEST(Initialisation, TheClassifiersHeadFollowsTheInit) {
  constexpr int64_t kClasses = 40;
  const auto parameters_with = [](Init init) {
    static ClassifierOptions options;  // the model borrows it
    options.layers = 1;
    options.init = init;
    Parameters parameters(/*seed=*/3, at::kCPU);
    const Classifier model(parameters, options, kVocabulary, kClasses, /*dropout_seed=*/0);
    parameters.allocate();
    return parameters;
  };
  const Parameters torch = parameters_with(Init::kTorchDefault), kaiming = parameters_with(Init::kKaiming),
                   km = parameters_with(Init::kKaimingReleased);
  for (const char* part : {"output.weight", "output.bias"}) expect_uniform(torch, part, 1 / std::sqrt(128.0));
  expect_uniform(kaiming, "output.weight", 1 / std::sqrt(128.0));
  expect_uniform(km, "output.weight", std::sqrt(6.0 / (128 + kClasses)));
  for (const Parameters* p : {&kaiming, &km}) EXPECT_TRUE(p->get("output.bias").data().eq(0).all().item<bool>());
}

TEST(Initialisation, EmbeddingsAreNormalOrTinyAndUniformWithFixNorm) {
  ModelOptions options = options_of(Init::kSmallInit);
  options.tied_embeddings = Tying::kNone;
  for (const bool fix_norm : {false, true}) {
    options.fix_norm = fix_norm;
    const Parameters parameters = parameters_of(options);
    for (const char* name : {"embedding.source", "embedding.target", "output.weight"}) {
      expect_moments(parameters, name, fix_norm ? 0.01 / std::sqrt(3.0) : 1 / std::sqrt(static_cast<double>(kWidth)),
                     fix_norm ? Form::kUniform : Form::kNormal);
    }
  }
}

TEST(Initialisation, JoeysSeesEachMatrixAloneEmbeddingsToo) {
  ModelOptions options = options_of(Init::kJoey, QkvFan::kFused4);  // which it does not look at
  options.tied_embeddings = Tying::kNone;
  const Parameters parameters = parameters_of(options);
  const double d = kWidth;
  expect_attention(parameters, xavier(d, d), xavier(d, d), Form::kUniform);
  expect_ffn(parameters, Form::kUniform);
  for (const char* table : {"embedding.source", "embedding.target", "output.weight"}) {
    const at::Tensor rows = parameters.get(table).data();
    EXPECT_TRUE(rows[kPad].eq(0).all().item<bool>()) << table;
    expect_uniform(parameters, table, std::sqrt(6.0 / (kWidth + kVocabulary)));
  }
}

TEST(Initialisation, OfNormalHasTheChosenDeviationInEveryMatrix) {
  for (const double std : {0.02, 0.3}) {
    ModelOptions options = options_of(Init::kNormal);
    options.init_std = std;
    const Parameters parameters = parameters_of(options);
    expect_attention(parameters, std, std, Form::kNormal);
    for (const char* map : {"encoder.1.ffn.w1", "decoder.1.ffn.w2"}) {
      expect_moments(parameters, fmt::format("{}.weight", map), std, Form::kNormal);
    }
    expect_moments(parameters, "embedding.shared", 1 / std::sqrt(static_cast<double>(kWidth)), Form::kNormal);
  }
}

// docs/spec/knobs.md §6: U(±√(3/d)) with zero's initialiser.
TEST(Initialisation, TheInputVectorIsDrawnAsAMatrixOfItsWidthOutsideTheLayers) {
  ModelOptions options = options_of(Init::kDsInit, QkvFan::kFused3Self);
  options.d_model = 400;
  options.input_vector = true;
  expect_uniform(parameters_of(options), "embedding.vector", std::sqrt(3.0 / 400));
  options.init = Init::kNormal;
  options.init_std = 0.1;
  expect_moments(parameters_of(options), "embedding.vector", 0.1, Form::kNormal);
}

// FixNorm has no say in it: it is no row of an embedding matrix.
TEST(Initialisation, LanguageVectorsAreNormal) {
  for (const bool fix_norm : {false, true}) {
    ModelOptions options = options_of(Init::kSmallInit);
    options.d_model = 400;
    options.language_embedding = true;
    options.fix_norm = fix_norm;
    const Parameters parameters = parameters_of(options);
    for (const char* name : {"embedding.source.language", "embedding.target.language"}) {
      expect_moments(parameters, name, 1 / std::sqrt(400.0), Form::kNormal);
    }
  }
}

TEST(Initialisation, BiasesAreZeroWithXavierAndGainsAsTheirNormSays) {
  for (const char* kind : {"layer_norm", "rms_norm", "scale_norm"}) {
    ModelOptions options = options_of(Init::kXavierUniform);
    options.norm.kind = kind;
    const Parameters parameters = parameters_of(options);
    const double gain = kind == std::string("scale_norm") ? std::sqrt(static_cast<double>(kWidth)) : 1.0;
    for (const ParameterSpec& spec : parameters.specs()) {
      const at::Tensor x = parameters.get(spec.name).data();
      if (spec.name.ends_with(".bias")) {
        EXPECT_TRUE(x.eq(0).all().item<bool>()) << spec.name;
      }
      if (spec.name.ends_with(".gain")) {
        EXPECT_TRUE(x.eq(static_cast<float>(gain)).all().item<bool>()) << spec.name;
      }
    }
  }
}

TEST(Initialisation, OfTransformerXlIsNormalForMatricesEmbeddingsAndGains) {
  ModelOptions options = options_of(Init::kTxl);
  options.norm.kind = "layer_norm";
  const Parameters parameters = parameters_of(options);
  for (const char* name : {"embedding.shared", "encoder.1.self_attention.q.weight", "decoder.1.ffn.w2.weight"}) {
    expect_moments(parameters, name, 0.02, Form::kNormal);
  }
  std::vector<at::Tensor> gains;
  for (const ParameterSpec& spec : parameters.specs()) {
    const at::Tensor x = parameters.get(spec.name).data();
    if (spec.name.ends_with(".bias")) {
      EXPECT_TRUE(x.eq(0).all().item<bool>()) << spec.name;
    }
    if (spec.name.ends_with(".gain")) gains.push_back(x.to(at::kDouble));
  }
  const at::Tensor all = at::cat(gains);
  const double n = static_cast<double>(all.numel());
  EXPECT_NEAR(all.mean().item<double>(), 1, 5 * 0.02 / std::sqrt(n));
  EXPECT_NEAR(all.std().item<double>(), 0.02, 5 * 0.02 / std::sqrt(2 * n));
}

TEST(Initialisation, DependsOnSeedAndNameAlone) {
  ModelOptions options = options_of(Init::kSmallInit);
  const Parameters shallow = parameters_of(options);
  options.encoder_layers = 3;
  options.norm.kind = "scale_norm";
  options.placement = Placement::kPost;
  const Parameters deep = parameters_of(options), other = parameters_of(options, 4);
  for (const char* name : {"embedding.shared", "decoder.1.cross_attention.o.weight", "encoder.1.ffn.w1.weight"}) {
    EXPECT_TRUE(at::equal(shallow.get(name).data(), deep.get(name).data())) << name;
    EXPECT_FALSE(at::equal(deep.get(name).data(), other.get(name).data())) << name;
  }
  EXPECT_FALSE(at::equal(deep.get("encoder.1.ffn.w1.weight").data(), deep.get("encoder.2.ffn.w1.weight").data()));
}

TEST(Initialisation, IsReproducible) {
  for (const RowPrecision precision : {RowPrecision::kFp32, RowPrecision::kBf16}) {
    test::TinyModel model(options_of(Init::kSmallInit), std::vector<uint8_t>(kVocabulary, 1), 3, 2, at::kCPU,
                          precision);
    Parameters& parameters = model.parameters;
    const at::Tensor first = parameters.values().clone();
    const Value view = parameters.get(parameters.specs().front().name);
    parameters.values().fill_(7);
    parameters.update_bf16_copy();
    parameters.initialise();
    EXPECT_TRUE(at::equal(parameters.values(), first));
    EXPECT_TRUE(at::equal(view.data().flatten(), first.narrow(0, 0, view.data().numel())))
        << "views look at them still";
    if (precision == RowPrecision::kBf16) {
      EXPECT_TRUE(at::equal(parameters.bf16_copy(), first.to(at::kBFloat16)));
    }
  }
}

}  // namespace
}  // namespace tearless::engine::initialisation_test
