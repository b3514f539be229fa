// The classification task stopped and crashed at chosen places, in this process: it resumes, with the same bytes as
// result.
#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/engine/run/interrupted.h"
#include "tests/engine/train/in_memory.h"

namespace tearless::engine::stopped_classification_test {
namespace {

namespace fs = std::filesystem;
using test::Labelled;
using test::read_text;

/// Two epochs of seven updates; a pass has several batches, a report three updates.
class StoppedClassification : private test::InMemory, public testing::Test {
 protected:
  StoppedClassification() {
    const std::vector<Labelled> sentences = {{"a b c d", 0}, {"b a", 1},       {"c d a", 1}, {"d", 0},
                                             {"a a b", 1},   {"c b d a b", 0}, {"d c", 1},   {"b", 0}};
    for (const char* set : {"train", "dev", "test"}) runs_.write_labelled(set, sentences);
    options_ = runs_.options(settings());
  }

  static test::Settings settings() {
    return test::with(test::labelled_settings(), {{"text.min_count", 1},
                                                  {"model.layers", 1},
                                                  {"model.d_model", 16},
                                                  {"model.d_ff", 16},
                                                  {"model.heads", 2},
                                                  {"model.dropout.word", 0.1},
                                                  {"train.batch.tokens", 9},
                                                  {"train.epoch_updates", 7},
                                                  {"train.max_epochs", 2},
                                                  {"train.schedule.kind", "nowarmup"},
                                                  {"train.schedule.lr", 1e-2},
                                                  {"run.log_updates", 3}});
  }
  test::Interrupted task() const { return test::Interrupted(test::task_of(options_)); }
  ExitCode attempt(test::Interrupted& task) const { return test::attempt_by(task, options_, stopped_); }

  std::string undisturbed() const {
    test::Interrupted whole = task();
    const RunDirectory run(runs_.folder() / "undisturbed" / "run");
    EXPECT_EQ(test::attempt_by(whole, options_, run), kExitDone);
    return test::results_of(run);
  }
  void expect_the_same_at_the_end() const {
    test::Interrupted last = task();
    EXPECT_EQ(attempt(last), kExitDone);
    EXPECT_EQ(test::results_of(stopped_), undisturbed());
  }

  test::SmallRuns runs_;
  RunOptions options_;
  RunDirectory stopped_{runs_.folder() / "stopped" / "run"};
};

TEST_F(StoppedClassification, AtAnyUpdateLeavesTheSameBytes) {
  for (const uint32_t update : {2, 5, 8, 11, 13}) {
    test::Interrupted stopping = task();
    stopping.at_update = [&](uint32_t n) {
      if (n == update) test::ask_to_stop();
    };
    ASSERT_EQ(attempt(stopping), kExitStopped) << update;
    EXPECT_TRUE(fs::exists(stopped_.checkpoints() / ("step-" + std::to_string(update))));
  }
  expect_the_same_at_the_end();
}

TEST_F(StoppedClassification, ByACrashInTheMiddleOfAPassLeavesTheSameBytes) {
  for (const uint32_t update : {4, 10, 13}) {
    test::Interrupted crashing = task();
    crashing.at_update = [&](uint32_t n) {
      if (n == update) throw std::runtime_error("crash");
    };
    EXPECT_THROW(attempt(crashing), std::runtime_error);
  }
  expect_the_same_at_the_end();
}

TEST_F(StoppedClassification, InsideAnEvaluationGoesBackToBeforeIt) {
  for (int i = 0; i < 2; ++i) {
    test::Interrupted stopping = task();
    stopping.at_evaluation = test::ask_to_stop;
    EXPECT_EQ(attempt(stopping), kExitStopped);
    EXPECT_EQ(read_text(stopped_.metrics()).find("dev.accuracy"), std::string::npos) << "it must not be finished";
  }
  expect_the_same_at_the_end();
}

TEST_F(StoppedClassification, InsideTheFinalScoresLeavesNoResult) {
  test::Interrupted stopping = task();
  stopping.at_final_scores = test::ask_to_stop;
  EXPECT_EQ(attempt(stopping), kExitStopped);
  EXPECT_FALSE(fs::exists(stopped_.scores()));
  EXPECT_FALSE(fs::exists(stopped_.done()));
  expect_the_same_at_the_end();
}

TEST_F(StoppedClassification, ThreadsDoNotChangeAByte) {
  const test::Settings smooth = test::with(settings(), {{"train.label_smoothing", 0.1}});
  const test::Ended one = runs_.train(test::with(smooth, {{"run.threads", 1}})),
                    two = runs_.train(test::with(smooth, {{"run.threads", 2}}));
  EXPECT_EQ(two.measured.at("threads"), 2);
  EXPECT_EQ(one.metrics, two.metrics);
  EXPECT_TRUE(one.same_results(two));
  EXPECT_EQ(one.outputs.size(), 2u);
}

TEST_F(StoppedClassification, SmokeIsTwentyUpdatesAndOneEvaluation) {
  options_ = smoke(std::move(options_));
  test::Interrupted whole = task();
  EXPECT_EQ(attempt(whole), kExitDone);
  const auto scores = nlohmann::json::parse(read_text(stopped_.scores()));
  EXPECT_EQ(scores.at("updates"), 20);
  EXPECT_EQ(scores.at("selected_step"), 20);
  const std::string metrics = read_text(stopped_.metrics());
  EXPECT_EQ(metrics.find("dev.accuracy"), metrics.rfind("dev.accuracy"));
  EXPECT_NE(metrics.find("dev.accuracy"), std::string::npos);
}

}  // namespace
}  // namespace tearless::engine::stopped_classification_test
