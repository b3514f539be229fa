// The output of plan, table, explain and diff: the real program with a fake training program, from an empty
// workspace to a finished grid. Their texts are approved; none of them changes the workspace.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <regex>

#include "base/lock_file.h"
#include "base/run_directory.h"
#include "tests/support/golden.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace tearless::harness::commands_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kGrid = R"(title = "Norm and placement"
seeds = 2
[set]
"fake.updates" = 4
[axis]
"model.norm" = ["layer_norm", "scale_norm"]
[[axis.place]]
label = "post, diverges"
set = { "model.placement" = "post", "fake.behaviour" = "diverge" }
[[axis.place]]
label = "pre"
set = { "model.placement" = "pre" }
[[exclude]]
when = { "model.norm" = "scale_norm", place = "post, diverges" }
why = "diverges"
[table]
rows = "model.norm"
)";

class Commands : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(fs::exists(test::program("tearless")) && fs::exists(test::program("fake-engine")))
        << "build the targets tearless and fake-engine first";
    test::write_text(folder_ / "grid.toml", kGrid);
  }

  /// What `tearless ARGUMENTS` prints on both streams, run in the test's folder, then "exit N".
  std::string tearless(const std::string& arguments) const {
    const std::string command = "cd " + folder_.path().string() +
                                " && TEARLESS_IDLE_SECONDS=0 TEARLESS_ENGINE=" + test::program("fake-engine").string() +
                                " " + test::program("tearless").string() + " " + arguments + " 2>&1";
    FILE* pipe = ::popen(command.c_str(), "r");
    std::string text;
    std::array<char, 4096> buffer;
    while (const size_t n = std::fread(buffer.data(), 1, buffer.size(), pipe)) text.append(buffer.data(), n);
    if (arguments.starts_with("run")) {
      test::eventually(
          [&] { return !LockFile::is_held(folder_ / "results/tearless.lock"); });  // the service that it started
    }
    text += "exit " + std::to_string(WEXITSTATUS(::pclose(pipe))) + "\n";
    return std::regex_replace(text, std::regex(folder_.path().string() + "/"), "");
  }

  /// `tearless ARGUMENTS`, which may redirect streams, with the others apart.
  test::Finished in_shell(const std::string& arguments) const {
    return test::run({.arguments = {"/bin/sh", "-c", "exec \"$0\" " + arguments, test::program("tearless").string()},
                      .folder = folder_.path()});
  }

  static json parse(const std::string& text) { return json::parse(text.substr(0, text.rfind("exit "))); }

  test::TempFolder folder_;
};

TEST_F(Commands, ShowsAnEmptyWorkspaceAndMakesNothingGolden) {
  std::string text;
  for (const char* command : {"plan grid.toml", "plan grid.toml --only place=pre --only seed=2", "table grid.toml",
                              "explain grid.toml model.norm=scale_norm", "explain abc", "diff a b"}) {
    text += std::string("$ tearless ") + command + "\n" + tearless(command) + "\n";
  }
  test::expect_golden("harness/commands_empty.txt", text);
  EXPECT_FALSE(fs::exists(folder_ / "results"));
}

TEST_F(Commands, ShowsAFinishedGridGolden) {
  EXPECT_THAT(tearless("run grid.toml"), testing::EndsWith("exit 0\n"));
  const json runs = parse(tearless("--json plan grid.toml")).at("runs");
  ASSERT_EQ(runs.size(), 6u);
  const std::string diverged = runs[0].at("id");
  const std::string layer_norm = runs[2].at("id");
  const std::string scale_norm = runs[4].at("id");
  std::string text;
  for (const std::string& command :
       {std::string("plan grid.toml"), std::string("table grid.toml"), "explain " + diverged.substr(0, 8),
        "diff " + layer_norm + " " + scale_norm, "diff " + layer_norm + " " + layer_norm,
        "diff " + diverged + " " + scale_norm, "diff " + scale_norm + " " + diverged, std::string("status"),
        std::string("verify"), std::string("--json plan grid.toml"), "--json explain " + layer_norm,
        "--json diff " + layer_norm + " " + scale_norm, std::string("--json status"), std::string("--json verify")}) {
    text += "$ tearless " + command + "\n" + tearless(command) + "\n";
  }
  const std::regex time("[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9:.]+Z| [0-9]{2}:[0-9]{2})");
  text = std::regex_replace(text, time, "TIME");
  const std::string file = file_hash(test::program("fake-engine"));
  text = std::regex_replace(text, std::regex(file), "FILE");
  text = std::regex_replace(text, std::regex("TIME; [^\n]*"), "TIME; HOST");
  text = std::regex_replace(text, std::regex("\"host\": [^\n]*"), "\"host\": HOST");
  test::expect_golden("harness/commands_done.txt", text);
}

