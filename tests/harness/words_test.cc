// The words of the command line: the same for every command, names of sweeps among them, and the workspace that is
// meant.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "tests/harness/run_fixture.h"

namespace tearless::harness::words_test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

class WordsTest : public RunTest {
 protected:
  json listed(std::vector<std::string> words) const {
    words.insert(words.begin(), {"runs", "--json"});
    return json::parse(ok(words).output);
  }
  json sweeps() const { return json::parse(ok({"status", "--json"}).output).at("sweeps"); }  // newest first
  std::string id_of(int place) const { return listed({std::to_string(place)}).at(0).at("run"); }
  std::string refusal(const std::vector<std::string>& arguments) const {
    const test::Finished refused = tearless(arguments);
    EXPECT_EQ(refused.code, 2) << testing::PrintToString(arguments) << refused.output;
    EXPECT_EQ(refused.output, "") << testing::PrintToString(arguments);
    return refused.errors;
  }
  void edit_grid() const {
    std::string text = test::read_text(folder_ / "grid.toml");
    test::write_text(folder_ / "grid.toml", text.replace(text.find("= 12"), 4, "= 13"));
  }
  // What a shell in `folder` prints.
  test::Finished shell(const std::string& typed, const std::string& folder = ".",
                       const std::string& workspace = "") const {
    test::Command command = this->command({});
    command.arguments = {"/bin/sh", "-c", typed};
    command.folder = folder_ / folder;
    command.environment["PATH"] = test::program("tearless").parent_path().string() + ":/usr/bin:/bin";
    command.environment["TEARLESS_IDLE_SECONDS"] = "0";
    if (!workspace.empty()) command.environment["TEARLESS_WORKSPACE"] = workspace;
    return test::run(command);
  }
};

// --- which sweeps and runs -------------------------------------------------------------------------------------------

TEST_F(WordsTest, EveryCommandTakesASweepByItsIdNameGridFileAndAsTheLast) {
  ok({"run", "grid.toml", "--name", "baseline"});
  const std::string id = sweeps().at(0).at("id");
  for (const char* command : {"table", "status", "runs", "explain"}) {
    const std::string shown = ok({command, id}).output;
    EXPECT_THAT(shown, HasSubstr(std::string(command) == "table" ? "model.kind" : "done")) << command;
    for (const std::string& word : {std::string("last"), std::string("baseline"), id.substr(0, 7)}) {
      EXPECT_EQ(ok({command, word}).output, shown) << command << " " << word;
    }
    if (std::string(command) == "explain") continue;
    EXPECT_EQ(ok({command, "grid.toml"}).output, shown) << command;
  }
  EXPECT_EQ(ok({"table"}).output, ok({"table", "last"}).output) << "without words";
  for (const char* command : {"wait", "pause", "resume", "retry"}) ok({command, "baseline"});
  EXPECT_THAT(tearless({"verify-resume", "baseline", "--stops", "1"}).output, HasSubstr("\n4 runs: "));
  EXPECT_THAT(ok({"delete", "baseline", "--dry-run"}).output, HasSubstr(id));
}

TEST_F(WordsTest, EveryCommandTakesARunByItsPlaceStateAndAxis) {
  ok({"run", "grid.toml"});
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"2"}, {"last", "2"}, {"model.kind=a", "seed=2"}, {"done", "1-2", "seed=2"}, {"grid.toml", "2"}}) {
    for (const char* command : {"explain", "log", "runs"}) {
      std::vector<std::string> typed = words;
      typed.insert(typed.begin(), command);
      EXPECT_EQ(ok(typed).output, ok({command, id_of(2)}).output) << testing::PrintToString(typed);
    }
  }
  EXPECT_EQ(ok({"diff", "1", "4"}).output, ok({"diff", id_of(1), id_of(4)}).output);
  EXPECT_THAT(ok({"diff", "1", "2"}).output, HasSubstr("train.seed"));
  EXPECT_EQ(json::parse(ok({"explain", "model.kind=b", "--json"}).output).size(), 2u);
}

