// The model against PyTorch: logits, loss, every gradient and ten losses of training, dropout on, for every norm and
// placement, by the kernels and by the formulas. The expected numbers are from tools/make_golden.py, which
// shares no code with the engine and computes in double; what is allowed here is the rounding of float.
#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/ops/adam.h"
#include "engine/ops/embedding.h"
#include "tests/engine/model/tiny_model.h"
#include "tests/support/paths.h"

namespace tearless::engine {
namespace {

std::filesystem::path golden_folder() { return tearless::test::source_root() / "tests" / "golden" / "parity"; }

std::vector<std::string> golden_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(golden_folder())) names.push_back(entry.path().stem());
  std::sort(names.begin(), names.end());
  return names;
}

/// One case: the settings, the batch and what must come out.
struct Golden {
  explicit Golden(const std::string& name)
      : json(nlohmann::json::parse(std::ifstream(golden_folder() / (name + ".json")))),
        batch(test::batch_of(json.at("sources"), json.at("targets"), json.at("lines"))),
        model(read_options(), kept_types(), json.at("init_seed"), json.at("dropout_seed")) {}

  ModelOptions read_options() const {
    WrittenSettings written;
    written.name = "golden file";
    for (const auto& [key, value] : json.at("settings").items()) written.values[key] = value;
    ModelOptions options;
    read_settings(written, [&](SettingsVisitor& v) { v.table("model", options); });
    return options;
  }

  std::vector<uint8_t> kept_types() const {
    std::vector<uint8_t> in_output(json.at("vocabulary").get<size_t>(), 0);
    for (const int32_t token : json.at("kept")) in_output[static_cast<size_t>(token)] = 1;
    return in_output;
  }

  at::Tensor numbers(const nlohmann::json& list) const {
    return at::tensor(list.get<std::vector<double>>(), at::kDouble);
  }

  nlohmann::json json;
  PackedBatch batch;
  test::TinyModel model;
};

constexpr double kLabelSmoothing = 0.1;
// Some thousand float operations deep, and six digits in the files.
constexpr double kTolerance = 2e-5;
// Ten updates of Adam, whose first steps divide small gradients by themselves.
constexpr double kTrainingTolerance = 2e-4;

class Parity : public testing::TestWithParam<std::tuple<std::string, Tape::Ops>> {
 protected:
  Tape::Ops ops() const { return std::get<1>(GetParam()); }
  Golden golden_{std::get<0>(GetParam())};
};

INSTANTIATE_TEST_SUITE_P(All, Parity,
                         testing::Combine(testing::ValuesIn(golden_names()),
                                          testing::Values(Tape::Ops::kFast, Tape::Ops::kReference)),
                         [](const testing::TestParamInfo<Parity::ParamType>& info) {
                           return std::get<0>(info.param) +
                                  (std::get<1>(info.param) == Tape::Ops::kFast ? "_fast" : "_reference");
                         });

TEST_P(Parity, LogitsInTraining) {
  const Golden& g = golden_;
  Tape tape(Tape::Kind::kRecording, ops());
  const ForwardContext context{tape, 1};
  const uint32_t seed = g.json.at("dropout_seed");
  const double word = g.model.options.dropout.word;
  const PackedRows source =
      drop_words(g.batch.source, Dropout::with(word, RandomStream(seed, "drop.word.source"), 1), kUnk);
  const PackedRows target =
      drop_words(g.batch.target, Dropout::with(word, RandomStream(seed, "drop.word.target"), 1), kUnk);
  const Transformer& model = g.model.transformer;
  const Embeddings::Tables tables = model.prepare(context);
  const at::Tensor logits = model.logits(context, tables, target, model.encode(context, tables, source), source).data();

  const at::Tensor expected = g.numbers(g.json.at("logits")).view_as(logits);
  EXPECT_EQ(model.output_vocabulary().tokens, g.json.at("kept").get<std::vector<int32_t>>());
  EXPECT_LT((logits.to(at::kDouble) - expected).abs().max().item<double>(),
            kTolerance * expected.abs().max().item<double>());
}