TEST_F(Commands, NamesARunOfTwoSweepsAsTheNewestDoes) {
  const std::string one_run = "[set]\nmodel.b = 1\n[axis]\n";
  test::write_text(folder_ / "old.toml", one_run + "model.a = [3]\n");
  test::write_text(folder_ / "new.toml", one_run + "[[axis.size]]\nlabel = \"three\"\nset = { model.a = 3 }\n");
  EXPECT_THAT(tearless("run old.toml"), testing::EndsWith("exit 0\n"));
  const std::string id = parse(tearless("--json plan old.toml")).at("runs")[0].at("id");
  EXPECT_EQ(parse(tearless("--json explain " + id))[0].at("title"), "model.a=3, seed 1");
  EXPECT_THAT(tearless("run new.toml"), testing::EndsWith("exit 0\n"));
  EXPECT_EQ(parse(tearless("--json explain " + id))[0].at("title"), "size=three, seed 1");
}

TEST_F(Commands, LogsWhatHappenedToASweep) {
  EXPECT_THAT(tearless("run grid.toml --only place=pre --only seed=1"), testing::EndsWith("exit 0\n"));
  const fs::path sweep = fs::directory_iterator(folder_ / "results/sweeps")->path();
  std::istringstream lines(test::read_text(sweep / "events.jsonl"));
  std::map<std::string, int> events;
  std::string last;
  for (std::string line; std::getline(lines, line);) {
    const json event = json::parse(line);
    const std::string at = event.at("at");
    EXPECT_TRUE(std::regex_match(at, std::regex("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z"))) << at;
    EXPECT_GE(at, last);
    last = at;
    ++events[event.at("event")];
  }
  EXPECT_THAT(events, testing::UnorderedElementsAre(testing::Pair("submitted", 1), testing::Pair("started", 2),
                                                    testing::Pair("done", 2)));
}

TEST_F(Commands, NamesTheLineOfTheValueThatTheTrainingProgramRefuses) {
  test::write_text(folder_ / "grid.toml", "[axis]\n\"fake.behaviour\" = [\n  \"succeed\",\n  \"refuse\"]\n");
  const std::string plan = tearless("plan grid.toml");
  EXPECT_THAT(plan, testing::EndsWith("grid.toml:4: this behaviour is refused\nexit 2\n"));
  EXPECT_THAT(plan, testing::Not(testing::HasSubstr("Next:")));
  EXPECT_THAT(tearless("table grid.toml"), testing::HasSubstr("grid.toml:4: this behaviour is refused\nexit 2\n"));
}

TEST_F(Commands, SaysWhichCorpusIsMissing) {
  test::write_text(folder_ / "grid.toml", "[set]\ndata.train = \"corpus.txt\"\n[axis]\nmodel.a = [1, 2]\n");
  EXPECT_THAT(tearless("plan grid.toml"),
              testing::EndsWith("2 runs waiting: corpus.txt is missing; the test makes it\n"
                                "Nothing can run yet. Next: add the missing files, then tearless plan grid.toml\n"
                                "exit 0\n"));
  EXPECT_THAT(tearless("explain grid.toml model.a=2"),
              testing::HasSubstr("waiting for data: corpus.txt is missing; the test makes it\n"));
  EXPECT_THAT(tearless("table grid.toml"), testing::HasSubstr("2 of 2 runs have no result yet (2 waiting for data)."));
}

