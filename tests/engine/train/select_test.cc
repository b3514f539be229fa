// Which checkpoints make the model, and that stops change neither them nor their mean.
#include "engine/train/select.h"

#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <numeric>
#include <stdexcept>

#include "engine/train/model_file.h"
#include "tests/engine/train/toy.h"
#include "tests/support/error_of.h"

namespace tearless::engine::select_test {
namespace {

using test::results_of;
using test::Toy;
using testing::ElementsAre;
using testing::HasSubstr;
using Kind = SelectOptions::Kind;

/// The steps that are selected after each evaluation, of which there is one every 10 updates.
std::vector<std::vector<int64_t>> selections(const SelectOptions& options, const std::vector<double>& values,
                                             int64_t epoch_updates = 10) {
  std::vector<SelectedStep> selected;
  std::vector<std::vector<int64_t>> after;
  int64_t step = 0;
  for (const double value : values) {
    step += 10;
    select(options, step % epoch_updates == 0, {step, value}, selected);
    std::vector<int64_t>& steps = after.emplace_back();
    for (const SelectedStep& one : selected) steps.push_back(one.step);
  }
  return after;
}

TEST(Select, TheBestAreTheBestAndOfEqualOnesTheLatest) {
  EXPECT_THAT(selections({.kind = Kind::kBest, .count = 1}, {1, 7, 3, 7, 5}),
              ElementsAre(ElementsAre(10), ElementsAre(20), ElementsAre(20), ElementsAre(40), ElementsAre(40)));
  EXPECT_THAT(selections({.kind = Kind::kBest, .count = 2}, {5, 5, 5, 9, 7, 6}),
              ElementsAre(ElementsAre(10), ElementsAre(10, 20), ElementsAre(20, 30), ElementsAre(30, 40),
                          ElementsAre(40, 50), ElementsAre(40, 50)));
}

TEST(Select, TheLastAreTheLastWhateverTheirValue) {
  EXPECT_THAT(selections({.kind = Kind::kLast, .count = 2}, {9, 1, 5, 3}),
              ElementsAre(ElementsAre(10), ElementsAre(10, 20), ElementsAre(20, 30), ElementsAre(30, 40)));
}

TEST(Select, TheLastEpochsLeaveOutWhatEndsWithinOne) {
  EXPECT_THAT(selections({.kind = Kind::kLastEpochs, .count = 2}, {1, 2, 3, 4, 5, 6, 7}, /*epoch_updates=*/20),
              ElementsAre(ElementsAre(), ElementsAre(20), ElementsAre(20), ElementsAre(20, 40), ElementsAre(20, 40),
                          ElementsAre(40, 60), ElementsAre(40, 60)));
}

/// Trainings of five evaluations at most, with what the parameters were at each.
class Selected : public test::Trained {
 protected:
  Toy toy() {
    Toy made;
    made.script = {4, 2, 5, 3, 1};
    return made;
  }
  /// Trains to the end in an empty folder, and returns the parameters of the model.
  std::vector<double> model() {
    start_again();
    Toy task = toy();
    task.at_evaluation = [&](size_t n) { at_[n] = numbers(task.parameters()); };
    task.script.push_back(8);  // of the mean, if there is one
    EXPECT_EQ(attempt(task), kExitDone);
    Toy reader;
    read_model(run_, reader.parameters());
    return numbers(reader.parameters());
  }
  static std::vector<double> numbers(const Parameters& parameters) {
    std::vector<double> out;
    for (int64_t i = 0; i < parameters.count(); ++i) out.push_back(parameters.values()[i].item<double>());
    return out;
  }
  /// In double, of these evaluations, counted from 0.
  std::vector<double> mean(const std::vector<size_t>& evaluations) const {
    std::vector<double> out(test::kLabels);
    for (const size_t n : evaluations) {
      for (size_t i = 0; i < out.size(); ++i) out[i] += at_.at(n)[i] / static_cast<double>(evaluations.size());
    }
    return out;
  }
  /// Trains, and expects the mean of these evaluations as the model.
  void expect_mean(const std::vector<size_t>& evaluations) {
    const std::vector<double> made = model();
    EXPECT_THAT(made, testing::Pointwise(testing::DoubleNear(1e-7), mean(evaluations)));
  }

