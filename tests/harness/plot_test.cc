// `tearless plot`: what it prints of a finished workspace, compared with the files metrics.jsonl of the runs.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/utf8.h"
#include "base/words.h"
#include "tests/harness/run_fixture.h"
#include "tests/support/terminal.h"

namespace tearless::harness::plot_test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// Its name has a dot, and so has the axis. Of the two seeds of each cell that diverges, both do.
constexpr const char* kGrid = R"(title = "A grid"
seeds = [3, 5]
[set]
"fake.updates" = 12
[axis]
"model.norm" = ["layer", "scale, fixed"]
"fake.behaviour" = ["succeed", "diverge"]
)";

class PlotCommand : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    made_ = new RunTest();
    test::write_text(made_->folder_ / "a.grid.toml", kGrid);
    ASSERT_EQ(made_->tearless({"run", "a.grid.toml", "--name", "v1.2"}).code, 0);
  }
  static void TearDownTestSuite() { delete made_; }

  static std::string plotted(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "plot");
    return made_->ok(arguments).output;
  }
  static std::string refused(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "plot");
    const test::Finished finished = made_->tearless(arguments);
    EXPECT_EQ(finished.code, 2) << finished.output;
    EXPECT_EQ(finished.output, "");
    return finished.errors;
  }
  static std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    for (const std::string_view line : split_lines(text)) lines.emplace_back(line);
    return lines;
  }
  // The lines of the legend: what follows the letters.
  static std::vector<std::string> legend_of(const std::string& text) {
    std::vector<std::string> lines;
    for (const std::string& line : lines_of(text)) {
      if (line.size() > 3 && std::isalpha(line[0]) && line.substr(1, 2) == "  ") lines.push_back(line);
    }
    return lines;
  }

  // Step → value, of a run's file.
  static std::map<int64_t, double> reported(const std::string& run, const std::string& metric) {
    std::map<int64_t, double> values;
    for (const MetricLine& line : read_metrics(RunDirectory(made_->folder_ / "results/runs" / run), 0).lines) {
      if (line.name == metric) values[line.step] = line.value;
    }
    return values;
  }
  static json runs() { return json::parse(made_->ok({"--json", "runs"}).output); }

  static RunTest* made_;
};
RunTest* PlotCommand::made_ = nullptr;

TEST_F(PlotCommand, CsvByRunHasTheValuesOfTheRunsFiles) {
  std::string expected = "metric,sweep,run,seed,model.norm,fake.behaviour,step,value\n";
  for (const char* metric : {"train.loss", "dev.score"}) {
    for (const json& run : runs()) {
      const std::string id = run.at("run"), norm = run.at("coordinates").at("model.norm");
      for (const auto& [step, value] : reported(id, metric)) {
        expected += fmt::format("{},{},{},{},{},{},{},{}\n", metric, run.at("sweep").get<std::string>(), id,
                                run.at("seed").get<int>(), norm == "layer" ? norm : "\"" + norm + "\"",
                                run.at("coordinates").at("fake.behaviour").get<std::string>(), step, value);
      }
    }
  }
  EXPECT_EQ(plotted({"train.loss", "dev.score", "--csv", "--by", "run"}), expected);
}

TEST_F(PlotCommand, CsvHasMeanLeastAndGreatestValueOfTheSeedsOfEachCell) {
  std::map<std::string, std::map<int64_t, std::vector<double>>> values;  // cell → step → of its seeds
  for (const json& run : runs()) {
    const json& labels = run.at("coordinates");
    auto& cell =
        values[labels.at("model.norm").get<std::string>() + " " + labels.at("fake.behaviour").get<std::string>()];
    for (const auto& [step, value] : reported(run.at("run"), "train.loss")) cell[step].push_back(value);
  }
  std::vector<std::string> lines = lines_of(plotted({"last", "train.loss", "--csv"}));
  EXPECT_EQ(lines.at(0), "metric,sweep,model.norm,fake.behaviour,step,mean,min,max,runs");
  lines.erase(lines.begin());
  size_t compared = 0;
  for (const auto& [cell, steps] : values) {
    const bool is_layer = cell.starts_with("layer");
    for (const auto& [step, of_seeds] : steps) {
      ASSERT_EQ(of_seeds.size(), 2u);
      const std::string key =
          fmt::format(",{},{},{},", is_layer ? "layer" : "\"scale, fixed\"", cell.substr(cell.rfind(' ') + 1), step);
      const auto line = std::find_if(lines.begin(), lines.end(),
                                     [&](const std::string& text) { return text.find(key) != std::string::npos; });
      ASSERT_NE(line, lines.end()) << key;
      std::istringstream rest(line->substr(line->find(key) + key.size()));
      double mean = 0, low = 0, high = 0;
      int count = 0;
      char comma;
      rest >> mean >> comma >> low >> comma >> high >> comma >> count;
      EXPECT_DOUBLE_EQ(mean, (of_seeds[0] + of_seeds[1]) / 2);
      EXPECT_EQ(low, std::min(of_seeds[0], of_seeds[1]));
      EXPECT_EQ(high, std::max(of_seeds[0], of_seeds[1]));
      EXPECT_EQ(count, 2);
      ++compared;
    }
  }
  EXPECT_EQ(compared, lines.size());
  EXPECT_EQ(compared, 2u * 12 + 2u * 6);
}

