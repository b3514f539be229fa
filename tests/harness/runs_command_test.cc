// `tearless runs`: what it prints of a finished workspace, which the tests compare with the run folders.
#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/utf8.h"
#include "tests/harness/run_fixture.h"
#include "tests/support/terminal.h"

namespace tearless::harness::runs_command_test {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// Two sweeps that share a run. The axis `place` has the name of a column.
constexpr const char* kOldGrid =
    "title = \"Old\"\nseeds = [3]\n[set]\n\"fake.updates\" = 4\n[axis]\n\"model.norm\" = [\"layer\"]\n";
constexpr const char* kNewGrid = R"(title = "New"
seeds = [3]
[set]
"fake.updates" = 4
[axis]
"model.norm" = ["layer", "scale"]
[[axis.place]]
label = "post, \"late\""
set = { "fake.behaviour" = "diverge" }
[[axis.place]]
label = "pre"
set = { "fake.behaviour" = "succeed" }
)";

class RunsCommand : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    made_ = new RunTest();
    test::write_text(made_->folder_ / "old.toml", kOldGrid);
    test::write_text(made_->folder_ / "new.toml", kNewGrid);
    ASSERT_EQ(made_->tearless({"run", "old.toml"}).code, 0);
    ASSERT_EQ(made_->tearless({"run", "new.toml"}).code, 0);
  }
  static void TearDownTestSuite() { delete made_; }

  static test::Finished runs(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "runs");
    return made_->tearless(arguments);
  }
  static json listed(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "--json");
    const test::Finished finished = runs(arguments);
    EXPECT_EQ(finished.code, 0) << finished.errors;
    return json::parse(finished.output);
  }
  static std::vector<std::string> lines_of(const std::string& text) {
    std::istringstream in(text);
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
  }
  static json scores_in_folder(const std::string& id) {
    return json::parse(test::read_text(made_->folder_ / "results/runs" / id / "scores.json"));
  }

  static RunTest* made_;
};
RunTest* RunsCommand::made_ = nullptr;

TEST_F(RunsCommand, AreThoseOfTheNewestSweepInTheGridsOrderWithWhatTheirFoldersSay) {
  const json runs = listed({});
  ASSERT_EQ(runs.size(), 4u);
  for (size_t i = 0; i < runs.size(); ++i) {
    const json& run = runs[i];
    const bool diverged = i % 2 == 0;
    EXPECT_EQ(run.at("place"), i + 1);
    EXPECT_EQ(run.at("coordinates"),
              json({{"model.norm", i < 2 ? "layer" : "scale"}, {"place", diverged ? "post, \"late\"" : "pre"}}));
    EXPECT_EQ(run.at("seed"), 3);
    EXPECT_EQ(run.at("state"), diverged ? "diverged" : "done");
    EXPECT_EQ(run.at("step"), diverged ? 2 : 4);
    EXPECT_EQ(run.at("updates"), 4);
    EXPECT_EQ(run.at("scores"), diverged ? json::object() : scores_in_folder(run.at("run")));
  }
}

TEST_F(RunsCommand, AreColumnsForPeopleWithTheScoresOfTheTestSet) {
  const json runs = listed({});
  const std::vector<std::string> lines = lines_of(made_->tearless({"runs"}).output);
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_THAT(lines[0], testing::ContainsRegex("^run +place +model.norm +place:2 +seed +state +progress +test.score$"));
  const std::string score = fmt::format("{:.6g}", runs[3].at("scores").at("test.score").get<double>());
  EXPECT_THAT(lines[4], testing::ContainsRegex("^" + runs[3].at("run").get<std::string>() +
                                               " +4 +scale +pre +3 +done +4/4 +" + score + "$"));
}

