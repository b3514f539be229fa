// Runs with each way to make batches, and a batch limit below a sentence.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/data/options.h"
#include "tests/engine/run/every_setting.h"
#include "tests/engine/run/interrupted.h"
#include "tests/support/error_of.h"

namespace tearless::engine::batch_rules_test {
namespace {

using test::Settings;
using test::with;
using testing::HasSubstr;

class BatchRules : public testing::Test {
 protected:
  BatchRules() {
    std::vector<std::pair<std::string, std::string>> pairs;
    for (int i = 0; i < 60; ++i) {
      std::string source = "a", target = "x";
      for (int word = 0; word < i % 7; ++word) source += (i + word) % 3 ? " b" : " c";
      // Pairs of the same two lengths: their order is what a new shuffle changes.
      for (int word = 0; word < i % 7 % 3; ++word) target += (i + word) % 4 ? " y" : " z";
      pairs.emplace_back(source, target);
    }
    for (const char* set : {"train", "dev", "test"}) runs_.write(set, pairs);
  }
  static Settings small() {
    return with(with(test::corpus_settings(), test::tiny_layers_and_training()), {{"text.kind", "segmented"},
                                                                                  {"model.encoder_layers", 1},
                                                                                  {"model.decoder_layers", 1},
                                                                                  {"train.batch.tokens", 40},
                                                                                  {"train.epoch_updates", "pass"}});
  }

  test::SmallRuns runs_;
};

TEST_F(BatchRules, AreEachOthersRunsAndEachTrains) {
  std::vector<std::string> metrics;
  for (const std::string_view count : kBatchCountNames) {
    for (const std::string_view regenerate : kRegenerateNames) {
      const test::Ended run = runs_.train(with(
          small(), {{"train.batch.tokens", 72}, {"train.batch.count", count}, {"train.batch.regenerate", regenerate}}));
      EXPECT_EQ(run.code, kExitDone);
      EXPECT_EQ(run.metric("dev.bleu").size(), 2u) << "two passes";
      EXPECT_EQ(std::ranges::count(metrics, run.metrics), 0) << count << " " << regenerate;
      metrics.push_back(run.metrics);
    }
  }
}

// The longest source has seven words and EOS.
TEST_F(BatchRules, OfFairseqRefuseALimitBelowASentence) {
  const Settings settings = with(small(), {{"train.batch.count", "max_tokens"}, {"train.batch.tokens", 7}});
  const RunOptions options = runs_.options(settings);
  const auto nobody = [](const std::string&) {};
  for (const std::string& error :
       {tearless::test::error_of([&] { options.task->prepare_data(options.train, nobody); }),
        tearless::test::error_of([&] { options.task->make(options.train, options.run, nobody); })}) {
    EXPECT_THAT(error, HasSubstr("train.batch.tokens = 7, but a training pair has 8 tokens, and train.batch.count = "
                                 "\"max_tokens\" puts no pair in a batch that is too small for it"));
  }
  EXPECT_EQ(runs_.train(with(settings, {{"train.batch.tokens", 8}})).code, kExitDone);
  EXPECT_EQ(runs_.train(with(settings, {{"train.batch.count", "padded_max_side"}})).code, kExitDone);
}

TEST_F(BatchRules, OfBuffersAreRefusedWhereEachBatchIsTooSmall) {
  const Settings settings = with(small(), {{"train.batch.regenerate", "buffers"}, {"train.batch.tokens", 1000}});
  const RunOptions options = runs_.options(settings);
  const auto nobody = [](const std::string&) {};
  for (const std::string& error :
       {tearless::test::error_of([&] { options.task->prepare_data(options.train, nobody); }),
        tearless::test::error_of([&] { options.task->make(options.train, options.run, nobody); })}) {
    EXPECT_THAT(error, HasSubstr("train.batch.leak_ratio = 0.5 leaves no batch: each has fewer tokens than this part "
                                 "of train.batch.tokens = 1000"));
  }
  EXPECT_EQ(runs_.train(with(settings, {{"train.batch.leak_ratio", 0.0}})).code, kExitDone);
  EXPECT_EQ(runs_.train(with(settings, {{"train.batch.regenerate", "per_pass"}})).code, kExitDone);
}

// Stopped within the first pass, at its end and in the second, which has what is left of a buffer before and after.
TEST_F(BatchRules, OfZeroAndJoeyNmtLeaveTheSameBytesAfterStops) {
  const Settings zero = {{"train.batch.count", "padded_below"},
                         {"train.batch.regenerate", "buffers"},
                         {"train.batch.buffer", 11},
                         {"train.batch.truncate", 6},
                         {"train.accumulate", 2},
                         {"train.accumulate_by", "batches"}};
  const Settings joey = {{"train.batch.count", "padded_bos_eos"}, {"train.batch.regenerate", "unsorted"}};
  for (const Settings& rules : {zero, joey}) {
    const RunOptions options = runs_.options(with(with(small(), {{"train.max_epochs", 3}}), rules));
    const std::string name = rules.at("train.batch.count");
    const RunDirectory whole(runs_.folder() / name / "whole" / "run"),
        stopped(runs_.folder() / name / "stopped" / "run");
    test::Interrupted undisturbed(test::task_of(options));
    ASSERT_EQ(test::attempt_by(undisturbed, options, whole), kExitDone);
    const int64_t updates = nlohmann::json::parse(test::read_text(whole.done())).at("step");
    ASSERT_GE(updates, 6) << name;
    for (const int64_t update : {int64_t{2}, updates / 2, updates / 2 + 1, updates - 1}) {
      test::Interrupted stopping(test::task_of(options));
      stopping.at_update = [&](uint32_t n) {
        if (n == update) test::ask_to_stop();
      };
      ASSERT_EQ(test::attempt_by(stopping, options, stopped), kExitStopped) << name << " " << update;
    }
    test::Interrupted last(test::task_of(options));
    EXPECT_EQ(test::attempt_by(last, options, stopped), kExitDone);
    EXPECT_TRUE(test::results_of(stopped) == test::results_of(whole)) << name;
  }
}

// With a learning rate that changes nothing the models are equal, and a pass is one batch: the training loss is of
// fewer labels, and dev and test are as they were.
TEST_F(BatchRules, TruncationIsOfTheTrainingSetAlone) {
  const Settings still = with(small(), {{"train.schedule.kind", "nowarmup"},
                                        {"train.schedule.lr", 1e-30},
                                        {"train.min_lr", 0.0},
                                        {"train.batch.tokens", 4000},
                                        {"train.batch.regenerate", "unsorted"}});
  const test::Ended whole = runs_.train(still), cut = runs_.train(with(still, {{"train.batch.truncate", 2}}));
  EXPECT_NE(whole.metric("train.ppl"), cut.metric("train.ppl"));
  for (const char* score : {"dev.ppl", "test.ppl"}) {
    EXPECT_DOUBLE_EQ(whole.scores.at(score).get<double>(), cut.scores.at(score).get<double>()) << score;
  }
  EXPECT_EQ(whole.outputs, cut.outputs);
}

}  // namespace
}  // namespace tearless::engine::batch_rules_test
