// What a terminal obeys reaches none by --json.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/harness/run_fixture.h"

namespace tearless::harness::json_escapes_test {
namespace {

using testing::HasSubstr;

class JsonEscapes : public RunTest {};

TEST_F(JsonEscapes, NoCommandPrintsTheTerminalControlsOfALabel) {
  const std::string label = "a\u009b31m\x7f\u202e\u2028\x1b[1m";  // CSI in one byte, DEL, right to left, a line, ESC
  test::write_text(folder_ / "grid.toml",
                   "title = \"T\\u009b\"\n[set]\n\"fake.updates\" = 3\n[axis]\n\"model.kind\" = "
                   "[\"a\\u009b31m\\u007f\\u202e\\u2028\\u001b[1m\", \"b\"]\n[table]\nscores = [\"test.score\"]\n");
  ok({"run", "grid.toml"});
  const std::string shown = "a\\u009b31m\\u007f\\u202e\\u2028\\u001b[1m";
  const std::vector<std::vector<std::string>> commands = {{"plan", "grid.toml"},
                                                          {"submit", "grid.toml"},
                                                          {"status"},
                                                          {"runs"},
                                                          {"table", "last"},
                                                          {"explain", "grid.toml"},
                                                          {"sql", "SELECT * FROM runs"},
                                                          {"verify"},
                                                          {"verify-resume", "all"},
                                                          {"pause"},
                                                          {"resume"},
                                                          {"retry", "last"},
                                                          {"cancel", "last"},
                                                          {"clean", "--dry-run"},
                                                          {"delete", "last", "--dry-run"}};
  const std::string quoted = nlohmann::json(label).dump(), inside = quoted.substr(1, quoted.size() - 2);
  for (std::vector<std::string> command : commands) {
    const std::string name = testing::PrintToString(command);
    command.emplace_back("--json");
    const std::string output = tearless(command).output;
    EXPECT_TRUE(nlohmann::json::accept(output)) << name << output;
    for (const char* control : {"\u009b", "\x7f", "\u202e", "\u2028", "\x1b"}) {
      EXPECT_EQ(output.find(control), std::string::npos) << name << output;
    }
    if (command.front() == "runs" || command.front() == "table" || command.front() == "explain") {
      EXPECT_THAT(output, HasSubstr(shown)) << name;
      EXPECT_THAT(nlohmann::json::parse(output).dump(), HasSubstr(inside)) << name;
    }
  }
  const test::Finished sweeps = tearless({"table", "last", "--format", "json"});
  EXPECT_THAT(sweeps.output, HasSubstr(shown)) << sweeps.errors;
}

}  // namespace
}  // namespace tearless::harness::json_escapes_test
