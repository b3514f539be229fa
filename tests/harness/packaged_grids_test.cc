// Grids that come with the program, which commands take by their names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/harness/run_fixture.h"

namespace tearless::harness::packaged_grids_test {
namespace {

using nlohmann::json;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class PackagedGrids : public RunTest {
 protected:
  // The program as a wheel installs it, in a folder that is not to be written to.
  PackagedGrids() {
    fs::create_directories(installed_ / "bin");
    fs::create_directories(packaged_ / "base");
    fs::copy_file(test::program("tearless"), installed_ / "bin/tearless");
    test::write_text(packaged_ / "base/small.toml", "\"fake.updates\" = 12\n");
    std::string grid = grid_of("\"succeed\"", 0);
    grid.replace(grid.find("\"fake.updates\" = 12\n"), 20, "");
    test::write_text(packaged_ / "demo.toml", "base = \"base/small.toml\"\n" + grid);
    fs::permissions(packaged_, fs::perms::owner_read | fs::perms::owner_exec);
    fs::remove(folder_ / "grid.toml");
  }
  ~PackagedGrids() override { fs::permissions(packaged_, fs::perms::owner_all); }

  test::Finished installed(std::vector<std::string> arguments) const {
    test::Command command = this->command(std::move(arguments));
    command.arguments.front() = (installed_ / "bin/tearless").string();
    return finish(command);
  }
  std::string refusal(const std::vector<std::string>& arguments) const {
    const test::Finished refused = installed(arguments);
    EXPECT_EQ(refused.code, 2) << refused.output;
    return refused.errors;
  }
  json runs_of(const std::string& grid) const {
    const test::Finished planned = installed({"plan", grid, "--json"});
    EXPECT_EQ(planned.code, 0) << planned.errors;
    json runs = json::parse(planned.output).at("runs");
    for (json& run : runs) run = run.at("id");
    return runs;
  }

  const fs::path installed_ = folder_ / "venv", packaged_ = installed_ / "share/tearless/grids";
  const std::string line_ = "demo is the packaged grid " + (packaged_ / "demo.toml").string() + "\n";
};

TEST_F(PackagedGrids, AreRunByTheirNamesWithResultsHereAndNothingWrittenBesideThem) {
  const test::Finished run = installed({"run", "demo"});
  EXPECT_EQ(run.code, 0) << run.errors;
  EXPECT_THAT(run.errors, StartsWith(line_));
  EXPECT_EQ(runs().size(), 4u);
  EXPECT_EQ(std::distance(fs::directory_iterator(packaged_), {}), 2);
  EXPECT_EQ(installed({"run", "demo"}).code, 0);  // a sweep's id begins with this word now
  EXPECT_EQ(runs().size(), 4u);
}

TEST_F(PackagedGrids, HaveTheSameRunsAsACopyOfThemElsewhere) {
  fs::copy(packaged_, folder_ / "grids", fs::copy_options::recursive);
  fs::permissions(folder_ / "grids", fs::perms::owner_all);
  EXPECT_EQ(runs_of("demo"), runs_of("grids/demo.toml"));
}

TEST_F(PackagedGrids, AreBehindAFileOfTheName) {
  test::write_text(folder_ / "demo", grid_of("\"succeed\"", 0));
  for (const char* command : {"plan", "table"}) {
    const test::Finished here = installed({command, "demo"});
    EXPECT_THAT(here.errors, Not(HasSubstr("packaged"))) << command;
    EXPECT_EQ(here.code, 0) << here.errors;
  }
}

TEST_F(PackagedGrids, AreBehindASweepOfTheName) {
  write_grid("\"succeed\"", 0);
  EXPECT_THAT(installed({"table", "demo"}).errors, StartsWith(line_));
  EXPECT_EQ(installed({"run", "grid.toml", "--name", "demo"}).code, 0);
  const test::Finished table = installed({"table", "demo"});
  EXPECT_THAT(table.errors, Not(HasSubstr("packaged")));
  EXPECT_THAT(table.output, HasSubstr("A fake grid"));
  EXPECT_THAT(refusal({"run", "demo"}), HasSubstr("\"demo\" is the name of sweep grid-"));
}

TEST_F(PackagedGrids, AreListedForAMistypedName) {
  const std::string advice =
      "; the packaged grids in " + packaged_.string() + " can be named, too, such as demo (did you mean \"demo\"?)\n";
  EXPECT_EQ(refusal({"run", "dmeo"}), "tearless: cannot read dmeo: No such file or directory" + advice);
  EXPECT_THAT(refusal({"run", "dmeo.toml"}), Not(HasSubstr("packaged")));
  EXPECT_EQ(installed({"run", "demo"}).code, 0);
  EXPECT_THAT(refusal({"table", "dmeo"}), EndsWith("lists them" + advice));
}

}  // namespace
}  // namespace tearless::harness::packaged_grids_test
