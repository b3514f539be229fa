// Every number that a run of classify prints or stores, computed a second time in another way: accuracies and losses
// from the logits of one sentence after another, by the formulas of the operations.
#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/task/classify.h"
#include "engine/train/checkpoint.h"
#include "tests/engine/run/recomputed.h"
#include "tests/engine/run/scored.h"

namespace tearless::engine::classify_scores_test {
namespace {

namespace fs = std::filesystem;
using test::lines_of;

constexpr int kUpdates = 40;

const ClassifyOptions& classification(const RunOptions& options) { return options.as<ClassifyOptions>("this test"); }

class ClassifyScored : public test::ScoredRun {
 protected:
  static void SetUpTestSuite() {
    // Dev and test contradict training here and there, so that no accuracy is 100.
    const auto write = [](const test::SmallRuns& runs) {
      runs.write_labelled("train", {{"a b c d e", 0},
                                    {"b a d", 1},
                                    {"e e a b c", 2},
                                    {"d a b e c", 1},
                                    {"c", 2},
                                    {"a c b d b e", 0},
                                    {"b b d", 1},
                                    {"e c", 2}});
      runs.write_labelled(
          "dev",
          {{"a b c d e", 0}, {"b d", 1}, {"c e e", 2}, {"a a", 0}, {"unseen words", 1}, {"e e c", 0}, {"d b", 2}});
      runs.write_labelled("test", {{"e e a b c", 2}, {"b a d", 0}, {"c", 2}, {"d d b a", 1}, {"a c b d b e", 1}});
    };
    train(kUpdates,
          test::with(test::labelled_settings(), {{"data.classes", "bad good fair"},
                                                 {"text.min_count", 1},
                                                 {"model.layers", 2},
                                                 {"model.dropout.pooled", 0.0},
                                                 {"train.schedule.lr", 4e-3}}),
          write);
    data_ = labelled_tokens(classification(*options_).data, classification(*options_).text, [](const std::string&) {});
  }
  static void TearDownTestSuite() {
    data_.reset();
    ScoredRun::TearDownTestSuite();
  }

  struct Scores {
    double accuracy, loss, smoothed;
    std::vector<std::string> predictions;
  };
  /// Of the parameters after that update; 0: the initial ones. A sentence at a time.
  static Scores scores_of(int64_t step, const LabelledLines& set) {
    Parameters parameters(options_->train.seed_for_init(), at::kCPU);
    const Classifier model(parameters, classification(*options_).model, data_->vocabulary_size(), 3,
                           /*dropout_seed=*/0);
    parameters.allocate();
    if (step > 0) Checkpoints(*run_).read_parameters(step, parameters.values(), /*buffers=*/2, /*carried_bytes=*/0);
    Scores scores{};
    for (int32_t i = 0; i < set.size(); ++i) {
      Tape tape(Tape::Kind::kForward, Tape::Ops::kReference);
      LabelledBatch sentence = pack(set, std::vector{i});
      const ReadySentences& batch = tape.save(model.ready(sentence.rows, sentence.labels, std::nullopt));
      const at::Tensor logits = model.logits({tape}, batch).data().to(at::kDouble);
      EXPECT_EQ(logits.numel(), 3);
      std::vector<double> log_p(3);
      double sum = 0;
      for (int c = 0; c < 3; ++c) sum += std::exp(logits[0][c].item<double>());
      for (int c = 0; c < 3; ++c) log_p[static_cast<size_t>(c)] = logits[0][c].item<double>() - std::log(sum);
      const auto label = static_cast<size_t>(set.labels[static_cast<size_t>(i)]);
      const auto best = static_cast<size_t>(std::max_element(log_p.begin(), log_p.end()) - log_p.begin());
      scores.accuracy += best == label ? 1 : 0;
      scores.loss -= log_p[label];
      scores.smoothed -= (1 - kSmoothing) * log_p[label] + kSmoothing / 3 * (log_p[0] + log_p[1] + log_p[2]);
      scores.predictions.push_back(std::vector{"bad", "good", "fair"}[best]);
    }
    const auto count = static_cast<double>(set.size());
    return {100 * scores.accuracy / count, scores.loss / count, scores.smoothed / count, scores.predictions};
  }

