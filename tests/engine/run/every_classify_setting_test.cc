// The rows of classify's own settings. Those that every task has are in every_setting_test.cc.
#include "engine/ops/random.h"
#include "tests/engine/run/every_setting.h"

namespace tearless::engine {
namespace {

using test::Change;
using test::Ended;
using test::Labelled;
using test::Settings;
using test::with;
using testing::HasSubstr;

/// Sentences of two to six words with every second one of class 1. Some words differ in a capital letter alone, one of
/// them outside ASCII, and some occur once.
std::vector<Labelled> made_up_sentences(int count, uint32_t seed) {
  const std::vector<std::string> words = {"fine", "Fine", "poor", "été", "Été", "plot", "cast", "the", "The", "not"};
  const RandomStream random(seed, "made up");
  std::vector<Labelled> sentences;
  for (int i = 0; i < count; ++i) {
    const auto draw = [&](uint32_t n) { return random.draw(n, 0, static_cast<uint32_t>(i), 0); };
    std::string sentence = i % 9 == 0 ? "once" + std::to_string(i) : words[draw(98) % words.size()];
    for (uint32_t n = 0; n < 1 + draw(99) % 5; ++n) sentence += " " + words[draw(n) % words.size()];
    sentences.emplace_back(sentence, i % 2);
  }
  return sentences;
}

/// One file a class, as SmallRuns::write_labelled() one file.
void write_class_files(const test::SmallRuns& runs, const std::string& name, const std::vector<Labelled>& sentences) {
  std::string bad, good;
  for (const auto& [sentence, label] : sentences) (label == 0 ? bad : good) += sentence + "\n";
  test::write_text(runs.folder() / (name + ".bad"), bad);
  test::write_text(runs.folder() / (name + ".good"), good);
}

Settings class_files() {
  return {{"data.form", "class_files"}, {"data.train", "pool"}, {"data.dev_count", 6}, {"data.test_count", 6}};
}

class ClassifySettings final : public test::SettingChecks {
 public:
  static constexpr const char* kTask = "classify";
  static constexpr bool kHasCommonRows = false;
  static Settings small();
  static const test::SettingRows<ClassifySettings>& rows();
  static std::vector<Settings> contexts();
  static std::vector<std::string> conditional();

  ClassifySettings() {
    for (const auto& [set, count] : {std::pair("train", 40), std::pair("dev", 7), std::pair("test", 7)}) {
      runs_.write_labelled(set, made_up_sentences(count, fnv1a32(set)));
    }
    runs_.write_labelled("other", made_up_sentences(40, 6));
    // The same name in both forms.
    runs_.write_labelled("pool", made_up_sentences(40, 7));
    write_class_files(runs_, "pool", made_up_sentences(40, 7));
  }

  /// Their order is the labels' of class_files. Of labelled_lines the file has the labels, so only the names in the
  /// predictions change.
  void names_are_in_the_order_of_labels(const Change& c) {
    EXPECT_NE(runs_.canonical(c.before), runs_.canonical(c.after));
    const Ended &before = trained(c.before), &after = trained(c.after);
    EXPECT_EQ(before.metrics, after.metrics);
    EXPECT_EQ(before.scores_text, after.scores_text);
    const auto renamed = [](const std::string& text) {
      std::string swapped;
      std::istringstream lines(text);
      for (std::string line; std::getline(lines, line);) swapped += line == "bad" ? "good\n" : "bad\n";
      return swapped;
    };
    for (const char* file : {"dev.classes", "test.classes"}) {
      EXPECT_EQ(renamed(before.outputs.at(file)), after.outputs.at(file)) << file;
    }
    const Change drawn = {with(c.before, class_files()), with(c.after, class_files())};
    training_differs(drawn);
  }

 private:
  Settings training_data_elsewhere() override {
    test::write_text(runs_.folder() / "copy", test::read_text(runs_.folder() / "train"));
    return {{"data.train", "copy"}};
  }
};

/// Six updates of a tiny model in which everything is switched on.
Settings ClassifySettings::small() {
  return with(with(test::labelled_settings(), test::tiny_layers_and_training()),
              {{"text.min_count", 2}, {"text.max_words", 0}, {"model.layers", 1}, {"model.dropout.pooled", 0.1}});
}

const test::SettingRows<ClassifySettings>& ClassifySettings::rows() {
  using Checks = ClassifySettings;
  static const test::SettingRows<Checks> all = [] {
    test::SettingRows<Checks> rows = {
        {"data.form",
         {"class_files", &Checks::training_differs, with(class_files(), {{"data.form", "labelled_lines"}})}},
        {"data.classes", {"good bad", &Checks::names_are_in_the_order_of_labels}},
        {"data.encoding", {"windows-1252", &Checks::training_differs}},
        {"data.train_count", {20, &Checks::training_differs, class_files()}},
        {"data.dev_count", {9, &Checks::training_differs, class_files()}},
        {"data.test_count", {9, &Checks::training_differs, class_files()}},
        {"data.split_seed", {2, &Checks::training_differs, class_files()}},
        {"text.min_count", {2, &Checks::training_differs, {{"text.min_count", 1}}}},
        {"text.lower_case", {true, &Checks::training_differs, {{"text.lower_case", false}}}},
        {"model.layers", {2, &Checks::training_differs}},
        {"model.sublayers", {"ffn, self_attention", &Checks::training_differs}},
        {"model.norm.scope", {"final_only", &Checks::training_differs, {{"model.norm.kind", "rms_norm"}}}},
        {"model.dropout.pooled", {0.4, &Checks::training_differs}},
    };
    rows.merge(test::text_rows<Checks>());
    return rows;
  }();
  return all;
}

std::vector<Settings> ClassifySettings::contexts() {
  return {
      {},  // labelled_lines
      class_files(),
      {{"model.norm.kind", "none"}},
      {{"model.init", "small_init"}},
      {{"model.init", "torch_default"}},
      {{"model.init", "kaiming_released"}},
  };
}

std::vector<std::string> ClassifySettings::conditional() {
  return {
      "data.dev",           "data.dev_count",   "data.dev_sha256",      "data.split_seed",     "data.test",
      "data.test_count",    "data.test_sha256", "data.train_count",     "model.ds_init.alpha", "model.ds_init.form",
      "model.init_qkv_fan", "model.init_std",   "model.norm.deviation", "model.norm.eps",      "model.norm.eps_mode",
      "model.norm.scope"};
}

}  // namespace

namespace test {
INSTANTIATE_TYPED_TEST_SUITE_P(Classify, EverySetting, ClassifySettings);
}

}  // namespace tearless::engine