TEST_F(Commands, PointsFromALostOrDamagedDatabaseToRebuildGolden) {
  EXPECT_THAT(tearless("run grid.toml --only place=pre"), testing::EndsWith("exit 0\n"));
  std::string text;
  const auto look = [&](const std::string& what, const std::vector<std::string>& commands) {
    text += what + "\n";
    for (const std::string& command : commands) text += "$ tearless " + command + "\n" + tearless(command) + "\n";
  };
  const fs::path database = folder_ / "results/tearless.db";
  // The log stays where the service left while `run` was still reading, and SQLite would restore the database from it.
  for (const char* part : {"", "-wal", "-shm"}) fs::remove(database.string() + part);
  look("the database is gone", {"plan grid.toml", "table grid.toml", "status", "explain grid.toml", "explain abc"});
  test::write_text(database, "mine, not yours");
  look("another file has its name", {"status", "sql"});
  EXPECT_THAT(tearless("rebuild --workspace results"), testing::EndsWith("exit 0\n"));
  EXPECT_THAT(tearless("table grid.toml"), testing::HasSubstr("layer_norm"));
  test::expect_golden("harness/commands_lost.txt", text);
}

TEST_F(Commands, EscapesControlCharactersInForeignText) {
  test::write_text(folder_ / "grid.toml",
                   "title = \"red \\u001b[31m\\nline\"\n[set]\n\"fake.updates\" = 2\n[axis]\n"
                   "\"model.norm\" = [\"a\\u001b[2J\\n\"]\n");
  for (const char* command : {"plan grid.toml", "run grid.toml", "status", "table grid.toml", "explain grid.toml",
                              "sql \"SELECT char(27) || 'x' AS 'a\nb', title FROM sweeps\""}) {
    const std::string text = tearless(command);
    EXPECT_EQ(text.find('\x1b'), std::string::npos) << text;
    EXPECT_EQ(text.find("[2J\n\n"), std::string::npos) << text;
  }
  EXPECT_THAT(tearless("sql \"SELECT char(27) || 'x' AS 'a\nb'\""), testing::StartsWith("a\\nb\n\\x1bx\nexit 0"));
  const auto run = *fs::directory_iterator(folder_ / "results/runs");
  test::write_text(run.path() / "attempts/1/log.txt", "caf\xe9 \x1b]0;owned\x07\n\tlast \xe2\x82");
  EXPECT_EQ(tearless("log " + run.path().filename().string()),
            "caf\\xe9 \\x1b]0;owned\\x07\n\tlast \\xe2\\x82exit 0\n");
}

TEST_F(Commands, ReportsAWorkspaceThatCannotBeReached) {
  fs::create_symlink("loop", folder_ / "loop");
  EXPECT_THAT(tearless("--workspace loop status"),
              testing::AllOf(testing::HasSubstr("Too many levels of symbolic links"), testing::EndsWith("exit 2\n")));
}

TEST_F(Commands, SayThatAFullDiskDidNotTakeAllTheyPrint) {
  for (const char* command : {"--version", "status", "manual"}) {  // the last prints more than a buffer holds
    const test::Finished ended = in_shell(std::string(command) + " >/dev/full");
    EXPECT_EQ(ended.errors,
              "tearless: standard output took only a part of what was printed; check that its disk is not full "
              "and its reader has not ended\n")
        << command;
    EXPECT_EQ(ended.code, 2) << command;
  }
}

TEST_F(Commands, RefuseWithTheirCodeWhereNobodyCanReadWhy) {
  for (const char* command : {"statsu", "plan nowhere.toml", "table grid.toml --out none/table.txt"}) {
    EXPECT_EQ(in_shell(std::string(command) + " 2>/dev/full").code, 2) << command;
  }
}

TEST_F(Commands, WritesATableToAFile) {
  EXPECT_EQ(tearless("table grid.toml --format csv --out table.csv"), "exit 0\n");
  EXPECT_THAT(test::read_text(folder_ / "table.csv"), testing::StartsWith("model.norm,place,score,mean,"));
  EXPECT_THAT(tearless("table grid.toml --out none/table.txt"), testing::EndsWith("exit 2\n"));
}

TEST_F(Commands, TakesTheTablesFormatFromTheFilesEndingUnlessOneIsGiven) {
  const auto written = [&](const std::string& arguments, const std::string& file) {
    EXPECT_EQ(tearless("table grid.toml " + arguments + " --out " + file), "exit 0\n");
    return test::read_text(folder_ / file);
  };
  const std::string text = "Norm and placement\n\n";
  EXPECT_THAT(written("", "table.tex"), testing::HasSubstr("\\begin{tabular}"));
  EXPECT_THAT(written("", "table"), testing::StartsWith(text));
  EXPECT_THAT(written("--format text", "table.foo"), testing::StartsWith(text));
  EXPECT_THAT(written("--format text", "table.tex"), testing::StartsWith(text));
  EXPECT_TRUE(json::accept(written("--json", "table.tex")));
}

