// Grids of the tasks other than translation, from the examples of docs/corpus.md to tables.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/e2e/small_training.h"
#include "tests/support/bars.h"
#include "tests/support/made_up_text.h"

namespace tearless::other_tasks_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

/// The first TOML block below a heading of docs/corpus.md.
std::string example_below(const std::string& heading) {
  const std::string page = test::read_text(test::source_root() / "docs/corpus.md");
  const std::string fence = "```toml\n";
  const size_t begin = page.find(fence, page.find("\n" + heading + "\n"));
  EXPECT_NE(begin, std::string::npos) << heading;
  return page.substr(begin + fence.size(), page.find("```", begin + fence.size()) - begin - fence.size());
}

class OtherTasks : public testing::Test {
 protected:
  OtherTasks() { fs::create_directories(folder_ / "data/mnist"); }

  test::Finished tearless(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), test::program("tearless").string());
    return test::run({.arguments = std::move(arguments),
                      .environment = {{"TEARLESS_CACHE", (folder_ / "cache").string()},
                                      {"TEARLESS_ENGINE", test::program("tearless-engine").string()}},
                      .folder = folder_.path()});
  }

  /// The table of layer_norm and ada_norm with two seeds each, as JSON, from a grid over `base`.
  json table(const std::string& base, const std::string& more_settings,
             const std::string& scores = "\"test.accuracy\"") const {
    test::write_text(folder_ / "base.toml", base);
    test::write_text(folder_ / "grid.toml", "title = \"Two norms\"\nbase = \"base.toml\"\nseeds = 2\n[set]\n" +
                                                more_settings +
                                                "[axis]\n\"model.norm.kind\" = [\"layer_norm\", \"ada_norm\"]\n"
                                                "[table]\nrows = \"model.norm.kind\"\nscores = " +
                                                scores + "\n");
    const test::Finished trained = tearless({"run", "grid.toml", "--jobs", "2"});
    EXPECT_EQ(trained.code, 0) << trained.output << trained.errors;
    EXPECT_THAT(trained.output, HasSubstr(" done"));
    const test::Finished shown = tearless({"table", "grid.toml", "--json"});
    EXPECT_EQ(shown.code, 0) << shown.errors;
    return json::parse(shown.output, nullptr, /*allow_exceptions=*/false);
  }

  /// The percentage of a run's classified lines that are as in `labels`.
  double accuracy(const std::string& run, const std::vector<std::string>& labels) const {
    std::istringstream classes(test::read_text(folder_ / "results/runs" / run / "outputs/test.classes"));
    double equal = 0;
    size_t count = 0;
    for (std::string line; std::getline(classes, line); ++count) equal += line == labels.at(count);
    EXPECT_EQ(count, labels.size());
    return 100 * equal / static_cast<double>(count);
  }

  /// Each cell is the mean over its runs of the accuracy of their classes, and better than chance by far.
  void expect_learned(const json& table, const std::vector<std::string>& labels) const {
    ASSERT_TRUE(table.is_object());
    const test::Finished listed = tearless({"runs", "--json"});
    std::map<std::string, double> sums;
    for (const json& run : json::parse(listed.output)) {
      const double measured = accuracy(run.at("run"), labels);
      EXPECT_NEAR(run.at("scores").at("test.accuracy").get<double>(), measured, 1e-9);
      sums[run.at("coordinates").at("model.norm.kind")] += measured;
    }
    ASSERT_EQ(table.at("rows").size(), 2u);
    for (const json& row : table.at("rows")) {
      const std::string kind = row.at("labels").at("model.norm.kind");
      EXPECT_NEAR(row.at("cells").at(0).at("mean").get<double>(), sums.at(kind) / 2, 1e-9);
      EXPECT_GT(sums.at(kind) / 2, 85) << kind;
    }
  }

  test::TempFolder folder_;
};

TEST_F(OtherTasks, OfSentencesTellsGermanFromEnglish) {
  std::vector<std::string> labels;
  for (const auto& [set, lines] : {std::pair("train", 200), std::pair("dev", 30), std::pair("test", 30)}) {
    std::string text;
    for (const auto& [label, side] : {std::pair("0", ".de"), std::pair("1", ".en")}) {
      std::istringstream sentences(
          test::first_lines(test::source_root() / "grids/demo" / (set + std::string(side)), lines));
      for (std::string line; std::getline(sentences, line);) {
        text += std::string(label) + " " + line + "\n";
        if (set == std::string("test")) labels.emplace_back(label == std::string("0") ? "bad" : "good");
      }
    }
    test::write_text(folder_ / "data" / (set + std::string(".txt")), text);
  }
  expect_learned(table(example_below("## Sentences with a class each"), ""), labels);
}