TEST_F(RunsCommand, AreCsvWithEveryScoreQuotedCellsAndUniqueColumns) {
  const json runs = listed({});
  const std::vector<std::string> lines = lines_of(made_->tearless({"runs", "--csv"}).output);
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[0],
            "run,sweep,place,seed,state,class,reason,step,updates,resume,stale,mixed,model.norm,place:2,test.score,"
            "updates:2");
  const std::string sweep = runs[0].at("sweep"), first = runs[0].at("run"), last = runs[3].at("run");
  EXPECT_EQ(lines[1],
            first + "," + sweep + ",1,3,diverged,,the loss is not finite,2,4,,,false,layer,\"post, \"\"late\"\"\",,");
  EXPECT_EQ(lines[4], fmt::format("{},{},4,3,done,,max_updates,4,4,,,false,scale,pre,{},4", last, sweep,
                                  scores_in_folder(last).at("test.score").get<double>()));
}

TEST(RunsOfTwoMachines, AreMixedInCsvAndJsonAndWhereThatIsAskedFor) {
  RunTest made;
  made.write_grid("\"crash_once\", \"succeed\"", 0);
  ASSERT_EQ(made.tearless({"run", "grid.toml", "--only", "model.kind=a"}).code, 0);
  for (const RunDirectory& run : made.runs()) {
    write_before_exit(run, "arithmetic", "OpenBLAS 1\n");
    if (fs::exists(run.attempt(2))) write_before_exit(run, "arithmetic", "MKL 1\n", 2);
  }
  ASSERT_EQ(made.tearless({"rebuild"}).code, 0);
  const std::string crashed = "fake.behaviour = crash_once";
  for (const json& run : json::parse(made.tearless({"--json", "runs"}).output))
    EXPECT_EQ(run.at("mixed"), run.at("coordinates").at("fake.behaviour") == "crash_once") << run;
  EXPECT_EQ(made.tearless({"runs", "--csv", "--where", "mixed = true"}).output,
            made.tearless({"runs", "--csv", "--where", crashed}).output);
}

TEST_F(RunsCommand, AreNarrowedByTheWordsOfTheOtherCommands) {
  const json all = listed({});
  const auto places = [](const json& runs) {
    std::vector<int> list;
    for (const json& run : runs) list.push_back(run.at("place"));
    return list;
  };
  EXPECT_THAT(places(listed({"done"})), ElementsAre(2, 4));
  EXPECT_THAT(places(listed({"model.norm=scale"})), ElementsAre(3, 4));
  EXPECT_THAT(places(listed({"new.toml", "1-2"})), ElementsAre(1, 2));
  EXPECT_THAT(places(listed({all[2].at("run")})), ElementsAre(3));
  EXPECT_THAT(runs({"all", "--by", "sweep"}).output, testing::StartsWith("sweep "));
  EXPECT_EQ(runs({"nonsense"}).code, 2);
}

TEST_F(RunsCommand, ARunOfTwoSweepsIsShownAsTheNamedOneHasItElseAsTheNewest) {
  const json old = listed({"old.toml", "done"});
  ASSERT_EQ(old.size(), 1u);
  EXPECT_EQ(old[0].at("coordinates"), json({{"model.norm", "layer"}}));
  const json alone = listed({old[0].at("run")});
  EXPECT_EQ(alone[0].at("run"), old[0].at("run"));
  EXPECT_EQ(alone[0].at("coordinates").at("place"), "pre");
}

TEST_F(RunsCommand, ARunOfTwoSweepsIsOneLineAsTheNewestHasItUnlessEachSweepIsAskedFor) {
  const json once = listed({"all"}), each = listed({"all", "--by", "sweep"});
  ASSERT_EQ(once.size(), 4u);
  ASSERT_EQ(each.size(), 5u);
  const std::string shared = listed({"old.toml"})[0].at("run");
  for (const json& run : once) EXPECT_TRUE(run.at("coordinates").contains("place")) << run;
  std::map<std::string, int> lines;
  for (const json& run : each) ++lines[run.at("run").get<std::string>()];
  for (const auto& [run, count] : lines) EXPECT_EQ(count, run == shared ? 2 : 1) << run;
  EXPECT_EQ(lines_of(runs({"all", "--csv"}).output).size(), 1u + 4u);
  EXPECT_EQ(
      runs({"--by", "seed"}).errors,
      "tearless: --by seed is not known; it must be run (a line for each run) or sweep (a line for each sweep and "
      "run)\n");
}

