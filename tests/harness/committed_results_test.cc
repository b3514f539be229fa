// The results that the repository has as run folders give the table of their page, without the training program.
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

TEST(CommittedResults, OfAdaSmallAreTheTableOfTheirPage) {
  const fs::path committed = test::source_root() / "results/ada_small";
  const test::TempFolder folder;
  fs::create_directories(folder / "ada_small");
  for (const char* name : {"runs", "sweeps"}) {
    fs::copy(committed / name, folder / "ada_small" / name, fs::copy_options::recursive);
  }
  const auto tearless = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {test::program("tearless").string(), "--workspace", "ada_small"});
    const test::Finished finished = test::run({.arguments = std::move(arguments), .folder = folder.path()});
    EXPECT_EQ(finished.code, 0) << finished.errors;
    return finished.output;
  };
  EXPECT_THAT(tearless({"rebuild"}), HasSubstr("143 runs and 4 sweeps"));
  EXPECT_THAT(tearless({"verify"}), HasSubstr("no differences"));
  const std::string sweep = "ada_small-c2782bcf";
  const std::string page = test::read_text(test::source_root() / "results/ada_small.md");
  for (const char* table : {"ada_small", "ada_small_choice", "ada_small_xavier", "ada_small_none"}) {
    EXPECT_THAT(page, HasSubstr(tearless({"table", table, "--format", "markdown"})));
  }

  // The means once more, from the files.
  std::map<std::string, std::pair<double, int>> sums;
  std::istringstream runs(test::read_text(committed / "sweeps" / sweep / "runs.jsonl"));
  for (std::string line; std::getline(runs, line);) {
    const json run = json::parse(line);
    const json scores = json::parse(test::read_text(committed / "runs" / run.at("id") / "scores.json"));
    const json& at = run.at("coordinates");
    auto& [sum, count] = sums[at.at("task").get<std::string>() + " " + at.at("model.norm.kind").get<std::string>()];
    sum += scores.at("test.accuracy").get<double>();
    ++count;
  }
  const json table = json::parse(tearless({"table", sweep, "--json"}));
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
