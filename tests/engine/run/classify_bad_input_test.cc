// What the engine says to settings and data of classify that it refuses, and to data that are missing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "engine/run/check.h"
#include "tests/engine/run/small_runs.h"
#include "tests/engine/train/in_memory.h"
#include "tests/support/error_of.h"

namespace tearless::engine::classify_bad_input_test {
namespace {

using nlohmann::json;
using test::Labelled;
using test::Settings;
using test::with;
using testing::HasSubstr;

class ClassifyBadInput : private test::InMemory, public testing::Test {
 protected:
  ClassifyBadInput() {
    for (const char* set : {"train", "dev", "test"}) runs_.write_labelled(set, {{"a good film", 1}, {"a bad film", 0}});
  }

  /// The sentence that refuses this file of settings; "" if it is accepted.
  std::string refused(const std::string& toml) const {
    return error_of([&] { read_run_options(parse_toml_settings(toml, "run.toml"), runs_.folder(), {}); });
  }
  /// The sentence that refuses `settings` when the harness asks, without the folder's name.
  std::string refused_by_check(const Settings& settings) const {
    const json line = {{"settings", settings}, {"folder", runs_.folder().string()}};
    return without_folder(CheckBatch().answer(line.dump()).value("error", ""));
  }
  template <class Action>
  std::string error_of(Action&& action) const {
    return without_folder(tearless::test::error_of(action));
  }
  std::string without_folder(std::string text) const {
    const std::string name = runs_.folder().string() + "/";
    for (size_t at = 0; (at = text.find(name, at)) != std::string::npos;) text.erase(at, name.size());
    return text;
  }

