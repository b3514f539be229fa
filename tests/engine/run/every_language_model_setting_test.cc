// The rows of the task language_model's own settings. Those that every task has are in every_setting_test.cc.
#include "tests/engine/run/every_setting.h"
#include "tests/engine/run/small_text.h"

namespace tearless::engine {
namespace {

using test::Change;
using test::Settings;
using test::with;

class LanguageModelSettings final : public test::SettingChecks {
 public:
  static constexpr const char* kTask = "language_model";
  static constexpr bool kHasCommonRows = false;
  static Settings small() { return test::small_language_model(); }
  static const test::SettingRows<LanguageModelSettings>& rows();
  static std::vector<Settings> contexts();
  static std::vector<std::string> conditional();

  LanguageModelSettings() {
    test::write_texts(runs_.folder());
    test::write_texts(runs_.folder(), 9, "other_");
  }

  /// The texts have bytes above 127.
  void unit_counts(const Change& c) {
    for (const char* set : {"train.txt", "dev.txt", "test.txt"}) {
      std::string text = test::read_text(runs_.folder() / set);
      for (size_t at = text.find('c'); at != text.npos; at = text.find('c', at + 2)) text.replace(at, 1, "é");
      test::write_text(runs_.folder() / ("accents_" + std::string(set)), text);
    }
    const Settings accents = {
        {"data.train", "accents_train.txt"}, {"data.dev", "accents_dev.txt"}, {"data.test", "accents_test.txt"}};
    training_differs({with(c.before, accents), with(c.after, accents)});
  }
  /// Results differ; the training does not.
  void evaluation_alone_differs(const Change& c) {
    const auto metric = [this](const Settings& settings, const char* name) { return trained(settings).metric(name); };
    EXPECT_EQ(metric(c.before, "train.loss"), metric(c.after, "train.loss"));
    EXPECT_NE(metric(c.before, "dev.bpc"), metric(c.after, "dev.bpc"));
    EXPECT_NE(trained(c.before).scores.at("test.bpc"), trained(c.after).scores.at("test.bpc"));
  }

 private:
  Settings training_data_elsewhere() override {
    test::write_text(runs_.folder() / "copy.txt", test::read_text(runs_.folder() / "train.txt"));
    return {{"data.train", "copy.txt"}};
  }
};

const test::SettingRows<LanguageModelSettings>& LanguageModelSettings::rows() {
  using Checks = LanguageModelSettings;
  static const test::SettingRows<Checks> all = [] {
    test::SettingRows<Checks> rows = {
        {"data.train", {"other_train.txt", &Checks::bytes_count}},
        {"data.dev", {"other_dev.txt", &Checks::bytes_count}},
        {"data.test", {"other_test.txt", &Checks::bytes_count}},
        {"text.unit", {"character", &Checks::unit_counts}},
        {"text.newlines", {true, &Checks::training_differs}},
        {"model.layers", {1, &Checks::training_differs}},
        {"model.memory", {5, &Checks::training_differs}},
        {"model.init_qkv_fan", {"fused3", &Checks::training_differs, {{"model.init", "xavier_uniform"}}}},
        {"model.output_bias", {false, &Checks::training_differs}},
        {"model.placement", {"pre", &Checks::training_differs}},
        {"model.norm.scope",
         {"final_only", &Checks::training_differs, {{"model.placement", "pre"}, {"model.norm.kind", "rms_norm"}}}},
        {"evaluate.streams", {2, &Checks::evaluation_alone_differs}},
        {"evaluate.segment", {7, &Checks::evaluation_alone_differs}},
        {"evaluate.memory", {3, &Checks::evaluation_alone_differs}},
        {"evaluate.clamp", {2, &Checks::evaluation_alone_differs}},
        {"evaluate.window", {3, &Checks::evaluation_alone_differs}},
        {"train.batch.streams", {3, &Checks::training_differs}},
        {"train.batch.segment", {5, &Checks::training_differs}},
    };
    for (auto& [key, row] : test::text_rows<Checks>()) rows.try_emplace(key, row);
    for (const char* key : {"text.max_words", "model.positions.form", "model.positions.first", "model.dropout.word",
                            "train.batch.tokens"}) {
      rows.erase(key);
    }
    return rows;
  }();
  return all;
}

std::vector<Settings> LanguageModelSettings::contexts() {
  return {{},
          {{"model.norm.kind", "none"}},
          {{"model.init", "small_init"}},
          {{"model.init", "torch_default"}},
          {{"model.init", "kaiming_released"}}};
}

std::vector<std::string> LanguageModelSettings::conditional() {
  return {"model.ds_init.alpha",  "model.ds_init.form", "model.init_qkv_fan",  "model.init_std",
          "model.norm.deviation", "model.norm.eps",     "model.norm.eps_mode", "model.norm.scope"};
}

}  // namespace

namespace test {
INSTANTIATE_TYPED_TEST_SUITE_P(Language_model, EverySetting, LanguageModelSettings);
}

}  // namespace tearless::engine
