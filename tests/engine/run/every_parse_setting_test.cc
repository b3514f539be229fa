// The rows of the task parse's own settings. Those that every task has are in every_setting_test.cc.
#include "tests/engine/run/every_setting.h"
#include "tests/engine/run/small_treebank.h"

namespace tearless::engine {
namespace {

using test::Settings;
using test::with;

class ParseSettings final : public test::SettingChecks {
 public:
  static constexpr const char* kTask = "parse";
  static constexpr bool kHasCommonRows = false;
  static Settings small() { return test::small_parser(); }
  static const test::SettingRows<ParseSettings>& rows();
  static std::vector<Settings> contexts();
  static std::vector<std::string> conditional();

  ParseSettings() {
    test::write_treebank(runs_.folder());
    test::write_treebank(runs_.folder(), 50, "other_");
  }

 private:
  Settings training_data_elsewhere() override {
    test::write_text(runs_.folder() / "copy.conllu", test::read_text(runs_.folder() / "train.conllu"));
    return {{"data.train", "copy.conllu"}};
  }
};

const test::SettingRows<ParseSettings>& ParseSettings::rows() {
  using Checks = ParseSettings;
  static const test::SettingRows<Checks> all = [] {
    test::SettingRows<Checks> rows = {
        {"data.name", {"another name", &Checks::provisional_id_differs}},
        {"data.how_to_get", {"ask the librarian", &Checks::missing_data_are_explained}},
        {"data.train", {"other_train.conllu", &Checks::bytes_count}},
        {"data.dev", {"other_dev.conllu", &Checks::bytes_count}},
        {"data.test", {"other_test.conllu", &Checks::bytes_count}},
        {"data.tags", {"coarse", &Checks::training_differs}},
        {"data.labels", {"full", &Checks::training_differs}},
        {"data.lower_case", {true, &Checks::training_differs}},
        {"data.min_count", {8, &Checks::training_differs}},
        {"data.train_sha256", {std::string(64, '0'), &Checks::other_bytes_are_refused}},
        {"data.dev_sha256", {std::string(64, '0'), &Checks::other_bytes_are_refused}},
        {"data.test_sha256", {std::string(64, '0'), &Checks::other_bytes_are_refused}},
        {"model.features", {"words_tags", &Checks::training_differs}},
        {"model.embedding", {5, &Checks::training_differs}},
        {"model.hidden", {9, &Checks::training_differs}},
        {"model.hidden_layers", {1, &Checks::training_differs}},
        {"model.activation", {"cube", &Checks::training_differs}},
        {"model.output_bias", {false, &Checks::training_differs}},
        {"model.softmax", {"all", &Checks::training_differs}},
        {"model.init", {"uniform", &Checks::training_differs}},
        {"model.embedding_init", {"normal", &Checks::training_differs}},
        {"model.dropout.hidden", {0.4, &Checks::training_differs}},
        {"model.dropout.rescale", {false, &Checks::training_differs}},
        {"train.batch.examples", {50, &Checks::training_differs}},
    };
    rows.merge(test::norm_rows<Checks>());
    return rows;
  }();
  return all;
}

std::vector<Settings> ParseSettings::contexts() {
  return {{{"model.dropout.hidden", 0.0}}, {{"model.norm.kind", "none"}}};
}

std::vector<std::string> ParseSettings::conditional() {
  return {"model.dropout.rescale", "model.norm.deviation", "model.norm.eps", "model.norm.eps_mode"};
}

}  // namespace

namespace test {
INSTANTIATE_TYPED_TEST_SUITE_P(Parse, EverySetting, ParseSettings);
}

}  // namespace tearless::engine