TEST_F(Commands, RefusesToWriteATableToAFileOfAnotherEndingAndNamesThoseThatThereAre) {
  EXPECT_EQ(tearless("table nowhere.toml --out table.foo"),
            "tearless: --out table.foo: the ending .foo stands for no format of tables; choose one of .txt, .md, "
            ".markdown, .tex, .html, .htm, .csv, .json, or add --format\nexit 2\n")
      << "before the grid is read";
  EXPECT_FALSE(fs::exists(folder_ / "table.foo"));
}

TEST_F(Commands, PrintsATableAsJson) {
  EXPECT_THAT(tearless("run grid.toml"), testing::EndsWith("exit 0\n"));
  const json table = parse(tearless("--json table grid.toml"));
  EXPECT_EQ(table, parse(tearless("table grid.toml --format json")));
  const json& cell = table.at("rows").at(1).at("cells").at(1);
  EXPECT_EQ(table.at("rows").at(1).at("labels"), json({{"model.norm", "scale_norm"}}));
  EXPECT_EQ(table.at("columns").at(1).at("labels"), json({{"place", "pre"}}));
  const json runs = parse(tearless("--json explain grid.toml model.norm=scale_norm place=pre"));
  EXPECT_EQ(cell.at("runs"), json({runs[0].at("id"), runs[1].at("id")}));
  const double first = runs[0].at("scores").at("test.score"), second = runs[1].at("scores").at("test.score");
  EXPECT_DOUBLE_EQ(cell.at("mean"), (first + second) / 2);
  EXPECT_NEAR(cell.at("spread"), std::abs(first - second) / std::sqrt(2.0), 1e-12);
  EXPECT_EQ(tearless("--json table grid.toml --format csv"),
            "tearless: --json and --format csv contradict each other; omit one of them\nexit 2\n");
}

TEST_F(Commands, PrintsJsonOrRefusesTo) {
  EXPECT_THAT(tearless("run grid.toml"), testing::EndsWith("exit 0\n"));
  const std::string id = parse(tearless("--json plan grid.toml")).at("runs")[2].at("id");
  for (const std::string& command :
       {std::string("plan grid.toml"), std::string("status"), std::string("table grid.toml"), "explain " + id,
        std::string("table last"), std::string("explain last place=pre"), std::string("status last"),
        "diff " + id + " " + id, std::string("sql"), std::string("verify"), std::string("submit grid.toml"),
        std::string("pause"), std::string("resume"), std::string("retry last"), std::string("cancel last"),
        std::string("runs"), std::string("clean"), std::string("delete last --yes")}) {
    EXPECT_NO_THROW(parse(tearless("--json " + command))) << command;
  }
  for (const std::string& command : {std::string("run grid.toml"), std::string("watch"), std::string("daemon"),
                                     std::string("serve"), std::string("completion bash"), std::string("manual")}) {
    EXPECT_THAT(tearless(command + " --json"),
                testing::AllOf(testing::StartsWith("tearless: tearless " + command.substr(0, command.find(' ')) +
                                                   " prints no JSON; omit --json, or use it with one of: plan, "),
                               testing::EndsWith(", retry\nexit 2\n")));
  }
}

TEST_F(Commands, TellOfATableThatIsTooWideForItsPlaceInLatexAlone) {
  std::string labels;
  for (char c = 'a'; c < 'm'; ++c) labels += (labels.empty() ? "\"" : ", \"") + std::string(40, c) + "\"";
  test::write_text(folder_ / "wide.toml",
                   "title = \"Wide\"\nseeds = 1\n[set]\n\"fake.updates\" = 1\n[axis]\n\"model.norm\" = [" + labels +
                       "]\n[table]\ncolumns = \"model.norm\"\nscores = \"test.score\"\n");
  ASSERT_THAT(tearless("run wide.toml"), testing::EndsWith("exit 0\n"));
  const std::string said = "in LaTeX the table \"Wide\" is about ";
  EXPECT_THAT(tearless("table wide.toml --out wide.tex"), testing::StartsWith(said));
  EXPECT_THAT(test::read_text(folder_ / "wide.tex"), testing::HasSubstr("points wider than a page"));
  EXPECT_THAT(tearless("table wide.toml --out wide.md"), testing::Not(testing::HasSubstr(said)));
}

