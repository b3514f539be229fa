// The tasks stopped and crashed at chosen places, in this process: what is open then (a report, an epoch, a pass,
// random numbers) is resumed, with the same bytes as result.
#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/engine/run/interrupted.h"
#include "tests/engine/run/small_digits.h"
#include "tests/engine/run/small_text.h"
#include "tests/engine/run/small_treebank.h"
#include "tests/engine/train/in_memory.h"

namespace tearless::engine::stopped_test {
namespace {

namespace fs = std::filesystem;
using test::read_text;

std::vector<std::string> names_of_tasks() {
  std::vector<std::string> names;
  for (const auto& kind : task_kinds()) names.emplace_back(kind->name);
  return names;
}

/// Two epochs of seven updates of a task; a pass has several batches, a report three updates.
class Stopped : private test::InMemory, public testing::TestWithParam<std::string> {
 protected:
  Stopped() {
    std::vector<std::pair<std::string, std::string>> pairs;
    std::vector<test::Labelled> labelled;
    for (const char* line : {"a b c d", "b a", "c d a", "d", "a a b", "c b d a b", "d c", "b"}) {
      pairs.emplace_back(line, std::string(line) + " a");
      labelled.emplace_back(line, static_cast<int32_t>(labelled.size() % 2));
    }
    for (const char* set : {"train", "dev", "test"}) {
      runs_.write(set, pairs);
      runs_.write_labelled(set, labelled);
    }
    test::write_digits(runs_.folder());
    test::write_treebank(runs_.folder());
    test::write_texts(runs_.folder());
    options_ = runs_.options(settings());
  }

  static test::Settings settings() {
    const test::Settings training = {
        {"train.epoch_updates", 7},     {"train.max_epochs", 2},    {"train.schedule.kind", "nowarmup"},
        {"train.schedule.lr", 1e-2},    {"run.log_updates", 3},     {"observe.groups", true},
        {"observe.window_means", true}, {"observe.variances", true}};
    if (GetParam() == "digits") {
      return test::with(test::with(test::small_digits(), training), {{"model.norm.kind", "scale_norm"}});
    }
    if (GetParam() == "parse") {
      return test::with(test::with(test::small_parser(), training),
                        {{"model.norm.kind", "scale_norm"}, {"model.softmax", "all"}});
    }
    if (GetParam() == "language_model") {
      return test::with(test::with(test::small_language_model(), training), {{"model.norm.kind", "scale_norm"}});
    }
    const test::Settings tiny = test::with(
        training, {{"model.d_model", 16}, {"model.d_ff", 16}, {"model.heads", 2}, {"model.dropout.word", 0.1}});
    if (GetParam() == "translate") {
      return test::with(test::with(test::corpus_settings(), tiny), {{"text.kind", "segmented"},
                                                                    {"model.encoder_layers", 1},
                                                                    {"model.decoder_layers", 1},
                                                                    {"train.batch.tokens", 12}});
    }
    if (GetParam() == "classify") {
      return test::with(test::with(test::labelled_settings(), tiny),
                        {{"text.min_count", 1}, {"model.layers", 1}, {"train.batch.tokens", 9}});
    }
    throw std::logic_error("the task " + GetParam() +
                           " is not stopped and resumed in any test: add a small run of it to settings() in "
                           "tests/engine/run/stopped_test.cc");
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

  /// How often the score that selects checkpoints is in the metrics.
  int64_t evaluations() const {
    const std::string name = task().selection().score;
    int64_t count = 0;
    for (const std::string& line : test::lines_of(stopped_.metrics()))
      count += line.find(name + "\"") != std::string::npos;
    return count;
  }

  test::SmallRuns runs_;
  RunOptions options_;
  RunDirectory stopped_{runs_.folder() / "stopped" / "run"};
};
INSTANTIATE_TEST_SUITE_P(Tasks, Stopped, testing::ValuesIn(names_of_tasks()),
                         [](const auto& info) { return info.param; });

TEST_P(Stopped, AtAnyUpdateLeavesTheSameBytes) {
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

TEST_P(Stopped, ByACrashInTheMiddleOfAPassLeavesTheSameBytes) {
  for (const uint32_t update : {4, 10, 13}) {
    test::Interrupted crashing = task();
    crashing.at_update = [&](uint32_t n) {
      if (n == update) throw std::runtime_error("crash");
    };
    EXPECT_THROW(attempt(crashing), std::runtime_error);
  }
  expect_the_same_at_the_end();
}

TEST_P(Stopped, InsideAnEvaluationGoesBackToBeforeIt) {
  for (int i = 0; i < 2; ++i) {
    test::Interrupted stopping = task();
    stopping.at_evaluation = test::ask_to_stop;
    EXPECT_EQ(attempt(stopping), kExitStopped);
    EXPECT_EQ(evaluations(), 0) << "it must not be finished";
  }
  expect_the_same_at_the_end();
}

TEST_P(Stopped, InsideTheFinalScoresLeavesNoResult) {
  test::Interrupted stopping = task();
  stopping.at_final_scores = test::ask_to_stop;
  EXPECT_EQ(attempt(stopping), kExitStopped);
  EXPECT_FALSE(fs::exists(stopped_.scores()));
  EXPECT_FALSE(fs::exists(stopped_.done()));
  expect_the_same_at_the_end();
}

TEST_P(Stopped, ThreadsDoNotChangeAByte) {
  const test::Settings smooth = test::with(settings(), {{"train.label_smoothing", 0.1}});
  const test::Ended one = runs_.train(test::with(smooth, {{"run.threads", 1}})),
                    two = runs_.train(test::with(smooth, {{"run.threads", 2}}));
  EXPECT_EQ(two.measured.at("threads"), 2);
  EXPECT_EQ(one.metrics, two.metrics);
  EXPECT_TRUE(one.same_results(two));
}

TEST_P(Stopped, SmokeIsTwentyUpdatesAndOneEvaluation) {
  options_ = smoke(std::move(options_));
  test::Interrupted whole = task();
  EXPECT_EQ(attempt(whole), kExitDone);
  const auto scores = nlohmann::json::parse(read_text(stopped_.scores()));
  EXPECT_EQ(scores.at("updates"), 20);
  EXPECT_EQ(scores.at("selected_step"), 20);
  EXPECT_EQ(evaluations(), 1);
}

}  // namespace
}  // namespace tearless::engine::stopped_test
