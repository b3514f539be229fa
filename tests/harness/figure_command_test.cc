// `tearless figure`: what it prints and writes of a finished workspace, compared with the files of the runs; what it
// refuses, and what it then leaves behind.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/utf8.h"
#include "base/words.h"
#include "tests/harness/run_fixture.h"
#include "tests/support/csv.h"

namespace tearless::harness::figure_command_test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;
using testing::UnorderedElementsAre;

// Of the cells that diverge, all seeds do. The second figure has no name.
constexpr const char* kGrid = R"(title = "A grid"
seeds = [3, 5]
[set]
"fake.updates" = 12
"fake.metric.epoch" = 0.25
[axis]
"model.norm" = ["layer", "scale, fixed"]
"fake.behaviour" = ["succeed", "diverge"]
[[figure]]
name = "losses"
caption = "Loss by update"
y = "train.loss"
panels = "fake.behaviour"
[[figure]]
caption = "Norms by epoch"
x = "epoch"
y = "gradient_norms"
where = { "fake.behaviour" = "succeed" }
)";

using Cells = std::vector<std::vector<std::string>>;

struct Values {
  std::vector<double> all;

  double mean() const { return (all.at(0) + all.at(1)) / 2; }
  double deviation() const { return std::abs(all.at(0) - all.at(1)) / std::sqrt(2); }  // of two
};
/// Cell → step → of its seeds.
using ByStep = std::map<std::string, std::map<int64_t, Values>>;

std::vector<float> norms_of(const RunDirectory& run) {
  const std::string bytes = test::read_text(run.gradient_norms());
  std::vector<float> norms(bytes.size() / sizeof(float));
  std::copy_n(bytes.data(), norms.size() * sizeof(float), reinterpret_cast<char*>(norms.data()));
  return norms;
}

class FigureCommand : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    made_ = new RunTest();
    test::write_text(made_->folder_ / "a.grid.toml", kGrid);
    ASSERT_EQ(made_->tearless({"run", "a.grid.toml", "--name", "v1"}).code, 0);
    for (const json& run : runs()) {
      std::vector<float> norms;
      for (int update = 1; update <= 12; ++update)
        norms.push_back(static_cast<float>(run.at("seed").get<int>()) / static_cast<float>(update));
      test::write_text(directory_of(run).gradient_norms(),
                       std::string_view(reinterpret_cast<const char*>(norms.data()), norms.size() * sizeof(float)));
    }
  }
  static void TearDownTestSuite() { delete made_; }
  ~FigureCommand() override { fs::remove_all(out()); }

  static fs::path out() { return made_->folder_ / "out"; }
  static json runs() { return json::parse(made_->ok({"--json", "runs", "v1"}).output); }
  static RunDirectory directory_of(const json& run) {
    return RunDirectory(made_->folder_ / "results/runs" / run.at("run").get<std::string>());
  }

  static test::Finished figure(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "figure");
    return made_->tearless(std::move(arguments));
  }
  static std::string drawn(std::vector<std::string> arguments) {
    const test::Finished finished = figure(arguments);
    EXPECT_EQ(finished.code, 0) << testing::PrintToString(arguments) << finished.errors;
    return finished.output;
  }
  static std::string refused(std::vector<std::string> arguments) {
    const test::Finished finished = figure(arguments);
    EXPECT_EQ(finished.code, 2) << testing::PrintToString(arguments) << finished.output;
    EXPECT_EQ(finished.output, "");
    EXPECT_EQ(std::ranges::count(finished.errors, '\n'), 1) << finished.errors;
    return finished.errors;
  }
  static std::vector<std::string> files_in(const fs::path& folder) {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
    return names;
  }
  /// The grid with other figures.
  static std::string grid_with(const std::string& figures) {
    const std::string grid = kGrid;
    test::write_text(made_->folder_ / "other.toml", grid.substr(0, grid.find("[[figure]]")) + figures);
    return "other.toml";
  }
  static bool has_converter() { return std::system("command -v rsvg-convert > /dev/null") == 0; }

  static RunTest* made_;
};
RunTest* FigureCommand::made_ = nullptr;