TEST_F(RunsCommand, AreSortedByAnyColumnAndThoseWithoutAValueAreLast) {
  const auto places = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--columns", "place"});
    std::vector<int> list;
    for (const json& run : listed(arguments)) list.push_back(run.at("place"));
    return list;
  };
  const json runs = listed({});
  const bool rising = runs[1].at("scores").at("test.score") < runs[3].at("scores").at("test.score");
  EXPECT_EQ(places({"--sort", "test.score"}), rising ? std::vector({2, 4, 1, 3}) : std::vector({4, 2, 1, 3}));
  EXPECT_EQ(places({"--sort", "-test.score"}), rising ? std::vector({4, 2, 1, 3}) : std::vector({2, 4, 1, 3}));
  EXPECT_THAT(places({"--sort", "-place"}), ElementsAre(4, 3, 2, 1)) << "as numbers";
  EXPECT_THAT(places({"--sort", "-model.norm"}), ElementsAre(3, 4, 1, 2)) << "a label";
  EXPECT_THAT(places({"--sort", "-fake.behaviour"}), ElementsAre(2, 4, 1, 3)) << "a setting";
}

// The runs of the other grid have no label on the axis place.
TEST_F(RunsCommand, SortedByATextThoseWithoutItAreLastInBothDirections) {
  const auto labels = [&](const std::string& sort) {
    std::vector<std::string> list;
    for (const json& run : listed({"all", "--by", "sweep", "--columns", "place:2", "--sort", sort})) {
      list.push_back(run.at("place:2").is_null() ? "none" : run.at("place:2").get<std::string>());
    }
    return list;
  };
  EXPECT_THAT(labels("place:2"), ElementsAre("post, \"late\"", "post, \"late\"", "pre", "pre", "none"));
  EXPECT_THAT(labels("-place:2"), ElementsAre("pre", "pre", "post, \"late\"", "post, \"late\"", "none"));
}

TEST_F(RunsCommand, WhereTheyDoNotFitWhatIsConstantGoesAndIsSaidOnce) {
  const auto lines = [&](const std::string& columns, const std::string& options) {
    test::Command shell = made_->command({});
    shell.arguments = {
        "/bin/sh", "-c",
        fmt::format("stty cols {}; exec '{}' runs {}", columns, test::program("tearless").string(), options)};
    test::Terminal terminal(shell);
    EXPECT_EQ(terminal.wait(), 0);
    std::string shown = terminal.shown();
    std::erase(shown, '\r');
    return lines_of(shown);
  };
  const std::vector<std::string> wide = lines("200", "");
  ASSERT_EQ(wide.size(), 5u);
  const size_t width = display_width(std::ranges::max(wide, {}, display_width));
  const std::vector<std::string> narrow = lines(std::to_string(width - 1), "");
  ASSERT_EQ(narrow.size(), 6u);
  EXPECT_THAT(wide[0], testing::ContainsRegex("^run +place +model.norm +place:2 +seed +state +progress +test.score$"));
  EXPECT_THAT(narrow[0], testing::ContainsRegex("^run +place +model.norm +place:2 +state +progress +test.score$"));
  EXPECT_EQ(narrow[5], "all runs: seed 3");
  for (const std::string& line : lines("40", "")) EXPECT_LE(display_width(line), 40u) << line;
  const std::vector<std::string> parts = lines("40", "");
  EXPECT_THAT(parts[0], testing::ContainsRegex("^run +place +norm"));
  EXPECT_EQ(std::ranges::count_if(parts, [](const std::string& line) { return line.starts_with("run "); }), 3)
      << "each part has the column run";
  EXPECT_EQ(parts.back(), "all runs: seed 3");
  EXPECT_THAT(lines("30", "--columns run,seed,sweep")[0], testing::ContainsRegex("^run +seed +sweep$")) << "as asked";
}

