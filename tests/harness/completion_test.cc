// Completion and the man page: all that --help lists is in them, and bash completes with it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "tests/harness/run_fixture.h"

namespace tearless::harness::completion_test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

class CompletionTest : public RunTest {
 protected:
  std::vector<std::string> offered_by(const std::string& shell, const std::string& script) const {
    test::Command asked = command({});
    asked.arguments = {shell, "-c", script};
    asked.environment["PATH"] = test::program("tearless").parent_path().string() + ":/usr/bin:/bin";
    const test::Finished finished = test::run(asked);
    EXPECT_EQ(finished.errors, "");
    std::istringstream in(finished.output);
    std::vector<std::string> all;
    for (std::string line; std::getline(in, line);) all.push_back(line);
    return all;
  }

  // What bash offers for the last word of a command line.
  std::vector<std::string> offered(const std::string& words) const {
    return offered_by("/bin/bash", "source <(tearless completion bash); COMP_WORDS=(tearless " + words +
                                       "); COMP_CWORD=$((${#COMP_WORDS[@]}-1)); _tearless tearless; "
                                       "printf '%s\\n' \"${COMPREPLY[@]}\"");
  }

  // The commands that --help lists.
  std::vector<std::string> commands() const {
    std::istringstream in(tearless({"--help"}).output);
    std::vector<std::string> names;
    bool listed = false;
    for (std::string line; std::getline(in, line);) {
      if (line.ends_with(':') && line != "Options:") {  // of a group
        listed = true;
      } else if (listed && line.starts_with("  ") && line[2] != ' ') {
        names.push_back(line.substr(2, line.find(' ', 2) - 2));
      }
    }
    return names;
  }
};

TEST_F(CompletionTest, EveryCommandAndOptionOfTheHelpIsOfferedAndOnTheManPage) {
  const std::vector<std::string> names = commands();
  ASSERT_THAT(names, AllOf(Contains("run"), Not(Contains("completion")), Not(Contains("supervise"))));
  EXPECT_THAT(offered("''"), testing::UnorderedElementsAreArray(names));
  EXPECT_THAT(offered("run -"), AllOf(Contains("--runs-per-gpu"), Contains("--workspace"), Not(Contains("--follow"))));
  const std::string page = tearless({"manual"}).output;
  for (const std::string& name : names) {
    const std::string on_page = std::regex_replace(name, std::regex("-"), "\\-");
    EXPECT_THAT(page, HasSubstr("\n.SS " + on_page + "\n.B tearless " + on_page + "\n"));
  }
  EXPECT_THAT(page, AllOf(HasSubstr("\\fB\\-f, \\-\\-follow\\fR\n"), HasSubstr("\\fB\\-\\-stops\\fR \\fIN=3\\fR\n")));
}

TEST_F(CompletionTest, ThePageOfCommandsIsWhatTheManualPrints) {
  // Not EXPECT_EQ, which prints both pages and drowns the sentence.
  EXPECT_TRUE(tearless({"manual", "--markdown"}).output == test::read_text(test::source_root() / "docs/commands.md"))
      << "docs/commands.md is not of these commands; run build/bin/tearless manual --markdown > docs/commands.md";
}

TEST_F(CompletionTest, TheHelpOfEveryCommandNamesTheWorkspaceJsonWhereItHasOneAndItsPage) {
  const std::string refused = tearless({"watch", "--json"}).errors;  // "…; use it with one of: plan, …"
  ASSERT_THAT(refused, AllOf(HasSubstr(" plan,"), Not(HasSubstr(" watch,"))));
  for (const std::string& name : commands()) {
    if (name == "wrap") continue;  // it needs no workspace
    const std::string help = tearless({name, "--help"}).output;
    EXPECT_THAT(help, HasSubstr("\n  --workspace ")) << name;
    const bool has_json = std::regex_search(refused, std::regex(" " + name + "[,\n]"));
    EXPECT_EQ(help.find("\n  --json ") != std::string::npos, has_json) << name;
    std::smatch page;
    ASSERT_TRUE(std::regex_search(help, page, std::regex("\nMore: (docs/[a-z_]+\\.md)\n"))) << name;
    EXPECT_TRUE(fs::exists(test::source_root() / page.str(1))) << name << ": " << page.str(1);
  }
}

