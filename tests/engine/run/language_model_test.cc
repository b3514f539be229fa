// Whole runs of the task language_model: what is learnt, scored, carried, refused, and read of the data.
#include "engine/task/language_model.h"

#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <numbers>
#include <set>

#include "base/error.h"
#include "engine/run/attempt.h"
#include "engine/run/check.h"
#include "tests/engine/run/recomputed.h"
#include "tests/engine/run/small_text.h"
#include "tests/engine/run/small_treebank.h"
#include "tests/engine/train/in_memory.h"
#include "tests/support/error_of.h"

namespace tearless::engine::language_model_test {
namespace {

using tearless::test::error_of;
namespace fs = std::filesystem;
using nlohmann::json;
using test::Ended;
using test::Settings;
using test::with;
using testing::HasSubstr;

class LanguageModels : private test::InMemory, public testing::Test {
 protected:
  LanguageModels() { test::write_texts(runs_.folder()); }

  Ended trained(const Settings& changes) { return runs_.train(with(test::small_language_model(), changes)); }
  RunOptions options(const Settings& changes) { return runs_.options(with(test::small_language_model(), changes)); }
  std::string refused(const Settings& changes) {
    return error_of([&] { options(changes); });
  }
  /// The initial model.
  std::unique_ptr<LanguageModel> model(const RunOptions& options) {
    return std::make_unique<LanguageModel>(
        test::language_model_options(options), options.train, options.run,
        character_text(test::language_model_options(options).data, test::language_model_options(options).text,
                       [](const std::string&) {}));
  }