TEST_F(OtherTasks, OfImagesTellsWhereABarIs) {
  test::write_bars(folder_.path(), "train", 450, 3);
  test::write_bars(folder_.path(), "test", 230, 4);
  for (const auto& [bars, mnist] : {std::pair("train", "train"), std::pair("test", "t10k")}) {
    const fs::path target = folder_ / "data/mnist" / mnist;
    fs::rename(folder_ / (bars + std::string(".images")), target.string() + "-images-idx3-ubyte");
    fs::rename(folder_ / (bars + std::string(".labels")), target.string() + "-labels-idx1-ubyte");
  }
  std::vector<std::string> labels;
  for (const char digit : test::read_text(folder_ / "data/mnist/t10k-labels-idx1-ubyte").substr(8)) {
    labels.push_back(std::to_string(digit));
  }
  // The example's network and schedule; its data set is a hundred times as large as this one.
  const std::string smaller =
      "data.dev_first = 50\ntrain.epoch_updates = 13\ntrain.max_epochs = 8\n"
      "model.kernel = 3\nmodel.conv1_channels = 6\nmodel.conv2_channels = 10\nmodel.hidden = 30\n";
  expect_learned(table(example_below("## Images of digits"), smaller), labels);
}

TEST_F(OtherTasks, ParsesSentencesOfThreePatterns) {
  fs::create_directories(folder_ / "data/ewt");
  uint32_t sentence = 0;
  for (const auto& [set, count] : {std::pair("train", 60u), {"dev", 14u}, {"test", 14u}}) {
    std::string text;
    for (uint32_t i = 0; i < count; ++i) text += test::tree_of_three_patterns(sentence++);
    test::write_text(folder_ / "data/ewt" / ("en_ewt-ud-" + std::string(set) + ".conllu"), text);
  }
  const json table = this->table(example_below("## Sentences with dependency trees"),
                                 "model.hidden = 24\ntrain.batch.examples = 40\ntrain.schedule.lr = 0.02\n",
                                 "[\"test.uas\", \"test.las\"]");
  ASSERT_EQ(table.at("rows").size(), 2u);
  for (const json& row : table.at("rows")) {
    // Two of the 14 trees are not projective: three of their eight heads at least are wrong.
    EXPECT_GT(row.at("cells").at(0).at("mean").get<double>(), 88) << row;
    EXPECT_LT(row.at("cells").at(0).at("mean").get<double>(), 100) << row;
    EXPECT_GT(row.at("cells").at(1).at("mean").get<double>(), 85) << row;
  }
}

TEST_F(OtherTasks, PredictsTheNextLetterAndEvaluatesTheSameModelsOtherwise) {
  fs::create_directories(folder_ / "data/enwik8");
  uint32_t seed = 3;
  for (const auto& [set, letters] : {std::pair("train", 3000u), {"dev", 400u}, {"test", 400u}}) {
    test::write_text(folder_ / "data/enwik8" / (std::string(set) + ".txt"), test::mostly_alphabetical(letters, seed++));
  }
  const std::string smaller =
      "model.layers = 1\nmodel.d_model = 16\nmodel.d_ff = 32\nmodel.heads = 2\nmodel.memory = 16\n"
      "model.init = \"torch_default\"\nevaluate.segment = 16\nevaluate.memory = 16\ntrain.batch.streams = 8\n"
      "train.batch.segment = 16\ntrain.epoch_updates = 100\ntrain.max_updates = 400\ntrain.schedule.peak_lr = 0.01\n"
      "[derived.short]\nkind = \"evaluate\"\nsegment = 2\nmemory = 0\n";
  const json table =
      this->table(example_below("## Text for a language model"), smaller, "[\"test.bpc\", \"short.test.bpc\"]");
  ASSERT_EQ(table.at("rows").size(), 2u);
  for (const json& row : table.at("rows")) {
    const double bpc = row.at("cells").at(0).at("mean"), without_memory = row.at("cells").at(1).at("mean");
    // A letter is the next one with probability 0.9: 0.67 bits at best, 2.32 without a look at the text.
    EXPECT_GT(bpc, 0.4);
    EXPECT_LT(bpc, 1.3);
    EXPECT_NE(bpc, without_memory);
    EXPECT_LT(without_memory, 1.6);
  }
}

}  // namespace
}  // namespace tearless::other_tasks_test
