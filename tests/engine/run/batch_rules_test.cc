// Runs with each way to make batches, and a batch limit below a sentence.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/run/every_setting.h"
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
    // Six pairs of lengths, each of several texts: the order of equal lengths decides which make a batch.
    for (int i = 0; i < 40; ++i) {
      const int text = i / 6;
      std::string source = "a", target = "x";
      for (int word = 0; word < 3 * (i % 3); ++word) source += ((text >> (word % 3)) & 1) ? " b" : " c";
      for (int word = 0; word < 2 * (i % 2); ++word) target += ((text >> word) & 1) ? " y" : " z";
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
  for (const char* count : {"padded_max_side", "padded_sum", "max_tokens"}) {
    for (const char* regenerate : {"per_pass", "once", "window"}) {
      const test::Ended run =
          runs_.train(with(small(), {{"train.batch.count", count}, {"train.batch.regenerate", regenerate}}));
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

}  // namespace
}  // namespace tearless::engine::batch_rules_test
