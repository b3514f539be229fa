// Every grid in the repository is one that the real engine accepts, corpora there or not.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/paths.h"

namespace tearless {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// The answer of `tearless --json plan GRID` on an empty workspace.
json plan_of(const fs::path& grid) {
  const test::TempFolder folder;
  const std::string out = folder / "plan.json";
  const std::string command = test::program("tearless").string() + " --engine " +
                              test::program("tearless-engine").string() + " --workspace " +
                              (folder / "results").string() + " --json plan " + grid.string() + " > " + out;
  EXPECT_EQ(std::system(command.c_str()), 0) << grid;
  return json::parse(test::read_text(out), nullptr, /*allow_exceptions=*/false);
}

TEST(ShippedGrids, AllGoThroughPlan) {
  int count = 0;
  for (const auto& entry : fs::directory_iterator(test::source_root() / "grids")) {
    if (entry.path().extension() != ".toml") continue;
    SCOPED_TRACE(entry.path());
    const json plan = plan_of(entry.path());
    ASSERT_TRUE(plan.is_object());
    EXPECT_TRUE(plan.at("errors").empty());
    EXPECT_GT(plan.at("runs").size(), 0u);
    ++count;
  }
  EXPECT_GE(count, 3);
}

TEST(ShippedGrids, TheDemoHasItsCorpusInTheRepository) {
  const json plan = plan_of(test::source_root() / "grids/demo.toml");
  EXPECT_EQ(plan.at("counts").at("to_run"), 12);
}

TEST(ShippedGrids, Table3IsTwentySettingsAndSaysHowToGetWhatIsMissing) {
  const json plan = plan_of(test::source_root() / "grids/twt_table3.toml");
  EXPECT_EQ(plan.at("runs").size(), 60u);
  for (const json& run : plan.at("runs")) {
    if (run.at("plan") != "waiting_for_data") continue;
    const std::string sentence = run.at("waiting_for");
    EXPECT_NE(sentence.find("data/"), std::string::npos) << sentence;
  }
}

}  // namespace
}  // namespace tearless
