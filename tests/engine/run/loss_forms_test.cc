// The forms of the loss in a run: the perplexities that it logs, what it refuses, and what an update minimises.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "engine/train/updater.h"
#include "tests/engine/run/every_setting.h"
#include "tests/support/error_of.h"

namespace tearless::engine::loss_forms_test {
namespace {

using test::Settings;
using test::with;
using testing::HasSubstr;

class LossForms : public testing::Test {
 protected:
  LossForms() {
    runs_.write("train", {{"a b c", "x y"}, {"b c a c", "y z x x y"}, {"c", "z"}, {"a a b", "x x y z"}});
    runs_.write("dev", {{"b a", "y x"}, {"c c c", "z z"}});
    runs_.write("test", {{"a", "x"}});
  }
  static Settings form(const std::string& name) {
    return with(small(), {{"train.label_smoothing_form", name}, {"model.mask_target_vocabulary", false}});
  }
  static Settings small() {
    return with(with(test::corpus_settings(), test::tiny_layers_and_training()), {{"text.kind", "segmented"},
                                                                                  {"model.encoder_layers", 1},
                                                                                  {"model.decoder_layers", 1},
                                                                                  {"model.dropout.residual", 0},
                                                                                  {"model.dropout.attention", 0},
                                                                                  {"model.dropout.relu", 0},
                                                                                  {"model.dropout.word", 0},
                                                                                  {"train.label_smoothing", 0.3}});
  }

  test::SmallRuns runs_;
};

// All from the same parameters, those at the start. In nats a token: n is the mean of -log p(label), a that of
// Σ_v -log p(v) over the whole vocabulary.
TEST_F(LossForms, LogThePerplexityOfTheFormAndTheTrueOne) {
  const auto dev = [&](const std::string& name) {
    const RunOptions options = runs_.options(form(name));
    return test::task_of(options)->evaluate();
  };
  const RunOptions options = runs_.options(form("fairseq"));
  const Translate task = test::translate_task(options);
  const auto size = static_cast<double>(task.prepared().vocabulary.size());
  const NamedNumbers fairseq = dev("fairseq"), zero = dev("zero"), joey = dev("joey"), twt = dev("twt");
  for (const NamedNumbers& of : {zero, joey}) EXPECT_NEAR(of.at("dev.ppl"), fairseq.at("dev.ppl"), 1e-6);
  EXPECT_LT(twt.at("dev.ppl"), fairseq.at("dev.ppl") - 0.1) << "no mass is lost to PAD and BOS";

  const double n = std::log(fairseq.at("dev.ppl")), f = std::log(fairseq.at("dev.ppl_smoothed"));
  const double a = (f - 0.7 * n) * size / 0.3;
  const double each = 0.3 / (size - 1);
  const double entropy = -0.7 * std::log(0.7) - 0.3 * std::log(each);
  EXPECT_NEAR(std::log(zero.at("dev.ppl_smoothed")), (0.7 - each) * n + each * a - entropy, 1e-5);
  // As zero, but for PAD: between all of what the others have if PAD were likely, and if it were unlikely.
  const double of_joey = std::log(joey.at("dev.ppl_smoothed"));
  EXPECT_GT(of_joey, 0);
  EXPECT_GT(std::abs(of_joey - std::log(zero.at("dev.ppl_smoothed"))), 1e-4);
}

TEST_F(LossForms, OverTheWholeVocabularyAreRefusedWithATargetMask) {
  for (const char* name : {"fairseq", "zero", "joey"}) {
    EXPECT_THAT(tearless::test::error_of([&] {
                  runs_.options(with(form(name), {{"model.mask_target_vocabulary", true}}));
                }),
                HasSubstr("settings: train.label_smoothing_form spreads mass over the whole vocabulary, but "
                          "model.mask_target_vocabulary = true leaves no probability to a part of it; set "
                          "model.mask_target_vocabulary = false, or train.label_smoothing_form = \"twt\""));
  }
  runs_.options(with(form("zero"), {{"model.mask_target_vocabulary", true}, {"train.label_smoothing", 0.0}}));
}

TEST_F(LossForms, AreOfTranslationAlone) {
  const auto error = [&](const char* key, const char* value) {
    return tearless::test::error_of([&] {
      runs_.options(with(test::labelled_settings(), {{"text.min_count", 1}, {key, value}}));
    });
  };
  EXPECT_THAT(error("train.label_smoothing_form", "zero"),
              HasSubstr("train.label_smoothing_form = \"zero\" is for task = \"translate\"; here leave it at \"twt\""));
  EXPECT_THAT(error("train.loss_mean", "sentences"),
              HasSubstr("train.loss_mean = \"sentences\" is for task = \"translate\"; here leave it at \"tokens\""));
}

// The gradient of several batches, accumulated, is that of one with all of their sentences.
TEST_F(LossForms, TheMeanOverSentencesIsThatOfAllBatchesOfAnUpdate) {
  const auto norm = [&](const char* mean, const std::vector<std::vector<int32_t>>& batches) {
    const RunOptions options = runs_.options(
        with(small(), {{"train.loss_mean", mean}, {"train.accumulate", static_cast<int64_t>(batches.size())}}));
    Translate task = test::translate_task(options);
    const int64_t count = task.train_on(batches);
    OptimiserState state(options.train.optimiser.chosen(), task.parameters().values());
    const auto updater = make_updater(task, options.train, options.run, state);
    for (int64_t i = 0; i + 1 < count; ++i) updater->add(1, i);
    updater->start(1, count - 1, 0.1);
    return updater->collect().at(0).gradient_norm;
  };
  const double whole = norm("sentences", {{0, 1, 2}});
  EXPECT_NEAR(norm("sentences", {{0}, {1, 2}}), whole, 1e-5 * whole);
  EXPECT_GT(std::abs(norm("tokens", {{0, 1, 2}}) - whole), 1e-2 * whole);
}

// A label is outside the target mask if it is in the joint vocabulary for its source side alone.
TEST_F(LossForms, LabelsOutsideTheTargetMaskAreCountedAndSaid) {
  runs_.write("train", {{"a b c", "x y"}, {"b c a x", "y z"}});
  runs_.write("dev", {{"a", "a x"}, {"b", "b y c"}});
  runs_.write("test", {{"a", "never seen"}, {"b", "y b"}});
  const auto said = [&](bool mask) {
    std::string lines;
    const RunOptions options = runs_.options(with(small(), {{"model.mask_target_vocabulary", mask}}));
    const auto say = [&](const std::string& line) { lines += line + "\n"; };
    options.task->prepare_data(options.train, say);
    options.task->make(options.train, options.run, say);
    return lines;
  };
  const std::string sentence = "labels outside the target vocabulary, which count as UNK: 0 training, 3 dev, 1 test\n";
  EXPECT_THAT(said(true), testing::AllOf(HasSubstr(sentence), testing::EndsWith(sentence)))
      << "by prepare and by the attempt";
  EXPECT_THAT(said(false), Not(HasSubstr("outside")));

  const test::Ended run = runs_.train(small());
  EXPECT_EQ(run.scores.at("dev.labels_outside"), 3);
  EXPECT_EQ(run.scores.at("test.labels_outside"), 1);
  EXPECT_FALSE(
      runs_.train(with(small(), {{"model.mask_target_vocabulary", false}})).scores.contains("dev.labels_outside"));
}

}  // namespace
}  // namespace tearless::engine::loss_forms_test