// Numbers as CSV has them.
std::string number_text(const json& number) {
  return number.is_null() ? "nan" : fmt::format("{}", number.get<double>());
}

TEST_F(PlotCommand, JsonHasTheLinesOfCsv) {
  for (const std::vector<std::string>& by : {std::vector<std::string>{}, {"--by", "run"}}) {
    std::vector<std::string> words = {"last", "train.loss", "dev.score", "--csv"};
    words.insert(words.end(), by.begin(), by.end());
    const std::string csv = plotted(words);
    words[3] = "--json";
    std::string lines = csv.substr(0, csv.find('\n') + 1);
    for (const json& line : json::parse(plotted(words))) {
      for (const json& point : line.at("points")) {
        const std::string norm = line.at("labels").at("model.norm");
        lines += line.at("metric").get<std::string>() + "," + line.at("sweep").get<std::string>() + ",";
        if (!by.empty()) lines += fmt::format("{},{},", line.at("run").get<std::string>(), line.at("seed").get<int>());
        lines += fmt::format("{},{},{}", norm == "layer" ? norm : "\"" + norm + "\"",
                             line.at("labels").at("fake.behaviour").get<std::string>(), point.at("step").get<int>());
        for (const char* name : {"value", "mean", "min", "max", "runs"}) {
          if (point.contains(name)) lines += "," + number_text(point.at(name));
        }
        lines += "\n";
      }
    }
    EXPECT_EQ(lines, csv);
  }
  EXPECT_THAT(refused({"last", "train.loss", "--csv", "--json"}), HasSubstr("--json and --csv contradict each other"));
}

TEST_F(PlotCommand, InAPipeItIsAPictureOfEightyColumnsWithoutColoursForEachMetric) {
  const std::string text = plotted({"last", "train.loss", "dev.score"});
  EXPECT_THAT(text, AllOf(StartsWith("train.loss\n"), HasSubstr("\n\ndev.score\n"), Not(HasSubstr("\033"))));
  for (const std::string& line : lines_of(text)) EXPECT_LE(display_width(line), 80u);
  EXPECT_THAT(legend_of(text), ElementsAre("A  layer         succeed", "B  layer         diverge",
                                           "C  scale, fixed  succeed", "D  scale, fixed  diverge"));
  EXPECT_THAT(lines_of(text), Contains("   model.norm    fake.behaviour"));
  EXPECT_THAT(lines_of(text), Contains("Lines: the mean of 2 seeds; bands: from the least to the greatest."));
  EXPECT_THAT(lines_of(text), Contains("×: 4 runs diverged, in no mean unless all of a line have."));
  EXPECT_NE(text.find("×"), text.rfind("×")) << "in the picture and in the note";
}

TEST_F(PlotCommand, WordsAndMetricsStandInAnyOrderAndNarrowTheRuns) {
  EXPECT_EQ(plotted({"train.loss"}), plotted({"last", "train.loss", "train.loss"}));
  EXPECT_EQ(plotted({"train.loss", "a.grid.toml"}), plotted({"last", "train.loss"}));
  EXPECT_EQ(plotted({"a.grid", "train.loss"}), plotted({"last", "train.loss"})) << "the beginning of the sweep's id";
  EXPECT_EQ(plotted({"v1.2", "train.loss"}), plotted({"last", "train.loss"})) << "its name";
  EXPECT_THAT(legend_of(plotted({"done", "train.loss", "model.norm=layer"})), ElementsAre("A  layer       succeed"));
  EXPECT_THAT(legend_of(plotted({"done", "seed=5", "train.loss", "--by", "run"})),
              ElementsAre(testing::MatchesRegex("A  layer         succeed         5     ........"),
                          testing::MatchesRegex("B  scale, fixed  succeed         5     ........")));
}

