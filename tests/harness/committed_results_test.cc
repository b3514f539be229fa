// The results that the repository has as an archive give the tables of their page, in the layouts of the grids as they
// are now, without the training program and without data.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace tearless::committed_results_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

TEST(CommittedResults, OfAdaSmallAreTheTablesOfTheirPage) {
  const fs::path committed = test::source_root() / "results/ada_small.tar.gz";
  ASSERT_LT(fs::file_size(committed), 1000000u);
  const test::TempFolder folder;
  const auto tearless = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {test::program("tearless").string(), "--workspace", committed.string()});
    const test::Finished finished =
        test::run({.arguments = std::move(arguments),
                   .environment = {{"XDG_CACHE_HOME", (folder / "cache").string()}, {"TEARLESS_ENGINE", "none"}},
                   .folder = folder.path()});
    EXPECT_EQ(finished.code, 0) << finished.errors;
    EXPECT_EQ(finished.errors, "");
    return finished.output;
  };
  EXPECT_THAT(tearless({"verify"}), HasSubstr("143 runs and 4 sweeps: no differences"));
  const std::string page = test::read_text(test::source_root() / "results/ada_small.md");
  for (const std::string name : {"ada_small", "ada_small_choice", "ada_small_xavier", "ada_small_none"}) {
    const std::string layout = (test::source_root() / "grids" / (name + ".toml")).string();
    EXPECT_THAT(page, HasSubstr(tearless({"table", name, "--layout", layout, "--format", "markdown"})));
    EXPECT_THAT(page, HasSubstr(" table " + name + " --layout grids/" + name + ".toml --format markdown\n"));
  }

  for (const std::string name : {"ada_small", "ada_small_xavier"}) {
    const std::string layout = (test::source_root() / "grids" / (name + ".toml")).string();
    EXPECT_THAT(page, HasSubstr(tearless({"check-table", name, "--layout", layout, "--format", "markdown"})));
    EXPECT_THAT(page, HasSubstr(" check-table " + name + " --layout grids/" + name + ".toml --format markdown\n"));
  }

  // The means once more, from the files as tar unpacks them.
  ASSERT_EQ(test::run({.arguments = {"/bin/tar", "xzf", committed.string(), "-C", folder.path().string()}}).code, 0);
  std::map<std::string, std::pair<double, int>> sums;
  std::istringstream runs(test::read_text(folder / "sweeps/ada_small-c2782bcf/runs.jsonl"));
  for (std::string line; std::getline(runs, line);) {
    const json run = json::parse(line);
    const json scores = json::parse(test::read_text(folder.path() / "runs" / run.at("id") / "scores.json"));
    const json& at = run.at("coordinates");
    auto& [sum, count] = sums[at.at("task").get<std::string>() + " " + at.at("model.norm.kind").get<std::string>()];
    sum += scores.at("test.accuracy").get<double>();
    ++count;
  }
  const json table = json::parse(tearless({"table", "ada_small-c2782bcf", "--json"}));
  size_t cells = 0;
  for (const json& row : table.at("rows")) {
    for (size_t i = 0; i < row.at("cells").size(); ++i) {
      const json& column = table.at("columns").at(i);
      if (column.at("score") != "test.accuracy") continue;
      const auto& [sum, count] = sums.at(column.at("labels").at("task").get<std::string>() + " " +
                                         row.at("labels").at("model.norm.kind").get<std::string>());
      EXPECT_EQ(count, 5);
      EXPECT_NEAR(row.at("cells").at(i).at("mean").get<double>(), sum / count, 1e-9);
      EXPECT_TRUE(row.at("cells").at(i).at("published").is_number());
      ++cells;
    }
  }
  EXPECT_EQ(cells, 21u);
}

}  // namespace
}  // namespace tearless::committed_results_test
