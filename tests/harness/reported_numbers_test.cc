// What another training program may write into scores.json and metrics.jsonl: what `table`, `runs`, `explain` and `sql`
// make of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "tests/harness/run_fixture.h"

namespace tearless::harness::reported_numbers_test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

// Writes the settings `scores` and `metrics` to the files of these names as they are.
constexpr const char* kProgram = R"(#!/usr/bin/env python3
import hashlib, json, sys
sha = lambda text: hashlib.sha256(text.encode()).hexdigest()
if sys.argv[1] == "check":
    for line in sys.stdin:
        asked = json.loads(line)["settings"]
        text = "".join(f"{k} = {json.dumps(v)}\n" for k, v in sorted(asked.items()))
        print(json.dumps({"id": sha(text)[:16], "canonical": text, "local": "", "state": "ready",
                          "updates": asked.get("updates", 1),
                          "metrics": ["loss"] if "updates" in asked else None, "windows": [asked["windows"]] if "windows" in asked else None}), flush=True)
elif sys.argv[1] == "probe":
    print(json.dumps({"program": "written", "version": "1", "numerics": 1, "devices": []}))
else:
    settings = dict(line.rstrip("\n").split(" = ", 1) for line in open(sys.argv[2] + "/run.toml"))
    print("the last line", flush=True)
    for name in ("scores", "metrics"):
        text = json.loads(settings.get(name, '""'))
        if text:
            open(sys.argv[2] + {"scores": "/scores.json", "metrics": "/metrics.jsonl"}[name], "w").write(text)
    scores = json.loads(settings["scores"])
    open(sys.argv[2] + "/DONE", "w").write(
        json.dumps({"outcome": "done", "step": 1, "reason": "", "files": {"scores.json": sha(scores)}}))
)";

class ReportedNumbersTest : public RunTest {
 protected:
  ReportedNumbersTest() {
    test::write_text(folder_ / "program", kProgram);
    std::filesystem::permissions(folder_ / "program", std::filesystem::perms::owner_all);
  }
  void run_grid(const std::string& rest) const {
    test::write_text(folder_ / "grid.toml", "program = \"program\"\n" + rest);
    output({"run", "grid.toml"});
  }
  // Of a command that succeeds.
  std::string output(const std::vector<std::string>& arguments) const {
    test::Command written = command(arguments);
    written.environment["TEARLESS_ENGINE"] = (folder_ / "program").string();
    const test::Finished finished = arguments.front() == "run" ? finish(written) : test::run(written);
    EXPECT_EQ(finished.code, 0) << testing::PrintToString(arguments) << finished.output << finished.errors;
    return finished.output;
  }
};

// A row of an axis.
std::string row(const std::string& label, const std::string& key, const std::string& text) {
  return "[[axis.row]]\nlabel = " + json(label).dump() + "\nset = { " + key + " = '" + text + "' }\n";
}

TEST_F(ReportedNumbersTest, AScoreThatIsNotFiniteLeavesTheOthersAndIsNamed) {
  run_grid(row("nan", "scores", R"({"test.bleu": NaN, "test.acc": 50.5})") +
           row("infinite", "scores", R"({"test.bleu": -Infinity, "test.acc": 51.5})") +
           row("too great", "scores", R"({"test.bleu": 1e999, "test.acc": 52.5})") +
           "[table]\nscores = [\"test.bleu\", \"test.acc\"]\n");
  const std::string table = output({"table", "grid.toml"});
  EXPECT_THAT(table, AllOf(HasSubstr("50.50"), HasSubstr("51.50"), HasSubstr("52.50"),
                           ContainsRegex("no score: 3 runs are done without test.bleu "
                                         "\\(1 -Infinity, 1 1e999, 1 NaN\\). To see what is there: tearless explain "),
                           Not(HasSubstr("failed"))));
  EXPECT_THAT(output({"explain", "row=nan"}),
              AllOf(HasSubstr("\n  test.acc = 50.5\n"), HasSubstr("\n  test.bleu: no score, scores.json has NaN\n")));
  EXPECT_THAT(output({"sql", "SELECT name, value FROM scores_view ORDER BY value", "--csv"}),
              "name,value\ntest.acc,50.5\ntest.acc,51.5\ntest.acc,52.5\n");
  output({"rebuild"});
  EXPECT_EQ(output({"table", "grid.toml"}), table);
  output({"verify"});
}

// tearless-engine writes e^700 for a loss that is greater. A great perplexity that is less is a number.
TEST_F(ReportedNumbersTest, APerplexityThatHasOverflowedIsNoNumberAndIsNamed) {
  run_grid(row("over", "scores", R"({"test.ppl": 1.0142320547350045e+304, "test.bleu": 1.5e304})") +
           row("smoothed", "scores",
               R"({"test.ppl": 2e303, "beam.test.ppl_smoothed": 1.0142320547350045e+304, "test.bleu": 1})") +
           "[table]\nscores = [\"test.ppl\", \"beam.test.ppl_smoothed\", \"test.bleu\"]\n");
  const std::string table = output({"table", "grid.toml"});
  EXPECT_THAT(table, AllOf(HasSubstr("no score: 1 run is done without test.ppl (1 1e+304, which has overflowed)"),
                           HasSubstr("1 run is done without beam.test.ppl_smoothed (1 1e+304, which has overflowed)"),
                           Not(HasSubstr("1014232")), HasSubstr("2.0e+303"), HasSubstr("1.500000e+304")));
  EXPECT_THAT(output({"explain", "row=over"}),
              HasSubstr("test.ppl: no score, scores.json has 1e+304, which has overflowed\n"));
  output({"verify"});
}

