// Epochs and evaluations of a number of updates or of a pass over the training set. Toy has three batches a pass.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <optional>

#include "tests/engine/train/toy.h"
#include "tests/support/error_of.h"

namespace tearless::engine::epochs_test {
namespace {

using test::results_of;
using test::Toy;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr auto kPass = std::nullopt;

class Epochs : public test::Trained {
 protected:
  /// The updates after which the run evaluated.
  std::vector<int64_t> evaluated(Toy& toy) {
    EXPECT_EQ(attempt(toy), kExitDone);
    std::vector<int64_t> steps;
    for (const auto& [step, value] : metric("dev.bleu")) steps.push_back(step);
    return steps;
  }
  std::vector<int64_t> evaluated() {
    Toy toy;
    return evaluated(toy);
  }
};

TEST_F(Epochs, OfAPassEndWithItsLastBatch) {
  train_.epoch_updates = kPass;
  train_.max_epochs = 4;
  EXPECT_THAT(evaluated(), ElementsAre(3, 6, 9, 12));
  EXPECT_EQ(done().reason, "max_epochs");
}

TEST_F(Epochs, OfAPassAreAsLongAsTheirPass) {
  train_.epoch_updates = kPass;
  train_.max_epochs = 4;
  Toy toy;
  toy.batches_of_pass = {3, 1, 4, 2};
  EXPECT_THAT(evaluated(toy), ElementsAre(3, 4, 8, 10));
}

// Updates of two batches: 0 1 | 2 0 | 1 2 | 0 1 | … The second has the last batch of the first pass and the first of
// the second.
TEST_F(Epochs, OfAPassEndWithTheUpdateThatHasItsLastBatch) {
  train_.epoch_updates = kPass;
  train_.accumulate = 2;
  train_.max_epochs = 4;
  EXPECT_THAT(evaluated(), ElementsAre(2, 3, 5, 6));
}

TEST_F(Epochs, OfAPassMayBeCutShortByMaxUpdates) {
  train_.epoch_updates = kPass;
  train_.max_updates = 7;
  EXPECT_THAT(evaluated(), ElementsAre(3, 6, 7));
  EXPECT_EQ(done().reason, "max_updates");
  start_again();
  train_.max_epochs = 2;
  train_.max_updates = 6;
  EXPECT_THAT(evaluated(), ElementsAre(3, 6));
  EXPECT_EQ(done().reason, "max_epochs");
}

TEST_F(Epochs, AndEvaluationsAreApart) {
  train_.epoch_updates = 4;
  train_.max_epochs = 5;
  train_.evaluate_updates = 3;
  EXPECT_THAT(evaluated(), ElementsAre(3, 6, 9, 12, 15, 18, 20));
  start_again();
  train_.epoch_updates = 10;
  train_.max_epochs = 2;
  train_.evaluate_updates = kPass;
  EXPECT_THAT(evaluated(), ElementsAre(3, 6, 9, 12, 15, 18, 20));
  start_again();
  train_.epoch_updates = kPass;
  train_.max_epochs = 3;
  train_.evaluate_updates = 2;
  EXPECT_THAT(evaluated(), ElementsAre(2, 4, 6, 8, 9));
}

TEST_F(Epochs, DoNotCountForEarlyStopAndDecayButEvaluationsDo) {
  train_.epoch_updates = 10;
  train_.max_epochs = 5;
  train_.evaluate_updates = 2;
  train_.early_stop = 3;
  train_.schedule.decay_patience = 2;
  train_.min_lr = 0;
  execution_.log_updates = 1;
  Toy toy;
  toy.script = {5, 9, 8, 7, 6};
  EXPECT_THAT(evaluated(toy), ElementsAre(2, 4, 6, 8, 10));
  EXPECT_EQ(done().reason, "early_stop");
  EXPECT_EQ(scores().at("selected_step"), 4);
  // 8 is not below 5, 7 is below 9 and 8: the learning rate falls after update 8.
  EXPECT_DOUBLE_EQ(metric("train.lr").at(7).second, 0.05);
  EXPECT_DOUBLE_EQ(metric("train.lr").at(8).second, 0.04);
}

TEST_F(Epochs, AreWhatLastEpochsSelects) {
  train_.select = {.kind = SelectOptions::Kind::kLastEpochs, .count = 2};
  train_.epoch_updates = kPass;
  train_.max_updates = 7;
  Toy toy;
  EXPECT_EQ(attempt(toy), kExitDone);
  EXPECT_EQ(scores().at("selected_step"), 6) << "7 is within a pass";
  EXPECT_EQ(scores().at("averaged_checkpoints"), 2);
  start_again();
  train_.epoch_updates = 4;
  train_.evaluate_updates = 2;
  train_.max_updates = 10;
  Toy other;
  EXPECT_EQ(attempt(other), kExitDone);
  EXPECT_EQ(scores().at("selected_step"), 8);
}

TEST_F(Epochs, TrainingNumbersAreSinceTheLastEvaluation) {
  train_.epoch_updates = 6;
  train_.max_epochs = 1;
  train_.evaluate_updates = 2;
  Toy toy;
  EXPECT_EQ(attempt(toy), kExitDone);
  const auto ppl = metric("train.ppl");
  ASSERT_EQ(ppl.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    const auto n = static_cast<uint32_t>(2 * i + 1);
    EXPECT_NEAR(ppl[i].second, std::exp((toy.losses.at(n).nll + toy.losses.at(n + 1).nll) / 2), 1e-9);
  }
}

TEST_F(Epochs, AreWrittenAtEachEvaluation) {
  train_.max_epochs = 2;
  evaluated();
  EXPECT_THAT(metric("epoch"), ElementsAre(std::pair(4, 1.0), std::pair(8, 2.0)));
  start_again();
  train_.evaluate_updates = 3;
  evaluated();
  EXPECT_THAT(metric("epoch"), ElementsAre(std::pair(3, 0.75), std::pair(6, 1.5), std::pair(8, 2.0)));
  start_again();
  train_.epoch_updates = 8;
  train_.max_epochs = 1;
  train_.evaluate_updates = kPass;
  train_.accumulate = 2;
  evaluated();
  EXPECT_THAT(metric("epoch"), ElementsAre(std::pair(2, 0.25), std::pair(3, 0.375), std::pair(5, 0.625),
                                           std::pair(6, 0.75), std::pair(8, 1.0)))
      << "of updates, whatever the passes";
}

TEST_F(Epochs, OfAPassAreWrittenAtEachEvaluation) {
  const auto written = [&](std::optional<int64_t> evaluate, int64_t accumulate, std::vector<int64_t> passes) {
    start_again();
    train_.evaluate_updates = evaluate;
    train_.accumulate = accumulate;
    train_.max_epochs = std::ssize(passes);
    Toy toy;
    toy.batches_of_pass = std::move(passes);
    toy.batches_of_pass.push_back(4);  // of which the update that ends the last pass may have the first batch
    evaluated(toy);
    return metric("epoch");
  };
  train_.epoch_updates = kPass;
  EXPECT_THAT(written(0, 1, {3, 1, 4}), ElementsAre(std::pair(3, 1.0), std::pair(4, 2.0), std::pair(8, 3.0)));
  EXPECT_THAT(written(2, 1, {3, 1, 4}),
              ElementsAre(std::pair(2, 2.0 / 3), std::pair(4, 2.0), std::pair(6, 2.5), std::pair(8, 3.0)));
  // 0 1 | 2 0 | 1 2 | 3 0 | … : the third update has batches 1 and 2 of the second pass, which has four.
  EXPECT_THAT(written(1, 2, {3, 4}),
              ElementsAre(std::pair(1, 2.0 / 3), std::pair(2, 1.25), std::pair(3, 1.75), std::pair(4, 2.25)));
  train_.max_updates = 4;
  EXPECT_THAT(written(0, 1, {3, 5}), ElementsAre(std::pair(3, 1.0), std::pair(4, 1.2)));
}

TEST_F(Epochs, OfPassesResumeWithTheSameBytesWhereverTheyCrashedOrStopped) {
  for (const auto& [epoch, evaluate] :
       std::vector<std::pair<std::optional<int64_t>, std::optional<int64_t>>>{{kPass, 0}, {5, kPass}, {kPass, 2}}) {
    train_.epoch_updates = epoch;
    train_.evaluate_updates = evaluate;
    train_.accumulate = 2;
    train_.max_epochs = 4;
    start_again();
    Toy whole;
    ASSERT_EQ(attempt(whole), kExitDone);
    const std::string wanted = results_of(run_);
    const auto updates = static_cast<uint32_t>(done().step);
    const size_t evaluations = metric("epoch").size();
    for (uint32_t at = 1; at < updates; ++at) {
      start_again();
      Toy crashing;
      crashing.crash_at = at;
      EXPECT_THROW(attempt(crashing), std::runtime_error);
      Toy stopped;
      stopped.at_update = [&](uint32_t update) {
        if (update == at) ::raise(SIGTERM);
      };
      EXPECT_EQ(attempt(stopped), kExitStopped);
      Toy resumed;
      EXPECT_EQ(attempt(resumed), kExitDone);
      EXPECT_EQ(results_of(run_), wanted) << "disturbed at update " << at;
    }
    start_again();
    for (size_t evaluation = 0; evaluation < evaluations; ++evaluation) {  // each attempt repeats the one before it
      Toy stopped;
      stopped.at_evaluation = [&](size_t n) {
        if (n == std::min<size_t>(evaluation, 1)) throw StopRequested();
      };
      EXPECT_EQ(attempt(stopped), kExitStopped);
    }
    Toy resumed;
    EXPECT_EQ(attempt(resumed), kExitDone);
    EXPECT_EQ(results_of(run_), wanted) << "stopped inside every evaluation";
  }
}

TEST(EpochSettings, ThatExcludeEachOtherAreRefused) {
  TrainOptions train;
  train.select.kind = SelectOptions::Kind::kLastEpochs;
  train.epoch_updates = 100;
  for (const std::optional<int64_t> evaluate : {std::optional<int64_t>(30), {}}) {
    train.evaluate_updates = evaluate;
    EXPECT_THAT(tearless::test::error_of([&] { check_consistent(train); }),
                HasSubstr("train.select.kind = \"last_epochs\" needs an evaluation at the end of each epoch, but "
                          "train.evaluate_updates does not divide train.epoch_updates; set it to 0, or to a number"));
  }
  train.evaluate_updates = 50;
  check_consistent(train);
  train.epoch_updates = kPass;
  EXPECT_THAT(tearless::test::error_of([&] { check_consistent(train); }), HasSubstr("last_epochs"));
  train.evaluate_updates = kPass;
  check_consistent(train);

  train.schedule.kind = "cosine";
  train.schedule.peak_lr = 1e-3;
  EXPECT_EQ(
      tearless::test::error_of([&] { check_consistent(train); }),
      "train.schedule.kind = \"cosine\" falls to the last update, whose number train.epoch_updates = \"pass\" does "
      "not tell; set train.max_updates");
  train.max_updates = 20000;
  check_consistent(train);
}

}  // namespace
}  // namespace tearless::engine::epochs_test