// An axis may be called as the option that it is of another tool.
TEST_F(WordsTest, WhatStandsBehindTwoHyphensIsNoOption) {
  test::write_text(folder_ / "grid.toml",
                   "[[axis.\"--lr\"]]\nlabel = \"0.1\"\nset = { \"model.lr\" = 0.1 }\n[[axis.\"--lr\"]]\n"
                   "label = \"0.2\"\nset = { \"model.lr\" = 0.2 }\n");
  ok({"run", "grid.toml"});
  EXPECT_THAT(ok({"explain", "grid.toml", "--", "--lr=0.1"}).output,
              AllOf(HasSubstr("--lr=0.1"), Not(HasSubstr("--lr=0.2"))));
  EXPECT_THAT(ok({"explain", "--json", "--", "--lr=0.2", "last"}).output, HasSubstr("--lr=0.2"));
  EXPECT_EQ(ok({"log", "last", "--", "--lr=1e-1"}).output, ok({"log", "1"}).output);
  EXPECT_THAT(tearless({"explain", "grid.toml", "--lr=0.1"}).errors,
              HasSubstr("tearless explain has no option \"--lr\""));
}

TEST_F(WordsTest, WordsWithoutASweepMeanTheNewestOnly) {
  ok({"run", "grid.toml"});
  edit_grid();
  ok({"run", "grid.toml", "--only", "model.kind=a"});
  EXPECT_EQ(listed({"done"}).size(), 2u);
  EXPECT_EQ(listed({"all", "done"}).size(), 6u);
  EXPECT_EQ(json::parse(ok({"explain", "done", "--json"}).output).size(), 2u);
}

TEST_F(WordsTest, AnEmptySelectionIsAnEmptyAnswer) {
  ok({"run", "grid.toml"});
  for (const std::vector<std::string>& none : std::vector<std::vector<std::string>>{{"failed"}, {"failed", "seed=1"}}) {
    const auto with = [&](std::vector<std::string> command) {
      command.insert(command.end(), none.begin(), none.end());
      return ok(command).output;
    };
    for (const char* command : {"runs", "explain", "wait"}) EXPECT_EQ(with({command}), "") << command;
    EXPECT_THAT(with({"runs", "--csv"}), AllOf(testing::StartsWith("run,"), EndsWith(",resume,stale,mixed\n")));
    for (const char* command : {"runs", "explain", "verify-resume"}) EXPECT_EQ(with({command, "--json"}), "[]\n");
    for (const char* command : {"pause", "resume", "cancel", "retry"}) EXPECT_EQ(with({command}), "Nothing to do.\n");
    EXPECT_THAT(with({"verify-resume"}), testing::StartsWith("Nothing to do"));
  }
  ok({"delete", "last", "--yes"});
  for (const char* command : {"runs", "explain", "wait"}) EXPECT_EQ(ok({command, "all"}).output, "") << command;
  EXPECT_EQ(ok({"delete", "all", "--yes"}).output, "Nothing to do.\n");
}

TEST_F(WordsTest, AWordThatNamesNothingIsRefusedByEveryCommand) {
  ok({"run", "grid.toml"});
  for (const std::string word : {"nonsense", "17", "model.knd=a", "none.toml", "model.kind=c"}) {
    for (const char* command :
         {"table", "status", "runs", "explain", "log", "wait", "pause", "cancel", "delete", "verify-resume"}) {
      EXPECT_THAT(refusal({command, word}), HasSubstr(word)) << command;
    }
    refusal({"diff", "1", word});
  }
  EXPECT_THAT(refusal({"runs", "model.knd=a"}), HasSubstr("did you mean \"model.kind=a\"?"));
  EXPECT_THAT(refusal({"table", "none.toml"}), HasSubstr("there is no file none.toml, and it was not submitted"));
  EXPECT_THAT(refusal({"diff", "1", "failed"}), HasSubstr("no run is meant by \"failed\""));
  EXPECT_THAT(refusal({"log", "done"}), HasSubstr("\"done\" means 4 runs, and one is wanted: " + id_of(1)));
}