  static inline std::shared_ptr<const LabelledTokens> data_;
};

TEST_F(ClassifyScored, AccuraciesAndLossesAreThoseOfTheirSetAndStep) {
  for (const int64_t step : {int64_t{1}, int64_t{10}, selected(), int64_t{kUpdates}}) {
    const Scores dev = scores_of(step, data_->dev);
    EXPECT_NEAR(metrics_["dev.accuracy"][step], dev.accuracy, 1e-9) << step;
    EXPECT_CLOSE(metrics_["dev.loss"][step], dev.loss);
    EXPECT_GT(std::abs(dev.loss - dev.smoothed), 1e-3) << "or a mix-up would not show";
    // An epoch is one batch, of all sentences, before the update that is made of it.
    EXPECT_CLOSE(metrics_["train.loss"][step], scores_of(step - 1, data_->train).smoothed);
  }
  const Scores test = scores_of(selected(), data_->test);
  EXPECT_NEAR(score("test.accuracy"), test.accuracy, 1e-9);
  EXPECT_CLOSE(score("test.loss"), test.loss);
  EXPECT_EQ(score("dev.accuracy"), metrics_["dev.accuracy"][selected()]);
  EXPECT_EQ(score("dev.loss"), metrics_["dev.loss"][selected()]);
  EXPECT_NE(score("dev.accuracy"), score("test.accuracy"));
  EXPECT_GT(score("dev.accuracy"), 40) << "too little is learnt for a comparison";
  EXPECT_LT(score("dev.accuracy"), 99);
}

TEST_F(ClassifyScored, PredictionsAreTheClassWithTheLargestLogit) {
  EXPECT_EQ(lines_of(run_->outputs() / "dev.classes"), scores_of(selected(), data_->dev).predictions);
  EXPECT_EQ(lines_of(run_->outputs() / "test.classes"), scores_of(selected(), data_->test).predictions);
}

TEST_F(ClassifyScored, StatisticsSayOfEachSentenceWhetherItsClassIsRight) {
  const std::vector<std::string> names = {"bad", "good", "fair"};
  for (const auto& [set, sentences] : {std::pair("dev", &data_->dev), {"test", &data_->test}}) {
    const auto classes = lines_of(run_->outputs() / (std::string(set) + ".classes"));
    std::vector<std::string> wanted = {"correct\texamples"};
    for (size_t i = 0; i < classes.size(); ++i) {
      const bool right = classes[i] == names[static_cast<size_t>(sentences->labels[i])];
      wanted.push_back(right ? "1\t1" : "0\t1");
    }
    const fs::path file = run_->outputs() / (std::string(set) + ".stats");
    EXPECT_EQ(lines_of(file), wanted) << set;
    EXPECT_EQ(score(std::string(set) + ".accuracy"),
              test::recomputed(std::string(set) + ".accuracy", test::read_text(file)));
  }
}

TEST_F(ClassifyScored, TheSelectedStepIsTheLatestOfThoseWithTheBestPrintedAccuracy) {
  EXPECT_EQ(selected(), best_step("dev.accuracy"));
}

TEST_F(ClassifyScored, EveryScoreAndResultHasItsTest) {
  std::vector<std::string> names;
  for (const auto& [name, value] : scores_.items()) {
    if (!name.starts_with("g.")) names.push_back(name);
  }
  EXPECT_THAT(names, testing::ElementsAre("dev.accuracy", "dev.loss", "parameters", "selected_step", "test.accuracy",
                                          "test.loss", "train.grad_norm_max", "train.grad_norm_mean", "updates"));
  EXPECT_EQ(scores_.size() - names.size(), 5u) << "two layers of two norms, and the final one";
  EXPECT_EQ(score("parameters"), static_cast<double>(parameter_count(classification(*options_).model,
                                                                     data_->vocabulary_size(), /*classes=*/3)));
  EXPECT_THAT(result_files(),
              testing::ElementsAre("gradient_norms.f32", "metrics.jsonl", "outputs/dev.classes", "outputs/dev.stats",
                                   "outputs/test.classes", "outputs/test.stats", "scores.json"));
  int64_t rows = 0;
  for (int32_t i = 0; i < data_->train.size(); ++i) rows += data_->train.lines.length(i);
  EXPECT_NEAR(rows_seen(), static_cast<double>(kUpdates * rows), 1e-3);
  EXPECT_EQ(sentences_decoded(), data_->test.size());
  EXPECT_NE(data_->dev.size(), data_->test.size());
}

/// The task with all parameters set to `value`.
std::unique_ptr<Task> constant_task(const RunOptions& options, float value) {
  std::unique_ptr<Task> task = test::task_of(options);
  task->parameters().values().fill_(value);
  task->parameters().update_bf16_copy();
  return task;
}

TEST_F(ClassifyScored, AreWithoutDropout) {
  RunOptions dropping = *options_;
  ClassifierOptions& model = dropping.as<ClassifyOptions>("this test").model;
  model.dropout = {.residual = 0.5, .attention = 0.5, .relu = 0.5, .word = 0.5};
  model.pooled_dropout = 0.5;
  const auto with_dropout = test::task_of(dropping), without = test::task_of(*options_);
  EXPECT_EQ(with_dropout->evaluate(), without->evaluate());
  const FinalScores scores = with_dropout->final_scores(), wanted = without->final_scores();
  EXPECT_EQ(scores.numbers, wanted.numbers);
  EXPECT_EQ(scores.files, wanted.files);
}

TEST_F(ClassifyScored, OfEqualLogitsTheFirstClassIsPredicted) {
  const auto task = constant_task(*options_, 0);
  const NamedNumbers dev = task->evaluate();
  EXPECT_NEAR(dev.at("dev.accuracy"), 300.0 / 7, 1e-9) << "of seven sentences three are of class 0";
  EXPECT_NEAR(dev.at("dev.loss"), std::log(3), 1e-9);
  const FinalScores scores = task->final_scores();
  EXPECT_NEAR(scores.numbers.at("test.accuracy"), 20, 1e-9) << "of five sentences one";
  EXPECT_EQ(scores.files.at("outputs/test.classes"), "bad\nbad\nbad\nbad\nbad\n");
}

TEST_F(ClassifyScored, ScoresAreNumbersWhateverTheParameters) {
  const auto task = constant_task(*options_, std::numeric_limits<float>::quiet_NaN());
  EXPECT_EQ(task->evaluate().at("dev.loss"), 700);
  EXPECT_EQ(task->final_scores().numbers.at("test.loss"), 700);
}

}  // namespace
}  // namespace tearless::engine::classify_scores_test