  test::SmallRuns runs_;
};

const Settings kNoDropout = {
    {"model.dropout.residual", 0.0}, {"model.dropout.attention", 0.0}, {"model.dropout.relu", 0.0}};
/// An initial model whose rows depend much on each other.
const Settings kLargeWeights = with(kNoDropout, {{"model.init", "normal"}, {"model.init_std", 0.5}});

// --- learning --------------------------------------------------------------------------------------------------------

TEST_F(LanguageModels, OfOneTextAreOverfitted) {
  for (const char* norm : {"layer_norm", "none"}) {
    const Ended ended = trained(with(kNoDropout, {{"model.norm.kind", norm},
                                                  {"model.d_model", 32},
                                                  {"model.d_ff", 64},
                                                  {"model.memory", 16},
                                                  {"model.init", "torch_default"},
                                                  {"train.schedule.lr", 2.5e-4},
                                                  {"train.epoch_updates", 2500},
                                                  {"train.max_epochs", 1}}));
    EXPECT_EQ(ended.code, kExitDone);
    EXPECT_EQ(ended.measured.at("fallback_ops"), 0);
    const std::vector<double> losses = ended.metric("train.loss");
    EXPECT_GT(losses.front(), 1.2);
    EXPECT_LT(losses.back(), 0.25) << norm;
  }
}

TEST_F(LanguageModels, LearnWhichLetterFollows) {
  test::write_text(runs_.folder() / "train.txt", tearless::test::mostly_alphabetical(2000, 4));
  const Ended ended = trained({{"train.batch.streams", 8},
                               {"model.init", "torch_default"},
                               {"train.schedule.lr", 0.01},
                               {"train.epoch_updates", 600},
                               {"run.log_updates", 600},
                               {"train.max_epochs", 2}});
  // A letter is the next one with probability 7/8 + 1/40: 0.67 bits a letter; a unigram model needs 2.32.
  EXPECT_LT(ended.scores.at("test.bpc"), 1.2);
  EXPECT_DOUBLE_EQ(ended.metric("train.bpc").back() * std::numbers::ln2, ended.metric("train.loss").back());
}

// With a learning rate of 0 the model stays the initial one, whatever its loss is.
TEST_F(LanguageModels, HaveTheBitsOfTheTrueSymbolsAlsoWhereTheLossIsSmoothed) {
  const auto of_initial = [&](double smoothing) {
    return trained(with(kLargeWeights, {{"train.schedule.lr", 0}, {"train.label_smoothing", smoothing}}));
  };
  const Ended plain = of_initial(0), smoothed = of_initial(0.2);
  for (const char* metric : {"train.bpc", "dev.bpc"}) {
    ASSERT_EQ(plain.metric(metric).size(), 4u);
    for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(smoothed.metric(metric)[i], plain.metric(metric)[i], 1e-6) << metric;
  }
  EXPECT_EQ(plain.metric("dev.bpc").front(), plain.metric("dev.bpc").back());
  EXPECT_GT(std::abs(smoothed.metric("train.loss").back() - plain.metric("train.loss").back()), 0.01);
}

TEST_F(LanguageModels, ScoreWhatTheirStatisticsSay) {
  const Ended ended = trained({});
  for (const std::string set : {"dev", "test"}) {
    const double bpc = test::recomputed(set + ".bpc", ended.outputs.at(set + ".stats"));
    EXPECT_EQ(ended.scores.at(set + ".bpc").get<double>(), bpc);
    EXPECT_NEAR(ended.scores.at(set + ".loss").get<double>(), bpc * std::numbers::ln2, 1e-12);
  }
}

TEST_F(LanguageModels, DoNotDependOnTheNumberOfThreads) {
  test::write_text(runs_.folder() / "train.txt", tearless::test::mostly_alphabetical(3000, 4));
  const Settings larger = {{"model.d_model", 32},
                           {"model.d_ff", 64},
                           {"train.batch.streams", 8},
                           {"train.batch.segment", 32},
                           {"model.memory", 40}};
  const Ended one = trained(with(larger, {{"run.threads", 1}})), two = trained(with(larger, {{"run.threads", 2}}));
  EXPECT_EQ(two.measured.at("threads"), 2);
  EXPECT_EQ(one.metrics, two.metrics);
  EXPECT_TRUE(one.same_results(two));
  at::set_num_threads(1);
}

// --- memory ----------------------------------------------------------------------------------------------------------

// With a memory of the whole stream it does not matter how the stream is cut.
TEST_F(LanguageModels, EvaluateAStreamAlikeInSegmentsOfAnyLength) {
  const RunOptions run = options(kLargeWeights);
  const auto task = model(run);
  const std::vector<int32_t> tokens = {0, 1, 2, 3, 4, 0, 1, 1, 2, 3, 4, 4, 0, 2, 1, 3};
  const auto bpc = [&](const SegmentEvaluation& e) { return task->evaluated("dev", tokens, e).numbers.at("dev.bpc"); };
  const double whole = bpc({.streams = 2, .segment = 7, .memory = 0});
  for (const int64_t segment : {1, 2, 3, 5}) {
    EXPECT_NEAR(bpc({.streams = 2, .segment = segment, .memory = 7}), whole, 3e-6) << segment;
    EXPECT_GT(std::abs(bpc({.streams = 2, .segment = segment, .memory = 0}) - whole), 3e-5) << segment;
  }
  // A window as long as the stream, and a clamp at the longest distance, change nothing; shorter ones do.
  EXPECT_NEAR(bpc({.streams = 2, .segment = 1, .memory = 7, .clamp = 6, .window = 7}), whole, 3e-6);
  EXPECT_GT(std::abs(bpc({.streams = 2, .segment = 7, .memory = 3, .window = 3}) - whole), 3e-5);
  EXPECT_GT(std::abs(bpc({.streams = 2, .segment = 7, .memory = 0, .clamp = 2}) - whole), 3e-5);
}

// Each row of the same length sees as many rows, whichever segment it is in.
TEST_F(LanguageModels, OfTheSameLengthDoNotDependOnTheCutOnceTheMemoryIsFull) {
  const RunOptions run = options(kLargeWeights);
  const auto task = model(run);
  std::vector<int32_t> tokens;
  for (int32_t i = 0; i < 61; ++i) tokens.push_back(i * i % 5);
  const auto bpc = [&](int64_t segment) {
    return task->evaluated("dev", tokens, {.streams = 1, .segment = segment, .memory = 8, .clamp = 3, .window = 8})
        .numbers.at("dev.bpc");
  };
  EXPECT_NEAR(bpc(3), bpc(8), 3e-6);
  EXPECT_NEAR(bpc(5), bpc(8), 3e-6);
}

TEST_F(LanguageModels, KeepTheMemoryOfTrainingWhileTheyEvaluate) {
  const RunOptions run = options({});
  const auto task = model(run);
  task->start_pass(0);
  for (uint32_t update = 1; update <= 3; ++update) {
    Tape tape(Tape::Kind::kRecording);
    const auto batch = task->ready(update - 1, update);
    task->loss({tape, update}, *batch);
  }
  std::vector<at::Tensor> before;
  for (const at::Tensor& rows : task->carried()) before.push_back(rows.clone());
  EXPECT_GT(before.front().abs().sum().item<double>(), 0);
  task->evaluate();
  const std::vector<at::Tensor> after = task->carried();
  ASSERT_EQ(after.size(), before.size());
  for (size_t i = 0; i < after.size(); ++i) EXPECT_TRUE(after[i].equal(before[i]));
}

// --- the same model, evaluated otherwise -----------------------------------------------------------------------------

TEST_F(LanguageModels, AreEvaluatedOnceMoreWithOtherSegmentsAndMemory) {
  const Settings settings = test::small_language_model();
  const RunDirectory run = runs_.made(runs_.asked(settings, {}));
  ASSERT_EQ(attempt_run(run.root()), kExitDone);
  const json scores = json::parse(test::read_text(run.scores()));
  const auto again = [&](const Settings& changes) {
    const RunDirectory derived =
        runs_.made(runs_.asked(settings, {with({{"derived.kind", "evaluate"}, {"derived.name", "again"}}, changes)}));
    EXPECT_EQ(attempt_run(derived.root()), kExitDone);
    return json::parse(test::read_text(derived.scores()));
  };
  EXPECT_EQ(again({}).at("again.test.bpc"), scores.at("test.bpc"));
  EXPECT_EQ(again({}).at("again.test.loss"), scores.at("test.loss"));
  const json dev = again({{"derived.set", "dev"}});
  EXPECT_EQ(dev.at("again.dev.bpc"), scores.at("dev.bpc"));
  EXPECT_FALSE(dev.contains("again.test.bpc"));

  std::set<double> each = {scores.at("test.bpc").get<double>()};
  for (const Settings& changes :
       {Settings{{"derived.segment", 7}}, Settings{{"derived.memory", 2}}, Settings{{"derived.streams", 2}},
        Settings{{"derived.clamp", 2}}, Settings{{"derived.window", 3}}}) {
    EXPECT_TRUE(each.insert(again(changes).at("again.test.bpc").get<double>()).second) << json(changes);
  }
  // As a run that was trained with these settings has it.
  const Settings other = {
      {"evaluate.segment", 5}, {"evaluate.memory", 12}, {"evaluate.clamp", 6}, {"evaluate.window", 12}};
  EXPECT_EQ(again({{"derived.segment", 5}, {"derived.memory", 12}, {"derived.clamp", 6}, {"derived.window", 12}})
                .at("again.test.bpc"),
            trained(with(other, {{"train.select.by", "loss"}, {"train.select.kind", "last"}})).scores.at("test.bpc"));
}

TEST_F(LanguageModels, AloneAreEvaluatedSoAndTheirTextsMustBeLongEnough) {
  const auto error = [&](const Settings& settings, const Settings& derived) {
    return runs_.asked(settings, {with({{"derived.kind", "evaluate"}, {"derived.name", "again"}}, derived)})
        .value("error", "");
  };
  test::write_treebank(runs_.folder());
  EXPECT_THAT(error(test::small_parser(), {}),
              HasSubstr("derived.kind = \"evaluate\" is for runs of task = \"language_model\", not of \"parse\""));
  EXPECT_EQ(error(test::small_language_model(), {}), "");

  const RunDirectory run = runs_.made(runs_.asked(test::small_language_model(), {}));
  ASSERT_EQ(attempt_run(run.root()), kExitDone);
  const RunDirectory derived =
      runs_.made(runs_.asked(test::small_language_model(),
                             {{{"derived.kind", "evaluate"}, {"derived.name", "again"}, {"derived.memory", 50}}}));
  EXPECT_THAT(error_of([&] { attempt_run(derived.root()); }), HasSubstr("evaluate.memory = 50"));
}

TEST_F(LanguageModels, HaveTheirGradientsAnalysed) {
  const RunDirectory run = runs_.made(runs_.asked(with(test::small_language_model(), {{"train.max_updates", 1}}), {}));
  ASSERT_EQ(attempt_run(run.root()), kExitDone);
  const RunDirectory derived =
      runs_.made(runs_.asked(with(test::small_language_model(), {{"train.max_updates", 1}}),
                             {{{"derived.kind", "analyse"}, {"derived.name", "seen"}, {"derived.at", "start"}}}));
  EXPECT_EQ(attempt_run(derived.root()), kExitDone);
  const json scores = json::parse(test::read_text(derived.scores()));
  EXPECT_GT(scores.at("seen.grad_norm.decoder.2").get<double>(), 0);
  EXPECT_GT(scores.at("seen.beta_ln.decoder.1.relative_attention").get<double>(), 0);
  EXPECT_TRUE(scores.contains("seen.residual_variance.decoder.ffn"));
}

// --- data ------------------------------------------------------------------------------------------------------------

TEST_F(LanguageModels, HaveTheSizesThatTheFilesGive) {
  const auto parameters = [&](const Settings& changes) {
    return check_run(options(changes)).at("parameters").get<int64_t>();
  };
  const int64_t layer = 5 * 64 + 2 * 8 * 12 + 12 + 8 + 2 * 2 * 8;
  EXPECT_EQ(parameters({}), 5 * 8 + 2 * 8 + 5 + 2 * layer);
  EXPECT_EQ(parameters({{"text.newlines", true}}), parameters({}) + 9);
  EXPECT_EQ(parameters({{"model.output_bias", false}}), parameters({}) - 5);
  EXPECT_EQ(parameters({{"model.memory", 3}}), parameters({}));
  // Of the published model: docs/spec/knobs.md §13.
  TransformerXlOptions published;
  EXPECT_EQ(parameter_count(published, 204), 41'055'436);
}

// --- what is refused -------------------------------------------------------------------------------------------------

TEST_F(LanguageModels, WithSettingsThatContradictEachOtherAreRefused) {
  EXPECT_EQ(refused({{"train.accumulate", 2}}),
            "settings: train.accumulate = 2: the memory moves on with each update, so an update has one batch; use 1");
  EXPECT_THAT(refused({{"model.norm.scope", "decoder"}, {"model.norm.kind", "rms_norm"}}),
              HasSubstr("the language model has one stack"));
  EXPECT_THAT(refused({{"model.d_model", 9}, {"model.heads", 3}}), HasSubstr("must be even"));
  EXPECT_THAT(refused({{"model.dropout.word", 0.1}}), HasSubstr("model.dropout.word is a setting of task"));
}

TEST_F(LanguageModels, WithTextsTooShortForTheirSegmentsOrMemoriesAreRefusedByCheckAndByTraining) {
  const auto error = [&](const Settings& changes) {
    const RunOptions run = options(changes);
    const std::string by_check = error_of([&] { check_run(run); });
    EXPECT_EQ(by_check, error_of([&] { test::task_of(run); }));
    return by_check;
  };
  EXPECT_EQ(error({}), "");
  EXPECT_THAT(error({{"train.batch.segment", 100}}), HasSubstr("train.txt"));
  EXPECT_THAT(error({{"train.batch.segment", 100}}), HasSubstr("train.batch.segment"));
  EXPECT_THAT(error({{"model.memory", 500}}), HasSubstr("model.memory"));
  EXPECT_THAT(error({{"evaluate.memory", 50}}), HasSubstr("evaluate.memory"));
  EXPECT_THAT(error({{"evaluate.streams", 60}}), HasSubstr("dev.txt"));
  test::write_text(runs_.folder() / "dev.txt", "abcdz" + tearless::test::mostly_alphabetical(70, 3));
  EXPECT_THAT(error({}), HasSubstr("dev.txt:1"));
}

}  // namespace
}  // namespace tearless::engine::language_model_test