TEST_F(WordsTest, CommandsForWholeSweepsSayWhatShowsRuns) {
  ok({"run", "grid.toml"});
  for (const char* command : {"table", "status"}) {
    EXPECT_THAT(
        refusal({command, "last", "model.kind=a"}),
        HasSubstr("means runs, and whole sweeps are wanted; to see these runs: tearless runs last model.kind=a"))
        << command;
  }
}

// --- names -----------------------------------------------------------------------------------------------------------

TEST_F(WordsTest, ASweepIsCalledByItsTitleUntilASubmissionGivesItAName) {
  ok({"run", "grid.toml"});
  const std::string id = sweeps().at(0).at("id");
  const auto expect_name = [&](const std::string& name) {
    ASSERT_EQ(sweeps().size(), 1u);
    EXPECT_EQ(sweeps().at(0).at("name"), name);
    EXPECT_EQ(sweeps().at(0).at("id"), id) << "the name is no part of it";
    EXPECT_EQ(listed({name}).at(0).at("name"), name);
    EXPECT_THAT(ok({"sql", "SELECT name FROM sweeps_view"}).output, HasSubstr(name));
    EXPECT_THAT(ok({"status"}).output, HasSubstr(id + "  " + name));
  };
  expect_name("A fake grid");
  ok({"submit", "grid.toml", "--name", "first try"});
  expect_name("first try");
  ok({"run", "grid.toml"});
  expect_name("first try");
  ok({"rebuild"});
  expect_name("first try");
  ok({"run", "grid.toml", "--name", "baseline"});
  expect_name("baseline");
  EXPECT_THAT(refusal({"status", "first try"}), HasSubstr("is no sweep"));
}

TEST_F(WordsTest, ANameOfTwoSweepsIsRefusedWithTheList) {
  ok({"submit", "grid.toml"});
  edit_grid();
  ok({"submit", "grid.toml"});
  const json two = sweeps();
  ASSERT_EQ(two.size(), 2u);
  const std::string refused = refusal({"runs", "A fake grid"});
  EXPECT_THAT(refused, HasSubstr("\"A fake grid\" is the name of 2 sweeps: "));
  for (const json& sweep : two) {
    EXPECT_THAT(refused, HasSubstr(fmt::format("{} (submitted {})", sweep.at("id").get<std::string>(),
                                               sweep.at("submitted_at").get<std::string>())));
  }
  ok({"submit", "grid.toml", "--name", "edited"});
  EXPECT_EQ(listed({"edited"}).at(0).at("sweep"), two.at(0).at("id"));
  EXPECT_EQ(listed({"A fake grid"}).at(0).at("sweep"), two.at(1).at("id")) << "only one is called so now";
}

TEST_F(WordsTest, ANameThatWouldBeAnotherWordIsRefusedAtTheDoor) {
  for (const char* command : {"run", "submit"}) {
    for (const std::string name : {"", " ", "7", "1234567", "3-7", "last", "all", "failed", "a=b", "other.toml",
                                   "--name=-x", "red \x1b[31m", "\xff"}) {
      const bool has_dash = name.starts_with("--name=");
      const test::Finished refused =
          has_dash ? tearless({command, "grid.toml", name}) : tearless({command, "grid.toml", "--name", name});
      EXPECT_EQ(refused.code, 2) << name;
      EXPECT_THAT(refused.errors, HasSubstr("choose another one")) << name;
    }
  }
  write_other_grid();
  EXPECT_THAT(refusal({"submit", "grid.toml", "other.toml", "--name", "both"}),
              HasSubstr("--name \"both\" names one sweep, and 2 grids are submitted"));
  EXPECT_FALSE(fs::exists(folder_ / "results")) << "nothing was written";
}

// --- the workspace ---------------------------------------------------------------------------------------------------