TEST_F(Commands, SaysWhichNumbersAnOptionTakes) {
  const auto refusal = [&](const std::string& command) {
    const std::string text = tearless(command);
    EXPECT_THAT(text, testing::EndsWith("exit 2\n"));
    EXPECT_THAT(text, testing::StartsWith("tearless: "));
    return text.substr(10, text.find(';') - 10);
  };
  for (const char* wrong : {"0", "-1", "2.5", "1e3", "x", "3x", "99999999999999999999"}) {
    EXPECT_EQ(refusal(std::string("log a --attempt ") + wrong),
              std::string("--attempt: expected a whole number from 1, got ") + wrong);
  }
  EXPECT_EQ(refusal("log a --attempt 2147483648"),
            "--attempt: expected a whole number from 1 to 2147483647, got 2147483648");
  EXPECT_EQ(refusal("supervise a --grace -1"), "--grace: expected a whole number from 0, got -1");
  EXPECT_EQ(refusal("run grid.toml --jobs 0"), "--jobs: expected a whole number from 1, got 0");
  EXPECT_EQ(refusal("run grid.toml --runs-per-gpu 0"), "--runs-per-gpu: expected a whole number from 1, got 0");
  EXPECT_EQ(refusal("run grid.toml --grace 0.5"), "--grace: expected a whole number from 0, got 0.5");
  EXPECT_EQ(refusal("daemon --jobs x"), "--jobs: expected a whole number from 1, got x");
  for (const char* wrong : {"-0.5", "nan", "inf", "x"}) {
    EXPECT_EQ(refusal(std::string("run grid.toml --stall-timeout ") + wrong),
              std::string("--stall-timeout: expected a number from 0, got ") + wrong);
  }
  EXPECT_THAT(tearless("log a --attempt 1"), testing::HasSubstr("there is no database in results"));
}

TEST_F(Commands, SayWhichOptionOrValueIsWrong) {
  const auto expect_refusal = [&](const std::string& command, const std::string& sentence) {
    EXPECT_EQ(tearless(command), "tearless: " + sentence + "\nexit 2\n");
  };
  expect_refusal("run grid.toml --prioriy 1",
                 "tearless run has no option \"--prioriy\" (did you mean \"--priority\"?)");
  expect_refusal("run --prioriy=1 grid.toml",
                 "tearless run has no option \"--prioriy\" (did you mean \"--priority\"?)");
  expect_refusal("status --wrokspace here",
                 "tearless status has no option \"--wrokspace\" (did you mean \"--workspace\"?)");
  expect_refusal("--jsno status", "tearless status has no option \"--jsno\" (did you mean \"--json\"?)");
  expect_refusal("table -x", "tearless table has no option \"-x\"");
  expect_refusal("rebuild everything",
                 "tearless rebuild takes no \"everything\"; tearless rebuild --help lists what it takes");
  expect_refusal("run grid.toml --priority", "--priority needs a value; tearless run --help lists what it takes");
  expect_refusal("status --workspace", "--workspace needs a value; tearless status --help lists what it takes");
  expect_refusal("run grid.toml --priority high",
                 "--priority: expected a whole number from -9223372036854775808 to 9223372036854775807, got high; "
                 "tearless run --help lists what it takes");
  for (const char* number : {"9223372036854775808", "-9223372036854775809", "99999999999999999999", "1.5", "1e3"}) {
    expect_refusal(std::string("submit grid.toml --priority ") + number,
                   std::string("--priority: expected a whole number from -9223372036854775808 to 9223372036854775807, "
                               "got ") +
                       number + "; tearless submit --help lists what it takes");
  }
  expect_refusal("plan", "grid is required; tearless plan --help lists what it takes");
  EXPECT_FALSE(fs::exists(folder_ / "results"));
}

}  // namespace
}  // namespace tearless::harness::commands_test
