// Whole runs of the task digits: what is learnt, refused, and read of the data.
#include "engine/task/digits.h"

#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "engine/run/check.h"
#include "tests/engine/run/recomputed.h"
#include "tests/engine/run/small_digits.h"
#include "tests/engine/train/in_memory.h"
#include "tests/support/error_of.h"

namespace tearless::engine::digits_test {
namespace {

using tearless::test::error_of;
namespace fs = std::filesystem;
using nlohmann::json;
using test::Ended;
using test::Settings;
using test::with;
using testing::HasSubstr;

int64_t lines_of(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

Settings without_dropout(const Settings& settings) {
  return with(settings, {{"model.dropout.conv", 0.0}, {"model.dropout.hidden", 0.0}});
}

class DigitRuns : private test::InMemory, public testing::Test {
 protected:
  DigitRuns() { test::write_digits(runs_.folder()); }

  Ended trained(const Settings& changes) { return runs_.train(with(test::small_digits(), changes)); }

  test::SmallRuns runs_;
};

// --- learning --------------------------------------------------------------------------------------------------------

TEST_F(DigitRuns, OfOneBatchAreOverfitted) {
  for (const char* arch : {"pytorch_example", "conv_conv_fc"}) {
    for (const char* sites : {"activations", "inputs"}) {
      SCOPED_TRACE(std::string(arch) + ", " + sites);
      const Ended ended = runs_.train(with(without_dropout(test::small_digits()), {{"model.arch", arch},
                                                                                   {"model.norm_sites", sites},
                                                                                   {"train.label_smoothing", 0.0},
                                                                                   {"train.batch.images", 24},
                                                                                   {"train.epoch_updates", 300},
                                                                                   {"train.schedule.lr", 0.02},
                                                                                   {"train.max_epochs", 1}}));
      const std::vector<double> losses = ended.metric("train.loss");
      EXPECT_GT(losses.front(), 1.5);
      EXPECT_LT(losses.back(), 0.01);
    }
  }
}

TEST_F(DigitRuns, LearnWhereABarIs) {
  test::write_bars(runs_.folder(), "train", 450, 3);
  test::write_bars(runs_.folder(), "test", 230, 4);  // more than one batch of an evaluation
  const Ended ended = trained({{"data.dev_first", 50},
                               {"model.conv1_channels", 6},
                               {"model.conv2_channels", 10},
                               {"model.hidden", 30},
                               {"model.norm.kind", "scale_norm"},
                               {"train.batch.images", 32},
                               {"train.epoch_updates", 13},
                               {"train.max_epochs", 8}});
  EXPECT_EQ(ended.code, kExitDone);
  EXPECT_EQ(ended.measured.at("fallback_ops"), 0);
  EXPECT_GE(ended.scores.at("test.accuracy"), 97);
  EXPECT_LT(ended.scores.at("test.loss"), 0.4);
  EXPECT_EQ(lines_of(ended.outputs.at("dev.classes")), 50);
  EXPECT_EQ(lines_of(ended.outputs.at("test.classes")), 230);
  EXPECT_EQ(ended.measured.at("decoded_sentences"), 230);
  for (const char* g : {"g.conv1", "g.conv2", "g.fc1"}) EXPECT_TRUE(ended.scores.contains(g)) << g;

  // The scores are those of the classes that were written.
  const RunOptions options = runs_.options(with(test::small_digits(), {{"data.dev_first", 50}}));
  const Digits digits = read_digits(test::digits_options(options).data);
  int right = 0;
  for (size_t i = 0; i < 230; ++i) right += ended.outputs.at("test.classes").at(2 * i) - '0' == digits.test.labels[i];
  EXPECT_DOUBLE_EQ(ended.scores.at("test.accuracy"), 100.0 * right / 230);
  for (const std::string set : {"dev", "test"}) {
    EXPECT_EQ(ended.scores.at(set + ".accuracy").get<double>(),
              test::recomputed(set + ".accuracy", ended.outputs.at(set + ".stats")));
  }
}

// --- threads ---------------------------------------------------------------------------------------------------------

TEST_F(DigitRuns, DoNotDependOnTheNumberOfThreads) {
  test::write_bars(runs_.folder(), "train", 150, 5);
  const Settings larger = {{"model.conv1_channels", 20},
                           {"model.conv2_channels", 50},
                           {"model.hidden", 100},
                           {"train.batch.images", 64},
                           {"train.max_epochs", 1}};
  const Ended one = trained(with(larger, {{"run.threads", 1}})), two = trained(with(larger, {{"run.threads", 2}}));
  EXPECT_EQ(two.measured.at("threads"), 2);
  EXPECT_EQ(one.metrics, two.metrics);
  EXPECT_TRUE(one.same_results(two));
  at::set_num_threads(1);
}

// --- data ------------------------------------------------------------------------------------------------------------

// That each of these settings makes another run: every_digits_setting_test.cc.
TEST_F(DigitRuns, HaveTheSizesThatTheFilesGive) {
  const auto answer = [&](const Settings& changes) {
    return check_run(runs_.options(with(test::small_digits(), changes)));
  };
  // (9 + 1) · 3, (27 + 1) · 5, (5 + 1) · 7, (7 + 1) · 10; the norms: 2 · (10 · 10 · 3 + 3 · 3 · 5 + 7)
  EXPECT_EQ(answer({}).at("parameters"), 30 + 140 + 42 + 80 + 2 * (300 + 45 + 7));
  EXPECT_EQ(answer({{"model.norm_sites", "linear"}}).at("parameters"), 292 + 2 * 7);
  EXPECT_EQ(answer({{"model.norm_sites", "inputs"}}).at("parameters"), 292 + 2 * (144 + 75 + 5 + 7));
  EXPECT_EQ(answer({{"model.norm.kind", "scale_norm"}}).at("parameters"), 292 + 3);
  EXPECT_EQ(answer({{"model.norm.kind", "none"}}).at("parameters"), 292);
  EXPECT_EQ(answer({{"model.arch", "conv_conv_fc"}, {"model.dropout.hidden", 0.0}, {"model.norm.kind", "none"}})
                .at("parameters"),
            30 + 140 + 60);
  EXPECT_GT(answer({}).at("memory_bytes"), 16 * 996);
}

TEST_F(DigitRuns, AreOneWithAndWithoutNormSitesWhereThereIsNoNorm) {
  const auto canonical = [&](const char* kind, const char* sites) {
    return runs_.canonical(with(test::small_digits(), {{"model.norm.kind", kind}, {"model.norm_sites", sites}}));
  };
  EXPECT_EQ(canonical("none", "linear"), canonical("none", "inputs"));
  EXPECT_NE(canonical("rms_norm", "linear"), canonical("rms_norm", "inputs"));
}

// --- what is refused -------------------------------------------------------------------------------------------------

TEST_F(DigitRuns, WithSettingsThatContradictEachOtherAreRefused) {
  const auto refused = [&](const Settings& changes) {
    return error_of([&] { runs_.options(with(test::small_digits(), changes)); });
  };
  EXPECT_EQ(refused({{"model.arch", "conv_conv_fc"}, {"model.norm_sites", "linear"}, {"model.dropout.hidden", 0.0}}),
            "settings: model.norm_sites = \"linear\" leaves no norm with model.arch = \"conv_conv_fc\", whose only "
            "linear layer gives the logits; use \"activations\" or \"inputs\"");
  EXPECT_EQ(refused({{"model.arch", "conv_conv_fc"}}),
            "settings: model.dropout.hidden = 0.1 needs model.arch = \"pytorch_example\": \"conv_conv_fc\" has no "
            "hidden linear layer");
  EXPECT_THAT(refused({{"model.norm.scope", "encoder"}}),
              HasSubstr("model.norm.scope is a setting of task = \"translate\""));
  for (const char* kind : {"invsqrt", "valdecay"}) {
    EXPECT_EQ(refused({{"train.schedule.kind", kind}}),
              "settings: train.schedule.kind: the learning rate of this schedule depends on the model width, which the "
              "network of digits does not have; set train.schedule.peak_lr, or use \"nowarmup\" with "
              "train.schedule.lr");
    EXPECT_EQ(refused({{"train.schedule.kind", kind}, {"train.schedule.peak_lr", 0.01}}), "");
  }
  EXPECT_THAT(refused({{"model.heads", 4}}), HasSubstr("model.heads is a setting of task = \"translate\", but the task "
                                                       "is \"digits\""));
  EXPECT_THAT(error_of([&] {
                runs_.options({{"model.norm_sites", "linear"}});
              }),
              HasSubstr("model.norm_sites is a setting of task = \"digits\", but the task is \"translate\""));
  EXPECT_THAT(refused({{"model.arch", "lenet"}}), HasSubstr("pytorch_example"));
}

TEST_F(DigitRuns, WithFilesThatAreNoDigitsAreRefusedByCheckAndByTraining) {
  const auto refused = [&](const Settings& changes) {
    const Settings settings = with(test::small_digits(), changes);
    const std::string by_check = error_of([&] { check_run(runs_.options(settings)); });
    const RunOptions options = runs_.options(settings);
    const std::string by_training = error_of([&] { test::task_of(options); });
    EXPECT_EQ(by_check, by_training);
    return by_check;
  };
  const std::string folder = runs_.folder().string() + "/";
  EXPECT_EQ(refused({}), "");
  EXPECT_EQ(refused({{"model.kernel", 4}}),
            "images of 12 × 12 pixels are too small for model.kernel = 4, which needs 13 × 13");
  EXPECT_EQ(refused({{"data.test_images", "test.labels"}}),
            folder +
                "test.labels: the magic number at byte 0 is 0x00000801; an IDX file of images begins with "
                "0x00000803");

  fs::remove(runs_.folder() / "train.images");
  const RunOptions missing = runs_.options(test::small_digits());
  EXPECT_EQ(missing.task->data_files().missing(), "the data set bars lacks the file " + folder + "train.images");
  EXPECT_EQ(error_of([&] { test::task_of(missing); }), missing.task->data_files().missing());
}

TEST_F(DigitRuns, WithOtherBytesThanThePlannedOnesAreRefused) {
  const RunOptions options = runs_.options(test::small_digits());
  test::write_bars(runs_.folder(), "test", 11, 9);
  const std::string folder = runs_.folder().string() + "/";
  EXPECT_EQ(error_of([&] { test::task_of(options); }),
            folder + "test.images and " + folder +
                "test.labels are not the files that this run was planned with; restore those, or plan a new run");
}

}  // namespace
}  // namespace tearless::engine::digits_test