// As those that were trained without observe.groups lack its metrics: the cell is incomplete, not wrong.
TEST_F(PlotCommand, RunsThatLackTheMetricAreCountedBesideThoseThatHaveIt) {
  const std::string text = plotted({"v1.2", "dev.score", "model.norm=layer"});
  EXPECT_THAT(legend_of(text), ElementsAre("A  layer       succeed", "B  layer       diverge"));
  EXPECT_THAT(text, HasSubstr("\n×: 2 runs diverged"));
  RunTest some;
  test::write_text(some.folder_ / "grid.toml",
                   "seeds = 2\n[axis]\n\"fake.behaviour\" = [\"succeed\"]\n[set]\n\"fake.updates\" = 5\n");
  some.ok({"run", "grid.toml"});
  const RunDirectory run = some.runs().at(0);
  test::write_text(run.metrics(), "{\"step\":5,\"name\":\"epoch\",\"value\":1}\n");
  write_done(run, "done", 5, "max_updates", {"scores.json", "metrics.jsonl"});
  some.ok({"rebuild"});
  EXPECT_THAT(some.ok({"plot", "train.loss"}).output, HasSubstr("succeed: 1 of 2 runs drawn; "));
}

TEST_F(PlotCommand, ARunThatFailedIsDrawnAsFarAsItCame) {
  RunTest failed;
  test::write_text(failed.folder_ / "grid.toml",
                   "[axis]\n\"fake.behaviour\" = [\"crash\"]\n[set]\n\"fake.updates\" = 12\n");
  failed.tearless({"run", "grid.toml"});
  EXPECT_THAT(failed.ok({"plot", "train.loss"}).output,
              AllOf(HasSubstr("A  crash\n"), HasSubstr("⠉"), Not(HasSubstr("drawn"))));
  test::write_text(failed.folder_ / "grid.toml", "[axis]\n\"fake.behaviour\" = [\"refuse_late\"]\n");
  failed.tearless({"run", "grid.toml"});
  EXPECT_EQ(failed.tearless({"plot", "train.loss"}).errors, "tearless: no selected run has reported a metric\n");
  EXPECT_THAT(failed.tearless({"verify-resume", "last"}).errors, HasSubstr("has a result\n"));
}

// Each line of each sweep once, also where their axes differ.
TEST_F(PlotCommand, SweepsOfOtherAxesStandBesideEachOther) {
  RunTest two;
  const std::string set = "[set]\n\"fake.updates\" = 5\n[axis]\n";
  test::write_text(two.folder_ / "a.toml", set + "\"model.norm\" = [\"x\", \"y\"]\n");
  test::write_text(two.folder_ / "b.toml", set + "\"model.kind\" = [\"a\", \"b\"]\n");
  two.ok({"run", "a.toml", "--name", "first"});
  two.ok({"run", "b.toml", "--name", "second"});
  const std::string text = two.ok({"plot", "first", "second", "train.loss"}).output;
  EXPECT_THAT(legend_of(text),
              ElementsAre(testing::MatchesRegex("A  a.*  x"), testing::MatchesRegex("B  a.*  y"),
                          testing::MatchesRegex("C  b.*     a"), testing::MatchesRegex("D  b.*     b")));
  EXPECT_THAT(lines_of(text), Contains(testing::MatchesRegex("   sweep  .*model.norm  model.kind")));
}

TEST_F(PlotCommand, AMetricThatNoRunHasIsRefusedWithThoseThatThereAre) {
  EXPECT_EQ(
      refused({"last", "train.los"}),
      "tearless: no selected run has the metric \"train.los\" (did you mean \"train.loss\"?); they have dev.score, "
      "train.loss\n");
  EXPECT_EQ(refused({"diverged", "train.loss", "dev.score"}),
            "tearless: no selected run has the metric \"dev.score\"; they have train.loss\n");
  EXPECT_EQ(refused({"last"}), "tearless: name a metric to plot; the selected runs have dev.score, train.loss\n");
  EXPECT_THAT(refused({"nonsense", "train.loss"}), HasSubstr("\"nonsense\" is no sweep"));
  EXPECT_EQ(
      refused({"last", "train.loss", "--by", "seed"}),
      "tearless: --by seed is not known; it must be cell (a line for the seeds of a cell together) or run (a line "
      "for each run)\n");
}

TEST_F(PlotCommand, ATerminalGetsColoursAndItsWidth) {
  const auto shown = [&](const std::string& before) {
    test::Command shell = made_->command({});
    shell.arguments = {
        "/bin/sh", "-c",
        "stty cols 130; " + before + " exec '" + test::program("tearless").string() + "' plot last train.loss"};
    test::Terminal terminal(shell);
    EXPECT_EQ(terminal.wait(), 0);
    return terminal.shown();
  };
  const std::string coloured = shown("unset NO_COLOR;"), plain = shown("export NO_COLOR=1;");
  EXPECT_THAT(coloured, HasSubstr("\033[1;38;5;31mA\033[0m  layer"));
  EXPECT_THAT(plain, Not(HasSubstr("\033")));
  size_t widest = 0;
  for (const std::string& line : lines_of(plain)) {
    widest = std::max(widest, display_width(line.substr(0, line.find('\r'))));
  }
  EXPECT_EQ(widest, 130u);
}

}  // namespace
}  // namespace tearless::harness::plot_test