  test::SmallRuns runs_;
};

TEST_F(ClassifyBadInput, AnUnknownTaskIsToldTheLegalOnes) {
  EXPECT_THAT(refused("\ntask = \"clasify\""),
              HasSubstr("run.toml:2: task = \"clasify\" is not known (did you mean \"classify\"?); it must be one of: "
                        "translate, classify"));
  EXPECT_THAT(refused("task = \"clasify\"\n[model]\nlayers = 2\nnosuch = 1\n"), HasSubstr("task = \"clasify\""))
      << "and no other mistake before it";
  EXPECT_EQ(refused("task = 3"), "run.toml:1: task = 3 must be text in quotes");
}

TEST_F(ClassifyBadInput, ASettingOfAnotherTaskNamesBothTasks) {
  EXPECT_EQ(refused("task = \"classify\"\n[decode]\nbeam = 4\n"),
            "run.toml:3: decode.beam is a setting of task = \"translate\", but the task is \"classify\"; remove it, or "
            "set the task");
  EXPECT_EQ(
      refused("[model]\nlayers = 4\n"),
      "run.toml:2: model.layers is a setting of task = \"classify\", but the task is \"translate\"; remove it, or "
      "set the task");
  EXPECT_THAT(refused("task = \"classify\"\n[model]\nlayer = 4\n"),
              HasSubstr("run.toml:3: unknown setting \"model.layer\" (did you mean \"model.layers\"?)"));
}

// Without a decoder they would have no effect.
TEST_F(ClassifyBadInput, SettingsOfADecoderAreRefused) {
  EXPECT_EQ(
      refused("task = \"classify\"\n[model.ds_init]\nstacks = \"encoder\"\n"),
      "run.toml:3: model.ds_init.stacks is a setting of task = \"translate\", but the task is \"classify\"; remove "
      "it, or set the task");
  for (const std::string stack : {"encoder", "decoder"}) {
    EXPECT_EQ(refused("task = \"classify\"\n[model.norm]\nkind = \"rms_norm\"\nscope = \"" + stack + "\"\n"),
              "run.toml: model.norm.scope = \"" + stack +
                  "\": the classifier has one stack, the encoder; use \"all\" or \"final_only\"");
  }
  EXPECT_EQ(refused("task = \"classify\"\n[model.norm]\nscope = \"decoder\"\n"), "") << "not read for layer_norm";
}

TEST_F(ClassifyBadInput, SettingsThatContradictEachOtherAreRefused) {
  EXPECT_EQ(
      refused("task = \"classify\"\n[model]\nsublayers = \"cross_attention\"\n"),
      "run.toml: model.sublayers = \"cross_attention\": cross_attention reads the encoder output; leave it to the "
      "decoder");
  EXPECT_THAT(refused("task = \"classify\"\n[model]\nheads = 3\n"),
              HasSubstr("model.heads = 3 does not divide model.d_model = 128"));
  EXPECT_THAT(refused("task = \"classify\"\n[model]\nplacement = \"post\"\nnorm.kind = \"none\"\n"
                      "norm.scope = \"final_only\"\n"),
              HasSubstr("model.norm.scope = \"final_only\" needs model.placement = \"pre\""));
}

TEST_F(ClassifyBadInput, ASplitByTheSeedOfDataThatBringTheirOwnIsRefused) {
  EXPECT_EQ(refused("task = \"classify\"\n[data]\nsplit_seed = \"train.seed\"\n"),
            "run.toml: data.split_seed = \"train.seed\" needs data.form = \"class_files\": labelled_lines bring their "
            "own split, the files train, dev and test, which no seed changes; remove it");
  EXPECT_EQ(refused("task = \"classify\"\n[data]\nform = \"class_files\"\nsplit_seed = \"train.seed\"\n"), "");
  EXPECT_EQ(refused("task = \"classify\"\n[data]\nsplit_seed = \"seed\"\n"),
            "run.toml:3: data.split_seed = \"seed\" must be a whole number or \"train.seed\"");
}

// Those of a Transformer's matrices.
TEST_F(ClassifyBadInput, AnInitThatTheTaskHasNotIsRefused) {
  EXPECT_EQ(refused("task = \"digits\"\n[model]\ninit = \"kaiming_released\"\n"),
            "run.toml:3: model.init = \"kaiming_released\" is not known; it must be one of: torch_default, "
            "xavier_uniform");
  for (const std::string task : {"translate", "classify"}) {
    for (const std::string init : {"torch_default", "kaiming", "kaiming_released"}) {
      EXPECT_EQ(refused("task = \"" + task + "\"\n[model]\ninit = \"" + init + "\"\n"), "");
    }
  }
}

TEST_F(ClassifyBadInput, SentencesThatCannotBeReadAreNamedWithTheirLine) {
  const Settings small = test::labelled_settings();
  const auto with_train = [&](std::string_view bytes) {
    test::write_text(runs_.folder() / "train", bytes);
    const std::string by_check = refused_by_check(small);
    EXPECT_EQ(error_of([&] { runs_.make(small); }), by_check);
    return by_check;
  };
  EXPECT_EQ(with_train("0 bad\n2 fair\n1 good\n"),
            "train:2: the label 2 is out of range; data.classes names 2 classes, so labels are 0 to 1");
  EXPECT_EQ(with_train("1 good\n1 fine\n"),
            "train has no sentence of the class bad (label 0); every class needs one to be learned");
}

TEST_F(ClassifyBadInput, MissingDataAreWaitedFor) {
  const Settings waiting =
      with(test::labelled_settings(), {{"data.dev", "nowhere"}, {"data.how_to_get", "ask the librarian"}});
  const json answer = check_run(runs_.options(waiting));
  EXPECT_EQ(answer.at("state"), "waiting_data");
  EXPECT_EQ(without_folder(answer.at("waiting_for")), "the corpus small lacks the file nowhere: ask the librarian");
  EXPECT_TRUE(answer.at("parameters").is_null());
  EXPECT_TRUE(answer.at("memory_bytes").is_null());
  EXPECT_THAT(error_of([&] { runs_.make(waiting); }), HasSubstr("lacks the file nowhere: ask the librarian"));
  const Settings drawn = with(waiting, {{"data.form", "class_files"}, {"data.dev_count", 1}, {"data.test_count", 1}});
  EXPECT_EQ(without_folder(check_run(runs_.options(drawn)).at("waiting_for")),
            "the corpus small lacks the file train.bad: ask the librarian");
}

TEST_F(ClassifyBadInput, SettingsOfTheDataThatAreNotSetAreNamed) {
  for (const char* key : {"train", "dev", "test", "classes"}) {
    EXPECT_EQ(refused_by_check(with(test::labelled_settings(), {{std::string("data.") + key, ""}})),
              std::string("data.") + key + " is not set: the form labelled_lines needs train, dev, test and classes");
  }
}

TEST_F(ClassifyBadInput, ReadyDataGiveTheSizeOfTheModel) {
  Settings settings = with(test::labelled_settings(), {{"text.min_count", 1}, {"train.batch.tokens", 100}});
  const json answer = check_run(runs_.options(settings));
  EXPECT_EQ(answer.at("state"), "ready");
  EXPECT_EQ(answer.at("waiting_for"), "");
  const RunOptions options = runs_.options(settings);
  const auto task = test::task_of(options);
  EXPECT_EQ(answer.at("parameters"), task->parameters().values().numel());
  EXPECT_GT(answer.at("memory_bytes").get<int64_t>(), 16 * task->parameters().values().numel());
}

TEST_F(ClassifyBadInput, DataThatWereChangedAfterPlanningAreRefused) {
  for (const char* file : {"train", "dev", "test"}) {
    const RunDirectory run(runs_.make(with(test::labelled_settings(), {{"text.min_count", 1},
                                                                       {"model.layers", 1},
                                                                       {"model.d_model", 8},
                                                                       {"model.d_ff", 8},
                                                                       {"model.heads", 1},
                                                                       {"train.epoch_updates", 1},
                                                                       {"train.max_epochs", 1}})));
    runs_.write_labelled(file, {{"a good film", 1}, {"a bad film", 0}, {"another film", 0}});
    EXPECT_THAT(error_of([&] { attempt_run(run.root()); }),
                HasSubstr(std::string(file) + " is not the file that this run was planned with"))
        << file;
    EXPECT_FALSE(std::filesystem::exists(run.done()));
    runs_.write_labelled(file, {{"a good film", 1}, {"a bad film", 0}});
    EXPECT_EQ(attempt_run(run.root()), kExitDone);
  }
}

}  // namespace
}  // namespace tearless::engine::classify_bad_input_test
