// Every setting has an effect: the tests of a task's rows. A row is a setting with another value and a check of what
// must change with it. A setting without a row fails, and so does a row without a setting. The same rows show which
// settings make another run.
//
// A test file has the rows of one task: a class derived from SettingChecks with
//   static constexpr const char* kTask          the task
//   static constexpr bool kHasCommonRows        whether rows() has those of the settings that every task has
//   static Settings small()                     a few updates of a tiny model in which everything is switched on
//   static const SettingRows<Checks>& rows()
//   static std::vector<Settings> contexts()     over small(): together they make every setting that may not apply one
//                                               that does not
//   static std::vector<std::string> conditional()  those settings, without the options of single kinds
//   training_data_elsewhere()                   and nowhere(), if no setting is called data.train
// whose constructor writes the data files, also those that the rows name; and, in the namespace test,
// INSTANTIATE_TYPED_TEST_SUITE_P(Task, EverySetting, Checks). Such a file is every_digits_setting_test.cc.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/run/check.h"
#include "tests/engine/run/small_runs.h"

namespace tearless::engine::test {

/// Six updates of a tiny model of Transformer layers, with every dropout on.
inline Settings tiny_layers_and_training() {
  return {{"model.d_model", 8},
          {"model.d_ff", 12},
          {"model.heads", 2},
          {"model.init", "xavier_normal"},
          {"model.dropout.residual", 0.1},
          {"model.dropout.attention", 0.1},
          {"model.dropout.relu", 0.1},
          {"model.dropout.word", 0.1},
          {"train.seed", 1},
          {"train.epoch_updates", 3},
          {"train.max_epochs", 2},
          {"train.early_stop", 0},
          {"train.batch.tokens", 80},
          {"train.schedule.scale", 0.1},
          {"train.schedule.warmup_updates", 3},
          {"run.log_updates", 1}};
}

struct Change {
  Settings before, after;
};

template <class Checks>
struct SettingRow {
  nlohmann::json value;  // differs from what small() or `context` sets
  void (Checks::*check)(const Change& change);
  Settings context = {};  // set on both sides
};
template <class Checks>
using SettingRows = std::map<std::string, SettingRow<Checks>>;

inline Settings ds_init() { return {{"model.init", "ds_init"}, {"model.ds_init.alpha", 0.25}}; }

/// The rows of the settings [model.norm] of every model.
template <class Checks>
SettingRows<Checks> norm_rows() {
  return {{"model.norm.kind", {"scale_norm", &Checks::training_differs}},
          {"model.norm.eps", {0.1, &Checks::training_differs}},
          {"model.norm.eps_mode", {"std_add", &Checks::training_differs, {{"model.norm.eps", 0.1}}}},
          {"model.norm.deviation", {"unbiased", &Checks::training_differs}},
          {"model.norm.ada_norm.c", {2, &Checks::training_differs, {{"model.norm.kind", "ada_norm"}}}},
          {"model.norm.ada_norm.k", {0.2, &Checks::training_differs, {{"model.norm.kind", "ada_norm"}}}}};
}

/// The rows that tasks with layers of a Transformer share.
template <class Checks>
SettingRows<Checks> text_rows() {
  SettingRows<Checks> rows = {
      {"data.name", {"another name", &Checks::provisional_id_differs}},
      {"data.train", {"other", &Checks::bytes_count}},
      {"data.dev", {"other", &Checks::bytes_count}},
      {"data.test", {"other", &Checks::bytes_count}},
      {"data.how_to_get", {"ask the librarian", &Checks::missing_data_are_explained}},
      {"data.train_sha256", {std::string(64, '0'), &Checks::other_bytes_are_refused}},
      {"data.dev_sha256", {std::string(64, '0'), &Checks::other_bytes_are_refused}},
      {"data.test_sha256", {std::string(64, '0'), &Checks::other_bytes_are_refused}},
      {"text.max_words", {3, &Checks::training_differs}},
      {"model.d_model", {12, &Checks::training_differs}},
      {"model.d_ff", {16, &Checks::training_differs}},
      {"model.heads", {4, &Checks::training_differs}},
      {"model.placement", {"post", &Checks::training_differs}},
      {"model.init", {"small_init", &Checks::training_differs}},
      {"model.init_qkv_fan", {"fused3", &Checks::training_differs}},
      {"model.init_std", {0.3, &Checks::training_differs, {{"model.init", "normal"}}}},
      {"model.ds_init.form", {"code", &Checks::training_differs, ds_init()}},
      {"model.ds_init.alpha", {0.5, &Checks::training_differs, ds_init()}},
      {"model.fix_norm", {true, &Checks::training_differs}},
      {"model.embedding_scale", {1, &Checks::training_differs}},
      {"model.positions.form", {"halves", &Checks::training_differs}},
      {"model.positions.first", {2, &Checks::training_differs}},
      {"model.dropout.residual", {0.4, &Checks::training_differs}},
      {"model.dropout.embedding", {0.4, &Checks::training_differs}},
      {"model.dropout.attention", {0.4, &Checks::training_differs}},
      {"model.dropout.relu", {0.4, &Checks::training_differs}},
      {"model.dropout.word", {0.4, &Checks::training_differs}},
      {"train.batch.tokens", {40, &Checks::training_differs}},
  };
  rows.merge(norm_rows<Checks>());
  return rows;
}

/// Runs of one task, and the checks that every task needs.
class SettingChecks : public testing::Test {
 public:
  void TestBody() override {}

