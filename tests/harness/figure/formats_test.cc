// What the formats for other programs say of a figure: CSV, pgfplots and gnuplot's scripts, read back from their texts.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <random>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/words.h"
#include "harness/figure/drawing.h"
#include "harness/figure/figure.h"
#include "harness/figure/style.h"
#include "tests/support/golden.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace tearless::harness::formats_test {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::DoubleNear;
using testing::Each;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::Ge;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Key;
using testing::Not;
using testing::SizeIs;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// --- figures ---------------------------------------------------------------------------------------------------------

BandPoint point(double x, double mean) { return {x, 1, mean, mean, mean}; }
BandPoint point(double x, double low, double mean, double high) { return {x, 3, mean, low, high}; }
BandPoint gap(double x) { return {x, 0, kNaN, kNaN, kNaN}; }

Figure::Line line(std::vector<BandPoint> points) { return {.points = std::move(points), .y = "dev.bleu"}; }

Figure::Line published(std::vector<BandPoint> points) {
  Figure::Line line = formats_test::line(std::move(points));
  line.source = "Paper 2019";
  return line;
}

// As many points as asked for, at 10, 20 …
Figure::Line long_line(size_t points, double above = 0) {
  Figure::Line line = formats_test::line({});
  for (size_t i = 1; i <= points; ++i) {
    const auto x = static_cast<double>(i);
    line.points.push_back(point(10 * x, above + std::sqrt(x)));
  }
  return line;
}

// One panel; the lines are called a, b …
Figure figure_of(std::vector<Figure::Line> lines) {
  Figure figure{.title = {"Dev BLEU"}, .name = "dev", .x = {"updates"}};
  figure.heading = {{"Norm"}};
  for (size_t i = 0; i < lines.size(); ++i) figure.legend.push_back({{std::string(1, static_cast<char>('a' + i))}});
  figure.panels.push_back({.y = {"BLEU"}, .lines = std::move(lines)});
  return figure;
}

// --- pictures, read back ---------------------------------------------------------------------------------------------

using Points = std::vector<std::vector<double>>;  // rows of numbers
using Stretches = std::vector<Points>;            // what is joined

std::vector<double> numbers_in(const std::string& text) {
  std::istringstream words(text);
  std::vector<double> numbers;
  for (double number = 0; words >> number;) numbers.push_back(number);
  return numbers;
}

// A script of gnuplot: what is joined in each block of data, and the style with which it is drawn.
struct Script {
  std::string text;
  std::map<std::string, Stretches> data = {};
  std::map<std::string, std::string> styles = {};

  explicit Script(const Figure& figure, Picture kind = Picture::kSvg) : text(gnuplot_script(figure, kind, "dev.svg")) {
    Stretches* block = nullptr;
    for (const std::string_view view : split_lines(text)) {
      const std::string row(view);
      const size_t begin = row.find(" << EOD"), name = row.find('$');
      if (begin != std::string::npos) {
        block = &data[row.substr(0, begin)];
        block->emplace_back();
      } else if (row == "EOD") {
        block = nullptr;
      } else if (block && row.empty()) {
        block->emplace_back();
      } else if (block) {
        block->back().push_back(numbers_in(row));
      } else if (name != std::string::npos && (row.starts_with("plot ") || row.starts_with("     "))) {
        const size_t style = row.find(' ', name);
        styles.emplace(row.substr(name, style - name), row.substr(style + 1));
      }
    }
  }

  // The texts in print, without their places.
  std::vector<std::string> texts() const {
    static const std::regex kLabel(R"(set label '((?:[^']|'')*)' at)");
    std::vector<std::string> texts;
    for (std::sregex_iterator label(text.begin(), text.end(), kLabel), end; label != end; ++label)
      texts.push_back(std::regex_replace((*label)[1].str(), std::regex("''"), "'"));
    return texts;
  }

  // Of the terminal, in its units.
  std::string size() const {
    std::smatch found;
    return std::regex_search(text, found, std::regex(R"( size (\S+) )")) ? found[1].str() : "";
  }
};

// A picture of pgfplots: the points of each \addplot, by the name of its style, in order.
struct Tikz {
  std::string text;
  std::map<std::string, Stretches> plots = {};

  explicit Tikz(const Figure& figure) : text(render_pgfplots(figure)) {
    const std::string begin = "\\addplot[", middle = "] coordinates {";
    for (size_t at = text.find(begin); at != std::string::npos; at = text.find(begin, at + 1)) {
      const size_t style = at + begin.size(), style_end = text.find(middle, style);
      const size_t points = style_end + middle.size(), points_end = text.find('}', points);
      Points& rows = plots[text.substr(style, style_end - style)].emplace_back();
      std::istringstream words(text.substr(points, points_end - points));
      for (std::string word; words >> word;) {
        std::ranges::replace_if(
            word, [](char c) { return c == '(' || c == ',' || c == ')'; }, ' ');
        rows.push_back(numbers_in(word));
      }
    }
  }

  // What a key of an axis is set to: "208000" of "xmax".
  std::string option(const std::string& key) const {
    const size_t at = text.find(" " + key + "=");
    if (at == std::string::npos) return "";
    const size_t begin = at + key.size() + 2;
    int depth = 0;
    size_t end = begin;
    for (; end < text.size(); ++end) {
      if (text[end] == '{') ++depth;
      if (text[end] == '}') --depth;
      if (depth == 0 && (text[end] == ',' || text[end] == ']' || text[end] == '\n')) break;
    }
    return text.substr(begin, end - begin);
  }
};

// --- CSV -------------------------------------------------------------------------------------------------------------

using Cells = std::vector<std::string>;

std::vector<Cells> csv_of(const std::vector<Figure>& figures) {
  std::vector<Cells> rows;
  const std::string text = render_csv(figures, Formulas::kAsTheyAre);
  for (const std::string_view row : split_lines(text)) {
    Cells& cells = rows.emplace_back();
    std::istringstream in{std::string(row)};
    for (std::string cell; std::getline(in, cell, ',');) cells.push_back(cell);
    if (row.ends_with(',')) cells.emplace_back();
  }
  return rows;
}

TEST(FigureCsv, HasALineForEachPointWithItsNumbersInFull) {
  std::mt19937_64 random(45);
  std::uniform_real_distribution<double> uniform(-1, 1);
  Figure figure = figure_of({line({}), line({})});
  for (Figure::Line& line : figure.panels[0].lines) {
    for (int i = 0; i < 50; ++i) {
      const double mean = uniform(random) * std::pow(10, 30 * uniform(random));
      line.points.push_back({i + uniform(random), i + 1, mean, mean - std::abs(uniform(random)), mean + 0.1});
    }
  }
  const std::vector<Cells> rows = csv_of({figure});
  EXPECT_THAT(rows[0], ElementsAre("figure", "y", "x", "mean", "low", "high", "runs", "source"));
  ASSERT_THAT(rows, SizeIs(101));
  for (size_t i = 0; i < 100; ++i) {
    const BandPoint& point = figure.panels[0].lines[i / 50].points[i % 50];
    const Cells& cells = rows[i + 1];
    EXPECT_EQ(cells[0], "dev");
    EXPECT_EQ(cells[1], "dev.bleu");
    const std::vector<double> numbers = {std::stod(cells[2]), std::stod(cells[3]), std::stod(cells[4]),
                                         std::stod(cells[5])};
    EXPECT_THAT(numbers, ElementsAre(point.x, point.mean, point.low, point.high)) << "seed 45";
    EXPECT_EQ(cells[6], std::to_string(point.runs));
    EXPECT_EQ(cells[7], "");
  }
}