// --- what is drawn ---------------------------------------------------------------------------------------------------

TEST_F(FigureCommand, PrintsTheFiguresOneBelowTheOtherAsTextOfEightyColumnsInAPipe) {
  const std::string text = drawn({"a.grid.toml"});
  EXPECT_THAT(text, AllOf(HasSubstr("Loss by update"), HasSubstr("Norms by epoch"), Not(HasSubstr("\033"))));
  EXPECT_LT(text.find("Loss by update"), text.find("Norms by epoch"));
  EXPECT_THAT(text, AllOf(HasSubstr("Lines: the mean of 2 seeds; bands: the mean ± the standard deviation."),
                          HasSubstr("×: 4 runs diverged, in no mean unless all of a line have.")));
  for (const std::string_view line : split_lines(text)) EXPECT_LE(display_width(std::string(line)), 80u) << line;
  EXPECT_EQ(drawn({"a.grid.toml", "--format", "text"}), text);
}

TEST_F(FigureCommand, CsvHasMeanAndStandardDeviationOfTheSeedsAtEachUpdateOfTheirFiles) {
  ByStep expected;
  for (const json& run : runs()) {
    const json& labels = run.at("coordinates");
    const std::string cell =
        labels.at("fake.behaviour").get<std::string>() + " " + labels.at("model.norm").get<std::string>();
    for (const MetricLine& line : read_metrics(directory_of(run), 0).lines) {
      if (line.name == "train.loss") expected[cell][line.step].all.push_back(line.value);
    }
  }
  Cells lines = test::csv_cells(drawn({"a.grid.toml", "--format", "csv", "--only", "losses"}));
  EXPECT_THAT(lines.at(0), ElementsAre("figure", "fake.behaviour", "model.norm", "y", "x", "mean", "low", "high",
                                       "runs", "source", "diverged"));
  lines.erase(lines.begin());
  EXPECT_EQ(std::erase_if(lines, [](const auto& line) { return line.at(8) == "0" && std::stod(line.at(10)) > 0; }), 4u);
  EXPECT_EQ(lines.size(), 2u * 12 + 2u * 6);
  for (const std::vector<std::string>& line : lines) {
    const Values& of_seeds = expected.at(line.at(1) + " " + line.at(2)).at(std::stoll(line.at(4)));
    ASSERT_EQ(of_seeds.all.size(), 2u);
    EXPECT_DOUBLE_EQ(std::stod(line.at(5)), of_seeds.mean());
    EXPECT_NEAR(std::stod(line.at(6)), of_seeds.mean() - of_seeds.deviation(), 1e-12);
    EXPECT_NEAR(std::stod(line.at(7)), of_seeds.mean() + of_seeds.deviation(), 1e-12);
    EXPECT_GT(of_seeds.deviation(), 0);
    EXPECT_THAT((std::vector{line.at(0), line.at(3), line.at(8), line.at(9)}),
                ElementsAre("losses", "train.loss", "2", ""));
  }
}

TEST_F(FigureCommand, GradientNormsAreThoseOfTheirFileAtTheEpochOfTheUpdate) {
  ByStep expected;
  for (const json& run : runs()) {
    const std::vector<float> norms = norms_of(directory_of(run));
    for (size_t i = 0; i < norms.size() && run.at("coordinates").at("fake.behaviour") == "succeed"; ++i)
      expected[run.at("coordinates").at("model.norm")][static_cast<int64_t>(i) + 1].all.push_back(norms[i]);
  }
  Cells lines = test::csv_cells(drawn({"a.grid.toml", "--format", "csv", "--only", "figure-2"}));
  EXPECT_THAT(lines.at(0),
              ElementsAre("figure", "model.norm", "y", "x", "mean", "low", "high", "runs", "source", "diverged"));
  lines.erase(lines.begin());
  EXPECT_EQ(lines.size(), 2u * 12);
  for (const std::vector<std::string>& line : lines) {
    const double update = std::stod(line.at(3)) / 0.25;
    const Values& of_seeds = expected.at(line.at(1)).at(std::llround(update));
    EXPECT_DOUBLE_EQ(std::stod(line.at(4)), of_seeds.mean());
    EXPECT_EQ(line.at(0), "figure-2");
  }
}