  void training_differs(const Change& c) { EXPECT_NE(trained(c.before).metrics, trained(c.after).metrics); }

  /// Other data are another run; the same bytes elsewhere are the same one.
  void bytes_count(const Change& c) {
    const Ended &before = trained(c.before), &after = trained(c.after);
    EXPECT_FALSE(before.metrics == after.metrics && before.same_results(after));
    EXPECT_NE(runs_.canonical(c.before), runs_.canonical(c.after));
    EXPECT_EQ(runs_.canonical(c.before), runs_.canonical(with(c.before, training_data_elsewhere())));
  }
  /// While the bytes are unknown the name of the data stands for them.
  void provisional_id_differs(const Change& c) {
    EXPECT_NE(runs_.canonical(with(c.before, nowhere())), runs_.canonical(with(c.after, nowhere())));
    EXPECT_EQ(runs_.canonical(c.before), runs_.canonical(c.after));
  }
  void missing_data_are_explained(const Change& c) {
    EXPECT_THAT(runs_.options(with(c.after, nowhere())).task->data_files().missing(),
                testing::HasSubstr(c.after.at("data.how_to_get").get<std::string>()));
    EXPECT_EQ(runs_.canonical(c.before), runs_.canonical(c.after));
  }
  /// Checksums are filled in by `check`; in a run directory other bytes are then refused.
  void other_bytes_are_refused(const Change& c) {
    RunOptions known = runs_.options(c.before);
    WrittenSettings written;
    written.values = c.after;
    for (const DescribedField& f : list_settings(description_of(known))) {
      if (f.key.ends_with("_sha256")) written.values.emplace(f.key, f.value);
    }
    const RunOptions wrong = read_run_options(written, runs_.folder(), {});
    EXPECT_THROW(task_of(wrong), UserError);
  }

  SmallRuns& runs() { return runs_; }

 protected:
  const Ended& trained(const Settings& settings) {
    const std::string key = nlohmann::json(settings).dump();
    const auto known = trained_.find(key);
    return known != trained_.end() ? known->second : trained_.emplace(key, runs_.train(settings)).first->second;
  }

  /// Copies the training data, and returns the settings that name the copy.
  virtual Settings training_data_elsewhere() = 0;

  /// Names training data that are not there.
  virtual Settings nowhere() const { return {{"data.train", "nowhere"}}; }

  SmallRuns runs_;

 private:
  std::map<std::string, Ended> trained_;
};

/// Whether a row's other value makes, by itself, settings of another run or of the same one. Not so: files and their
/// checksums, whose checks compare the ids themselves, and another task, which has other settings.
inline bool is_one_change(const std::string& key) {
  static const std::set<std::string> others = {"task",
                                               "data.name",
                                               "data.how_to_get",
                                               "data.train",
                                               "data.dev",
                                               "data.test",
                                               "data.source",
                                               "data.target",
                                               "data.train_images",
                                               "data.train_labels",
                                               "data.test_images",
                                               "data.test_labels",
                                               "data.train_sha256",
                                               "data.dev_sha256",
                                               "data.test_sha256"};
  return !others.contains(key);
}

/// "model.norm.ada_norm.k": an option of one kind of norm, schedule or optimiser, and meaningless for the others.
inline bool is_option_of_one_kind(const std::string& key) {
  const auto of = [&](const char* kinds) { return key.starts_with(kinds); };
  return (of("model.norm.") || of("train.schedule.") || of("train.optimiser.")) &&
         std::count(key.begin(), key.end(), '.') == 3;
}

template <class Checks>
class EverySetting : public testing::Test {
 protected:
  SmallRuns& runs() { return checks_.runs(); }
  static RunOptions defaults() { return RunOptions(Checks::kTask); }

