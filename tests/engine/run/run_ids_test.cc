// The text that a run's id is hashed from, of each task: an approved text. A change of it makes new runs of all that
// were trained; a new task or setting must not change it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "base/run_directory.h"
#include "engine/run/run_options.h"
#include "tests/support/golden.h"
#include "tests/support/paths.h"

namespace tearless::engine::run_ids_test {
namespace {

using Settings = std::map<std::string, nlohmann::json>;

/// The identity of a run with these settings alone.
std::string identity_of(const std::string& title, Settings settings) {
  WrittenSettings written;
  written.name = "settings";
  written.values = std::move(settings);
  written.values["data.name"] = "not part of the id";
  RunOptions options = read_run_options(written, ".", {});
  const std::string canonical = canonical_text(options);
  return fmt::format("# {}: {}\n{}\n", title, run_id(canonical), canonical);
}

/// Settings with the checksums of data that are not there.
std::string identity(const std::string& title, Settings settings) {
  for (const char* set : {"train", "dev", "test"}) {
    settings[fmt::format("data.{}", set)] = fmt::format("{} is not part of the id", set);
    settings[fmt::format("data.{}_sha256", set)] = std::string(64, *set);
  }
  return identity_of(title, std::move(settings));
}

Settings other_model() {
  return {{"model.init", "ds_init"},
          {"model.fix_norm", true},
          {"model.norm.kind", "ada_norm"},
          {"model.norm.eps", 0.5},
          {"model.norm.scope", "final_only"},
          {"model.dropout.word", 0.25},
          {"train.max_updates", 7},
          {"train.schedule.kind", "valdecay"},
          {"run.device", "cuda"},
          {"run.threads", 3}};
}

std::vector<DataSetting> paths_of(TaskKind& task) {
  std::vector<DataSetting> paths;
  for (const DataSet& set : task.data_files().sets) {
    for (const DataSetting& setting : set.settings) paths.push_back(setting);
  }
  return paths;
}

// A grid's base file and the grid itself may be in different folders.
TEST(DataPaths, StartAtTheFolderThatIsGivenForTheirKey) {
  for (const auto& kind : task_kinds()) {
    WrittenSettings written;
    written.values = {{"task", kind->name}, {"train.schedule.peak_lr", 1e-3}};
    std::map<std::string, std::string> folders;
    const std::unique_ptr<TaskKind> defaults = kind->clone();
    for (const DataSetting& setting : paths_of(*defaults)) {
      written.values[setting.key] = std::string("../file of ") + setting.key;
      if (folders.empty()) folders[setting.key] = "/base/own";
    }
    const RunOptions options = read_run_options(written, "/base/grids", folders);
    ASSERT_FALSE(folders.empty());
    for (const DataSetting& setting : paths_of(*options.task)) {
      EXPECT_EQ(*setting.path, std::string("/base/file of ") + setting.key);
    }
    folders.begin()->second = "/elsewhere/own";
    const RunOptions other = read_run_options(written, "/base/grids", folders);
    for (const DataSetting& setting : paths_of(*other.task)) {
      EXPECT_EQ(*setting.path,
                (folders.contains(setting.key) ? "/elsewhere/file of " : "/base/file of ") + std::string(setting.key));
    }
  }
}

TEST(RunIds, OfEveryTaskAreApproved) {
  for (const auto& kind : task_kinds()) {
    const std::string file = fmt::format("tests/golden/engine/id_{}.txt", kind->name);
    EXPECT_TRUE(std::filesystem::exists(tearless::test::source_root() / file))
        << file << " is missing: add a test of the ids of " << kind->name
        << " below, with Golden in its name, and run tools/bless.sh";
  }
}

TEST(RunIds, OfTranslationGolden) {
  const Settings data = {{"data.source", "src"}, {"data.target", "tgt"}};
  Settings other = data;
  other.merge(other_model());
  Settings named = data;
  named["task"] = "translate";
  EXPECT_EQ(identity("defaults", data), identity("defaults", named));
  // Settings that came later, at the values at which they have no effect.
  Settings neutral = data;
  neutral.insert({{"text.learned", "joint"},
                  {"text.split_unseen", true},
                  {"model.init_pad", "random"},
                  {"train.batch.regenerate", "per_pass"},
                  {"train.batch.buffer", 7},
                  {"train.batch.leak_ratio", 0.25},
                  {"train.batch.truncate", 0}});
  EXPECT_EQ(identity("defaults", data), identity("defaults", neutral));
  tearless::test::expect_golden("engine/id_translate.txt",
                                identity("defaults", data) + identity("other settings", other));
}

// T2T's search sets ended hypotheses aside and compares them, also with one unfinished one.
TEST(RunIds, HaveThePenaltyOfASearchWithOneHypothesisOnlyIfItComparesOutputs) {
  const auto id = [](const char* search, double alpha) {
    return identity("a search", {{"data.source", "src"},
                                 {"data.target", "tgt"},
                                 {"decode.search", search},
                                 {"decode.beam", 1},
                                 {"decode.alpha", alpha}});
  };
  for (const char* search : {"twt", "fairseq", "joey"}) EXPECT_EQ(id(search, 0.6), id(search, 2.0)) << search;
  EXPECT_NE(id("t2t", 0.6), id("t2t", 2.0));
}

TEST(RunIds, HaveTheSizeOfDecodingBatchesIfTheseEndTogether) {
  const auto id = [](Settings settings) {
    settings.insert({{"data.source", "src"}, {"data.target", "tgt"}, {"decode.search", "t2t"}});
    return identity("a search", std::move(settings));
  };
  EXPECT_EQ(id({{"decode.batch_tokens", 99}}), id({}));
  EXPECT_EQ(id({{"decode.batch_tokens", 99}, {"decode.stop", "sentence"}}), id({}));
  const std::string together = id({{"decode.stop", "batch"}}),
                    of_99 = id({{"decode.stop", "batch"}, {"decode.batch_tokens", 99}});
  EXPECT_NE(together, of_99);
  EXPECT_THAT(together, testing::HasSubstr("\ndecode.batch_tokens = 4096\n"));
  EXPECT_THAT(of_99, testing::HasSubstr("\ndecode.batch_tokens = 99\n"));
}

TEST(RunIds, OfClassificationGolden) {
  const Settings lines = {{"task", "classify"}, {"data.classes", "bad good"}};
  Settings other = other_model(), files = lines;
  other.insert(lines.begin(), lines.end());
  other["text.min_count"] = 1;
  other["text.lower_case"] = false;
  files.insert({{"data.form", "class_files"}, {"data.dev_count", 964}, {"data.test_count", 1089}});
  tearless::test::expect_golden(
      "engine/id_classify.txt",
      identity("defaults", lines) + identity("other settings", other) + identity("class files", files));
}

TEST(RunIds, OfDigitsGolden) {
  const Settings data = {{"task", "digits"},
                         {"data.train_images", "not part of the id"},
                         {"data.train_sha256", std::string(64, '1')},
                         {"data.test_sha256", std::string(64, '2')},
                         {"train.schedule.kind", "nowarmup"}};
  Settings other = data;
  other.insert({{"data.train_count", 100},
                {"model.arch", "conv_conv_fc"},
                {"model.norm.kind", "ada_norm"},
                {"model.norm_sites", "inputs"},
                {"model.dropout.conv", 0.25}});
  tearless::test::expect_golden("engine/id_digits.txt",
                                identity_of("defaults", data) + identity_of("other settings", other));
}

TEST(RunIds, OfALanguageModelGolden) {
  const Settings data = {{"task", "language_model"},
                         {"data.train_sha256", std::string(64, '1')},
                         {"data.dev_sha256", std::string(64, '2')},
                         {"data.test_sha256", std::string(64, '3')}};
  Settings other = data;
  other.insert({{"text.newlines", true},
                {"text.unit", "character"},
                {"model.norm.kind", "none"},
                {"model.init", "small_init"},
                {"evaluate.segment", 80},
                {"evaluate.memory", 2100},
                {"evaluate.clamp", 820},
                {"evaluate.window", 2100}});
  tearless::test::expect_golden("engine/id_language_model.txt",
                                identity_of("defaults", data) + identity_of("other settings", other));
}

TEST(RunIds, OfParsingGolden) {
  const Settings data = {{"task", "parse"},
                         {"data.train_sha256", std::string(64, '1')},
                         {"data.dev_sha256", std::string(64, '2')},
                         {"data.test_sha256", std::string(64, '3')}};
  Settings other = data;
  other.insert({{"data.labels", "none"},
                {"data.min_count", 2},
                {"model.features", "words_tags"},
                {"model.activation", "cube"},
                {"model.dropout.hidden", 0.5},
                {"model.dropout.rescale", false},
                {"train.optimiser.kind", "adagrad"}});
  tearless::test::expect_golden("engine/id_parse.txt",
                                identity_of("defaults", data) + identity_of("other settings", other));
}

}  // namespace
}  // namespace tearless::engine::run_ids_test