TEST_F(FigureCommand, JsonHasThePointsOfCsv) {
  const auto text = [](const json& number) { return number.is_null() ? "" : fmt::format("{}", number.get<double>()); };
  const json figures = json::parse(drawn({"a.grid.toml", "--json"}));
  Cells csv = test::csv_cells(drawn({"a.grid.toml", "--format", "csv"})), points = {csv.at(0)};
  for (const json& figure : figures) {
    for (const json& panel : figure.at("panels")) {
      for (const json& line : panel.at("lines")) {
        const auto add = [&](const json& x, const std::vector<std::string>& numbers) {
          std::vector<std::string>& cells = points.emplace_back();
          cells = {figure.at("name"), line.at("labels").value("fake.behaviour", ""), line.at("labels").at("model.norm"),
                   line.at("y"), text(x)};
          cells.insert(cells.end(), numbers.begin(), numbers.end());
        };
        for (const json& point : line.at("points")) {
          add(point.at("x"), {text(point.at("mean")), text(point.at("low")), text(point.at("high")),
                              text(point.at("runs")), line.at("source"), ""});
        }
        for (const json& end : line.at("diverged")) add(end.at("x"), {"", "", "", "0", "", text(end.at("y"))});
      }
    }
  }
  EXPECT_EQ(points, csv);
  EXPECT_EQ(figures.at(0).at("title"), "Loss by update");
  EXPECT_EQ(figures.at(0).at("panels").size(), 2u);
  EXPECT_EQ(drawn({"a.grid.toml", "--format", "json"}), drawn({"a.grid.toml", "--json"}));
  EXPECT_EQ(refused({"a.grid.toml", "--format", "csv", "--json"}),
            "tearless: --json and --format csv contradict each other; omit one of them\n");
}

TEST_F(FigureCommand, JsonOfAFigureOverLabelsHasTheLabels) {
  const std::string layout = grid_with(
      "[[figure]]\ncaption = \"Bars\"\nkind = \"bars\"\nx = \"model.norm\"\n"
      "y = \"test.score\"\nwhere = { \"fake.behaviour\" = \"succeed\" }\n");
  std::set<std::string> labels;
  const json figures = json::parse(drawn({"v1", "--layout", layout, "--json"}));
  for (const json& point : figures.at(0).at("panels").at(0).at("lines").at(0).at("points"))
    labels.insert(point.at("x").get<std::string>());
  EXPECT_THAT(labels, UnorderedElementsAre("layer", "scale, fixed"));
}

TEST_F(FigureCommand, HasTheMeansOfPlot) {
  std::set<std::vector<std::string>> of_figure, of_plot;
  for (const auto& line : test::csv_cells(drawn({"a.grid.toml", "--format", "csv", "--only", "losses"})))
    of_figure.insert({line.at(2), line.at(1), line.at(4), line.at(5), line.at(8)});
  for (const auto& line : test::csv_cells(made_->ok({"plot", "v1", "train.loss", "--csv"}).output))
    of_plot.insert({line.at(2), line.at(3), line.at(4), line.at(5), line.at(8)});
  std::erase_if(of_figure, [](const auto& line) { return line.at(4) == "0"; });  // where one diverged
  of_figure.erase({"model.norm", "fake.behaviour", "x", "mean", "runs"});
  of_plot.erase({"model.norm", "fake.behaviour", "step", "mean", "runs"});
  EXPECT_EQ(of_figure.size(), 36u);
  EXPECT_EQ(of_figure, of_plot);
}