TEST_F(WordsTest, TheNearestResultsUpwardsIsTheWorkspace) {
  ok({"run", "grid.toml"});
  const std::string all = ok({"runs"}).output;
  fs::create_directories(folder_ / "a/b/results/empty");
  EXPECT_EQ(shell("tearless runs", "a/b").output, all) << "results/ without a database or sweeps is no workspace";
  EXPECT_EQ(shell("tearless runs", "results/runs").output, all);
  ASSERT_EQ(shell("tearless run grid.toml --workspace a/results --only model.kind=b").code, 0);
  EXPECT_NE(shell("tearless runs", "a/b").output, all);
  EXPECT_EQ(shell("tearless runs", "a/b").output, shell("tearless runs --workspace a/results").output);
  EXPECT_EQ(shell("tearless runs", "a/b", "../../results").output, all) << "$TEARLESS_WORKSPACE";
  EXPECT_EQ(shell("tearless runs --workspace ../../results", "a/b", "none").output, all) << "what is typed comes first";
  EXPECT_THAT(shell("tearless runs --workspace ''").errors, HasSubstr("--workspace is empty"));
}

TEST_F(WordsTest, AWorkspaceOfAnotherUserIsPassedOver) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  ok({"run", "grid.toml"});
  fs::create_directories(folder_ / "a/results/sweeps");
  const std::string all = ok({"runs"}).output;
  ASSERT_EQ(::chown((folder_ / "a/results").c_str(), 65534, 65534), 0);
  EXPECT_EQ(shell("tearless runs", "a").output, all);
}

TEST_F(WordsTest, ACommandThatMakesAWorkspaceSaysWhereOnce) {
  EXPECT_EQ(shell("tearless status").errors, "");
  for (const char* command : {"submit grid.toml", "run grid.toml", "daemon --background"}) {
    const std::string typed = fmt::format("tearless {} --workspace 'w {}'", command, command);
    const std::string where = (folder_ / fmt::format("w {}", command)).string();
    EXPECT_EQ(shell(typed).errors, "a new workspace: " + where + " (--workspace names another)\n") << command;
    EXPECT_EQ(shell(typed).errors, "") << command;
    EXPECT_EQ(shell(fmt::format("tearless stop --workspace 'w {}'", command)).code, 0);
    wait_until_unserved(fmt::format("w {}", command).c_str());
  }
}

TEST_F(WordsTest, APrintedCommandWorksInTheShellThatItWasPrintedIn) {
  fs::copy_file(folder_ / "grid.toml", folder_ / "my grid.toml");
  const auto command_in = [](const std::string& text) {
    std::smatch found;
    std::regex_search(text, found, std::regex("(?:Next|continue): (tearless [^\n]*)"));
    return found[1].str();
  };
  const auto expect_to_work = [&](const std::string& typed, const std::string& folder, const std::string& workspace) {
    const std::string next = command_in(shell(typed, folder, workspace).output);
    ASSERT_NE(next, "") << typed;
    const test::Finished shown = shell(next, folder, workspace);
    EXPECT_EQ(shown.code, 0) << next << shown.errors;
    EXPECT_THAT(shown.output, Not(HasSubstr("(0/2)"))) << next;
  };
  ASSERT_EQ(shell("tearless run 'my grid.toml' --workspace 'else where'").code, 0);
  expect_to_work("tearless run 'my grid.toml' --workspace 'else where'", ".", "");
  expect_to_work("tearless plan 'my grid.toml' --workspace 'else where'", ".", "");
  expect_to_work("tearless run 'my grid.toml'", ".", (folder_ / "else where").string());
  wait_until_unserved("else where");
  EXPECT_FALSE(fs::exists(folder_ / "results"));
  EXPECT_THAT(shell("tearless status --workspace none").output, EndsWith("Next: tearless run GRID --workspace none\n"));
  EXPECT_THAT(shell("tearless runs nonsense --workspace 'else where'").errors,
              HasSubstr("tearless status --workspace 'else where' lists them"));
  EXPECT_THAT(shell("tearless status").output, EndsWith("Next: tearless run GRID\n"));
}

}  // namespace
}  // namespace tearless::harness::words_test
