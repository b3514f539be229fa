// Every setting of the task digits has an effect: one row for each setting, as every_setting_test.cc has them for
// translation. The settings that every task has are tested there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "tests/engine/run/small_digits.h"
#include "tests/engine/train/in_memory.h"

namespace tearless::engine {
namespace {

using nlohmann::json;
using test::Ended;
using test::Settings;
using test::with;
using testing::HasSubstr;

struct Change {
  Settings before, after;
};

class DigitSettings : private test::InMemory, public testing::Test {
 protected:
  DigitSettings() {
    test::write_digits(runs_.folder());
    test::write_bars(runs_.folder(), "other", 36, 3);
    test::write_bars(runs_.folder(), "another", 11, 4);
    for (const char* part : {".images", ".labels"}) {
      test::write_text(runs_.folder() / (std::string("copy") + part),
                       test::read_text(runs_.folder() / ("train" + std::string(part))));
    }
  }

  const Ended& trained(const Settings& settings) {
    const std::string key = json(settings).dump();
    const auto known = trained_.find(key);
    return known != trained_.end() ? known->second
                                   : trained_.emplace(key, test::train_digits(runs_, settings)).first->second;
  }

  test::SmallRuns runs_;
  std::map<std::string, Ended> trained_;
};

class DigitSettingCheck : public DigitSettings {
 public:
  void TestBody() override {}