TEST_F(FigureCommand, OfASweepIsThatOfItsGridAndTakesAnotherLayout) {
  const std::string csv = drawn({"a.grid.toml", "--format", "csv"});
  EXPECT_EQ(drawn({"v1", "--format", "csv"}), csv);
  const std::string layout = grid_with("[[figure]]\nname = \"scores\"\ncaption = \"Score\"\ny = \"dev.score\"\n");
  const Cells lines = test::csv_cells(drawn({"v1", "--layout", layout, "--format", "csv"}));
  ASSERT_EQ(lines.size(), 3u) << "of the two cells that did not diverge";
  EXPECT_EQ(lines.at(1).at(0), "scores");
  EXPECT_EQ(lines.at(1).at(4), "12") << "the score is reported at the end";
}

TEST_F(FigureCommand, RunsThatEndedWithoutTheMetricAreLeftOutAndSaid) {
  const std::string text = drawn({grid_with("[[figure]]\ncaption = \"Score\"\ny = \"dev.score\"\n")});
  EXPECT_THAT(text, HasSubstr("×: 4 runs diverged"));
  EXPECT_THAT(text, Not(HasSubstr("succeed: ")));
}

// What a layout names is looked up in the results, as the training program is not asked.
TEST_F(FigureCommand, AMetricOfALayoutThatNoRunHasIsRefusedWithTheNearest) {
  const std::string layout = grid_with("[[figure]]\ncaption = \"Score\"\ny = \"dev.scor\"\n");
  EXPECT_THAT(refused({"v1", "--layout", layout}),
              AllOf(HasSubstr("y = \"dev.scor\": no run has it (did you mean \"dev.score\"?)"),
                    HasSubstr("dev.score, epoch, gradient_norms, train.loss")));
}

// A copy of results alone has no models and no texts, but all that figures draw.
TEST_F(FigureCommand, OfResultsAloneAndDrawnAgainHasTheSameBytes) {
  made_->ok({"copy", "alone.tar.gz", "v1"});
  for (const char* format : {"csv", "pgfplots", "text"}) {
    const std::string bytes = drawn({"v1", "--format", format});
    EXPECT_EQ(drawn({"v1", "--format", format}), bytes) << format;
    test::Command of_archive = made_->command({"--workspace", "alone.tar.gz", "figure", "v1", "--format", format});
    of_archive.environment["XDG_CACHE_HOME"] = (made_->folder_ / "cache").string();
    const test::Finished finished = test::run(of_archive);
    EXPECT_EQ(finished.code, 0) << finished.errors;
    EXPECT_EQ(finished.output, bytes) << format;
  }
}

// --- files -----------------------------------------------------------------------------------------------------------

TEST_F(FigureCommand, OfAFigureThatIsHigherThanAPageStandardErrorSaysSo) {
  const std::string y = "\"\ny = \"train.loss\"\n[[figure]]\nname = \"low\"\ny = \"train.loss\"\ncaption = \"low\"\n";
  const std::string layout = grid_with("[[figure]]\nname = \"tall\"\ncaption = \"" + std::string(9000, 'w') + y);
  for (const std::string format : {"pgfplots", "svg"}) {
    const test::Finished finished =
        figure({"v1", "--layout", layout, "--format", format, "--out", out().string() + "/"});
    EXPECT_EQ(finished.code, 0);
    EXPECT_THAT(finished.errors, AllOf(HasSubstr("the figure tall is about "), HasSubstr(" mm high, and a page 229"),
                                       Not(HasSubstr("the figure low "))));
  }
  EXPECT_EQ(figure({"v1", "--layout", layout}).errors, "") << "text and CSV have no page";
}

TEST_F(FigureCommand, TheEndingOfTheFileChoosesTheFormat) {
  fs::create_directories(out());
  for (const auto& [file, format] :
       {std::pair("f.csv", "csv"), std::pair("f.tex", "pgfplots"), std::pair("f.txt", "text")}) {
    EXPECT_EQ(drawn({"a.grid.toml", "--out", out() / file}), "");
    EXPECT_EQ(test::read_text(out() / file), drawn({"a.grid.toml", "--format", format})) << file;
  }
  EXPECT_THAT(test::read_text(out() / "f.tex"),
              AllOf(HasSubstr("\\begin{tikzpicture}"), HasSubstr("Loss by update"), HasSubstr("Norms by epoch")));
  drawn({"a.grid.toml", "--out", out() / "f.txt", "--format", "csv"});
  EXPECT_EQ(test::read_text(out() / "f.txt"), test::read_text(out() / "f.csv")) << "--format decides where it is given";
}