TEST_F(CompletionTest, BashCompletesCommandsOptionsGridsSweepsAndRuns) {
  ASSERT_EQ(tearless({"submit", "grid.toml", "--name", "baseline"}).code, 0);
  const std::string sweep = fs::directory_iterator(folder_ / "results/sweeps")->path().filename();
  const std::string run = tearless({"sql", "SELECT id FROM runs_view ORDER BY id LIMIT 1"}).output.substr(3, 16);
  EXPECT_THAT(offered("pa"), testing::ElementsAre("pause"));
  EXPECT_THAT(offered("run --prio"), testing::ElementsAre("--priority"));
  EXPECT_THAT(offered("run --works"), testing::ElementsAre("--workspace"));
  EXPECT_THAT(offered("run gri"), testing::ElementsAre("grid.toml"));
  EXPECT_THAT(offered("pause grid-"), testing::ElementsAre(sweep));
  EXPECT_THAT(offered("pause " + run.substr(0, 12)), testing::ElementsAre(run));
  for (const char* command : {"runs", "status", "table", "explain", "diff", "delete"}) {
    EXPECT_THAT(offered(command + std::string(" base")), testing::ElementsAre("baseline")) << command;
  }
  EXPECT_THAT(offered("runs wait"), testing::ElementsAre("waiting_data"));
  EXPECT_THAT(offered("--workspace elsewhere pause grid-"), Not(Contains(sweep)));
  EXPECT_THAT(offered("run --only gri"), testing::ElementsAre("")) << "the value of an option";
}

TEST_F(CompletionTest, FoldersAreOfferedSinceGridsMayBeInThem) {
  fs::create_directories(folder_ / "grids/more");
  fs::copy_file(folder_ / "grid.toml", folder_ / "grids/small.toml");
  test::write_text(folder_ / "grids/notes.txt", "");
  EXPECT_THAT(offered("plan grids/"), testing::UnorderedElementsAre("grids/more/", "grids/small.toml"));
  EXPECT_THAT(offered("plan nowhere/"), testing::ElementsAre(""));
}

TEST_F(CompletionTest, FishAndZshCompleteWhereTheyAreInstalled) {
  if (fs::exists("/usr/bin/fish")) {
    EXPECT_THAT(offered_by("/usr/bin/fish", "tearless completion fish | source; complete -C 'tearless pa'"),
                testing::ElementsAre(testing::StartsWith("pause\t")));
    EXPECT_THAT(offered_by("/usr/bin/fish", "tearless completion fish | source; complete -C 'tearless run gri'"),
                testing::ElementsAre(testing::StartsWith("grid.toml")));
  }
  if (fs::exists("/usr/bin/zsh")) {
    const std::string script =
        "compdef() {}; _files() { echo files; }; _describe() { print -l $found; }; source <(tearless completion zsh); ";
    EXPECT_THAT(offered_by("/usr/bin/zsh", script + "words=(tearless pa) CURRENT=2 _tearless"),
                testing::ElementsAre(testing::StartsWith("pause:")));
    EXPECT_THAT(offered_by("/usr/bin/zsh", script + "words=(tearless run --only gri) CURRENT=4 _tearless"),
                testing::ElementsAre("files"));
  }
}

TEST_F(CompletionTest, AnotherShellIsRefused) {
  const test::Finished refused = tearless({"completion", "bsh"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.errors, HasSubstr("there is no completion for \"bsh\" (did you mean \"bash\"?)"));
  EXPECT_EQ(tearless({"completion"}).code, 2);
}

}  // namespace
}  // namespace tearless::harness::completion_test
