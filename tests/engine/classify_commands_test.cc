// The commands of tearless-engine on a run of classify: those that are for translation alone say so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/run_directory.h"
#include "tests/engine/run/small_runs.h"
#include "tests/support/process.h"

namespace tearless::engine::classify_commands_test {
namespace {

using testing::HasSubstr;
using testing::Not;

tearless::test::Finished ask(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), tearless::test::program("tearless-engine").string());
  return tearless::test::run({.arguments = std::move(arguments)});
}

class ClassifyCommands : public testing::Test {
 protected:
  ClassifyCommands() {
    runs_.write_labelled("train", {{"a good film", 1}, {"a bad film", 0}, {"a good film", 1}});
    runs_.write_labelled("dev", {{"a good film", 1}, {"a bad film", 0}});
    runs_.write_labelled("test", {{"a good film", 1}});
    run_ = runs_.make(test::with(test::labelled_settings(), {{"text.min_count", 1},
                                                             {"model.layers", 1},
                                                             {"model.d_model", 8},
                                                             {"model.d_ff", 8},
                                                             {"model.heads", 1},
                                                             {"train.epoch_updates", 1},
                                                             {"train.max_epochs", 1}}));
  }

  test::SmallRuns runs_;
  std::filesystem::path run_;
  const std::string config_ = (runs_.folder() / "settings.toml").string();
};

TEST_F(ClassifyCommands, WhatTranslatesIsForTranslation) {
  ASSERT_EQ(attempt_run(run_), kExitDone);
  const auto decode = ask({"decode", run_.string()}), kernels = ask({"bench", config_, "--kernels"}),
             timed = ask({"bench", config_, "--vocabulary", "50", "--updates", "1", "--decode"});
  EXPECT_EQ(decode.errors, "tearless-engine: decode is not for runs of task = \"classify\"\n");
  EXPECT_EQ(kernels.errors, "tearless-engine: bench --kernels is not for runs of task = \"classify\"\n");
  EXPECT_EQ(timed.errors, "tearless-engine: bench: this task does not translate: there is nothing to decode\n");
  for (const auto& finished : {decode, kernels, timed}) {
    EXPECT_EQ(finished.code, kExitSettingsRefused);
    EXPECT_EQ(finished.output, "");
  }
}

TEST_F(ClassifyCommands, BenchTimesSentencesOfTheGivenLengths) {
  const std::filesystem::path lengths = std::filesystem::path(config_).parent_path() / "lengths.json";
  test::write_text(lengths, R"({"batches": [[3, 7], [5]]})");
  const auto bench =
      ask({"bench", config_, "--vocabulary", "50", "--updates", "2", "--lengths", lengths.string(), "--json"});
  ASSERT_EQ(bench.code, 0) << bench.errors;
  const auto answer = nlohmann::json::parse(bench.output);
  EXPECT_EQ(answer.at("operations").at("span means").at("calls"), 1);
  EXPECT_FALSE(answer.at("operations").contains("by formula"));
  test::write_text(lengths, R"({"batches": [[[3, 7]]]})");
  EXPECT_THAT(ask({"bench", config_, "--lengths", lengths.string()}).errors,
              HasSubstr("expected {\"batches\": [[rows, …], …]}"));
}

TEST_F(ClassifyCommands, CheckTrainAndPrepareWork) {
  const auto check = ask({"check", config_, "--canonical"});
  EXPECT_EQ(check.code, 0) << check.errors;
  EXPECT_THAT(check.output, HasSubstr(": run " + run_.filename().string() + ", "));
  EXPECT_THAT(check.output, HasSubstr("\ntask = \"classify\"\n"));
  const auto train = ask({"train", run_.string()});
  EXPECT_EQ(train.code, kExitDone) << train.errors;
  EXPECT_THAT(test::read_text(run_ / "scores.json"), HasSubstr("test.accuracy"));
  const auto prepare = ask({"prepare", config_});
  EXPECT_EQ(prepare.code, 0) << prepare.errors;
  EXPECT_THAT(prepare.output, HasSubstr("small: 3 training, 2 dev, 1 test sentences of 2 classes; vocabulary 8; "
                                        "nothing needs a cache\n"));
  EXPECT_EQ(ask({"prepare", (runs_.folder() / "nowhere.toml").string()}).code, kExitSettingsRefused);
}

TEST_F(ClassifyCommands, CheckSaysWhatHasNoEffectAndWithPrepareWhatTheTextLooksLike) {
  std::vector<test::Labelled> coded;
  for (int i = 0; i < 20; ++i) coded.emplace_back("12 9 11", i % 2);
  runs_.write_labelled("train", coded);
  test::write_text(config_, test::read_text(config_) + "train.schedule.lr = 0.1\n");
  const std::string warning =
      "warning: data.train (train): the text consists of digits and blanks alone; it may be a list of numbers, which "
      "stand for another text\n";
  const auto check = ask({"check", config_});
  EXPECT_EQ(check.code, 0) << check.errors;
  EXPECT_THAT(check.output,
              testing::ContainsRegex("settings.toml:[0-9]+: train.schedule.lr has no effect: train.schedule.kind = "
                                     "\"invsqrt\" switches it off\n"));
  EXPECT_THAT(check.output, HasSubstr(warning));
  const auto prepare = ask({"prepare", config_});
  EXPECT_EQ(prepare.code, 0) << prepare.errors;
  EXPECT_THAT(prepare.output, HasSubstr(warning));
}

TEST_F(ClassifyCommands, SettingsOfOneTaskArePrintedAlone) {
  const auto page = ask({"settings", "classify"});
  EXPECT_EQ(page.code, 0);
  EXPECT_THAT(page.output, HasSubstr("\n## task = \"classify\"\n"));
  EXPECT_THAT(page.output, HasSubstr("| `pooled` | `0.2` | 0 … 0.99 |"));
  EXPECT_THAT(page.output, HasSubstr("\n## Every task\n"));
  EXPECT_THAT(page.output, HasSubstr("| `label_smoothing` |"));
  EXPECT_THAT(page.output, Not(HasSubstr("## task = \"translate\"")));
  EXPECT_THAT(page.output, Not(HasSubstr("`stacks`")));
  EXPECT_THAT(page.output, Not(HasSubstr("[decode]")));
  const auto nosuch = ask({"settings", "nosuch"});
  EXPECT_EQ(nosuch.code, kExitSettingsRefused);
  EXPECT_THAT(nosuch.errors, HasSubstr("nosuch"));
  EXPECT_THAT(nosuch.errors, HasSubstr("classify"));
  EXPECT_EQ(nosuch.output, "");
}

}  // namespace
}  // namespace tearless::engine::classify_commands_test