TEST_F(FigureCommand, AFolderGetsAFileForEachFigureCalledByItsNameOrNumber) {
  drawn({"a.grid.toml", "--out", out() / "", "--format", "pgfplots"});
  EXPECT_THAT(files_in(out()), UnorderedElementsAre("losses.tex", "figure-2.tex"));
  EXPECT_EQ(test::read_text(out() / "figure-2.tex"),
            drawn({"a.grid.toml", "--only", "figure-2", "--format", "pgfplots"}));
  drawn({"a.grid.toml", "--out", out(), "--format", "csv", "--only", "losses"});
  EXPECT_THAT(files_in(out()), UnorderedElementsAre("losses.tex", "figure-2.tex", "losses.csv"))
      << "a folder that is there needs no / at its end";
}

TEST_F(FigureCommand, TwoFiguresThatWouldHaveOneFileAreRefused) {
  const std::string grid = grid_with(
      "[[figure]]\nname = \"figure-2\"\ncaption = \"A\"\ny = \"train.loss\"\n"
      "[[figure]]\ncaption = \"B\"\ny = \"dev.score\"\n");
  EXPECT_THAT(refused({grid, "--out", out() / "", "--format", "csv"}),
              AllOf(HasSubstr("figure-2"), HasSubstr("two figures")));
  EXPECT_FALSE(fs::exists(out()));
  EXPECT_THAT(drawn({grid, "--format", "csv"}), AllOf(HasSubstr("train.loss"), HasSubstr("dev.score")));
}

TEST_F(FigureCommand, SeveralFiguresAreNotOnePicture) {
  EXPECT_EQ(refused({"a.grid.toml", "--out", "f.svg"}),
            "tearless: --out f.svg: there are 2 figures; choose one with --only (losses, figure-2), or write --out "
            "FOLDER/\n");
  EXPECT_EQ(refused({"a.grid.toml", "--format", "png"}),
            "tearless: --format png: a picture needs --out FILE, or --out FOLDER/ for one file a figure\n");
  EXPECT_FALSE(fs::exists(made_->folder_ / "f.svg"));
}

TEST_F(FigureCommand, AnUnknownFigureFormatOrEndingIsRefusedWithThoseThatThereAre) {
  EXPECT_EQ(
      refused({"a.grid.toml", "--only", "losse"}),
      "tearless: --only losse: there is no such figure (did you mean \"losses\"?); there are: losses, figure-2\n");
  EXPECT_THAT(refused({"a.grid.toml", "--only", "losses", "--only", "figure-1"}),
              HasSubstr("--only figure-1: there is no such figure"));
  EXPECT_EQ(refused({"a.grid.toml", "--format", "pgfplot"}),
            "tearless: --format pgfplot is not known (did you mean \"pgfplots\"?); it must be one of: text, csv, "
            "json, pgfplots, svg, pdf, png\n");
  EXPECT_EQ(
      refused({"a.grid.toml", "--out", "f.jpeg"}),
      "tearless: --out f.jpeg: its ending stands for no format of figures; choose one of .txt, .csv, .json, .tex, "
      ".svg, .pdf, .png, or add --format\n");
  EXPECT_THAT(refused({"a.grid.toml", "--out", "folder/"}), HasSubstr("--out folder/: a folder needs --format"));
  for (const char* left : {"f.jpeg", "folder"}) EXPECT_FALSE(fs::exists(made_->folder_ / left)) << left;
}

TEST_F(FigureCommand, AGridWithoutFiguresSaysWhereTheyAreDescribed) {
  EXPECT_THAT(refused({grid_with("")}),
              AllOf(HasSubstr("other.toml has no figure"), HasSubstr("[[figure]]"), HasSubstr("tearless plot")));
}