  template <class Row>
  static Change change_of(const std::string& key, const Row& row) {
    const Settings before = with(Checks::small(), row.context);
    return {before, with(before, {{key, row.value}})};
  }

  /// The settings that have no effect, as `check` tells them: key → the setting that switches it off.
  std::map<std::string, std::string> unused(const Settings& settings) {
    const nlohmann::json answer =
        CheckBatch().answer(nlohmann::json{{"settings", settings}, {"folder", runs().folder().string()}}.dump());
    EXPECT_FALSE(answer.contains("error")) << answer;
    return answer.value("unused", std::map<std::string, std::string>());
  }

  /// What switches the setting `key` off in a run with these settings; "": nothing does.
  static std::string switched_off_by(const std::string& key, const Settings& settings) {
    RunOptions options;
    read_settings({.values = settings, .locations = {}, .name = "settings"}, description_of(options));
    for (const DescribedField& f : list_settings(description_of(options))) {
      if (f.key == key) return std::string(f.field.switched_off_by);
    }
    return key + " is no setting";
  }

  /// The values of the setting `key` that are tried: its default, that of its row, and every word that it may be.
  static std::vector<Settings> with_other_values(const std::string& key, const Settings& settings) {
    Settings unset = settings;
    unset.erase(key);
    std::vector<Settings> all = {unset};
    if (const auto row = Checks::rows().find(key); row != Checks::rows().end()) {
      all.push_back(with(settings, {{key, row->second.value}}));
    }
    RunOptions options(Checks::kTask);
    for (const DescribedField& f : list_settings(description_of(options))) {
      for (const std::string_view word : f.key == key ? f.field.choices : std::span<const std::string_view>()) {
        all.push_back(with(settings, {{key, word}}));
      }
    }
    return all;
  }

  /// The settings that have a neutral value beside those of small(), at it.
  Settings neutral_values() {
    Settings neutral;
    RunOptions options = runs().options(Checks::small());
    for (const DescribedField& f : list_settings(description_of(options))) {
      if (f.field.neutral && f.key != "task" && !f.key.ends_with("_sha256")) neutral[f.key] = *f.field.neutral;
    }
    return neutral;
  }