  std::map<size_t, std::vector<double>> at_;  // evaluation → parameters
};

TEST_F(Selected, TheModelIsTheMeanOfTheSelectedCheckpoints) {
  train_.select = {.kind = Kind::kLast, .count = 3};
  expect_mean({2, 3, 4});
  EXPECT_EQ(scores().at("selected_step"), 20);
  EXPECT_EQ(scores().at("averaged_checkpoints"), 3);
  train_.select.kind = Kind::kBest;
  expect_mean({0, 2, 3});
  EXPECT_EQ(scores().at("selected_step"), 16);
  train_.select = {.kind = Kind::kLast, .count = 1};
  const std::vector<double> last = model();
  EXPECT_EQ(last, at_.at(4));
  EXPECT_FALSE(scores().contains("averaged_checkpoints"));
  EXPECT_EQ(scores().at("dev.bleu"), 1) << "that of its evaluation";
}

TEST_F(Selected, AMeanIsEvaluatedAndScoredItself) {
  train_.select = {.kind = Kind::kLast, .count = 2};
  const std::vector<double> parameters = model();
  double size = 0;
  for (const double x : parameters) size += std::abs(x);
  EXPECT_EQ(scores().at("dev.bleu"), 8);
  EXPECT_NEAR(scores().at("dev.ppl").get<double>(), size, 1e-6);
  EXPECT_NEAR(scores().at("test.size").get<double>(), size, 1e-6);
  EXPECT_EQ(scores().at("train.ppl").get<double>(), metric("train.ppl").back().second) << "of the newest epoch of it";
  EXPECT_EQ(metric("dev.bleu").size(), 5u);
}

TEST_F(Selected, TheLastEpochsAreWithoutTheEvaluationOfTheLastUpdate) {
  train_.max_updates = 18;
  train_.select = {.kind = Kind::kLastEpochs, .count = 2};
  expect_mean({2, 3});
  EXPECT_EQ(scores().at("selected_step"), 16);
  train_.select.kind = Kind::kLast;
  expect_mean({3, 4});
}

TEST_F(Selected, ByLossEvaluationsAreComparedByTheDevLoss) {
  Toy task = toy();
  train_.select.by = SelectOptions::By::kLoss;  // of the toy dev.ppl, the size of its parameters
  ASSERT_EQ(attempt(task), kExitDone);
  const auto sizes = metric("dev.ppl");
  const auto lowest =
      std::min_element(sizes.begin(), sizes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  EXPECT_EQ(scores().at("selected_step"), lowest->first);
  EXPECT_NE(lowest->first, 12) << "the best by score";
}

TEST_F(Selected, ByLossTrainingEndsEarlyWhereTheLossStopsFalling) {
  const auto end_of = [&](SelectOptions::By by) {
    train_.select.by = by;
    start_again();
    Toy task = toy();
    task.script = {1, 2, 3, 4, 5};
    train_.early_stop = 1;
    EXPECT_EQ(attempt(task), kExitDone);
    return done().step;
  };
  EXPECT_EQ(end_of(SelectOptions::By::kScore), 20);
  EXPECT_LT(end_of(SelectOptions::By::kLoss), 20);
}

TEST_F(Selected, CheckpointsAreKeptWhateverTheLocalSettingSays) {
  train_.select = {.kind = Kind::kBest, .count = 3};
  std::set<std::string> results;
  for (const int64_t keep : {1, 2, 1000}) {
    execution_.keep_checkpoints = keep;
    model();
    results.insert(results_of(run_));
    if (keep == 1) {
      EXPECT_THAT(run_.checkpoint_steps(), ElementsAre(4, 12, 16, 20));
    }
  }
  EXPECT_EQ(results.size(), 1u);
}

TEST_F(Selected, ATrainingThatEndsBeforeThereAreEnoughAveragesThoseThereAre) {
  train_.early_stop = 1;
  train_.select = {.kind = Kind::kLast, .count = 4};
  expect_mean({0, 1});
  EXPECT_EQ(scores().at("averaged_checkpoints"), 2);
}

// --- stops -----------------------------------------------------------------------------------------------------------

/// Every way of selecting, of trainings of three epochs of seven updates and an evaluation within the fourth.
class StoppedSelections : public Selected, public testing::WithParamInterface<SelectOptions> {
 protected:
  StoppedSelections() {
    train_.epoch_updates = 7;
    train_.max_epochs = 4;
    train_.max_updates = 25;
    train_.select = GetParam();
  }
  Toy toy() {
    Toy made;
    made.wanted_size = 1.3;  // a score that depends on the parameters: a wrong one shows
    return made;
  }
  std::string undisturbed() {
    Toy task = toy();
    EXPECT_EQ(attempt(task), kExitDone);
    return results_of(run_);
  }
  ExitCode stop_at(uint32_t update) {
    Toy task = toy();
    task.at_update = [&](uint32_t n) {
      if (n == update) ::raise(SIGTERM);
    };
    return attempt(task);
  }
  void expect_the_same_at_the_end(const std::string& expected) {
    Toy task = toy();
    EXPECT_EQ(attempt(task), kExitDone);
    EXPECT_EQ(results_of(run_), expected);
  }
};
INSTANTIATE_TEST_SUITE_P(
    Ways, StoppedSelections,
    testing::Values(SelectOptions{.kind = Kind::kBest, .count = 2}, SelectOptions{.kind = Kind::kLast, .count = 3},
                    SelectOptions{.kind = Kind::kLastEpochs, .count = 3},
                    SelectOptions{.kind = Kind::kBest, .count = 1, .by = SelectOptions::By::kLoss}));

TEST_P(StoppedSelections, AStopAtAnyUpdateIsInNoMean) {
  const std::string expected = undisturbed();
  for (uint32_t update = 1; update < 25; ++update) {
    start_again();
    ASSERT_EQ(stop_at(update), kExitStopped) << update;
    EXPECT_EQ(run_.checkpoint_steps().back(), update);
    expect_the_same_at_the_end(expected);
  }
  start_again();
  execution_.keep_checkpoints = 1000;  // nor any of all that stops left
  for (uint32_t update = 1; update < 25; ++update) ASSERT_EQ(stop_at(update), kExitStopped) << update;
  ASSERT_EQ(run_.checkpoint_steps().size(), 24u);
  expect_the_same_at_the_end(expected);
}

TEST_P(StoppedSelections, ACrashAtAnyUpdateDoesNotShow) {
  const std::string expected = undisturbed();
  start_again();
  for (uint32_t update = 1; update <= 25; ++update) {
    Toy crashing = toy();
    crashing.crash_at = update;
    EXPECT_THROW(attempt(crashing), std::runtime_error) << update;
  }
  expect_the_same_at_the_end(expected);
}

TEST_P(StoppedSelections, AStopInAnyEvaluationAlsoThatOfTheMeanDoesNotShow) {
  const std::string expected = undisturbed();
  for (size_t evaluation = 0; evaluation < 5; ++evaluation) {
    start_again();
    Toy stopped = toy();
    stopped.at_evaluation = [&](size_t n) {
      if (n == evaluation) throw StopRequested();
    };
    const bool of_the_mean = evaluation == 4;
    EXPECT_EQ(attempt(stopped), of_the_mean && GetParam().count == 1 ? kExitDone : kExitStopped) << evaluation;
    if (!std::filesystem::exists(run_.done())) expect_the_same_at_the_end(expected);
  }
}

// Written are then those of a stop and of the end, and before them those that the model is made of.
TEST_P(StoppedSelections, CheckpointsThatWaitInMemoryChangeNothing) {
  const std::string expected = undisturbed();
  const std::vector<int64_t> written = run_.checkpoint_steps();
  start_again();
  execution_.checkpoint_share = 0;
  expect_the_same_at_the_end(expected);
  EXPECT_EQ(run_.checkpoint_steps(), written);
  const auto left_by_a_stop = [this](uint32_t update, double share) {
    start_again();
    execution_.checkpoint_share = share;
    EXPECT_EQ(stop_at(update), kExitStopped) << update;
    return run_.checkpoint_steps();
  };
  for (uint32_t update = 1; update < 25; ++update) {
    const std::vector<int64_t> usual = left_by_a_stop(update, 1);
    EXPECT_EQ(left_by_a_stop(update, 0), usual) << update;
    expect_the_same_at_the_end(expected);
  }
  for (size_t evaluation = 0; evaluation < 4; ++evaluation) {
    start_again();
    Toy stopped = toy();
    stopped.at_evaluation = [&](size_t n) {
      if (n == evaluation) throw StopRequested();
    };
    EXPECT_EQ(attempt(stopped), kExitStopped) << evaluation;
    expect_the_same_at_the_end(expected);
  }
  start_again();
  Toy crashing = toy();
  crashing.crash_at = 24;
  EXPECT_THROW(attempt(crashing), std::runtime_error);
  if (GetParam().count == 1) {
    EXPECT_THAT(run_.checkpoint_steps(), testing::IsEmpty());
  }
  expect_the_same_at_the_end(expected);
}

TEST_P(StoppedSelections, ALostCheckpointOfTheMeanIsTrainedAgain) {
  const std::string expected = undisturbed();
  for (const int64_t step : run_.checkpoint_steps()) {
    start_again();
    Toy task = toy();
    bool lost = false;
    task.at_evaluation = [&](size_t n) {
      if (n != 3 || std::exchange(lost, true)) return;
      if (std::filesystem::exists(run_.checkpoint(step))) test::write_text(run_.checkpoint(step) / "state.bin", "");
    };
    EXPECT_EQ(attempt(task), kExitDone);
    EXPECT_EQ(results_of(run_), expected) << step;
  }
}

}  // namespace
}  // namespace tearless::engine::select_test