TEST_F(FigureCommand, WhatCannotBeWrittenIsOneSentenceAndLeavesNothing) {
  fs::create_directories(out());
  const std::map<std::string, std::string> formats = {
      {"f.csv", "csv"}, {"f.tex", "pgfplots"}, {"f.svg", "svg"}, {"f.png", "png"}};
  for (const auto& [file, format] : formats) {
    if (format == "png" && !has_converter()) continue;
    EXPECT_THAT(refused({"a.grid.toml", "--only", "losses", "--out", out() / "none" / file}), HasSubstr("none"))
        << file;
    EXPECT_THAT(refused({"a.grid.toml", "--only", "losses", "--out", "/proc/" + file}), HasSubstr("/proc/")) << file;
  }
  test::write_text(out() / "file", "mine");
  EXPECT_THAT(refused({"a.grid.toml", "--format", "csv", "--out", out() / "file/"}), HasSubstr("out/file"));
  EXPECT_EQ(test::read_text(out() / "file"), "mine");
  EXPECT_THAT(files_in(out()), ElementsAre("file"));
}

TEST_F(FigureCommand, WhatIsNoFileIsNotReplacedAndALinkIsFollowed) {
  fs::create_directories(out());
  const fs::path pipe = out() / "pipe.csv", link = out() / "link.csv", target = out() / "target.csv";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(refused({"a.grid.toml", "--only", "losses", "--out", pipe}), HasSubstr("it is there and is no file"));
  EXPECT_TRUE(fs::is_fifo(pipe));
  test::write_text(target, "before");
  fs::create_symlink("target.csv", link);
  drawn({"a.grid.toml", "--only", "losses", "--out", link});
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_THAT(test::read_text(target), StartsWith("figure,"));
}

// --- pictures --------------------------------------------------------------------------------------------------------

TEST_F(FigureCommand, WithoutRsvgConvertPdfAndPngAreRefusedWithWhatToInstallAndTheOthersAreDrawn) {
  fs::create_directories(out());
  fs::create_directories(made_->folder_ / "empty");
  const auto without_programs = [](std::vector<std::string> arguments) {
    test::Command asked = made_->command(std::move(arguments));
    asked.environment["PATH"] = (made_->folder_ / "empty").string();
    return test::run(asked);
  };
  for (const char* file : {"f.pdf", "f.png"}) {
    const test::Finished finished =
        without_programs({"figure", "a.grid.toml", "--only", "losses", "--out", out() / file});
    EXPECT_EQ(finished.code, 2);
    EXPECT_EQ(
        finished.errors,
        "tearless: PDF and PNG are made by rsvg-convert, which is not installed: apt-get install librsvg2-bin, or "
        "choose --format svg\n");
  }
  EXPECT_THAT(files_in(out()), IsEmpty());
  for (const char* file : {"f.txt", "f.csv", "f.tex", "f.svg"})
    EXPECT_EQ(without_programs({"figure", "a.grid.toml", "--only", "losses", "--out", out() / file}).code, 0) << file;
}

TEST_F(FigureCommand, AnRsvgConvertThatFailsLeavesThePictureThatWasThere) {
  const fs::path programs = made_->folder_ / "programs";
  fs::create_directories(programs);
  fs::create_directories(out());
  test::write_text(out() / "f.png", "before");
  test::Command asked = made_->command({"figure", "a.grid.toml", "--only", "losses", "--out", out() / "f.png"});
  asked.environment["PATH"] = programs.string() + ":/usr/bin:/bin";
  for (const std::string does : {"cat > /dev/null\necho 'not an image' >&2\nexit 1\n", "exit 0\n"}) {
    test::write_text(programs / "rsvg-convert", "#!/bin/sh\n" + does);
    fs::permissions(programs / "rsvg-convert", fs::perms::owner_all);
    const test::Finished finished = test::run(asked);
    EXPECT_EQ(finished.code, 2) << does;
    EXPECT_THAT(finished.errors, HasSubstr("rsvg-convert could not make " + (out() / "f.png").string())) << does;
    EXPECT_EQ(test::read_text(out() / "f.png"), "before");
    EXPECT_THAT(files_in(out()), ElementsAre("f.png"));
  }
}