TEST(FigureCsv, LeavesOutPointsWithoutARunAndLastValuesOfDivergedOnes) {
  Figure figure = figure_of({line({point(1, 5), gap(2), point(3, 6)})});
  figure.panels[0].lines[0].diverged = {{4, 7}};
  const std::vector<Cells> rows = csv_of({figure});
  ASSERT_THAT(rows, SizeIs(3));
  EXPECT_EQ(rows[1][2], "1");
  EXPECT_EQ(rows[2][2], "3");
}

TEST(FigureCsv, PublishedPointsHaveASourceInPlaceOfANumberOfRuns) {
  const std::vector<Cells> rows = csv_of({figure_of({published({point(1, 5)})})});
  EXPECT_EQ(rows[1][6], "");
  EXPECT_EQ(rows[1][7], "Paper 2019");
}

TEST(FigureCsv, FiguresWithOtherAxesShareAHeader) {
  Figure first = figure_of({line({point(1, 5)})}), second = first;
  first.axes = {"norm", "depth"};
  first.panels[0].lines[0].labels = {"scale_norm", "4"};
  second.name = "";
  second.axes = {"pair", "norm"};
  second.panels[0].lines[0].labels = {"en-vi", "layer_norm"};
  const std::vector<Cells> rows = csv_of({first, second});
  EXPECT_THAT(rows[0],
              ElementsAre("figure", "norm", "depth", "pair", "y", "x", "mean", "low", "high", "runs", "source"));
  EXPECT_THAT(rows[1], ElementsAre("dev", "scale_norm", "4", "", "dev.bleu", "1", "5", "5", "5", "1", ""));
  EXPECT_THAT(rows[2], ElementsAre("Dev BLEU", "layer_norm", "", "en-vi", "dev.bleu", "1", "5", "5", "5", "1", ""));
}

TEST(FigureCsv, AxisThatIsCalledAsAColumnHasAnotherName) {
  Figure figure = figure_of({line({point(1, 5)})});
  figure.axes = {"source", "x", "figure"};
  figure.panels[0].lines[0].labels = {"wmt", "7", "8"};
  const std::vector<Cells> rows = csv_of({figure});
  EXPECT_THAT(rows[0],
              ElementsAre("figure", "source:2", "x:2", "figure:2", "y", "x", "mean", "low", "high", "runs", "source"));
  EXPECT_THAT(rows[1], ElementsAre("dev", "wmt", "7", "8", "dev.bleu", "1", "5", "5", "5", "1", ""));
}

TEST(FigureCsv, LabelsThatLookLikeFormulasAreTextWhereThatIsAskedFor) {
  Figure figure = figure_of({line({point(1, -5)})});
  figure.axes = {"bundle"};
  figure.panels[0].lines[0].labels = {"+warmup"};
  EXPECT_THAT(render_csv({figure}, Formulas::kMadeText), HasSubstr("dev,'+warmup,dev.bleu,1,-5,"));
  EXPECT_THAT(render_csv({figure}, Formulas::kAsTheyAre), HasSubstr("dev,+warmup,dev.bleu,1,-5,"));
}

