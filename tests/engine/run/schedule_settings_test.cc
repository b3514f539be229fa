// Settings of schedules and optimisers that are refused, and the defaults that a task may bring.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/run_directory.h"
#include "engine/run/run_options.h"
#include "engine/task/digits.h"
#include "tests/support/error_of.h"

namespace tearless::engine::schedule_settings_test {
namespace {

using testing::HasSubstr;
using Settings = std::map<std::string, nlohmann::json>;

/// What is said of a digits run with these settings; "": nothing.
std::string refused(const Settings& settings) {
  WrittenSettings written;
  written.name = "run.toml";
  written.values = settings;
  written.values["task"] = "digits";
  return tearless::test::error_of([&] { read_run_options(written, ".", {}); });
}

TEST(ScheduleSettings, WithoutAPeakAreRefusedWhereTheKindHasNoOther) {
  for (const char* kind : {"inverse_sqrt", "cosine"}) {
    EXPECT_EQ(refused({{"train.schedule.kind", kind}}),
              fmt::format("run.toml: train.schedule.kind = \"{}\" has no highest learning rate of its own; set "
                          "train.schedule.peak_lr",
                          kind));
    EXPECT_EQ(refused({{"train.schedule.kind", kind}, {"train.schedule.peak_lr", 1e-3}}), "");
  }
}

/// A language model with these settings; its default is a cosine with a peak.
RunOptions language_model(Settings settings) {
  WrittenSettings written;
  written.name = "run.toml";
  written.values = std::move(settings);
  written.values["task"] = "language_model";
  return read_run_options(written, ".", {});
}

TEST(ScheduleSettings, ThatAreWrittenAreNotOutrankedByTheDefaultOfTheTask) {
  const auto first = [](const Settings& settings, int64_t update = 1) {
    const RunOptions options = language_model(settings);
    return Schedule(options.train.schedule, /*width=*/512, options.train.update_limit()).learning_rate(update);
  };
  EXPECT_EQ(first({}), 2.5e-4);
  EXPECT_EQ(first({{"train.schedule.kind", "nowarmup"}}), 2.5e-4);
  EXPECT_EQ(first({{"train.schedule.kind", "nowarmup"}, {"train.schedule.lr", 1e-5}}), 1e-5);
  EXPECT_EQ(first({{"train.schedule.kind", "nowarmup"}, {"train.schedule.lr", 0}}), 0);
  EXPECT_EQ(first({{"train.schedule.kind", "nowarmup"}, {"train.schedule.lr", 1e-5}, {"train.schedule.peak_lr", 2e-3}}),
            2e-3);
  for (const char* kind : {"invsqrt", "valdecay"}) {
    const Settings ramp = {{"train.schedule.kind", kind}, {"train.schedule.warmup_updates", 4}};
    Settings scaled = ramp, other = ramp;
    scaled["train.schedule.scale"] = 2;
    other["train.schedule.lr"] = 1e-5;
    EXPECT_DOUBLE_EQ(first(scaled, 2), 2 / std::sqrt(512.0) * 2 * std::pow(4, -1.5)) << kind;
    EXPECT_DOUBLE_EQ(first(other, 2), 2.5e-4 / 2) << kind << " has no lr, which is what is told";
  }
  for (const char* kind : {"cosine", "inverse_sqrt"}) {
    for (const char* key : {"train.schedule.lr", "train.schedule.scale"}) {
      EXPECT_EQ(tearless::test::error_of([&] {
                  language_model({{"train.schedule.kind", kind}, {key, 1e-5}});
                }),
                fmt::format("run.toml: train.schedule.kind = \"{}\" has no highest learning rate of its own; set "
                            "train.schedule.peak_lr",
                            kind));
    }
  }
}

// The canonical text of such a run has no peak, and must not get the default's when it is read.
TEST(ScheduleSettings, WithoutTheDefaultPeakAreReadBackSo) {
  for (const Settings& settings : {Settings{{"train.schedule.kind", "nowarmup"}, {"train.schedule.lr", 3e-4}},
                                   Settings{{"train.schedule.kind", "invsqrt"}, {"train.schedule.scale", 1}},
                                   Settings{{"train.schedule.kind", "nowarmup"}}, Settings{}}) {
    RunOptions options = language_model(settings);
    const std::string text = canonical_text(options);
    const bool is_outranked = settings.size() > 1;
    EXPECT_EQ(text.find("peak_lr") == text.npos, is_outranked) << text;
    RunOptions again = language_model(parse_toml_settings(text, "run.toml").values);
    EXPECT_EQ(canonical_text(again), text);
  }
}

TEST(OptimiserSettings, ThatDivideByZeroAreRefused) {
  EXPECT_EQ(refused({{"train.schedule.kind", "nowarmup"}, {"train.optimiser.adagrad.eps", 0}}),
            "run.toml: train.optimiser.adagrad.eps = 0 is out of range; it must be at least 1e-30");
  EXPECT_EQ(refused({{"train.schedule.kind", "nowarmup"}, {"train.adam.eps", 0.0}}),
            "run.toml: train.adam.eps = 0.0 is out of range; it must be between 1e-30 and 1");
}

TEST(ScheduleSettings, OfACosineThatHasNoUpdateToFallInAreRefused) {
  const Settings cosine = {{"train.schedule.kind", "cosine"},
                           {"train.schedule.peak_lr", 1e-3},
                           {"train.schedule.warmup_updates", 500},
                           {"train.epoch_updates", 100},
                           {"train.max_epochs", 5}};
  EXPECT_EQ(refused(cosine),
            "run.toml: train.schedule.kind = \"cosine\" falls from the end of the warm-up to the last update, but the "
            "warm-up has 500 updates and the training at most 500; lower train.schedule.warmup_updates, or raise "
            "train.max_epochs or train.max_updates");
  Settings shorter = cosine;
  shorter["train.schedule.warmup_updates"] = 499;
  EXPECT_EQ(refused(shorter), "");
  shorter["train.schedule.cosine.floor"] = 0.01;
  EXPECT_EQ(refused(shorter),
            "run.toml: train.schedule.cosine.floor = 0.01 is above train.schedule.peak_lr = 0.001; it must not be");
}

TEST(ScheduleSettings, OfASmokeRunLeaveACosineAnEnd) {
  WrittenSettings written;
  written.values = {{"task", "digits"}, {"train.schedule.kind", "cosine"}, {"train.schedule.peak_lr", 1e-3}};
  const RunOptions short_run = smoke(read_run_options(written, ".", {}));
  EXPECT_EQ(tearless::test::error_of([&] { check_consistent(short_run.train); }), "");
}

TEST(SelectSettings, OfASmokeRunTakeItsOneCheckpoint) {
  WrittenSettings written;
  written.values = {{"train.select.kind", "last"}, {"train.select.count", 5}, {"train.epoch_updates", 100}};
  const RunOptions short_run = smoke(read_run_options(written, ".", {}));
  EXPECT_EQ(tearless::test::error_of([&] { check_consistent(short_run.train); }), "");
}

TEST(SelectSettings, OfMoreCheckpointsThanTheTrainingCanHaveAreRefused) {
  const Settings training = {{"train.schedule.kind", "nowarmup"},
                             {"train.epoch_updates", 100},
                             {"train.max_epochs", 5},
                             {"train.max_updates", 350}};
  const auto refusal = [&](const char* kind, int64_t count) {
    Settings settings = training;
    settings["train.select.kind"] = kind;
    settings["train.select.count"] = count;
    return refused(settings);
  };
  EXPECT_EQ(refusal("last", 5),
            "run.toml: train.select.count = 5, but the training has at most 4 evaluations; lower it, or raise "
            "train.max_epochs or train.max_updates");
  EXPECT_EQ(refusal("best", 4), "");
  EXPECT_EQ(refusal("last_epochs", 3), "");
  EXPECT_THAT(refusal("last_epochs", 4),
              HasSubstr("train.select.count = 4, but the training has at most 3 whole epochs;"));
}

TEST(KindSettings, ThatNoKindHasAreRefusedWithTheNearest) {
  EXPECT_THAT(refused({{"train.schedule.kind", "cosin"}}), HasSubstr("cosine"));
  EXPECT_THAT(refused({{"train.optimiser.kind", "fairseq_adm"}}), HasSubstr("fairseq_adam"));
  EXPECT_THAT(refused({{"train.schedule.invsqrt.init_lr", 1e-7}}), HasSubstr("unknown setting"));
  EXPECT_THAT(refused({{"train.optimiser.adam.momentum", 0.9}}), HasSubstr("train.optimiser.sgd.momentum"));
}

/// digits with another schedule where none is written.
class WithItsOwnSchedule final : public KindOf<TaskKind, WithItsOwnSchedule> {
 public:
  void describe_own(SettingsVisitor& v) override { digits_->describe_own(v); }
  void check_consistent(const TrainOptions& train) const override { digits_->check_consistent(train); }
  DataFiles data_files() override { return digits_->data_files(); }
  TaskNumbers numbers() const override { return digits_->numbers(); }
  DeclaredParameters model_parameters() const override { return digits_->model_parameters(); }
  std::optional<Size> size(const TrainOptions& train) const override { return digits_->size(train); }
  int64_t pass_batches(const TrainOptions& train) const override { return digits_->pass_batches(train); }
  std::string prepare_data(const TrainOptions& train, const Say& say) const override {
    return digits_->prepare_data(train, say);
  }
  Counts data_counts(const TrainOptions& train, const Say& say) const override {
    return digits_->data_counts(train, say);
  }
  std::vector<std::string> data_count_names() const override { return digits_->data_count_names(); }
  std::unique_ptr<Task> make(const TrainOptions& train, const ExecutionOptions& execution,
                             const Say& say) const override {
    return digits_->make(train, execution, say);
  }
  MadeUpTask made_up_task(const TrainOptions& train, const ExecutionOptions& execution, int64_t vocab_size,
                          const std::filesystem::path& sizes) const override {
    return digits_->made_up_task(train, execution, vocab_size, sizes);
  }
  void set_defaults(TrainOptions& train) const override {
    train.schedule.kind = "inverse_sqrt";
    train.optimiser.kind = "fairseq_adam";
  }

 private:
  std::shared_ptr<TaskKind> digits_ = make_task_kind("digits");
};

TEST(TaskDefaults, AreThoseOfRunsThatWriteNone) {
  RunOptions options(std::make_unique<WithItsOwnSchedule>());
  EXPECT_EQ(options.train.schedule.kind, "inverse_sqrt");
  EXPECT_THAT(
      canonical_settings(Identity::kResult, [&](SettingsVisitor& v) { describe(v, options.train, false); }),
      testing::AllOf(HasSubstr("schedule.kind = \"inverse_sqrt\""), HasSubstr("optimiser.kind = \"fairseq_adam\"")));
}

}  // namespace
}  // namespace tearless::engine::schedule_settings_test