TEST_F(RunsCommand, AreThoseOfWhichEveryConditionHolds) {
  const auto places = [&](const std::vector<std::string>& conditions) {
    std::vector<std::string> arguments = {"--columns", "place"};
    for (const std::string& condition : conditions) arguments.insert(arguments.end(), {"--where", condition});
    arguments.push_back("last");
    std::vector<int> list;
    for (const json& run : listed(arguments)) list.push_back(run.at("place"));
    return list;
  };
  const double second = listed({})[1].at("scores").at("test.score"),
               fourth = listed({})[3].at("scores").at("test.score");
  const std::string lower = fmt::format("{}", std::min(second, fourth));
  const int higher_place = second > fourth ? 2 : 4, lower_place = 6 - higher_place;
  EXPECT_THAT(places({"test.score > 20"}), ElementsAre(2, 4));
  EXPECT_THAT(places({"test.score>" + lower}), ElementsAre(higher_place));
  EXPECT_THAT(places({"test.score >= " + lower}), ElementsAre(2, 4));
  EXPECT_THAT(places({"test.score <= " + lower}), ElementsAre(lower_place));
  EXPECT_THAT(places({"test.score < " + lower}), ElementsAre());
  EXPECT_THAT(places({"test.score = " + lower}), ElementsAre(lower_place));
  EXPECT_THAT(places({"test.score != " + lower}), ElementsAre(higher_place)) << "not of a run without that score";
  EXPECT_THAT(places({"state = done", "model.norm != layer"}), ElementsAre(4));
  EXPECT_THAT(places({"fake.behaviour = \"diverge\"", "place < 3"}), ElementsAre(1));
  EXPECT_THAT(places({"fake.updates = 4.0", "seed = 3"}), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(places({"place:2 = pre"}), ElementsAre(2, 4)) << "the label, not the place";
}

TEST_F(RunsCommand, AConditionOrANameThatMeansNothingIsRefused) {
  const auto refused = [&](const std::vector<std::string>& arguments) {
    const test::Finished finished = runs(arguments);
    EXPECT_EQ(finished.code, 2) << finished.output;
    EXPECT_EQ(finished.output, "");
    return finished.errors;
  };
  const std::string have =
      "; they have run, sweep, name, tag, note, place, seed, state, class, reason, step, updates, resume, stale, "
      "mixed, progress, "
      "model.norm, "
      "place:2, "
      "test.score, updates:2, and their settings (tearless diff RUN RUN)\n";
  EXPECT_EQ(refused({"--sort", "test.scor"}),
            "tearless: --sort: no selected run has \"test.scor\" (did you mean \"test.score\"?)" + have);
  EXPECT_EQ(refused({"--where", "fake.behaviou = x"}),
            "tearless: --where: no selected run has \"fake.behaviou\" (did you mean \"fake.behaviour\"?)" + have);
  EXPECT_EQ(refused({"--columns", "run,zzz"}), "tearless: --columns: no selected run has \"zzz\"" + have);
  for (const std::string condition : {"test.score", "> 3", "state ! done", "state == done"}) {
    EXPECT_EQ(refused({"--where", condition}),
              "tearless: --where \"" + condition + "\" is no condition; write NAME = VALUE, with = != < <= > or >=\n");
  }
  EXPECT_EQ(
      refused({"--where", "state < done"}),
      "tearless: --where \"state < done\": < compares with a number, and \"done\" is a text; texts have = and !=\n");
  EXPECT_EQ(refused({"--sort", "p*"}), "tearless: --sort: \"p*\" means 3 columns; name one of them\n");
  EXPECT_EQ(refused({"--columns", "run", "--settings"}),
            "tearless: --columns names every column, scores and settings too; omit --settings\n");
}

TEST_F(RunsCommand, ColumnsAreTheNamedOnesInTheirOrder) {
  const json runs = listed({"4"});
  const std::string score = fmt::format("{}", runs[0].at("scores").at("test.score").get<double>());
  EXPECT_EQ(made_->tearless({"runs", "4", "--csv", "--columns", "state,test.*,fake.updates,place:2,step"}).output,
            "state,test.score,fake.updates,place:2,step\ndone," + score + ",4,pre,4\n");
  const json third_and_fourth = listed({"3-4", "--columns", "test.score,seed"});
  EXPECT_EQ(third_and_fourth[0], json({{"test.score", nullptr}, {"seed", 3}}));
  EXPECT_EQ(third_and_fourth[1], json({{"test.score", runs[0].at("scores").at("test.score")}, {"seed", 3}}));
}

TEST_F(RunsCommand, SettingsInWhichTheyDifferAreColumnsOnRequest) {
  EXPECT_THAT(lines_of(runs({"--settings"}).output).at(0), testing::ContainsRegex("test.score +fake.behaviour$"))
      << "model.norm is a column of labels already";
  EXPECT_THAT(lines_of(runs({"--settings"}).output).at(1), testing::EndsWith(" diverge"));
  EXPECT_THAT(lines_of(runs({"--settings", "--where", "state = done"}).output).at(0), testing::EndsWith("test.score"));
  EXPECT_EQ(listed({"--settings"})[1].at("settings"), json({{"fake.behaviour", "succeed"}}));
}

TEST_F(RunsCommand, ScoresAreChosenByNamesAndPatterns) {
  const auto header = [&](const std::string& scores) { return lines_of(runs({"4", "--scores", scores}).output).at(0); };
  EXPECT_THAT(header("updates,test.*"), testing::ContainsRegex("progress +updates:2 +test.score$"));
  EXPECT_THAT(header("absent"), testing::EndsWith("absent"));
  EXPECT_THAT(header(""), testing::EndsWith("progress"));
  EXPECT_EQ(listed({"4", "--scores", "up*"})[0].at("scores"), json({{"updates", 4}}));
  EXPECT_EQ(runs({"--csv", "--json"}).errors, "tearless: --json and --csv contradict each other; omit one of them\n");
}

// The fake engine measures half a second an update.
TEST_F(RunsCommand, WhatTheyHaveMeasuredIsAColumnWhereItIsAskedFor) {
  const auto header = [](const std::vector<std::string>& arguments) { return lines_of(runs(arguments).output).at(0); };
  EXPECT_THAT(header({"--csv"}), Not(HasSubstr("measured")));
  EXPECT_THAT(header({"--columns", "*"}), Not(HasSubstr("measured")));
  EXPECT_THAT(header({"--csv", "--scores", "measured.*"}),
              HasSubstr(",measured.seconds,measured.seconds_per_update,measured.tokens_per_second"));
  for (const json& run : listed({"--scores", "measured.seconds*,test.*"})) {
    const json& scores = run.at("scores");
    EXPECT_EQ(scores.at("measured.seconds_per_update"), 0.5);
    EXPECT_EQ(scores.at("measured.seconds"), 0.5 * run.at("step").get<double>());
    const std::string id = run.at("run");
    if (run.at("state") != "done") continue;
    EXPECT_FALSE(scores_in_folder(id).contains("measured.seconds")) << "no score";
  }
  EXPECT_EQ(lines_of(runs({"--columns", "run,measured.seconds_per_update", "--where", "measured.seconds_per_update < 1",
                           "--sort", "-measured.seconds"})
                         .output)
                .size(),
            5u);
  EXPECT_THAT(runs({"--columns", "measured.second"}).errors, HasSubstr("did you mean \"measured.seconds\"?"));
}

TEST_F(RunsCommand, NeedTheDatabaseAloneAndRefuseAChangedOne) {
  RunTest copy;
  // The log stays beside the database if a reader had it open when the service ended.
  for (const char* file : {"tearless.db", "tearless.db-wal"}) {
    const fs::path original = made_->folder_ / "results" / file;
    if (fs::exists(original)) fs::copy(original, copy.folder_ / file);
  }
  EXPECT_EQ(copy.tearless({"--workspace", ".", "runs", "all"}).output, runs({"all"}).output);
  SQLite::Database((copy.folder_ / "tearless.db").string(), SQLite::OPEN_READWRITE)
      .exec("UPDATE results SET scores = replace(scores, '2', '3')");
  const test::Finished changed = copy.tearless({"--workspace", ".", "runs"});
  EXPECT_EQ(changed.code, 2);
  EXPECT_THAT(changed.errors, HasSubstr("no longer holds what was recorded (results)"));
}

}  // namespace
}  // namespace tearless::harness::runs_command_test