constexpr const char* kHundredUpdates = R"([set]
updates = 100
scores = '{"test.bleu": 20}'
metrics = """
{"step": 40, "name": "loss", "value": 1}
{"step": 60, "name": "loss", "value": 2}
{"step": 80, "name": "loss", "value": 4}
"""
)";

TEST_F(ReportedNumbersTest, AMeanSinceTheLastReportIsOfAPartThatHasAllItsUpdates) {
  const auto table_of = [&](const std::string& windows) {
    run_grid(
        kHundredUpdates + windows +
        "[axis]\nlr = [0.1]\n[score.late]\nof = \"loss\"\ntake = \"mean\"\nfrom = 50\n[table]\nscores = \"late\"\n");
    return output({"table", "grid.toml"});
  };
  EXPECT_THAT(table_of(""), HasSubstr("3.0")) << "the points at 60 and 80";
  const std::string of_windows = table_of("windows = \"lo*\"\n");
  EXPECT_THAT(of_windows, HasSubstr("4.0")) << "that of 61 to 80";
  output({"rebuild"});
  output({"copy", "alone.tar.gz", "last"});
  std::filesystem::remove(folder_ / "grid.toml");
  EXPECT_EQ(output({"table", "last", "--format", "csv"}),
            output({"table", "last", "--workspace", "alone.tar.gz", "--format", "csv"}));
  EXPECT_THAT(output({"table", "last", "--workspace", "alone.tar.gz"}), HasSubstr("4.0"));
}

TEST_F(ReportedNumbersTest, AClaimFromAnUpdateOnIsOfTheMeansOfLaterUpdates) {
  const auto verdict = [&](const std::string& windows) {
    run_grid(
        kHundredUpdates + windows +
        "[axis]\nlr = [0.1, 0.2]\n[table]\nrows = \"lr\"\n[[claim]]\ntext = \"so\"\nstays_better = [\"0.1\", \"0.2\"]\n"
        "curve = \"loss\"\nfrom = 70\nbest_is = \"lowest\"\n");
    return output({"check-table", "grid.toml"});
  };
  EXPECT_THAT(verdict(""), HasSubstr("1 seed cannot decide")) << "the point at 80";
  EXPECT_THAT(verdict("windows = \"loss\"\n"), HasSubstr("no update from 70 on")) << "it is of 61 to 80";
}

TEST_F(ReportedNumbersTest, APartOutsideOfTheUpdatesIsRefused) {
  for (const auto& [part, why] : {std::pair("from = 500\n", ":12: from = 500 leaves no update: the runs make 1 to 100"),
                                  std::pair("to = 0\n", ":12: to = 0 leaves no update: the runs make 1 to 100")}) {
    test::write_text(folder_ / "grid.toml", std::string("program = \"program\"\n") + kHundredUpdates +
                                                "[axis]\nlr = [0.1]\n[score.late]\nof = \"loss\"\ntake = \"mean\"\n" +
                                                part + "[table]\nscores = \"late\"\n");
    for (const char* verb : {"plan", "table", "run"}) {
      const test::Finished refused = test::run(command({verb, "grid.toml"}));
      EXPECT_EQ(refused.code, 2) << verb << refused.output;
      EXPECT_THAT(refused.output + refused.errors, HasSubstr(why)) << verb;
    }
  }
}

TEST_F(ReportedNumbersTest, OfAMetricsLineNothingVanishesWithoutACount) {
  run_grid(R"([set]
scores = '{"test.bleu": 20}'
metrics = '''
{"step": 1, "name": "train.loss", "value": 3.5}
{"step": 1, "loss": 3.5}
{"step": 2, "name": "train.loss", "value": "3.4"}
{"step": -7, "name": "train.loss", "value": 3.3}
{"step": 18446744073709551615, "name": "train.loss", "value": 3.2}
{"step": 3, "name": "train.loss", "value": 3.1, "epoch": 1}
'''
[axis]
lr = [0.1]
)");
  const std::string counts[] = {
      "metrics.jsonl: not read in 1 line, first in line 2: no \"name\"\n",
      "metrics.jsonl: not read in 1 line, first in line 3: a \"value\" that is no number\n",
      "metrics.jsonl: not read in 2 lines, first in line 4: a \"step\" that is no whole number "
      "from 0 to 2^53\n",
      "metrics.jsonl: not read in 1 line, first in line 6: another key, \"epoch\"\n"};
  const std::string explained = output({"explain", "last"}), log = output({"log", "last"});
  for (const std::string& count : counts) {
    EXPECT_THAT(explained, HasSubstr("\n  " + count));
    EXPECT_THAT(log, HasSubstr("\ntearless: " + count));
  }
  EXPECT_EQ(json::parse(output({"--json", "explain", "last"})).at(0).at("unread").size(), 4u);
  EXPECT_EQ(output({"plot", "last", "train.loss", "--by", "run", "--csv"}).find("-7"), std::string::npos);
  EXPECT_EQ(output({"sql", "SELECT step, value FROM metrics_view ORDER BY step", "--csv"}),
            "step,value\n1,3.5\n3,3.1\n");
}

