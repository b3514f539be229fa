// The recipes of grids/base/ds.toml, joey.toml and ada_*.toml against PyTorch, from the lines of a corpus on: twenty
// updates at a small size. The expected numbers are from tools/make_golden_recipes.py, which shares no code with the
// engine, reads nothing of grids/, and computes in double; what is allowed here is the rounding of float.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/settings.h"
#include "tests/engine/run/small_runs.h"
#include "tests/support/sanitized.h"

namespace tearless::engine::recipe_parity_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::Settings;
using test::with;

// Of twenty updates; rounding makes 2e-6 of it. The least of the changes of a line of a recipe makes 2e-3.
constexpr double kTolerance = 2e-5;

std::vector<std::string> golden_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(tearless::test::source_root() / "tests/golden/recipes")) {
    names.push_back(entry.path().stem());
  }
  std::ranges::sort(names);
  return names;
}

/// The settings of a base file, over those of the file that it names as its own base.
Settings base_settings(const std::string& name) {
  Settings own = read_toml_settings(tearless::test::source_root() / "grids/base" / name).values;
  const auto base = own.find("base");
  if (base == own.end()) return own;
  const Settings below = base_settings(base->second.get<std::string>());
  own.erase(base);
  return with(below, own);
}

/// `names`: a file, or several, of which later ones win.
Settings base_settings(const json& names) {
  Settings settings;
  for (const json& name : names.is_array() ? names : json::array({names})) {
    settings = with(settings, base_settings(name.get<std::string>()));
  }
  return settings;
}

class RecipeParity : public testing::TestWithParam<std::string> {
 protected:
  test::Ended train() {
    for (const char* set : {"train", "dev", "test"}) runs_.write(set, golden_.at(set));
    return runs_.train(with(with(with(base_, test::corpus_settings()), golden_.at("small").get<Settings>()),
                            {{"run.log_updates", 1}}));
  }

  const json golden_ =
      json::parse(test::read_text(tearless::test::source_root() / "tests/golden/recipes" / (GetParam() + ".json")));
  const Settings base_ = base_settings(golden_.at("base"));

 private:
  test::SmallRuns runs_;
};

INSTANTIATE_TEST_SUITE_P(OfBaseFiles, RecipeParity, testing::ValuesIn(golden_names()),
                         [](const auto& info) { return info.param; });

/// Values by metric and update.
std::map<std::string, std::map<int64_t, double>> metrics_of(const test::Ended& run) {
  std::map<std::string, std::map<int64_t, double>> metrics;
  std::istringstream lines(run.metrics);
  for (std::string line; std::getline(lines, line);) {
    const json record = json::parse(line);
    metrics[record.at("name")][record.at("step")] = record.at("value");
  }
  return metrics;
}

void expect_close(double found, double expected, const std::string& what) {
  EXPECT_NEAR(found, expected, kTolerance * std::abs(expected)) << what;
}

TEST_P(RecipeParity, OfTwentyUpdates) {
  if (tearless::test::kSanitized) GTEST_SKIP() << "many searches to the limit, of code that others run";
  const test::Ended run = train();
  ASSERT_EQ(run.code, kExitDone);
  const auto metrics = metrics_of(run);
  for (const auto& [name, expected] : golden_.at("updates").items()) {
    const auto& found = metrics.at(name);
    ASSERT_EQ(expected.size(), 20u);
    ASSERT_EQ(found.size(), expected.size()) << name;
    for (const auto& [step, value] : found) {
      expect_close(value, expected.at(static_cast<size_t>(step) - 1), fmt::format("{} of update {}", name, step));
    }
  }
  std::map<std::string, std::map<int64_t, double>> expected;
  for (const auto& [step, numbers] : golden_.at("evaluations").items()) {
    for (const auto& [name, value] : numbers.items()) expected[name][std::stoll(step)] = value;
  }
  for (const auto& [step, value] : golden_.at("epochs").items()) expected["train.loss_sum"][std::stoll(step)] = value;
  for (const auto& [name, values] : expected) {
    const auto& found = metrics.at(name);
    EXPECT_EQ(found.size(), values.size()) << name;
    for (const auto& [step, value] : values) {
      ASSERT_TRUE(found.contains(step)) << name << " of update " << step;
      expect_close(found.at(step), value, fmt::format("{} of update {}", name, step));
    }
  }
  for (const auto& [name, value] : golden_.at("scores").items()) expect_close(run.scores.at(name), value, name);
  if (!golden_.contains("dev_outputs")) return;
  std::string outputs;
  for (const std::string line : golden_.at("dev_outputs")) outputs += line + "\n";
  EXPECT_EQ(run.outputs.at("dev.hyp"), outputs);
}

TEST_P(RecipeParity, OfSettingsThatTheSmallRunReplacesOrDoesNotShow) {
  for (const auto& [key, value] : golden_.at("recipe").items()) {
    ASSERT_TRUE(base_.contains(key)) << key;
    EXPECT_EQ(base_.at(key), value) << key;
  }
}

}  // namespace
}  // namespace tearless::engine::recipe_parity_test