  Checks checks_;
};
TYPED_TEST_SUITE_P(EverySetting);

TYPED_TEST_P(EverySetting, HasOneRow) {
  RunOptions options = this->defaults();
  const Describe described = TypeParam::kHasCommonRows
                                 ? description_of(options)
                                 : Describe([&](SettingsVisitor& v) { options.task->describe_own(v); });
  std::set<std::string> keys;
  for (const DescribedField& f : list_settings(described)) {
    keys.insert(f.key);
    const auto row = TypeParam::rows().find(f.key);
    if (row == TypeParam::rows().end()) {
      ADD_FAILURE() << f.key << " has no row: add one that shows its effect to "
                    << (f.key.starts_with("model.norm.") ? "norm_rows() in tests/engine/run/every_setting.h"
                                                         : "rows() of the task " + std::string(TypeParam::kTask));
      continue;
    }
    SCOPED_TRACE(f.key);
    (this->checks_.*row->second.check)(this->change_of(f.key, row->second));
  }
  for (const auto& [key, row] : TypeParam::rows())
    EXPECT_TRUE(keys.contains(key)) << "a row for " << key << ", which is no setting";
}

TYPED_TEST_P(EverySetting, MakesAnotherRunIfResultsDependOnItAndOnlyThen) {
  for (const auto& [key, row] : TypeParam::rows()) {
    if (!is_one_change(key)) continue;
    const Change change = this->change_of(key, row);
    RunOptions options = this->runs().options(change.after);
    const std::string before = this->runs().canonical(change.before), after = this->runs().canonical(change.after);
    for (const DescribedField& f : list_settings(description_of(options))) {
      if (f.key != key) continue;
      EXPECT_FALSE(this->unused(change.after).contains(key)) << key;
      EXPECT_EQ(before == after, f.field.identity == Identity::kLocal) << key;
      const auto is_in = [line = "\n" + key + " ="](const std::string& text) {
        return ("\n" + text).find(line) != std::string::npos;
      };
      EXPECT_NE(is_in(local_text(options)), is_in(after)) << key << " must be in one of the two texts";
    }
  }
}

TYPED_TEST_P(EverySetting, AtItsNeutralValueIsNotInTheCanonicalText) {
  const Settings neutral = this->neutral_values();
  for (const auto& [key, value] : neutral) {
    const std::string canonical = "\n" + this->runs().canonical(with(TypeParam::small(), {{key, value}}));
    EXPECT_EQ(canonical.find("\n" + key + " ="), std::string::npos) << key;
  }
  EXPECT_FALSE(neutral.empty());
}

// `check` counts the parameters before there is a model, and plan prints them.
TYPED_TEST_P(EverySetting, LeavesTheModelTheSizeThatCheckTells) {
  for (const auto& [key, row] : TypeParam::rows()) {
    if (!key.starts_with("model.")) continue;
    const RunOptions options = this->runs().options(this->change_of(key, row).after);
    const int64_t made = task_of(options)->parameters().count();
    const std::optional<TaskKind::Size> told = options.task->size(options.train);
    ASSERT_TRUE(told) << key;
    EXPECT_EQ(told->parameters, made) << key;
  }
}

// What the canonical text leaves out must not be read as the default.
TYPED_TEST_P(EverySetting, IsReadBackFromARunDirectoryAsItWasWritten) {
  std::vector<Settings> all = {TypeParam::small(), with(TypeParam::small(), this->neutral_values())};
  for (const auto& [key, row] : TypeParam::rows()) {
    if (is_one_change(key)) all.push_back(this->change_of(key, row).after);
  }
  for (const Settings& settings : all) {
    RunOptions again = read_run_directory(this->runs().make(settings));
    EXPECT_EQ(canonical_text(again), this->runs().canonical(settings));
    RunOptions before = this->runs().options(settings);
    EXPECT_EQ(local_text(again), local_text(before));
  }
}

TYPED_TEST_P(EverySetting, ThatIsSwitchedOffDoesNotChangeTheIdAndIsToldWithWhatDoesIt) {
  std::set<std::string> met;
  for (const Settings& context : TypeParam::contexts()) {
    const Settings before = with(TypeParam::small(), context);
    RunOptions options = this->runs().options(before);
    for (const DescribedField& f : list_settings(description_of(options))) {
      const auto row = TypeParam::rows().find(f.key);
      const std::string by(f.field.switched_off_by);
      if (by.empty() || row == TypeParam::rows().end()) continue;
      met.insert(f.key);
      SCOPED_TRACE(f.key + " is switched off by " + by);
      const Settings after = with(before, {{f.key, row->second.value}});
      EXPECT_EQ(this->runs().canonical(before), this->runs().canonical(after));

      const std::map<std::string, std::string> unused = this->unused(after);
      if (f.field.identity == Identity::kLocal) {
        EXPECT_FALSE(unused.contains(f.key));
        continue;
      }
      ASSERT_TRUE(unused.contains(f.key));
      const Settings told = parse_toml_settings(unused.at(f.key), "unused").values;
      ASSERT_EQ(told.size(), 1u) << unused.at(f.key);
      EXPECT_EQ(told.begin()->first, by);
      // With the value that is told it is off; with some other one it is not, or another setting is in the way.
      EXPECT_EQ(this->switched_off_by(f.key, with(after, told)), by);
      const auto is_not_off = [&](const Settings& other) { return this->switched_off_by(f.key, other) != by; };
      EXPECT_TRUE(std::ranges::any_of(this->with_other_values(by, after), is_not_off)) << unused.at(f.key);
    }
  }
  std::vector<std::string> expected = TypeParam::conditional();
  for (const auto& [key, row] : TypeParam::rows()) {
    if (is_option_of_one_kind(key)) expected.push_back(key);
  }
  EXPECT_THAT(met, testing::UnorderedElementsAreArray(expected))
      << "conditional() lists the settings of the task " << TypeParam::kTask << " that do not always apply";
}

REGISTER_TYPED_TEST_SUITE_P(EverySetting, HasOneRow, MakesAnotherRunIfResultsDependOnItAndOnlyThen,
                            AtItsNeutralValueIsNotInTheCanonicalText, IsReadBackFromARunDirectoryAsItWasWritten,
                            LeavesTheModelTheSizeThatCheckTells,
                            ThatIsSwitchedOffDoesNotChangeTheIdAndIsToldWithWhatDoesIt);

}  // namespace tearless::engine::test
