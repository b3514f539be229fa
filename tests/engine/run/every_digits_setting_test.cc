// The rows of the task digits' own settings. Those that every task has are in every_setting_test.cc.
#include "tests/engine/run/every_setting.h"
#include "tests/engine/run/small_digits.h"

namespace tearless::engine {
namespace {

using test::Settings;
using test::with;

class DigitsSettings final : public test::SettingChecks {
 public:
  static constexpr const char* kTask = "digits";
  static constexpr bool kHasCommonRows = false;
  static Settings small() { return test::small_digits(); }
  static const test::SettingRows<DigitsSettings>& rows();
  static std::vector<Settings> contexts();
  static std::vector<std::string> conditional();

  DigitsSettings() {
    test::write_digits(runs_.folder());
    test::write_bars(runs_.folder(), "other_train", 36, 3);
    test::write_bars(runs_.folder(), "other_test", 11, 4);
  }

 private:
  Settings training_data_elsewhere() override {
    for (const std::string part : {".images", ".labels"}) {
      test::write_text(runs_.folder() / ("copy" + part), test::read_text(runs_.folder() / ("train" + part)));
    }
    return {{"data.train_images", "copy.images"}, {"data.train_labels", "copy.labels"}};
  }
  Settings nowhere() const override { return {{"data.train_images", "nowhere"}}; }
};

const test::SettingRows<DigitsSettings>& DigitsSettings::rows() {
  using Checks = DigitsSettings;
  static const test::SettingRows<Checks> all = [] {
    test::SettingRows<Checks> rows = {
        {"data.name", {"another name", &Checks::provisional_id_differs}},
        {"data.how_to_get", {"ask the librarian", &Checks::missing_data_are_explained}},
        {"data.train_images", {"other_train.images", &Checks::bytes_count}},
        {"data.train_labels", {"other_train.labels", &Checks::bytes_count}},
        {"data.test_images", {"other_test.images", &Checks::bytes_count}},
        {"data.test_labels", {"other_test.labels", &Checks::bytes_count}},
        {"data.dev_first", {8, &Checks::training_differs}},
        {"data.train_count", {20, &Checks::training_differs}},
        {"data.mean", {0.3, &Checks::training_differs}},
        {"data.deviation", {0.5, &Checks::training_differs}},
        {"data.train_sha256", {std::string(64, '0'), &Checks::other_bytes_are_refused}},
        {"data.test_sha256", {std::string(64, '0'), &Checks::other_bytes_are_refused}},
        {"model.arch", {"conv_conv_fc", &Checks::training_differs, {{"model.dropout.hidden", 0.0}}}},
        {"model.conv1_channels", {4, &Checks::training_differs}},
        {"model.conv2_channels", {4, &Checks::training_differs}},
        {"model.kernel", {2, &Checks::training_differs}},
        {"model.hidden", {8, &Checks::training_differs}},
        {"model.norm_sites", {"inputs", &Checks::training_differs}},
        {"model.init", {"xavier_uniform", &Checks::training_differs}},
        {"model.dropout.conv", {0.4, &Checks::training_differs}},
        {"model.dropout.hidden", {0.4, &Checks::training_differs}},
        {"train.batch.images", {12, &Checks::training_differs}},
    };
    rows.merge(test::norm_rows<Checks>());
    return rows;
  }();
  return all;
}

std::vector<Settings> DigitsSettings::contexts() {
  return {{{"model.arch", "conv_conv_fc"}, {"model.dropout.hidden", 0.0}}, {{"model.norm.kind", "none"}}};
}

std::vector<std::string> DigitsSettings::conditional() {
  return {"model.hidden", "model.norm.deviation", "model.norm.eps", "model.norm.eps_mode", "model.norm_sites"};
}

}  // namespace

namespace test {
INSTANTIATE_TYPED_TEST_SUITE_P(Digits, EverySetting, DigitsSettings);
}

}  // namespace tearless::engine
