// The commands that screens tell people to type work as they stand there: where the user stands, with the workspace and
// the training program that the command before them was given.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "tests/harness/run_fixture.h"

namespace tearless::harness::next_commands_test {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

class NextCommands : public RunTest {
 protected:
  NextCommands() {
    has_daemon_ = true;
    fs::create_directories(folder_ / "my grids");
    fs::copy(test::program("fake-engine"), folder_ / "my engine");
  }
  ~NextCommands() override { typed("tearless stop --now --wait --workspace 'a workspace'"); }

  // Nothing in the environment or the folder says which workspace and program are meant.
  test::Finished typed(const std::string& line) const {
    const std::string path = test::program("tearless").parent_path().string() + ":" + std::getenv("PATH");
    return test::run({.arguments = {"/bin/sh", "-c", line},
                      .environment = {{"PATH", path}, {"TEARLESS_ENGINE", ""}},
                      .folder = folder_.path()});
  }
  // A command with both, as a user types it first.
  std::string of(const std::string& command) const {
    const test::Finished finished = typed("tearless " + command + " --workspace 'a workspace' --engine './my engine'");
    const std::string text = finished.output + finished.errors;
    for (const std::string& next : next_commands_in(text)) seen_.insert(next);
    return text;
  }
  static std::vector<std::string> next_commands_in(const std::string& text) {
    // Up to the end of a sentence: what follows a command is ". ", "; ", ", then", ")" or the end of the line.
    static const std::regex kCommand(R"(tearless (?:[a-z-]+)(?: (?:'[^']*'|[^\s;,`)'"]+))*)");
    std::vector<std::string> commands;
    for (std::sregex_iterator at(text.begin(), text.end(), kCommand), end; at != end; ++at) {
      std::string command = at->str();
      const bool is_told = at->position() >= 2 && (text[at->position() - 2] == ':' || text[at->position() - 1] == '`');
      while (command.ends_with('.')) command.pop_back();
      const bool names_nothing = command == "tearless run" || command.find("GRID") != std::string::npos;
      if (is_told && !names_nothing) commands.push_back(command);
    }
    return commands;
  }
  void write(const std::string& settings, const std::string& behaviours, const std::string& more = "") const {
    test::write_text(folder_ / "my grids/a grid.toml", "seeds = 1\n[set]\n" + settings +
                                                           "[axis]\n\"fake.behaviour\" = [" + behaviours +
                                                           "]\n[table]\nscores = [\"test.score\"]\n" + more);
  }

  mutable std::set<std::string> seen_;
};

TEST_F(NextCommands, NameTheGridSoThatTheyWorkFromAnotherFolder) {
  write("\"fake.updates\" = 300\n\"fake.sleep_ms\" = 100\n", "\"succeed\"");
  of("submit 'my grids/a grid.toml'");
  of("cancel last");
  const auto commands_from = [&](const std::string& folder) {
    return next_commands_in(
        typed("cd " + folder + " && tearless table last --workspace '" + (folder_ / "a workspace").string() + "'")
            .output);
  };
  EXPECT_THAT(commands_from("."), Contains(HasSubstr("tearless run 'my grids/a grid.toml' ")));
  EXPECT_THAT(commands_from("'my grids'"),
              Contains(HasSubstr("tearless run '" + (folder_ / "my grids/a grid.toml").string() + "' ")));
}

TEST_F(NextCommands, OfEveryScreenWorkAsTyped) {
  const std::string grid = "'my grids/a grid.toml'";
  write("\"fake.updates\" = 3\n", "\"succeed\", \"diverge\", \"crash\"");
  of("plan " + grid);
  of("submit " + grid);
  of("wait last");
  of("explain " + grid);
  of("run " + grid);
  of("plan " + grid);
  of("table " + grid);
  of("explain last");
  of("watch last");
  of("status");
  of("cancel failed");
  of("explain cancelled");
  // One run that a user holds, one that waits for a device, and one whose data are missing.
  write("\"fake.updates\" = 400\n\"fake.sleep_ms\" = 20\n", "\"succeed\"");
  of("submit " + grid);
  of("pause last");
  of("watch last");
  of("explain last");
  of("resume last");
  of("pause 1");
  of("explain 1");
  of("explain running");
  of("status");
  write("\"fake.device\" = \"cuda\"\n", "\"succeed\"");
  of("submit " + grid);
  of("explain last");
  write("\"data.train\" = \"corpus\"\n", "\"succeed\"");
  of("plan " + grid);
  of("submit " + grid);
  of("explain last");
  of("delete last");
  of("cancel all");
  of("watch last");
  write("\"fake.updates\" = 3\n", "\"succeed\", \"diverge\", \"crash\"");
  of("run " + grid);
  of("delete 1 --yes");
  of("plan " + grid);
  of("table " + grid);
  of("verify");
  EXPECT_GE(seen_.size(), 8u);
  EXPECT_THAT(seen_, Contains(HasSubstr("--engine './my engine'")));
  for (const std::string& command : seen_) {
    SCOPED_TRACE(command);
    if (command.starts_with("tearless log -f")) continue;  // it lasts as long as the run
    const test::Finished finished = typed("timeout 60 " + command + " </dev/null");
    EXPECT_NE(finished.code, 2) << finished.errors;
    EXPECT_NE(finished.code, 127) << finished.errors;
  }
}

}  // namespace
}  // namespace tearless::harness::next_commands_test