TEST_F(ReportedNumbersTest, ADoneRunWithoutTheScoreIsCountedApartFromOneToCome) {
  run_grid("seeds = 1\n" + row("a", "scores", R"({"test.bleu": null})") + row("b", "scores", R"({"other": 1})") +
           row("c", "scores", R"({"test.bleu": 28.25})") + "[[axis.all]]\nlabel = \"x\"\nset = { z = 1 }\n" +
           "[table]\nscores = \"test.bleu\"\n");
  std::istringstream csv(output({"table", "grid.toml", "--format", "csv"}));
  std::string header, line;
  std::getline(csv, header);
  EXPECT_THAT(header, HasSubstr(",n,expected,diverged,below,failed,scoreless,missing,"));
  for (const char* counts : {",,,0,1,0,0,0,1,0,", ",,,0,1,0,0,0,1,0,", ",28.25,,1,1,0,0,0,0,0,"}) {
    std::getline(csv, line);
    EXPECT_THAT(line, HasSubstr(counts));
  }
  EXPECT_THAT(output({"table", "grid.toml"}), HasSubstr("no score: 1 run is done without test.bleu (1 null). To see"));
}

TEST_F(ReportedNumbersTest, LabelsComeBackFromCsvAsTheyAreUnlessASpreadsheetIsToReadThem) {
  const char* const kLabels[] = {"- warm-up", "+ FixNorm", "=1+1", "@k"};
  std::string rows;
  for (const char* label : kLabels)
    rows += row(label, "scores", R"({"test.bleu": )" + std::to_string(rows.size()) + "}");
  run_grid(rows + "[table]\nscores = \"test.bleu\"\n");
  const std::vector<std::string> commands[] = {
      {"runs", "--csv"},
      {"table", "grid.toml", "--format", "csv"},
      {"sql", "--csv", "SELECT coordinates ->> 'row' AS label, 1 AS one FROM sweep_runs_view"}};
  for (std::vector<std::string> command : commands) {
    const std::string as_it_is = output(command);
    command.emplace_back("--safe-for-spreadsheets");
    const std::string safe = output(command);
    for (const std::string label : kLabels) {
      EXPECT_THAT(as_it_is, AllOf(HasSubstr(label + ","), Not(HasSubstr("'" + label)))) << command[0];
      EXPECT_THAT(safe, HasSubstr("'" + label + ",")) << command[0];
    }
  }
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"runs"}, {"table", "grid.toml"}, {"sql"}, {"plot", "last", "x"}}) {
    std::vector<std::string> without_csv = command;
    without_csv.emplace_back("--safe-for-spreadsheets");
    const test::Finished refused = tearless(without_csv);
    EXPECT_EQ(refused.code, 2);
    EXPECT_THAT(refused.errors, HasSubstr("--safe-for-spreadsheets is for CSV; add --"));
  }
}

TEST_F(ReportedNumbersTest, LargeWholeNumbersAreWholeInEveryList) {
  run_grid(row("a", "scores", R"({"test.parameters": 61234567, "test.loss": 2.5e-8})") +
           "[table]\nscores = \"test.*\"\n");
  EXPECT_THAT(output({"table", "grid.toml"}), AllOf(HasSubstr("61234567"), HasSubstr("2.5e-08")));
  EXPECT_THAT(output({"runs"}), AllOf(HasSubstr("  61234567"), HasSubstr("2.5e-08")));
  EXPECT_THAT(output({"explain", "last"}), HasSubstr("test.parameters = 61234567\n"));
}

TEST_F(ReportedNumbersTest, AFactorIsPartOfASweepAsItWasSubmitted) {
  run_grid(row("a", "scores", R"({"test.acc": 0.912})") + "[table]\nscores = \"test.acc\"\nfactor = 100\n");
  const std::string now = output({"table", "grid.toml"});
  EXPECT_THAT(now, AllOf(HasSubstr("91.20"), HasSubstr("\ntest.acc: 100 times what the runs report.\n")));
  EXPECT_EQ(output({"table", "last"}), now);
}

TEST_F(ReportedNumbersTest, AxesAreListedInTheGridsOrder) {
  run_grid("[set]\nscores = '{\"s\": 1}'\n[axis]\nz = [1]\na = [2]\n\"m.n\" = [3]\n");
  EXPECT_THAT(output({"runs", "--csv"}), HasSubstr(",resume,stale,mixed,z,a,m.n,s\n"));
  EXPECT_THAT(output({"runs"}), ContainsRegex("^run +place +z +a +m.n +seed"));
}

}  // namespace
}  // namespace tearless::harness::reported_numbers_test