TEST_F(FigureCommand, SvgIsDrawnWithTheSameBytesAgainAndPdfAndPngAreMadeOfIt) {
  drawn({"a.grid.toml", "--out", out() / "", "--format", "svg"});
  EXPECT_THAT(files_in(out()), UnorderedElementsAre("losses.svg", "figure-2.svg"));
  const std::string picture = test::read_text(out() / "losses.svg");
  EXPECT_THAT(picture, AllOf(StartsWith("<svg"), HasSubstr("</svg>"), HasSubstr(">Loss by update</text>")));
  drawn({"a.grid.toml", "--only", "losses", "--out", out() / "again.svg"});
  EXPECT_EQ(test::read_text(out() / "again.svg"), picture);
  if (!has_converter()) GTEST_SKIP() << "PDF and PNG need rsvg-convert";
  for (const auto& [file, begins] : {std::pair("f.pdf", "%PDF-"), std::pair("f.png", "\x89PNG")}) {
    drawn({"a.grid.toml", "--only", "losses", "--out", out() / file});
    EXPECT_THAT(test::read_text(out() / file), StartsWith(begins));
  }
  const std::string png = test::read_text(out() / "f.png");
  const auto width = static_cast<unsigned char>(png.at(18)) * 256 + static_cast<unsigned char>(png.at(19));
  EXPECT_NEAR(width, 84 / 25.4 * 300, 1) << "84 mm with 300 dots an inch";
  EXPECT_THAT(test::read_text(out() / "f.pdf"), HasSubstr("MediaBox [ 0 0 238.11"));
}

// --- what is not there -----------------------------------------------------------------------------------------------

// Before anything is started.
TEST_F(FigureCommand, AMetricThatNoRunWillHaveIsRefusedByEveryCommandOfTheGrid) {
  constexpr const char* kFigure = "[[figure]]\ncaption = \"Loss\"\ny = \"train.loss\"\n";
  const auto refusal_of = [&](const std::string& views, const std::string& place, const std::string& name) {
    const RunTest fresh;
    test::write_text(fresh.folder_ / "grid.toml", test::read_text(made_->folder_ / grid_with(views)));
    for (const char* verb : {"plan", "run", "submit", "figure"}) {
      const test::Finished finished = fresh.tearless({verb, "grid.toml"});
      EXPECT_NE(finished.code, 0) << verb;
      EXPECT_THAT(finished.output + finished.errors,
                  HasSubstr("grid.toml:" + place + ": no run of this grid has a metric " + name +
                            "; they have: dev.score, epoch, train.loss"))
          << verb;
      EXPECT_THAT(fresh.runs(), IsEmpty()) << verb;
      EXPECT_FALSE(fs::exists(fresh.folder_ / "results/sweeps")) << verb;
    }
  };
  refusal_of("[[figure]]\ncaption = \"Loss\"\ny = [\"dev.score\", \"train.los\"]\n", "11: y",
             "train.los (did you mean \"train.loss\"?)");
  refusal_of("[[figure]]\ncaption = \"Loss\"\ny = \"train.loss\"\nx = \"epoc\"\n", "12: x",
             "epoc (did you mean \"epoch\"?)");
  refusal_of("[score.last]\nof = \"dev.scor\"\ntake = \"final\"\n" + std::string(kFigure), "9: of",
             "dev.scor (did you mean \"dev.score\"?)");
  refusal_of(
      "[[table]]\nrows = \"model.norm\"\nscores = [\"test.score\"]\n[[claim]]\ntext = \"c\"\n"
      "stays_better = [\"layer\", \"scale, fixed\"]\nfrom = 1\ncurve = \"train.los\"\nbest_is = \"lowest\"\n",
      "16: curve", "train.los (did you mean \"train.loss\"?)");
}

