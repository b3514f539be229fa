// The model against PyTorch: logits, loss, every gradient and ten losses of training, dropout on, for every norm and
// placement, by the kernels and by the formulas. The expected numbers are from tools/make_golden.py.
#include "tests/engine/model/parity.h"

#include "engine/ops/embedding.h"
#include "tests/engine/model/tiny_model.h"

namespace tearless::engine::parity_test {
namespace {

using test::kLabelSmoothing;
using test::ParityCase;

/// One case: the settings, the batch and what must come out.
struct Golden {
  explicit Golden(const std::string& name)
      : json(test::read_golden("parity", name)),
        batch(test::batch_of(json.at("sources"), json.at("targets"), json.at("lines"))),
        model(test::golden_options<ModelOptions>(json), kept_types(), json.at("init_seed"), json.at("dropout_seed")) {}

  std::vector<uint8_t> kept_types() const {
    std::vector<uint8_t> in_output(json.at("vocabulary").get<size_t>(), 0);
    for (const int32_t token : json.at("kept")) in_output[static_cast<size_t>(token)] = 1;
    return in_output;
  }
  test::LossOfUpdate loss() const {
    return [this](Tape& tape, uint32_t update) {
      return model.transformer.loss({tape, update}, batch, kLabelSmoothing);
    };
  }

  nlohmann::json json;
  PackedBatch batch;
  test::TinyModel model;
};

class Parity : public testing::TestWithParam<ParityCase> {
 protected:
  Tape::Ops ops() const { return std::get<1>(GetParam()); }
  Golden golden_{std::get<0>(GetParam())};
};

INSTANTIATE_TEST_SUITE_P(All, Parity, test::parity_cases("parity"), test::parity_case_name);

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
  EXPECT_EQ(model.output_vocabulary().tokens, g.json.at("kept").get<std::vector<int32_t>>());
  test::expect_golden_logits(
      model.logits(context, tables, target, model.encode(context, tables, source), source).data(), g.json);
}

TEST_P(Parity, LossAndEveryGradient) {
  test::expect_golden_loss_and_gradients(golden_.model.parameters, golden_.json, ops(), golden_.loss());
}

TEST_P(Parity, LossInEvaluationHasNoDropout) { test::expect_golden_evaluation(golden_.json, ops(), golden_.loss()); }

TEST_P(Parity, TenLossesOfTraining) {
  test::expect_golden_training(golden_.model.parameters, golden_.json, ops(), golden_.loss());
}

TEST(Parity, CoversEveryNormOfThePapersAtEveryPlacement) {
  test::expect_a_case_for_each_placement("parity", {"none", "layer_norm", "rms_norm", "scale_norm"});
}

}  // namespace
}  // namespace tearless::engine::parity_test