TEST(FigureCsv, HasEveryPointOfALongLine) {
  EXPECT_THAT(csv_of({figure_of({long_line(100'000), long_line(20'000)})}), SizeIs(120'001));
}

// --- lines, bands and marks ------------------------------------------------------------------------------------------

TEST(Pictures, DrawTheMeansOfEveryLine) {
  const Figure figure = figure_of({line({point(1, 5), point(2, 6.25)}), line({point(1, 7), point(3, -8)})});
  const Script script(figure);
  EXPECT_EQ(script.data.at("$line_0_0"), (Stretches{{{1, 5}, {2, 6.25}}}));
  EXPECT_EQ(script.data.at("$line_0_1"), (Stretches{{{1, 7}, {3, -8}}}));
  EXPECT_THAT(script.styles.at("$line_0_0"), HasSubstr("with lines"));
  EXPECT_THAT(script.styles, Contains(Key("$line_0_1")));
  const Tikz tikz(figure);
  EXPECT_EQ(tikz.plots.at("line 0"), script.data.at("$line_0_0"));
  EXPECT_EQ(tikz.plots.at("line 1"), script.data.at("$line_0_1"));
}

TEST(Pictures, LineIsInterruptedWhereNoRunHasAValue) {
  const Figure figure = figure_of({line({gap(0), point(1, 5), point(2, 6), gap(3), gap(4), point(5, 4), point(6, 3)})});
  const Stretches expected = {{{1, 5}, {2, 6}}, {{5, 4}, {6, 3}}};
  EXPECT_EQ(Script(figure).data.at("$line_0_0"), expected);
  EXPECT_EQ(Tikz(figure).plots.at("line 0"), expected);
}

TEST(Pictures, BandGoesFromLowToHigh) {
  const Figure figure = figure_of({line({point(1, 4, 5, 7), point(2, 5, 6, 6.5)}), line({point(1, 8), point(2, 9)})});
  const Script script(figure);
  EXPECT_EQ(script.data.at("$band_0_0"), (Stretches{{{1, 4, 7}, {2, 5, 6.5}}}));
  EXPECT_THAT(script.styles.at("$band_0_0"), HasSubstr("with filledcurves lc rgb '#0072B2' fs transparent"));
  EXPECT_THAT(script.data, Not(Contains(Key("$band_0_1"))));
  const Tikz tikz(figure);
  EXPECT_EQ(tikz.plots.at("band 0"), (Stretches{{{1, 7}, {2, 6.5}, {2, 5}, {1, 4}}}));  // around the area
  EXPECT_THAT(tikz.plots, Not(Contains(Key("band 1"))));
}

TEST(Pictures, BandEndsWhereThereIsOneRunOrNone) {
  const Figure figure = figure_of({line({point(1, 4, 5, 7), point(2, 6), point(3, 6), point(4, 6), point(5, 5, 6, 8),
                                         gap(6), point(7, 5, 6, 7), point(8, 5, 6, 7)})});
  EXPECT_EQ(Script(figure).data.at("$band_0_0"),
            (Stretches{{{1, 4, 7}, {2, 6, 6}}, {{4, 6, 6}, {5, 5, 8}}, {{7, 5, 7}, {8, 5, 7}}}));
  EXPECT_THAT(Tikz(figure).plots.at("band 0"), SizeIs(3));
}

TEST(Pictures, PointBetweenInterruptionsHasAMarkAndABandOfSomeWidth) {
  Figure::Line long_one = long_line(40);
  long_one.points[20] = gap(210);
  long_one.points[22] = gap(230);
  long_one.points[21] = point(220, 1, 2, 3);
  long_one.points[38] = gap(390);
  const Figure figure = figure_of({long_one});
  const Script script(figure);
  const Points& marks = script.data.at("$marks_0_0")[0];
  EXPECT_THAT(marks, Contains(ElementsAre(220, 2)));
  EXPECT_THAT(marks, Contains(ElementsAre(400, DoubleNear(std::sqrt(40), 1e-6))));
  EXPECT_TRUE(std::ranges::is_sorted(marks));
  EXPECT_THAT(std::set(marks.begin(), marks.end()), SizeIs(marks.size()));
  const Points& band = script.data.at("$band_0_0").at(0);
  ASSERT_THAT(band, SizeIs(2));
  EXPECT_LT(band[0][0], 220);
  EXPECT_GT(band[1][0], 220);
}

TEST(Pictures, ShortLineHasEachPointMarkedALongOneAboutEight) {
  const Script script(figure_of({long_line(12), long_line(13), long_line(3000)}));
  EXPECT_EQ(script.data.at("$marks_0_0"), script.data.at("$line_0_0"));
  EXPECT_THAT(script.data.at("$marks_0_0")[0], SizeIs(12));
  EXPECT_THAT(script.styles.at("$marks_0_0"), HasSubstr("with points"));
  for (const char* name : {"$marks_0_1", "$marks_0_2"}) {
    const Points& marks = script.data.at(name)[0];
    EXPECT_THAT(marks, SizeIs(testing::AllOf(Ge(6U), testing::Le(8U)))) << name;
  }
  const Points& marks = script.data.at("$marks_0_2")[0];
  for (size_t i = 1; i < marks.size(); ++i) EXPECT_NEAR(marks[i][0] - marks[i - 1][0], 30'000 / 8.0, 200);
  const Tikz tikz(figure_of({long_line(12), long_line(13)}));
  EXPECT_THAT(tikz.plots.at("marks 0")[0], SizeIs(12));
}

TEST(Pictures, MarksOfLinesThatCoincideAreBesideEachOther) {
  const Script script(figure_of({long_line(200), long_line(200)}));
  std::set<double> first, both;
  for (const std::vector<double>& mark : script.data.at("$marks_0_0")[0]) first.insert(mark[0]);
  both = first;
  for (const std::vector<double>& mark : script.data.at("$marks_0_1")[0]) both.insert(mark[0]);
  EXPECT_THAT(both, SizeIs(2 * first.size()));
}

TEST(Pictures, MarksOnALogarithmicAxisAreAtEqualDistancesOfThePicture) {
  Figure figure = figure_of({long_line(500)});
  figure.log_x = true;
  const Points marks = Script(figure).data.at("$marks_0_0")[0];
  const auto before_100 = std::ranges::count_if(marks, [](const auto& mark) { return mark[0] < 100; });
  EXPECT_GE(before_100, 2);  // of 2.7 decades one
}

TEST(Pictures, PublishedLineIsDashedWithHollowMarks) {
  const Figure figure = figure_of({line({point(1, 5), point(2, 6)}), published({point(1, 7), point(2, 8)})});
  const Script script(figure);
  EXPECT_THAT(script.styles.at("$line_0_0"), HasSubstr("dt solid"));
  EXPECT_THAT(script.styles.at("$line_0_1"), HasSubstr("dt ("));
  EXPECT_THAT(script.styles.at("$marks_0_0"), HasSubstr("pt 7 "));  // gnuplot's filled circle
  EXPECT_THAT(script.styles.at("$marks_0_1"), HasSubstr("pt 4 "));  // and its hollow square
  EXPECT_THAT(script.styles.at("$legend_1"), HasSubstr("dt ("));
  const Tikz tikz(figure);
  EXPECT_THAT(tikz.text, HasSubstr("line 0/.style={line0, line width=0.8pt, solid}"));
  EXPECT_THAT(tikz.text, HasSubstr("line 1/.style={line1, line width=0.8pt, dash pattern="));
  EXPECT_THAT(tikz.text, HasSubstr("mark=*}"));
  EXPECT_THAT(tikz.text, HasSubstr("mark=square}"));
}

TEST(Pictures, PublishedLineHasTheColourOfTheMeasuredOneAndEachSourceItsDashes) {
  Figure figure = figure_of({line({point(1, 5), point(2, 6)}), line({point(1, 6), point(2, 7)}),
                             published({point(1, 7), point(2, 8)}), published({point(1, 8), point(2, 9)}),
                             published({point(1, 3), point(2, 4)})});
  figure.panels[0].lines[3].source = "Others 2020";
  figure.measured = {{2, 1}, {3, 1}};
  const Script script(figure);
  const auto colour_of = [&](const std::string& block) {
    const std::string style = script.styles.at(block);
    return style.substr(style.find("rgb"), 13);
  };
  EXPECT_NE(colour_of("$line_0_0"), colour_of("$line_0_1"));
  for (const char* block : {"$line_0_2", "$line_0_3", "$marks_0_2", "$legend_2", "$legend_3"})
    EXPECT_EQ(colour_of(block), colour_of("$line_0_1")) << block;
  EXPECT_NE(colour_of("$line_0_4"), colour_of("$line_0_1")) << "of no measured line";
  EXPECT_NE(script.styles.at("$line_0_2"), script.styles.at("$line_0_3"));
  EXPECT_THAT(script.styles.at("$marks_0_2"), HasSubstr("pt 4 ")) << "hollow, as the measured one is filled";
  const std::string tikz = render_pgfplots(figure);
  const auto definition = [&](const std::string& name) {
    const size_t at = tikz.find("{" + name + "}{HTML}");
    return tikz.substr(at + name.size() + 8, 8);
  };
  EXPECT_EQ(definition("line2"), definition("line1"));
  EXPECT_NE(definition("line4"), definition("line1"));
}

TEST(Pictures, WhatIsPublishedOfOneLineInSeveralPanelsIsOneEntryOfTheLegend) {
  Figure figure = figure_of({line({point(1, 5)}), published({point(1, 7)}), published({})});
  figure.panels.push_back({.y = {"BLEU"}, .lines = {line({point(1, 5)}), published({}), published({point(1, 8)})}});
  figure.legend[2] = figure.legend[1];
  figure.measured = {{1, 0}, {2, 0}};
  EXPECT_THAT(drawing_of(figure).legend, SizeIs(2));
  figure.measured = {};
  EXPECT_THAT(drawing_of(figure).legend, SizeIs(3)) << "which look different";
}

TEST(Pictures, DivergedRunIsMarkedAtItsLastValue) {
  Figure figure = figure_of({line({point(1, 5), point(4, 6)})});
  figure.panels[0].lines[0].diverged = {{2, 5.5}};
  EXPECT_EQ(Script(figure).data.at("$diverged_0_0"), (Stretches{{{2, 5.5}}}));
  EXPECT_THAT(Script(figure).styles.at("$diverged_0_0"), HasSubstr("pt 2 "));  // gnuplot's ×
  EXPECT_EQ(Tikz(figure).plots.at("diverged, line0"), (Stretches{{{2, 5.5}}}));
}

TEST(Pictures, DivergedRunWhoseLastValueLiesOutsideIsMarkedAtTheEdge) {
  Figure figure = figure_of({line({point(1, 5), point(4, 6)})});
  figure.panels[0].lines[0].diverged = {{1, kNaN}, {2, 1e30}, {3, -1e30}, {4, kInfinity}};
  const Tikz tikz(figure);
  const double low = std::stod(tikz.option("ymin")), high = std::stod(tikz.option("ymax"));
  EXPECT_LT(high, 7);
  EXPECT_EQ(tikz.plots.at("diverged, line0"), (Stretches{{{1, high}, {2, high}, {3, low}, {4, high}}}));
  EXPECT_THAT(Script(figure).data.at("$diverged_0_0")[0], SizeIs(4));
}

TEST(Pictures, DivergedRunIsInThePictureWhereverItEnds) {
  Figure figure = figure_of({line({point(1, 5), point(4, 6)})});
  figure.panels[0].lines[0].diverged = {{0, 5}, {9, 5.5}};
  EXPECT_GT(std::stod(Tikz(figure).option("xmax")), 9);
  EXPECT_THAT(Tikz(figure).plots.at("diverged, line0")[0], SizeIs(2));
  figure.log_x = true;
  EXPECT_EQ(Tikz(figure).plots.at("diverged, line0"), (Stretches{{{9, 5.5}}}));
}

TEST(Pictures, LineOfWhichAllRunsDivergedAtOnceIsInTheLegend) {
  Figure figure = figure_of({line({point(1, 5), point(4, 6)}), line({gap(1)})});
  figure.panels[0].lines[1].diverged = {{2, kNaN}};
  EXPECT_THAT(Script(figure).texts(), Contains("b"));
  EXPECT_THAT(Script(figure).data, Contains(Key("$diverged_0_1")));
}

TEST(Pictures, LimitsOfClaimsAreDashedLinesAcrossThePanel) {
  Figure figure = figure_of({line({point(1, 5), point(4, 6)})});
  EXPECT_THAT(Tikz(figure).plots, Not(Contains(Key("limit"))));
  EXPECT_THAT(Script(figure).text, Not(HasSubstr("\nset arrow")));
  figure.panels[0].at_x = {3};
  figure.panels[0].at_y = {5.5};
  const Tikz tikz(figure);
  const double x_end = std::stod(tikz.option("xmax")), low = std::stod(tikz.option("ymin")),
               high = std::stod(tikz.option("ymax"));
  EXPECT_EQ(tikz.plots.at("limit"), (Stretches{{{3, low}, {3, high}}, {{0, 5.5}, {x_end, 5.5}}}));
  const Script script(figure);
  EXPECT_THAT(script.text, HasSubstr("set arrow from first 3, graph 0 to first 3, graph 1 nohead"));
  EXPECT_THAT(script.text, HasSubstr("set arrow from graph 0, first 5.5 to graph 1, first 5.5 nohead"));
}

TEST(Pictures, LimitThatNoLineReachesIsInThePicture) {
  Figure figure = figure_of({line({point(1, 5), point(4, 6)})});
  figure.panels[0].at_x = {7};
  figure.panels[0].at_y = {9};
  EXPECT_GT(std::stod(Tikz(figure).option("xmax")), 7);
  EXPECT_GT(std::stod(Tikz(figure).option("ymax")), 9);
}

TEST(Pictures, LimitsOfOnePanelAreNotInTheNext) {
  Figure figure = figure_of({line({point(1, 5), point(4, 6)})});
  figure.panels.push_back(figure.panels[0]);
  figure.panels[0].at_x = {3};
  const std::string text = Script(figure).text;
  const size_t limit = text.find("\nset arrow"), cleared = text.find("unset arrow\n"),
               next = text.find("plot $line_1_0");
  EXPECT_LT(limit, cleared);
  EXPECT_LT(cleared, next);
}

TEST(Pictures, LimitsThatALogarithmicAxisDoesNotHaveAreLeftOut) {
  Figure figure = figure_of({line({point(1, 5), point(4, 6)})});
  figure.log_x = figure.log_y = true;
  figure.panels[0].at_x = {0, 2};
  figure.panels[0].at_y = {-1};
  EXPECT_THAT(Tikz(figure).plots.at("limit"), SizeIs(1));
}

TEST(Pictures, LineOfMoreThan500PointsIsOfMeansOfNeighboursAndANoteSaysSo) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> uniform(0, 1);
  Figure figure = figure_of({line({})});
  for (int i = 0; i < 1400; ++i) {
    const double mean = uniform(random);
    figure.panels[0].lines[0].points.push_back(point(i, mean - 0.1, mean, mean + 0.2));
  }
  const Script script(figure);
  const Points& drawn = script.data.at("$line_0_0")[0];
  const Points& band = script.data.at("$band_0_0")[0];
  ASSERT_THAT(drawn, SizeIs(467));  // of three points each, of two at the end
  for (size_t i = 0; i < drawn.size(); ++i) {
    double sum = 0, x = 0;
    const size_t count = i + 1 < drawn.size() ? 3 : 2;
    for (size_t k = 0; k < count; ++k) {
      sum += figure.panels[0].lines[0].points[3 * i + k].mean;
      x += figure.panels[0].lines[0].points[3 * i + k].x;
    }
    const double n = static_cast<double>(count);
    EXPECT_THAT(drawn[i], ElementsAre(DoubleNear(x / n, 1e-5), DoubleNear(sum / n, 1e-7))) << "seed 7";
    EXPECT_THAT(band[i],
                ElementsAre(DoubleNear(x / n, 1e-5), DoubleNear(sum / n - 0.1, 1e-7), DoubleNear(sum / n + 0.2, 1e-7)));
  }
  const std::string note = "Of lines with more than 500 points, means of up to 3 neighbours are drawn.";
  EXPECT_THAT(Tikz(figure).text, HasSubstr(note));
  EXPECT_THAT(Script(figure_of({long_line(501)})).text, HasSubstr("means of up to 2"));
  EXPECT_THAT(Tikz(figure_of({long_line(500)})).text, Not(HasSubstr("neighbours")));
  EXPECT_THAT(Tikz(figure_of({long_line(500)})).plots.at("line 0")[0], SizeIs(500));
}

TEST(Pictures, ThinnedLineIsInterruptedWhereAllOfItsNeighboursAre) {
  Figure figure = figure_of({long_line(1000)});
  for (size_t i = 400; i < 420; ++i) figure.panels[0].lines[0].points[i].runs = 0;
  figure.panels[0].lines[0].points[100].runs = 0;
  const Script script(figure);
  ASSERT_THAT(script.data.at("$line_0_0"), SizeIs(2));
  EXPECT_THAT(script.data.at("$line_0_0")[0][50], ElementsAre(1020, DoubleNear(std::sqrt(102), 1e-6)));
}

// --- axes ------------------------------------------------------------------------------------------------------------

TEST(Pictures, LineThatDoesNotSetTheScaleMayLeaveThePicture) {
  Figure figure = figure_of({line({point(1, 5), point(4, 6)}), line({point(1, 5), point(2, 1e6), point(3, 1e300)})});
  const double greatest = std::stod(Tikz(figure).option("ymax"));
  EXPECT_GT(greatest, 1e200);
  figure.panels[0].lines[1].sets_scale = false;
  const Tikz tikz(figure);
  EXPECT_LT(std::stod(tikz.option("ymax")), 7);
  EXPECT_THAT(Script(figure).text,
              HasSubstr(fmt::format("set yrange [{}:{}]", tikz.option("ymin"), tikz.option("ymax"))));
  for (const std::vector<double>& at : tikz.plots.at("line 1")[0]) EXPECT_LT(at[1], 100);  // which TeX can hold
  EXPECT_EQ(tikz.plots.at("marks 1"), (Stretches{{{1, 5}}}));
  figure.panels[0].lines[0].sets_scale = false;
  EXPECT_EQ(std::stod(Tikz(figure).option("ymax")), greatest);
}

TEST(Pictures, BandsAreInThePictureAsAWhole) {
  const Tikz tikz(figure_of({line({point(1, 2, 5, 9), point(4, 5, 6, 7)})}));
  EXPECT_LT(std::stod(tikz.option("ymin")), 2);
  EXPECT_GT(std::stod(tikz.option("ymax")), 9);
}

TEST(Pictures, AxisOfXBeginsAtZeroWhereTheFigureSaysSo) {
  Figure figure = figure_of({line({point(1000, 5), point(2000, 6)})});
  EXPECT_EQ(Tikz(figure).option("xmin"), "0");
  EXPECT_THAT(Script(figure).text, HasSubstr("set xrange [0:"));
  figure.from_zero = false;
  EXPECT_GT(std::stod(Tikz(figure).option("xmin")), 900);
  EXPECT_LT(std::stod(Tikz(figure).option("xmin")), 1000);
}

TEST(Pictures, PanelsHaveTheSameAxisOfX) {
  Figure figure = figure_of({line({point(1, 5), point(10, 6)})});
  figure.panels.push_back(figure.panels[0]);
  figure.panels[1].lines[0].points[1].x = 500;
  const std::string range = fmt::format("set xrange [0:{}]", Tikz(figure).option("xmax"));
  const std::string text = Script(figure).text;
  EXPECT_NE(text.find(range), text.rfind(range));
  EXPECT_GT(std::stod(Tikz(figure).option("xmax")), 500);
}

TEST(Pictures, LogarithmicAxesHaveTicksAtPowersOfTen) {
  Figure figure = figure_of({line({point(1e-4, 3), point(1e-1, 20000)})});
  figure.from_zero = false;
  EXPECT_EQ(Tikz(figure).option("xmode"), "linear");
  EXPECT_THAT(Script(figure).text, Not(HasSubstr("\nset logscale")));
  figure.log_x = figure.log_y = true;
  const Tikz tikz(figure);
  EXPECT_EQ(tikz.option("xmode"), "log");
  EXPECT_EQ(tikz.option("ymode"), "log");
  EXPECT_EQ(tikz.option("xtick"), "{0.0001,0.001,0.01,0.1}");
  EXPECT_EQ(tikz.option("xticklabels"), "{{$10^{-4}$},{$10^{-3}$},{$10^{-2}$},{$10^{-1}$}}");
  EXPECT_EQ(tikz.option("ytick"), "{10,100,1000,10000}");
  const Script script(figure);
  EXPECT_THAT(script.text, HasSubstr("\nset logscale x\n"));
  EXPECT_THAT(script.text, HasSubstr("\nset logscale y\n"));
  EXPECT_THAT(script.texts(),
              testing::IsSupersetOf({"10⁻⁴", "10⁻³", "10⁻²", "10⁻¹", "10", "100", "1000", "10\u2009000"}));
  figure.log_x = false;
  EXPECT_EQ(Tikz(figure).option("xmode"), "linear");
  EXPECT_EQ(Tikz(figure).option("ymode"), "log");
}

TEST(Pictures, PointsWithoutALogarithmAreLeftOutAndBandsEndAtTheEdge) {
  Figure figure = figure_of({line({point(0, 1), point(1, 10), point(2, 0), point(3, -1, 10, 30), point(4, 10)})});
  figure.log_x = figure.log_y = true;
  const Tikz tikz(figure);
  EXPECT_EQ(tikz.plots.at("line 0"), (Stretches{{{1, 10}}, {{3, 10}, {4, 10}}}));
  const double low = std::stod(tikz.option("ymin"));
  EXPECT_GT(low, 0);
  EXPECT_EQ(Script(figure).data.at("$band_0_0"), (Stretches{{{3, low, 30}, {4, 10, 10}}}));
}

TEST(Pictures, NumbersAtTheAxesReadAsInPrint) {
  const auto ticks = [](double last, double y) {
    Figure figure = figure_of({line({point(1, -y), point(last, y)})});
    return Script(figure).texts();
  };
  EXPECT_THAT(ticks(200'000, 1), testing::IsSupersetOf({"0", "50\u2009000", "100\u2009000", "200\u2009000", "−0.5"}));
  EXPECT_THAT(ticks(4'000, 0.001), testing::IsSupersetOf({"1000", "4000", "0.0005", "−0.0005"}));
  EXPECT_THAT(ticks(4e7, 1e-7), testing::IsSupersetOf({"2×10⁷", "4×10⁷", "−10⁻⁷"}));
  Figure figure = figure_of({line({point(1, -1), point(200'000, 1)})});
  EXPECT_THAT(Tikz(figure).option("xticklabels"), HasSubstr("{$50\\,000$}"));
  EXPECT_THAT(Tikz(figure).option("yticklabels"), HasSubstr("{$-0.5$}"));
  figure.panels[0].lines[0].points = {point(1, 0), point(3e7, 1)};
  EXPECT_THAT(Tikz(figure).option("xticklabels"), HasSubstr("{$2\\times 10^{7}$}"));
}

TEST(Pictures, TicksBetweenWholeNumbersAreWhole) {
  Figure figure = figure_of({line({point(1, 5), point(2, 6)})});
  figure.from_zero = false;
  EXPECT_EQ(Tikz(figure).option("xtick"), "{1,2}");
  figure.panels[0].lines[0].points[1].x = 1.5;
  EXPECT_THAT(Tikz(figure).option("xtick"), HasSubstr("1.2"));
}

TEST(Pictures, OneValueIsInTheMiddleOfItsAxis) {
  const Tikz tikz(figure_of({line({point(1, 5), point(2, 5)})}));
  EXPECT_NEAR((std::stod(tikz.option("ymin")) + std::stod(tikz.option("ymax"))) / 2, 5, 1e-9);
}

TEST(Pictures, OneValueIsInTheMiddleOfALogarithmicAxis) {
  Figure figure = figure_of({line({point(1, 5), point(2, 5)})});
  figure.log_y = true;
  const Tikz tikz(figure);
  EXPECT_NEAR(std::stod(tikz.option("ymin")) * std::stod(tikz.option("ymax")), 25, 1e-6);
  EXPECT_LT(std::stod(tikz.option("ymin")), 4);
}

TEST(Pictures, AxisOfValuesThatAreNotNegativeDoesNotGoBelowZero) {
  EXPECT_EQ(Tikz(figure_of({line({point(1, 0.1), point(2, 50)})})).option("ymin"), "0");
  EXPECT_LT(std::stod(Tikz(figure_of({line({point(1, -0.1), point(2, 50)})})).option("ymin")), -0.1);
}

TEST(Pictures, PanelWithoutAValueSaysSo) {
  const Figure figure = figure_of({line({gap(1)}), line({})});
  EXPECT_THAT(Script(figure).text, HasSubstr("'no finite value'"));
  EXPECT_THAT(Tikz(figure).text, HasSubstr("no finite value"));
  EXPECT_THAT(Script(figure_of({line({point(1, 2)})})).text, Not(HasSubstr("no finite value")));
}

// --- panels, widths, texts -------------------------------------------------------------------------------------------

Figure with_panels(size_t count, TableSpec::Width width) {
  Figure figure = figure_of({line({point(1, 5), point(2, 6)})});
  figure.width = width;
  const Figure::Panel panel = figure.panels[0];
  figure.panels.clear();
  for (size_t i = 0; i < count; ++i) {
    figure.panels.push_back(panel);
    if (count > 1) figure.panels.back().title = {fmt::format("panel {}", i + 1)};
    figure.panels.back().y = {fmt::format("score {}", i + 1)};
  }
  return figure;
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(Pictures, PanelsAreSideBySideOnAPageAndBelowEachOtherInAColumn) {
  using Width = TableSpec::Width;
  const std::map<size_t, std::string> on_page = {{2, "2 by 1"}, {3, "3 by 1"}, {4, "2 by 2"}, {5, "3 by 2"}};
  for (const auto& [count, size] : on_page) {
    const Figure page = with_panels(count, Width::kPage), column = with_panels(count, Width::kColumn);
    EXPECT_THAT(Tikz(page).text, HasSubstr("group size=" + size));
    EXPECT_THAT(Tikz(column).text, HasSubstr(fmt::format("group size=1 by {}", count)));
    EXPECT_EQ(count_of(Tikz(page).text, "\\nextgroupplot["), count);
    const auto frames = [&](const Figure& figure) {
      std::set<std::string> left, top;
      static const std::regex kFrame(R"(set lmargin at screen (\S+); .*set tmargin at screen (\S+)\n)");
      const std::string text = Script(figure).text;
      for (std::sregex_iterator frame(text.begin(), text.end(), kFrame), end; frame != end; ++frame) {
        left.insert((*frame)[1]);
        top.insert((*frame)[2]);
      }
      return std::pair(left.size() - 1, top.size() - 1);  // but for that of the texts
    };
    EXPECT_EQ(frames(page), (std::pair<size_t, size_t>(size[0] - '0', size[5] - '0')));
    EXPECT_EQ(frames(column), (std::pair<size_t, size_t>(1, count)));
  }
  EXPECT_THAT(Tikz(with_panels(1, Width::kPage)).text, HasSubstr("\\begin{axis}["));
  EXPECT_THAT(Tikz(with_panels(1, Width::kPage)).text, Not(HasSubstr("groupplot")));
}

TEST(Pictures, EachPanelHasItsTitleItsLabelOfYAndItsLines) {
  Figure figure = with_panels(2, TableSpec::Width::kColumn);
  figure.panels[1].lines[0].points = {point(1, 50), point(2, 60)};
  const Script script(figure);
  EXPECT_EQ(script.data.at("$line_1_0"), (Stretches{{{1, 50}, {2, 60}}}));
  EXPECT_THAT(script.texts(), testing::IsSupersetOf({"panel 1", "panel 2", "score 1", "score 2", "Dev BLEU", "a"}));
  EXPECT_EQ(std::ranges::count(script.texts(), "updates"), 1);  // below the lower one
  const Tikz tikz(figure);
  EXPECT_THAT(tikz.plots.at("line 0"), ElementsAre(Points{{1, 5}, {2, 6}}, Points{{1, 50}, {2, 60}}));
  EXPECT_THAT(tikz.text, testing::AllOf(HasSubstr("title={panel 1}"), HasSubstr("title={panel 2}"),
                                        HasSubstr("ylabel={score 2}")));
  EXPECT_EQ(count_of(tikz.text, "xlabel={updates}"), 1);
}

TEST(Pictures, AreAsWideAsAColumnOrAPage) {
  const auto size = [](Picture kind, TableSpec::Width width) { return Script(with_panels(1, width), kind).size(); };
  using Width = TableSpec::Width;
  EXPECT_THAT(size(Picture::kPdf, Width::kColumn), testing::StartsWith("8.40cm,"));
  EXPECT_THAT(size(Picture::kPdf, Width::kPage), testing::StartsWith("17.40cm,"));
  EXPECT_THAT(size(Picture::kSvg, Width::kColumn), testing::StartsWith("317,"));  // 84 mm of 96 pixels an inch
  EXPECT_THAT(size(Picture::kSvg, Width::kPage), testing::StartsWith("658,"));
  EXPECT_THAT(size(Picture::kPng, Width::kColumn), testing::StartsWith("992,"));  // of 300
  EXPECT_THAT(size(Picture::kPng, Width::kPage), testing::StartsWith("2055,"));
  EXPECT_THAT(Tikz(with_panels(1, Width::kColumn)).text, HasSubstr("\\begin{figure}\n"));
  EXPECT_THAT(Tikz(with_panels(1, Width::kPage)).text, HasSubstr("\\begin{figure*}\n"));
}

TEST(Pictures, TerminalIsThatOfTheKindAndItsBackgroundIsWhite) {
  const Figure figure = with_panels(1, TableSpec::Width::kColumn);
  const std::map<Picture, std::string> terminals = {
      {Picture::kSvg, "svg"}, {Picture::kPdf, "pdfcairo"}, {Picture::kPng, "pngcairo"}};
  for (const auto& [kind, name] : terminals) {
    const std::string text = gnuplot_script(figure, kind, "it's.out");
    EXPECT_THAT(text, HasSubstr("set terminal " + name + " noenhanced"));
    EXPECT_THAT(text, HasSubstr("background rgb 'white'"));
    EXPECT_THAT(text, HasSubstr("set output 'it''s.out'\n"));
  }
}

TEST(Pictures, LegendNamesTheLinesOfEveryPanelOnceAndNumbersSayWhatTheyAreOf) {
  Figure figure = with_panels(2, TableSpec::Width::kColumn);
  figure.heading = {{"Norm"}, {"depth", "$\\ell$"}, {""}};
  figure.legend = {
      {{"ScaleNorm"}, {"4"}, {"7"}}, {{"√d", "$\\sqrt{d}$"}, {"2 layers"}, {""}}, {{"of no panel"}, {"1"}, {""}}};
  for (Figure::Panel& panel : figure.panels) panel.lines.resize(3);
  figure.panels[1].lines[1] = line({point(1, 5), point(2, 6)});
  const Script script(figure);
  EXPECT_EQ(std::ranges::count(script.texts(), "ScaleNorm, depth = 4, 7"), 1);
  EXPECT_THAT(script.texts(), Contains("√d, 2 layers"));
  EXPECT_THAT(script.text, Not(HasSubstr("of no panel")));
  EXPECT_THAT(script.styles.at("$legend_1"), HasSubstr("D55E00"));
  EXPECT_THAT(script.data, Not(Contains(Key("$legend_2"))));
  const Tikz tikz(figure);
  EXPECT_THAT(tikz.text, HasSubstr("\\draw[line 0] (0,0) -- (18pt,0); \\draw[marks 0] plot coordinates {(9pt,0)};} & "
                                   "ScaleNorm, $\\ell$ = 4, 7"));
  EXPECT_THAT(tikz.text, HasSubstr("& $\\sqrt{d}$, 2 layers"));
  EXPECT_THAT(tikz.text, Not(HasSubstr("of no panel")));
}

TEST(Pictures, LegendOfOneLineWithoutALabelIsLeftOut) {
  Figure figure = figure_of({line({point(1, 5), point(2, 6)})});
  figure.legend = {{{""}}};
  EXPECT_THAT(Tikz(figure).text, Not(HasSubstr("tabular")));
  EXPECT_THAT(Script(figure).data, Not(Contains(Key("$legend_0"))));
}

TEST(Pictures, LegendHasAsManyColumnsAsFitAndItsRowsNeed) {
  const auto columns = [](size_t entries, const std::string& label, TableSpec::Width width) {
    Figure figure = figure_of(std::vector<Figure::Line>(entries, line({point(1, 5), point(2, 6)})));
    figure.width = width;
    for (std::vector<Name>& row : figure.legend) row = {{label}};
    const std::string text = Tikz(figure).text;
    return std::pair(count_of(text, "@{\\hspace{4pt}}"), count_of(text, "p{\\dimexpr"));
  };
  using Width = TableSpec::Width;
  const auto found = [](size_t columns, size_t paragraphs) { return std::pair(columns, paragraphs); };
  EXPECT_EQ(columns(3, "a label of 20 letters", Width::kPage), found(3, 0));
  EXPECT_EQ(columns(4, "a label of 20 letters", Width::kPage), found(2, 0));  // not three and one
  EXPECT_EQ(columns(4, "a label of 20 letters", Width::kColumn), found(1, 0));
  EXPECT_EQ(columns(2, std::string(70, 'w'), Width::kColumn), found(1, 1));  // wrapped
}

struct Box {
  std::string text;
  double left, right, top, bottom;
};

// Where the texts of a script are that are not upright, in millimetres, in a font whose characters are half as wide as
// high.
std::vector<Box> boxes_of(const std::string& script) {
  static const std::regex kLabel(R"(set label '([^']*)' at (\S+), (\S+) (left|center|right) font ',(\S+)')");
  constexpr double kPixel = 25.4 / 96;
  std::vector<Box> boxes;
  for (std::sregex_iterator label(script.begin(), script.end(), kLabel), end; label != end; ++label) {
    const std::string text = std::regex_replace((*label)[1].str(), std::regex("\u2009"), "");
    const double x = std::stod((*label)[2]), y = std::stod((*label)[3]), font = std::stod((*label)[5]) * kPixel;
    const double width = static_cast<double>(text.size()) * 0.5 * font;
    const double left = (*label)[4] == "left" ? x : (*label)[4] == "right" ? x - width : x - width / 2;
    boxes.push_back({text, left, left + width, y - font / 2, y + font / 2});
  }
  return boxes;
}

TEST(Pictures, LongTextsAreWrappedAndOverlapNothing) {
  for (const size_t count : {1, 2, 5, 12}) {
    for (const auto width : {TableSpec::Width::kColumn, TableSpec::Width::kPage}) {
      Figure figure = figure_of({});
      figure.width = width;
      figure.title = {
          "A caption of many words that is longer than a line of the picture is wide, even if it fills a page"};
      figure.notes = {
          "A note that needs more than one line, too, since it says in many words how it came about and goes far to do "
          "so, "
          "and farther still.",
          "A note."};
      figure.legend.clear();
      for (size_t i = 0; i < count; ++i) {
        figure.panels[0].lines.push_back(line({point(1, static_cast<double>(i)), point(150'000, 5)}));
        figure.legend.push_back({{fmt::format("system {} {}", i, std::string(10 * i, 'x'))}});
      }
      figure.panels.push_back(figure.panels[0]);
      figure.panels[0].title = figure.panels[1].title = {"The title of a panel, which has many words like the others"};
      const std::string script = Script(figure).text;
      const std::vector<Box> boxes = boxes_of(script);
      std::string all;
      for (size_t i = 0; i < boxes.size(); ++i) {
        all += boxes[i].text;
        EXPECT_GE(boxes[i].left, 0);
        EXPECT_LE(boxes[i].right, width == TableSpec::Width::kPage ? 174 : 84);
        for (size_t k = 0; k < i; ++k) {
          EXPECT_TRUE(boxes[i].right <= boxes[k].left || boxes[k].right <= boxes[i].left ||
                      boxes[i].bottom <= boxes[k].top || boxes[k].bottom <= boxes[i].top)
              << count << " lines: " << boxes[k].text << " and " << boxes[i].text;
        }
      }
      EXPECT_EQ(std::ranges::count(all, 'x'), static_cast<int>(5 * count * (count - 1))) << all;
      const double height = std::stod(script.substr(script.find("set yrange [", script.find("# texts")) + 12));
      EXPECT_LT(boxes.back().bottom, height);  // the last note
    }
  }
}

TEST(Pictures, CaptionNotesAndLabelAreInLatex) {
  Figure figure = figure_of({line({point(1, 5)})});
  figure.notes = {"Lines: the mean of 3 seeds.", "100 % of_it"};
  const std::string text = render_pgfplots(figure);
  EXPECT_THAT(text, HasSubstr("\\caption{Dev BLEU}\n\\label{fig:dev}\n"));
  EXPECT_THAT(text, HasSubstr("Lines: the mean of 3 seeds.\\par\n100 \\% of\\_it\\par\n"));
  EXPECT_THAT(Script(figure).texts(), testing::IsSupersetOf({"Lines: the mean of 3 seeds.", "100 % of_it"}));
  figure.name = "";
  figure.title = {"text", "$L^2$"};
  EXPECT_THAT(render_pgfplots(figure), Not(HasSubstr("\\label{")));
  EXPECT_THAT(render_pgfplots(figure), HasSubstr("\\caption{$L^2$}"));
}

TEST(Pictures, NamesInLatexAreTakenWhereThereAreSome) {
  Figure figure = figure_of({line({point(1, 5), point(2, 6)})});
  figure.x = {"learning rate", "$\\eta$"};
  figure.panels[0].y = {"‖g‖", "$\\|g\\|$"};
  figure.legend = {{{"a_b"}}};
  const std::string text = render_pgfplots(figure);
  EXPECT_THAT(text,
              testing::AllOf(HasSubstr("xlabel={$\\eta$}"), HasSubstr("ylabel={$\\|g\\|$}"), HasSubstr("& a\\_b")));
  EXPECT_THAT(Script(figure).texts(), testing::IsSupersetOf({"learning rate", "‖g‖", "a_b"}));
}

TEST(Pictures, LinesAreToldApartWithColourOrWithoutIt) {
  std::set<std::pair<std::string_view, std::string_view>> colour_and_dash, dash_and_mark;
  for (size_t i = 0; i < 24; ++i) {
    const LineStyle style = style_of(i);
    colour_and_dash.emplace(style.colour, style.dash.tikz);
    dash_and_mark.emplace(style.dash.gnuplot, style.mark.pgfplots);
    std::set<std::string_view> dashes = {style.dash.gnuplot}, tikz_dashes = {style.dash.tikz};
    for (size_t source = 0; source < 3; ++source) {
      const LineStyle published = published_style_of(i, source);
      EXPECT_EQ(published.colour, style.colour);
      dashes.insert(published.dash.gnuplot);
      tikz_dashes.insert(published.dash.tikz);
      EXPECT_NE(published.mark.gnuplot, style.mark.gnuplot);
      EXPECT_NE(published.mark.pgfplots, style.mark.pgfplots);
    }
    EXPECT_THAT(dashes, SizeIs(4));
    EXPECT_THAT(tikz_dashes, SizeIs(4));
    // Contrast with white by WCAG, of which 3 is what a line needs; Okabe and Ito's palest colours have 2.
    const auto channel = [&](size_t at) {
      const double value = std::stoi(std::string(style.colour.substr(at, 2)), nullptr, 16) / 255.0;
      return value <= 0.04045 ? value / 12.92 : std::pow((value + 0.055) / 1.055, 2.4);
    };
    EXPECT_GE(1.05 / (0.2126 * channel(0) + 0.7152 * channel(2) + 0.0722 * channel(4) + 0.05), 2) << style.colour;
  }
  EXPECT_THAT(colour_and_dash, SizeIs(24));
  EXPECT_THAT(dash_and_mark, SizeIs(24));
}

// --- goldens, and gnuplot itself -------------------------------------------------------------------------------------

// Everything that a figure can have.
Figure full_figure() {
  Figure figure = figure_of({});
  figure.title = {"Dev BLEU by update: 50 % of A & B_c"};
  figure.name = "dev-bleu";
  figure.width = TableSpec::Width::kPage;
  figure.heading = {{"Norm"}, {"depth"}};
  figure.legend = {{{"ScaleNorm", "\\textsc{ScaleNorm}"}, {"2"}}, {{"layer_norm"}, {"4"}}, {{"Paper: 100 %"}}};
  figure.notes = {"Lines: the mean of 3 seeds; bands: their standard deviation.", "×: 2 runs diverged, in no mean."};
  figure.panels.assign(2, {.y = {"dev BLEU"}});
  figure.panels[0].title = {"gl→en"};
  figure.panels[1].title = {"en_vi"};
  for (size_t p = 0; p < 2; ++p) {
    Figure::Line wide = line({}), narrow = line({}), paper = published({point(20'000, 9), point(80'000, 16.5)});
    for (int i = 1; i <= 20; ++i) {
      const double mean = static_cast<double>(10 * (p + 1)) * (1 - 1.0 / i);
      wide.points.push_back(point(5'000 * i, mean - 1, mean, mean + 1.5));
      narrow.points.push_back(i == 9 ? gap(5'000 * i) : point(5'000 * i, mean + 0.5));
    }
    narrow.diverged = {{30'000, 12}, {40'000, kNaN}};
    figure.panels[p].lines = {wide, narrow, paper};
  }
  figure.panels[0].at_y = {8};
  figure.panels[1].at_x = {50'000};
  return figure;
}

TEST(Pictures, PgfplotsGolden) { test::expect_golden("harness/figure.tex", render_pgfplots(full_figure())); }
TEST(Pictures, GnuplotGolden) {
  test::expect_golden("harness/figure.gp", gnuplot_script(full_figure(), Picture::kSvg, "dev-bleu.svg"));
}
TEST(FigureCsv, Golden) {
  test::expect_golden("harness/figure.csv", render_csv({full_figure()}, Formulas::kAsTheyAre));
}

// Empty if it is not installed.
fs::path gnuplot() {
  std::istringstream path(std::getenv("PATH") ? std::getenv("PATH") : "");
  for (std::string folder; std::getline(path, folder, ':');) {
    if (fs::exists(fs::path(folder) / "gnuplot")) return fs::path(folder) / "gnuplot";
  }
  return {};
}

// The picture that gnuplot makes, after it has said nothing.
std::string drawn(const Figure& figure, Picture kind, const std::string& name) {
  const test::TempFolder folder;
  test::write_text(folder.path() / "script.gp", gnuplot_script(figure, kind, name));
  const test::Finished finished = test::run({.arguments = {gnuplot().string(), "script.gp"}, .folder = folder.path()});
  EXPECT_EQ(finished.code, 0);
  EXPECT_EQ(finished.output + finished.errors, "") << name;
  return fs::exists(folder.path() / name) ? test::read_text(folder.path() / name) : "";
}

TEST(Gnuplot, DrawsEveryKindOfPictureWithoutAMessage) {
  if (gnuplot().empty()) GTEST_SKIP() << "gnuplot is not installed: its scripts were not run";
  Figure logarithmic = full_figure();
  logarithmic.log_x = logarithmic.log_y = true;
  Figure empty = figure_of({line({})});
  for (const Figure& figure : {full_figure(), logarithmic, empty, figure_of({line({point(1, 5)})})}) {
    EXPECT_THAT(drawn(figure, Picture::kSvg, "it's a.svg"), HasSubstr("</svg>"));
    EXPECT_THAT(drawn(figure, Picture::kPdf, "a.pdf"), testing::StartsWith("%PDF"));
    EXPECT_THAT(drawn(figure, Picture::kPng, "a.png"), testing::StartsWith("\x89PNG"));
  }
}

TEST(Gnuplot, DrawsTheSameSvgOfTheSameFigure) {
  if (gnuplot().empty()) GTEST_SKIP() << "gnuplot is not installed: its scripts were not run";
  EXPECT_EQ(drawn(full_figure(), Picture::kSvg, "a.svg"), drawn(full_figure(), Picture::kSvg, "a.svg"));
}

TEST(Gnuplot, PrintsTextsAsTheyAreAndRunsNoneOfThem) {
  if (gnuplot().empty()) GTEST_SKIP() << "gnuplot is not installed: its scripts were not run";
  const std::vector<std::string> texts = {"a_b^{c}", "{d}@e", "it's",  "\"f\\n", "`echo g`h",
                                          "~i#j",    "100%",  "$k $1", "@l"};
  Figure figure = figure_of({});
  figure.legend.clear();
  for (const std::string& text : texts) {
    figure.panels[0].lines.push_back(line({point(1, 5), point(2, 6)}));
    figure.legend.push_back({{text}});
  }
  std::string svg = drawn(figure, Picture::kSvg, "a.svg");
  for (const auto& [escape, plain] :
       std::map<std::string, std::string>{{"&apos;", "'"}, {"&quot;", "\""}, {"&#39;", "'"}})
    svg = std::regex_replace(svg, std::regex(escape), plain);
  for (const std::string& text : texts) EXPECT_THAT(svg, HasSubstr(text));
}

}  // namespace
}  // namespace tearless::harness::formats_test