TEST_F(FigureCommand, RunsThatAreNotThereYetAreLeftOutAndSaid) {
  RunTest some;
  const std::string figure = "[[figure]]\ncaption = \"Loss\"\ny = \"train.loss\"\n";
  test::write_text(some.folder_ / "grid.toml", test::read_text(some.folder_ / "grid.toml") + figure);
  some.ok({"run", "grid.toml", "--only", "model.kind=a"});
  const std::string text = some.ok({"figure", "grid.toml"}).output;
  EXPECT_THAT(text, AllOf(HasSubstr("No run to draw yet: b, succeed."), Not(HasSubstr("a, succeed: "))));
  const Cells lines = test::csv_cells(some.ok({"figure", "grid.toml", "--format", "csv"}).output);
  EXPECT_EQ(lines.size(), 1u + 12);
  for (size_t i = 1; i < lines.size(); ++i) EXPECT_EQ(lines[i].at(1), "a");
}

TEST_F(FigureCommand, QueuedRunsAreLeftOutAndARunningOneIsDrawnAsFarAsItIs) {
  ServedRunTest served;
  test::write_text(
      served.folder_ / "grid.toml",
      "seeds = 2\n[set]\n\"fake.updates\" = 100000\n\"fake.sleep_ms\" = 20\n[axis]\n\"model.kind\" = [\"a\"]\n"
      "[[figure]]\ncaption = \"Loss\"\ny = \"train.loss\"\n");
  served.queue("grid.toml");
  EXPECT_THAT(served.ok({"figure", "last"}).output, HasSubstr("No run to draw yet: a."));
  served.free_the_daemon();  // it trains one run at a time
  const auto csv = [&] { return served.ok({"figure", "last", "--format", "csv"}).output; };
  EXPECT_TRUE(test::eventually([&] { return test::csv_cells(csv()).size() > 1; }));
  const Cells lines = test::csv_cells(csv());
  EXPECT_EQ(lines.back().at(7), "1") << "one of the two runs";
  EXPECT_THAT(served.ok({"figure", "last"}).output, HasSubstr("1 of 2 runs drawn, the others have nothing to draw."));
}

TEST_F(FigureCommand, OfLongRunsAPointIsTheMeanOfSeveralValuesWhichTheFigureSays) {
  RunTest large;
  test::write_text(large.folder_ / "grid.toml",
                   "[axis]\n\"model.kind\" = [\"a\"]\n[[figure]]\ncaption = \"Loss\"\ny = \"train.loss\"\n");
  large.ok({"run", "grid.toml"});
  const RunDirectory run = large.runs().at(0);
  constexpr int kUpdates = 200000, kEach = 64;  // 4096 · 32 is not enough
  std::string text;
  for (int step = 1; step <= kUpdates; ++step)
    text += fmt::format("{{\"step\":{},\"name\":\"train.loss\",\"value\":{}}}\n", step, step % 2 == 0 ? step : -step);
  test::write_text(run.metrics(), text);
  write_done(run, "done", kUpdates, "max_updates", {"scores.json", "metrics.jsonl"});
  large.ok({"rebuild"});
  Cells lines = test::csv_cells(large.ok({"figure", "grid.toml", "--format", "csv"}).output);
  ASSERT_EQ(lines.size(), 1u + 1 + kUpdates / kEach + 1) << "the first and the last value stay";
  EXPECT_EQ(lines.at(1).at(4), "-1");
  EXPECT_EQ(lines.back().at(4), std::to_string(kUpdates));
  for (int i = 0; i < kUpdates / kEach; ++i) {
    const std::vector<std::string>& line = lines.at(static_cast<size_t>(i) + 2);
    EXPECT_DOUBLE_EQ(std::stod(line.at(3)), i * kEach + (kEach + 1) / 2.0);
    EXPECT_NEAR(std::stod(line.at(4)), 0.5, 1e-6) << "of pairs whose sum is 1";
  }
  EXPECT_THAT(large.ok({"figure", "grid.toml"}).output,
              HasSubstr("Of runs with more than 4096 values, a point is the mean of up to 64."));
}

}  // namespace
}  // namespace tearless::harness::figure_command_test