  void training_differs(const Change& c) {
    EXPECT_NE(trained(c.before).metrics, trained(c.after).metrics);
    EXPECT_NE(runs_.canonical(c.before), runs_.canonical(c.after));
  }
  /// Other bytes are another run and give other scores; the same bytes elsewhere are the same run.
  void bytes_count(const Change& c) {
    EXPECT_NE(trained(c.before).metrics + trained(c.before).scores_text,
              trained(c.after).metrics + trained(c.after).scores_text);
    EXPECT_NE(runs_.canonical(c.before), runs_.canonical(c.after));
    EXPECT_EQ(
        runs_.canonical(c.before),
        runs_.canonical(with(c.before, {{"data.train_images", "copy.images"}, {"data.train_labels", "copy.labels"}})));
  }
  /// While the bytes are unknown the name stands for them.
  void provisional_id_differs(const Change& c) {
    const Settings nowhere = {{"data.train_images", "nowhere"}};
    EXPECT_NE(runs_.canonical(with(c.before, nowhere)), runs_.canonical(with(c.after, nowhere)));
    EXPECT_EQ(runs_.canonical(c.before), runs_.canonical(c.after));
  }
  void missing_data_is_explained(const Change& c) {
    const Settings nowhere = {{"data.train_images", "nowhere"}};
    EXPECT_THAT(runs_.options(with(c.after, nowhere)).task->missing_data(),
                HasSubstr(c.after.at("data.how_to_get").get<std::string>()));
    EXPECT_EQ(runs_.canonical(c.before), runs_.canonical(c.after));
  }
  /// Checksums are filled in by `check`; in a run directory other bytes are then refused.
  void other_bytes_are_refused(const Change& c) {
    const RunOptions known = runs_.options(c.before);
    const DigitsOptions& right = test::digits_options(known).data;
    WrittenSettings written;
    written.values =
        with(c.before, {{"data.train_sha256", right.train_sha256}, {"data.test_sha256", right.test_sha256}});
    const RunOptions same = read_run_options(written, runs_.folder(), {});
    EXPECT_NO_THROW(test::digits_task(same));
    for (const auto& [key, value] : c.after) {
      if (key.ends_with("_sha256")) written.values[key] = value;
    }
    const RunOptions wrong = read_run_options(written, runs_.folder(), {});
    EXPECT_THROW(test::digits_task(wrong), UserError);
  }
};

struct Row {
  json value;  // differs from what small_digits() or `context` sets
  void (DigitSettingCheck::*check)(const Change& change);
  Settings context = {};  // set on both sides
};

const std::map<std::string, Row>& rows() {
  const auto differs = &DigitSettingCheck::training_differs;
  const Settings ada = {{"model.norm.kind", "ada_norm"}};
  static const std::map<std::string, Row> all = {
      {"data.name", {"another name", &DigitSettingCheck::provisional_id_differs}},
      {"data.how_to_get", {"ask the librarian", &DigitSettingCheck::missing_data_is_explained}},
      {"data.train_images", {"other.images", &DigitSettingCheck::bytes_count}},
      {"data.train_labels", {"other.labels", &DigitSettingCheck::bytes_count}},
      {"data.test_images", {"another.images", &DigitSettingCheck::bytes_count}},
      {"data.test_labels", {"another.labels", &DigitSettingCheck::bytes_count}},
      {"data.dev_first", {8, differs}},
      {"data.train_count", {20, differs}},
      {"data.mean", {0.3, differs}},
      {"data.deviation", {0.5, differs}},
      {"data.train_sha256", {std::string(64, '0'), &DigitSettingCheck::other_bytes_are_refused}},
      {"data.test_sha256", {std::string(64, '0'), &DigitSettingCheck::other_bytes_are_refused}},
      {"model.arch", {"conv_conv_fc", differs, {{"model.dropout.hidden", 0.0}}}},
      {"model.conv1_channels", {4, differs}},
      {"model.conv2_channels", {4, differs}},
      {"model.kernel", {2, differs}},
      {"model.hidden", {8, differs}},
      {"model.norm_sites", {"inputs", differs}},
      {"model.init", {"xavier_uniform", differs}},
      {"model.norm.kind", {"scale_norm", differs}},
      {"model.norm.eps", {0.1, differs}},
      {"model.norm.eps_mode", {"std_add", differs, {{"model.norm.eps", 0.1}}}},
      {"model.norm.deviation", {"unbiased", differs}},
      {"model.norm.ada_norm.c", {2, differs, ada}},
      {"model.norm.ada_norm.k", {0.2, differs, ada}},
      {"model.dropout.conv", {0.4, differs}},
      {"model.dropout.hidden", {0.4, differs}},
      {"train.batch.images", {12, differs}},
  };
  return all;
}

/// "all" is the one value that the network has a meaning for; the others are refused.
constexpr const char* kWithOneValue = "model.norm.scope";

std::vector<DescribedField> own_settings() {
  RunOptions options("digits");
  return list_settings([&](SettingsVisitor& v) { options.task->describe_own(v); });
}

Change change_of(const std::string& key, const Row& row) {
  const Settings before = with(test::small_digits(), row.context);
  return {before, with(before, {{key, row.value}})};
}

TEST(DigitSettingEffects, HaveOneRowForEachSetting) {
  DigitSettingCheck check;
  std::set<std::string> described;
  for (const DescribedField& f : own_settings()) {
    described.insert(f.key);
    if (f.key == kWithOneValue) continue;
    const auto row = rows().find(f.key);
    if (row == rows().end()) {
      ADD_FAILURE() << f.key << " has no row: add one that shows its effect";
      continue;
    }
    SCOPED_TRACE(f.key);
    (check.*row->second.check)(change_of(f.key, row->second));
  }
  for (const auto& [key, row] : rows())
    EXPECT_TRUE(described.contains(key)) << "a row for " << key << ", which is no setting";
}

TEST_F(DigitSettings, EachNormSiteIsAnotherNetwork) {
  std::set<std::string> metrics;
  for (const char* sites : {"activations", "linear", "inputs"}) {
    metrics.insert(trained(with(test::small_digits(), {{"model.norm_sites", sites}})).metrics);
  }
  EXPECT_EQ(metrics.size(), 3u);
}

// What the canonical text leaves out must not be read as the default.
TEST_F(DigitSettings, ARunDirectoryIsReadBackAsItWasWritten) {
  Settings neutral = test::small_digits();
  for (const DescribedField& f : own_settings()) {
    if (f.field.neutral && !f.key.ends_with("_sha256")) neutral[f.key] = *f.field.neutral;
  }
  std::vector<Settings> all = {test::small_digits(), neutral};
  for (const auto& [key, row] : rows()) {
    if (!key.ends_with("_sha256")) all.push_back(change_of(key, row).after);
  }
  for (const Settings& settings : all) {
    RunOptions again = read_run_directory(runs_.make(settings));
    RunOptions before = runs_.options(settings);
    EXPECT_EQ(canonical_text(again), canonical_text(before));
    EXPECT_EQ(local_text(again), local_text(before));
  }
}

TEST_F(DigitSettings, ThatDoNotApplyDoNotChangeTheId) {
  const Settings contexts[] = {{{"model.arch", "conv_conv_fc"}, {"model.dropout.hidden", 0.0}},
                               {{"model.norm.kind", "none"}},
                               {{"model.norm.kind", "scale_norm"}}};
  std::set<std::string> met;
  for (const Settings& context : contexts) {
    const Settings before = with(test::small_digits(), context);
    RunOptions options = runs_.options(before);
    for (const DescribedField& f : list_settings([&](SettingsVisitor& v) { options.task->describe_own(v); })) {
      if (f.field.applies || f.key == kWithOneValue) continue;
      met.insert(f.key);
      EXPECT_EQ(runs_.canonical(before), runs_.canonical(with(before, {{f.key, rows().at(f.key).value}}))) << f.key;
    }
  }
  EXPECT_THAT(
      met, testing::ElementsAre("model.hidden", "model.norm.ada_norm.c", "model.norm.ada_norm.k",
                                "model.norm.deviation", "model.norm.eps", "model.norm.eps_mode", "model.norm_sites"));
}

}  // namespace
}  // namespace tearless::engine