TEST_P(Parity, LossAndEveryGradient) {
  Golden& g = golden_;
  Tape tape(Tape::Kind::kRecording, ops());
  const CrossEntropySums sums = g.model.transformer.loss({tape, 1}, g.batch, kLabelSmoothing);
  tape.backward();
  if (ops() == Tape::Ops::kFast) {
    EXPECT_EQ(tape.fallback_ops(), 0) << "an operation has no hand-written backward";
  }
  const double loss = g.json.at("loss_sum"), nll = g.json.at("nll_sum");
  EXPECT_NEAR(sums.loss, loss, kTolerance * loss);
  EXPECT_NEAR(sums.nll, nll, kTolerance * nll);

  const double norm = g.json.at("gradient_norms")[0];
  EXPECT_NEAR(global_norm(g.model.parameters.gradients()), norm, kTolerance * norm);
  ASSERT_EQ(g.model.parameters.specs().size(), g.json.at("gradients").size());
  for (const ParameterSpec& spec : g.model.parameters.specs()) {
    const at::Tensor gradient = g.model.parameters.get(spec.name).grad().to(at::kDouble);
    const at::Tensor expected = g.numbers(g.json.at("gradients").at(spec.name)).view_as(gradient);
    // Key biases have a gradient of exactly zero (a softmax does not see a shift): only rounding may remain there.
    const double allowed = kTolerance * std::max(expected.abs().max().item<double>(), 0.01 * norm);
    EXPECT_LT((gradient - expected).abs().max().item<double>(), allowed) << spec.name;
  }
}

TEST_P(Parity, LossInEvaluationHasNoDropout) {
  Golden& g = golden_;
  Tape tape(Tape::Kind::kForward, ops());
  const double nll = g.json.at("evaluation_nll");
  EXPECT_NEAR(g.model.transformer.loss({tape, 1}, g.batch, kLabelSmoothing).nll, nll, kTolerance * nll);
}

TEST_P(Parity, TenLossesOfTraining) {
  Golden& g = golden_;
  Parameters& parameters = g.model.parameters;
  at::Tensor first = at::zeros_like(parameters.values()), second = at::zeros_like(parameters.values());
  const std::vector<double> rates = g.json.at("rates"), losses = g.json.at("losses"),
                            norms = g.json.at("gradient_norms");
  ASSERT_EQ(losses.size(), 10u);
  for (size_t n = 1; n <= losses.size(); ++n) {
    parameters.gradients().zero_();
    Tape tape(Tape::Kind::kRecording, ops());
    const CrossEntropySums sums = g.model.transformer.loss({tape, static_cast<uint32_t>(n)}, g.batch, kLabelSmoothing);
    tape.backward();
    const double norm = global_norm(parameters.gradients());
    EXPECT_NEAR(sums.loss / static_cast<double>(sums.tokens), losses[n - 1], kTrainingTolerance * losses[n - 1])
        << "update " << n;
    EXPECT_NEAR(norm, norms[n - 1], 5 * kTrainingTolerance * norms[n - 1]) << "update " << n;
    adam_step({.learning_rate = rates[n - 1], .update = static_cast<int64_t>(n)}, norm, parameters.gradients(),
              parameters.values(), first, second);
  }
}

TEST(Parity, CoversEveryNormOfThePapersAtEveryPlacement) {
  const std::vector<std::string> names = golden_names();
  for (const char* norm : {"none", "layer_norm", "rms_norm", "scale_norm"}) {
    for (const char* placement : {"post", "pre", "pre_no_final"}) {
      EXPECT_TRUE(std::binary_search(names.begin(), names.end(), std::string(norm) + "_" + placement))
          << norm << " " << placement;
    }
  }
}

}  // namespace
}  // namespace tearless::engine
