// The classifier against PyTorch, as parity_test.cc does with the encoder-decoder.
#include "tests/engine/model/parity.h"
#include "tests/engine/model/tiny_classifier.h"

namespace tearless::engine::classifier_parity_test {
namespace {

using test::kLabelSmoothing;
using test::ParityCase;

/// One case: the settings, the batch and what must come out.
struct Golden {
  explicit Golden(const std::string& name)
      : json(test::read_golden("classifier_parity", name)),
        batch(test::labelled_batch_of(json.at("sentences"), json.at("labels"), json.at("lines"))),
        model(test::golden_options<ClassifierOptions>(json), json.at("vocabulary"), json.at("classes"),
              json.at("init_seed"), json.at("dropout_seed")) {}

  /// As of update `update` in training; on another tape as in an evaluation.
  const ReadySentences& ready(Tape& tape, uint32_t update) const {
    const auto drops_words = tape.recording() ? std::optional(update) : std::nullopt;
    return tape.save(model.classifier.ready(batch.rows, batch.labels, drops_words));
  }
  test::LossOfUpdate loss() const {
    return [this](Tape& tape, uint32_t update) {
      return model.classifier.loss({tape, update}, ready(tape, update), kLabelSmoothing);
    };
  }

  nlohmann::json json;
  LabelledBatch batch;
  test::TinyClassifier model;
};

class ClassifierParity : public testing::TestWithParam<ParityCase> {
 protected:
  Tape::Ops ops() const { return std::get<1>(GetParam()); }
  Golden golden_{std::get<0>(GetParam())};
};

INSTANTIATE_TEST_SUITE_P(All, ClassifierParity, test::parity_cases("classifier_parity"), test::parity_case_name);

TEST_P(ClassifierParity, LogitsInTraining) {
  Tape tape(Tape::Kind::kRecording, ops());
  test::expect_golden_logits(golden_.model.classifier.logits({tape, 1}, golden_.ready(tape, 1)).data(), golden_.json);
}

TEST_P(ClassifierParity, LossAndEveryGradient) {
  test::expect_golden_loss_and_gradients(golden_.model.parameters, golden_.json, ops(), golden_.loss());
}

TEST_P(ClassifierParity, LossInEvaluationHasNoDropout) {
  test::expect_golden_evaluation(golden_.json, ops(), golden_.loss());
}

TEST_P(ClassifierParity, TenLossesOfTraining) {
  test::expect_golden_training(golden_.model.parameters, golden_.json, ops(), golden_.loss());
}

TEST(ClassifierParity, CoversFourNormsAtEveryPlacement) {
  test::expect_a_case_for_each_placement("classifier_parity", {"none", "layer_norm", "scale_norm", "ada_norm"});
}

TEST(ClassifierSize, IsThatOfTheModelThatIsMade) {
  for (const std::string& name : test::golden_names("classifier_parity")) {
    const Golden golden(name);
    const int64_t vocabulary = golden.json.at("vocabulary"), classes = golden.json.at("classes");
    const int64_t parameters = golden.model.parameters.values().numel();
    EXPECT_EQ(parameter_count(golden.model.options, vocabulary, classes), parameters);
  }
}

}  // namespace
}  // namespace tearless::engine::classifier_parity_test
