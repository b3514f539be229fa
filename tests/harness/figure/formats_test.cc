// What CSV, pgfplots and SVG say of a figure, read back from their texts.
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

#include "base/utf8.h"
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

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
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

// A picture in SVG as a reader sees it: a place is worth what the numbers beside the axes say.
struct Svg {
  struct Text {
    std::string text, anchor;
    double x, y;  // of its anchor, on the line that it stands on
    double font;
    bool is_turned;
  };
  struct Path {
    Stretches places;  // from the picture's top left corner
    std::string attributes;
  };
  struct Panel {
    double left, top, width, height;
    std::vector<Path> inside = {}, above = {};  // what ends at the edges of the plot, and what does not
  };

  std::string text;
  std::vector<Panel> panels = {};
  std::vector<Text> labels = {};
  std::vector<Path> legend = {};  // and whatever else is in no panel

  explicit Svg(const Figure& figure) : text(render_svg(figure)) {
    static const std::regex kPanel(R"re(<svg x="(\S+)" y="(\S+)" width="(\S+)" height="(\S+)" overflow="hidden">)re"),
        kPath(R"re(<path d="([^"]*)" (.*)/>)re"),
        kText(
            R"re(<text x="(\S+)" y="(\S+)" text-anchor="(\w+)"( font-size="(\S+)")?( transform="rotate.*")?>(.*)</text>)re");
    double left = 0, top = 0;
    std::vector<Path>* paths = &legend;
    for (const std::string_view view : split_lines(text)) {
      const std::string row(view);
      std::smatch found;
      if (std::regex_match(row, found, kPanel)) {
        panels.push_back({std::stod(found[1]), std::stod(found[2]), std::stod(found[3]), std::stod(found[4])});
        left = panels.back().left;
        top = panels.back().top;
        paths = &panels.back().inside;
      } else if (row.starts_with("<g transform=")) {
        EXPECT_THAT(row, HasSubstr(text.substr(text.rfind("<svg x=", text.find(row)) + 8, 3))) << "the same corner";
        paths = &panels.back().above;
      } else if (row == "</g>") {
        left = top = 0;
        paths = &legend;
      } else if (std::regex_match(row, found, kPath)) {
        paths->push_back({places_of(found[1], left, top), found[2]});
      } else if (std::regex_match(row, found, kText)) {
        labels.push_back({found[7], found[3], std::stod(found[1]), std::stod(found[2]),
                          found[5].matched ? std::stod(found[5]) : 8.5, found[6].matched});
      }
    }
  }

  // What the words of the texts are, without their places.
  std::vector<std::string> texts() const {
    std::vector<std::string> texts;
    for (const Text& label : labels) {
      std::string& text = texts.emplace_back(label.text);
      for (const auto& [escape, plain] : {std::pair("&lt;", "<"), std::pair("&gt;", ">"), std::pair("&amp;", "&")})
        text = std::regex_replace(text, std::regex(escape), plain);
    }
    return texts;
  }

  // Of the measured or published line `i`, in the numbers of the axes.
  Stretches line(size_t panel, size_t i) const {
    return drawn(panel, panels.at(panel).inside, i, "fill=\"none\" stroke");
  }
  Stretches area(size_t panel, size_t i) const { return drawn(panel, panels.at(panel).inside, i, "fill-opacity"); }
  Stretches marks(size_t panel, size_t i) const {
    return drawn(panel, panels.at(panel).above, i, "stroke-width=\"0.7\"");
  }
  Stretches diverged(size_t panel, size_t i) const {
    return drawn(panel, panels.at(panel).above, i, "stroke-width=\"1.4\"");
  }
  Stretches limits(size_t panel) const { return in_numbers(panel, panels.at(panel).inside, "#606060"); }

  // What a place is worth: by two numbers beside the axis.
  double x_at(const Panel& panel, double place, bool is_log = false) const {
    std::map<double, double> numbers;
    for (const Text& label : labels) {
      const bool is_below = label.y > panel.top + panel.height && label.y < panel.top + panel.height + 15;
      if (is_below && label.anchor == "middle" && !label.is_turned && label.x >= panel.left - 1 &&
          label.x <= panel.left + panel.width + 1 && is_number(label.text))
        numbers[label.x] = number_of(label.text);
    }
    return between(numbers, place, is_log);
  }
  double y_at(const Panel& panel, double place, bool is_log = false) const {
    std::map<double, double> numbers;
    for (const Text& label : labels) {
      const bool is_beside = label.x < panel.left && label.x > panel.left - 5 && label.anchor == "end";
      const double middle = label.y - 0.36 * label.font;
      if (is_beside && !label.is_turned && middle > panel.top - 1 && middle < panel.top + panel.height + 1)
        numbers[middle] = number_of(label.text);
    }
    return between(numbers, place, is_log);
  }

 private:
  static Stretches places_of(const std::string& data, double left, double top) {
    static const std::regex kPlace(R"(([ML])(-?[\d.]+) (-?[\d.]+))");
    Stretches places;
    for (std::sregex_iterator place(data.begin(), data.end(), kPlace), end; place != end; ++place) {
      if ((*place)[1] == "M") places.emplace_back();
      places.back().push_back({left + std::stod((*place)[2]), top + std::stod((*place)[3])});
    }
    return places;
  }
  Stretches drawn(size_t panel, const std::vector<Path>& paths, size_t line, const std::string& what) const {
    const std::string colour(style_of(line).colour);
    std::vector<Path> own;
    std::ranges::copy_if(paths, std::back_inserter(own),
                         [&](const Path& path) { return path.attributes.find("#" + colour) != std::string::npos; });
    return in_numbers(panel, own, what);
  }
  Stretches in_numbers(size_t panel, const std::vector<Path>& paths, const std::string& what) const {
    const Panel& own = panels.at(panel);
    Stretches all;
    for (const Path& path : paths) {
      if (path.attributes.find(what) == std::string::npos) continue;
      for (const Points& stretch : path.places) {
        Points& points = all.emplace_back();
        for (const std::vector<double>& place : stretch)
          points.push_back({x_at(own, place[0], is_log_x), y_at(own, place[1], is_log_y)});
      }
    }
    return all;
  }
  // "−50 000", with a thin space
  static std::string plain(std::string text) {
    text = std::regex_replace(text, std::regex("\u2009"), "");
    return std::regex_replace(text, std::regex("−"), "-");
  }
  static bool is_number(const std::string& text) { return std::regex_match(plain(text), std::regex(R"(-?[\d.]+)")); }
  static double number_of(const std::string& text) { return std::stod(plain(text)); }
  static double between(const std::map<double, double>& numbers, double place, bool is_log) {
    if (numbers.size() < 2) return kNaN;
    const auto [first, low] = *numbers.begin();
    const auto [last, high] = *numbers.rbegin();
    const double part = (place - first) / (last - first);
    return is_log ? low * std::pow(high / low, part) : low + part * (high - low);
  }

 public:
  bool is_log_x = false, is_log_y = false;
};

// As near as two decimals of a point show.
void expect_near(const Stretches& drawn, const Stretches& expected, double x_error, double y_error) {
  ASSERT_EQ(drawn.size(), expected.size()) << testing::PrintToString(drawn);
  for (size_t i = 0; i < drawn.size(); ++i) {
    ASSERT_EQ(drawn[i].size(), expected[i].size());
    for (size_t k = 0; k < drawn[i].size(); ++k) {
      EXPECT_NEAR(drawn[i][k][0], expected[i][k][0], x_error) << i << " " << k;
      EXPECT_NEAR(drawn[i][k][1], expected[i][k][1], y_error) << i << " " << k;
    }
  }
}

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
  EXPECT_THAT(rows[0], ElementsAre("figure", "y", "x", "mean", "low", "high", "runs", "source", "diverged"));
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

TEST(FigureCsv, LeavesOutPointsWithoutARun) {
  const std::vector<Cells> rows = csv_of({figure_of({line({point(1, 5), gap(2), point(3, 6)})})});
  ASSERT_THAT(rows, SizeIs(3));
  EXPECT_EQ(rows[1][2], "1");
  EXPECT_EQ(rows[2][2], "3");
}

TEST(FigureCsv, WhereARunDivergedAndItsLastValueAreARowOfNoRun) {
  Figure figure = figure_of({line({point(1, 5), point(3, 6)}), line({})});
  figure.panels[0].lines[0].diverged = {{2, 1e9}, {3, kInfinity}};
  figure.panels[0].lines[1].diverged = {{4, kNaN}};
  const std::vector<Cells> rows = csv_of({figure});
  ASSERT_THAT(rows, SizeIs(6));
  EXPECT_THAT(rows[2], ElementsAre("dev", "dev.bleu", "3", "6", "6", "6", "1", "", ""));
  EXPECT_THAT(rows[3], ElementsAre("dev", "dev.bleu", "2", "", "", "", "0", "", "1000000000"));
  EXPECT_THAT(rows[4], ElementsAre("dev", "dev.bleu", "3", "", "", "", "0", "", "inf"));
  EXPECT_THAT(rows[5], ElementsAre("dev", "dev.bleu", "4", "", "", "", "0", "", "nan"));
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
  EXPECT_THAT(rows[0], ElementsAre("figure", "norm", "depth", "pair", "y", "x", "mean", "low", "high", "runs", "source",
                                   "diverged"));
  EXPECT_THAT(rows[1], ElementsAre("dev", "scale_norm", "4", "", "dev.bleu", "1", "5", "5", "5", "1", "", ""));
  EXPECT_THAT(rows[2], ElementsAre("Dev BLEU", "layer_norm", "", "en-vi", "dev.bleu", "1", "5", "5", "5", "1", "", ""));
}

TEST(FigureCsv, AxisThatIsCalledAsAColumnHasAnotherName) {
  Figure figure = figure_of({line({point(1, 5)})});
  figure.axes = {"source", "x", "figure"};
  figure.panels[0].lines[0].labels = {"wmt", "7", "8"};
  const std::vector<Cells> rows = csv_of({figure});
  EXPECT_THAT(rows[0], ElementsAre("figure", "source:2", "x:2", "figure:2", "y", "x", "mean", "low", "high", "runs",
                                   "source", "diverged"));
  EXPECT_THAT(rows[1], ElementsAre("dev", "wmt", "7", "8", "dev.bleu", "1", "5", "5", "5", "1", "", ""));
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
  const Stretches first = {{{1, 5}, {2, 6.25}}}, second = {{{1, 7}, {3, -8}}};
  const Svg svg(figure);
  expect_near(svg.line(0, 0), first, 0.001, 0.005);
  expect_near(svg.line(0, 1), second, 0.001, 0.005);
  const Tikz tikz(figure);
  EXPECT_EQ(tikz.plots.at("line 0"), first);
  EXPECT_EQ(tikz.plots.at("line 1"), second);
}

TEST(Pictures, LineIsInterruptedWhereNoRunHasAValue) {
  const Figure figure = figure_of({line({gap(0), point(1, 5), point(2, 6), gap(3), gap(4), point(5, 4), point(6, 3)})});
  const Stretches expected = {{{1, 5}, {2, 6}}, {{5, 4}, {6, 3}}};
  expect_near(Svg(figure).line(0, 0), expected, 0.001, 0.001);
  EXPECT_EQ(Tikz(figure).plots.at("line 0"), expected);
}

TEST(Pictures, LineIsDashedBesideThePointsOfFewerRuns) {
  std::vector<BandPoint> points = {point(1, 5), point(2, 6), point(3, 7), point(4, 8), point(5, 9), point(6, 8)};
  points[0].is_of_fewer = points[4].is_of_fewer = points[5].is_of_fewer = true;
  const Figure figure = figure_of({line(points)});
  const Tikz tikz(figure);
  EXPECT_EQ(tikz.plots.at("line 0"), (Stretches{{{2, 6}, {3, 7}, {4, 8}}}));
  EXPECT_EQ(tikz.plots.at("line 0, dash pattern=on 2pt off 4pt"),
            (Stretches{{{1, 5}, {2, 6}}, {{4, 8}, {5, 9}, {6, 8}}}));
  EXPECT_THAT(tikz.plots.at("marks 0")[0], SizeIs(6));
  Figure::Line thinned = long_line(2000);
  for (size_t i = 1000; i < 2000; ++i) thinned.points[i].is_of_fewer = true;
  EXPECT_THAT(Tikz(figure_of({thinned})).plots.at("line 0, dash pattern=on 2pt off 4pt"), ElementsAre(SizeIs(251)));
  const std::string text = render_svg(figure);
  EXPECT_THAT(text, HasSubstr("stroke-width=\"1\" stroke-dasharray=\"2 4\""));
  EXPECT_THAT(text, HasSubstr("stroke-width=\"1\" stroke-linejoin"));
}

TEST(Pictures, BandGoesFromLowToHigh) {
  const Figure figure = figure_of({line({point(1, 4, 5, 7), point(2, 5, 6, 6.5)}), line({point(1, 8), point(2, 9)})});
  const Stretches around = {{{1, 7}, {2, 6.5}, {2, 5}, {1, 4}}};
  const Svg svg(figure);
  expect_near(svg.area(0, 0), around, 0.001, 0.002);
  EXPECT_THAT(svg.text, HasSubstr("Z\" fill=\"#0072B2\" fill-opacity=\"0.15\"/>"));
  EXPECT_THAT(svg.area(0, 1), IsEmpty());
  const Tikz tikz(figure);
  EXPECT_EQ(tikz.plots.at("band 0"), around);
  EXPECT_THAT(tikz.plots, Not(Contains(Key("band 1"))));
}

TEST(Pictures, BandEndsWhereThereIsOneRunOrNone) {
  const Figure figure = figure_of({line({point(1, 4, 5, 7), point(2, 6), point(3, 6), point(4, 6), point(5, 5, 6, 8),
                                         gap(6), point(7, 5, 6, 7), point(8, 5, 6, 7)})});
  EXPECT_EQ(Tikz(figure).plots.at("band 0"),
            (Stretches{
                {{1, 7}, {2, 6}, {2, 6}, {1, 4}}, {{4, 6}, {5, 8}, {5, 5}, {4, 6}}, {{7, 7}, {8, 7}, {8, 5}, {7, 5}}}));
  EXPECT_THAT(Svg(figure).area(0, 0), SizeIs(3));
}

TEST(Pictures, PointBetweenInterruptionsHasAMarkAndABandOfSomeWidth) {
  Figure::Line long_one = long_line(40);
  long_one.points[20] = gap(210);
  long_one.points[22] = gap(230);
  long_one.points[21] = point(220, 1, 2, 3);
  long_one.points[38] = gap(390);
  const Figure figure = figure_of({long_one});
  const Tikz tikz(figure);
  const Points& marks = tikz.plots.at("marks 0")[0];
  EXPECT_THAT(marks, Contains(ElementsAre(220, 2)));
  EXPECT_THAT(marks, Contains(ElementsAre(400, DoubleNear(std::sqrt(40), 1e-6))));
  EXPECT_TRUE(std::ranges::is_sorted(marks));
  EXPECT_THAT(std::set(marks.begin(), marks.end()), SizeIs(marks.size()));
  const Points& band = tikz.plots.at("band 0").at(0);
  ASSERT_THAT(band, SizeIs(4));
  EXPECT_LT(band[0][0], 220);
  EXPECT_GT(band[1][0], 220);
}

TEST(Pictures, ShortLineHasEachPointMarkedALongOneAboutEight) {
  const Figure figure = figure_of({long_line(12), long_line(13), long_line(3000)});
  const Tikz tikz(figure);
  EXPECT_EQ(tikz.plots.at("marks 0"), tikz.plots.at("line 0"));
  EXPECT_THAT(tikz.plots.at("marks 0")[0], SizeIs(12));
  for (const char* name : {"marks 1", "marks 2"}) {
    const Points& marks = tikz.plots.at(name)[0];
    EXPECT_THAT(marks, SizeIs(testing::AllOf(Ge(6U), testing::Le(8U)))) << name;
  }
  const Points& marks = tikz.plots.at("marks 2")[0];
  for (size_t i = 1; i < marks.size(); ++i) EXPECT_NEAR(marks[i][0] - marks[i - 1][0], 30'000 / 8.0, 200);
  Stretches alone;  // in SVG each mark is a path of its own
  for (const std::vector<double>& mark : marks) alone.push_back({mark});
  expect_near(Svg(figure).marks(0, 2), alone, 5, 0.01);
}

TEST(Pictures, MarksOfLinesThatCoincideAreBesideEachOther) {
  const Tikz tikz(figure_of({long_line(200), long_line(200)}));
  std::set<double> first, both;
  for (const std::vector<double>& mark : tikz.plots.at("marks 0")[0]) first.insert(mark[0]);
  both = first;
  for (const std::vector<double>& mark : tikz.plots.at("marks 1")[0]) both.insert(mark[0]);
  EXPECT_THAT(both, SizeIs(2 * first.size()));
}

TEST(Pictures, MarksOnALogarithmicAxisAreAtEqualDistancesOfThePicture) {
  Figure figure = figure_of({long_line(500)});
  figure.log_x = true;
  const Points marks = Tikz(figure).plots.at("marks 0")[0];
  const auto before_100 = std::ranges::count_if(marks, [](const auto& mark) { return mark[0] < 100; });
  EXPECT_GE(before_100, 2);  // of 2.7 decades one
}

TEST(Pictures, PublishedLineIsDashedWithHollowMarks) {
  const Figure figure = figure_of({line({point(1, 5), point(2, 6)}), published({point(1, 7), point(2, 8)})});
  const Svg svg(figure);
  const Svg::Panel& panel = svg.panels.at(0);
  EXPECT_THAT(panel.inside.at(1).attributes, Not(HasSubstr("dasharray")));  // at(0) is the grid
  EXPECT_THAT(panel.inside.at(2).attributes,
              HasSubstr("stroke=\"#D55E00\" stroke-width=\"1\" stroke-dasharray=\"3 2\""));
  EXPECT_THAT(panel.above.at(1).attributes, HasSubstr("fill=\"#0072B2\" stroke=\"#0072B2\""));  // at(0): the axes
  EXPECT_THAT(panel.above.at(2).attributes, HasSubstr("fill=\"#ffffff\" stroke=\"#D55E00\""));
  EXPECT_THAT(svg.legend.at(2).attributes, HasSubstr("stroke-dasharray=\"3 2\""));
  EXPECT_THAT(svg.legend.at(3).attributes, HasSubstr("fill=\"#ffffff\""));
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
  const Svg svg(figure);
  std::vector<std::string> dashes;
  for (const Svg::Path& path : svg.panels.at(0).inside) {
    if (path.attributes.find("#D55E00") != std::string::npos) dashes.push_back(path.attributes);
  }
  ASSERT_THAT(dashes, SizeIs(3)) << "the measured line and two published ones";
  EXPECT_THAT(std::set(dashes.begin(), dashes.end()), SizeIs(3));
  EXPECT_THAT(svg.marks(0, 4), SizeIs(2)) << "of no measured line";
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
  expect_near(Svg(figure).diverged(0, 0), {{{2, 5.5}}}, 0.001, 0.001);
  EXPECT_THAT(Svg(figure).text, HasSubstr("m-2.4-2.4l4.8 4.8m0-4.8l-4.8 4.8\""));
  EXPECT_EQ(Tikz(figure).plots.at("diverged, line0"), (Stretches{{{2, 5.5}}}));
}

TEST(Pictures, DivergedRunWhoseLastValueLiesOutsideIsMarkedAtTheEdge) {
  Figure figure = figure_of({line({point(1, 5), point(4, 6)})});
  figure.panels[0].lines[0].diverged = {{1, kNaN}, {2, 1e30}, {3, -1e30}, {4, kInfinity}};
  const Tikz tikz(figure);
  const double low = std::stod(tikz.option("ymin")), high = std::stod(tikz.option("ymax"));
  EXPECT_LT(high, 7);
  EXPECT_EQ(tikz.plots.at("diverged, line0"), (Stretches{{{1, high}, {2, high}, {3, low}, {4, high}}}));
  expect_near(Svg(figure).diverged(0, 0), {{{1, high}}, {{2, high}}, {{3, low}}, {{4, high}}}, 0.001, 0.001);
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
  EXPECT_THAT(Svg(figure).texts(), Contains("b"));
  EXPECT_THAT(Svg(figure).diverged(0, 1), SizeIs(1));
}

TEST(Pictures, LimitsOfClaimsAreDashedLinesAcrossThePanel) {
  Figure figure = figure_of({line({point(1, 5), point(4, 6)})});
  EXPECT_THAT(Tikz(figure).plots, Not(Contains(Key("limit"))));
  EXPECT_THAT(Svg(figure).limits(0), IsEmpty());
  figure.panels[0].at_x = {3};
  figure.panels[0].at_y = {5.5};
  const Tikz tikz(figure);
  const double x_end = std::stod(tikz.option("xmax")), low = std::stod(tikz.option("ymin")),
               high = std::stod(tikz.option("ymax"));
  EXPECT_EQ(tikz.plots.at("limit"), (Stretches{{{3, low}, {3, high}}, {{0, 5.5}, {x_end, 5.5}}}));
  const Svg svg(figure);
  const Svg::Panel& panel = svg.panels.at(0);
  const Svg::Path& limit = panel.inside.at(1);
  EXPECT_THAT(limit.attributes, testing::AllOf(HasSubstr("#606060"), HasSubstr("dasharray")));
  EXPECT_NEAR(svg.x_at(panel, limit.places.at(0).at(0).at(0)), 3, 0.001);
  EXPECT_NEAR(svg.y_at(panel, limit.places.at(1).at(0).at(1)), 5.5, 0.001);
  EXPECT_THAT(svg.text, testing::ContainsRegex(fmt::format("M[0-9.]+ 0v{}M0 [0-9.]+h{}\"", panel.height, panel.width)));
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
  EXPECT_THAT(Svg(figure).limits(0), SizeIs(1));
  EXPECT_THAT(Svg(figure).limits(1), IsEmpty());
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
  const Tikz tikz(figure);
  const Points& drawn = tikz.plots.at("line 0")[0];
  const Points& band = tikz.plots.at("band 0")[0];  // to the right above, and back below
  ASSERT_THAT(drawn, SizeIs(467));                  // of three points each, of two at the end
  ASSERT_THAT(band, SizeIs(2 * 467));
  for (size_t i = 0; i < drawn.size(); ++i) {
    double sum = 0, x = 0;
    const size_t count = i + 1 < drawn.size() ? 3 : 2;
    for (size_t k = 0; k < count; ++k) {
      sum += figure.panels[0].lines[0].points[3 * i + k].mean;
      x += figure.panels[0].lines[0].points[3 * i + k].x;
    }
    const double n = static_cast<double>(count);
    EXPECT_THAT(drawn[i], ElementsAre(DoubleNear(x / n, 1e-5), DoubleNear(sum / n, 1e-7))) << "seed 7";
    EXPECT_THAT(band[i], ElementsAre(DoubleNear(x / n, 1e-5), DoubleNear(sum / n + 0.2, 1e-7)));
    EXPECT_THAT(band[band.size() - 1 - i], ElementsAre(DoubleNear(x / n, 1e-5), DoubleNear(sum / n - 0.1, 1e-7)));
  }
  const std::string note = "Of lines with more than 500 points, means of up to 3 neighbours are drawn.";
  EXPECT_THAT(tikz.text, HasSubstr(note));
  EXPECT_THAT(Svg(figure_of({long_line(501)})).text, HasSubstr("means of up to 2"));
  EXPECT_THAT(Tikz(figure_of({long_line(500)})).text, Not(HasSubstr("neighbours")));
  EXPECT_THAT(Tikz(figure_of({long_line(500)})).plots.at("line 0")[0], SizeIs(500));
}

TEST(Pictures, ThinnedLineIsInterruptedWhereOneOfItsNeighboursIs) {
  Figure figure = figure_of({long_line(1000)});
  figure.panels[0].lines[0].points[100].runs = 0;
  const Tikz tikz(figure);
  ASSERT_THAT(tikz.plots.at("line 0"), SizeIs(2));
  EXPECT_THAT(tikz.plots.at("line 0")[0], SizeIs(50));
  EXPECT_THAT(tikz.plots.at("line 0")[1], SizeIs(449));
}

// --- axes ------------------------------------------------------------------------------------------------------------

TEST(Pictures, LineThatDoesNotSetTheScaleMayLeaveThePicture) {
  Figure figure = figure_of({line({point(1, 5), point(4, 6)}), line({point(1, 5), point(2, 1e6), point(3, 1e300)})});
  const double greatest = std::stod(Tikz(figure).option("ymax"));
  EXPECT_GT(greatest, 1e200);
  figure.panels[0].lines[1].sets_scale = false;
  const Tikz tikz(figure);
  EXPECT_LT(std::stod(tikz.option("ymax")), 7);
  const Svg svg(figure);
  const Svg::Panel& panel = svg.panels.at(0);
  EXPECT_NEAR(svg.y_at(panel, panel.top + panel.height), std::stod(tikz.option("ymin")), 0.002);
  EXPECT_NEAR(svg.y_at(panel, panel.top), std::stod(tikz.option("ymax")), 0.002);
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
  EXPECT_NEAR(Svg(figure).x_at(Svg(figure).panels[0], Svg(figure).panels[0].left), 0, 1);
  figure.from_zero = false;
  EXPECT_GT(std::stod(Tikz(figure).option("xmin")), 900);
  EXPECT_LT(std::stod(Tikz(figure).option("xmin")), 1000);
}

TEST(Pictures, PanelsHaveTheSameAxisOfX) {
  Figure figure = figure_of({line({point(1, 5), point(10, 6)})});
  figure.panels.push_back(figure.panels[0]);
  figure.panels[1].lines[0].points[1].x = 500;
  const Svg svg(figure);
  EXPECT_NEAR(svg.line(0, 0)[0][1][0], 10, 0.1);
  EXPECT_NEAR(svg.line(1, 0)[0][1][0], 500, 0.1);
  EXPECT_GT(std::stod(Tikz(figure).option("xmax")), 500);
}

TEST(Pictures, PanelsOfOneScaleHaveTheSameAxisOfY) {
  Figure figure = figure_of({line({point(1, 5), point(4, 6)})});
  figure.panels.push_back({.y = {"BLEU"}, .lines = {line({point(1, 50), point(4, 60)})}, .at_y = {90}});
  figure.panels.push_back({.y = {"loss"}, .scale = 1, .lines = {line({point(1, 0.5), point(4, 0.25)})}});
  const auto ends = [&] {
    std::vector<std::string> found;
    const std::string text = render_pgfplots(figure);
    const std::regex end(R"(ymin=([^,]+), ymax=([^,]+),)");
    for (std::sregex_iterator at(text.begin(), text.end(), end), none; at != none; ++at) found.push_back(at->str());
    return found;
  };
  const std::vector<std::string> shared = ends();
  ASSERT_THAT(shared, SizeIs(3));
  EXPECT_EQ(shared[0], shared[1]);
  EXPECT_THAT(shared[0], HasSubstr("ymax=93"));
  EXPECT_THAT(shared[2], HasSubstr("ymax=0.51,"));
  const std::string text = render_text(figure, 80, false);
  EXPECT_EQ(count_of(text, "\n100 ┤"), 2u);
  Figure with_empty = figure;
  with_empty.panels[0].lines = {line({})};
  EXPECT_EQ(count_of(render_text(with_empty, 80, false), "no finite value"), 1u);
  figure.panels[1].scale = 2;
  EXPECT_NE(ends()[0], ends()[1]);
  figure.panels[1].scale = 0;
  figure.kind = FigureSpec::Kind::kBars;
  figure.labels = {{"1", {"1"}}, {"2", {"2"}}, {"3", {"3"}}, {"4", {"4"}}};
  EXPECT_EQ(ends()[0], ends()[1]);
}

TEST(Pictures, LogarithmicAxesHaveTicksAtPowersOfTen) {
  Figure figure = figure_of({line({point(1e-4, 3), point(1e-1, 20000)})});
  figure.from_zero = false;
  EXPECT_EQ(Tikz(figure).option("xmode"), "linear");
  figure.log_x = figure.log_y = true;
  const Tikz tikz(figure);
  EXPECT_EQ(tikz.option("xmode"), "log");
  EXPECT_EQ(tikz.option("ymode"), "log");
  EXPECT_EQ(tikz.option("xtick"), "{0.0001,0.001,0.01,0.1}");
  EXPECT_EQ(tikz.option("xticklabels"), "{{$10^{-4}$},{$10^{-3}$},{$10^{-2}$},{$10^{-1}$}}");
  EXPECT_EQ(tikz.option("ytick"), "{10,100,1000,10000}");
  Svg svg(figure);
  svg.is_log_y = true;
  EXPECT_NEAR(svg.line(0, 0)[0][0][1], 3, 0.01);
  EXPECT_NEAR(svg.line(0, 0)[0][1][1], 20000, 50);
  EXPECT_THAT(svg.texts(), testing::IsSupersetOf({"10⁻⁴", "10⁻³", "10⁻²", "10⁻¹", "10", "100", "1000", "10\u2009000"}));
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
  EXPECT_EQ(tikz.plots.at("band 0"), (Stretches{{{3, 30}, {4, 10}, {4, 10}, {3, low}}}));
}

TEST(Pictures, NumbersAtTheAxesReadAsInPrint) {
  const auto ticks = [](double last, double y) {
    Figure figure = figure_of({line({point(1, -y), point(last, y)})});
    return Svg(figure).texts();
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
  EXPECT_THAT(Svg(figure).texts(), Contains("no finite value"));
  EXPECT_THAT(Tikz(figure).text, HasSubstr("no finite value"));
  EXPECT_THAT(Svg(figure_of({line({point(1, 2)})})).text, Not(HasSubstr("no finite value")));
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

TEST(Pictures, PanelsAreSideBySideOnAPageAndBelowEachOtherInAColumn) {
  using Width = TableSpec::Width;
  const std::map<size_t, std::string> on_page = {{2, "2 by 1"}, {3, "3 by 1"}, {4, "2 by 2"}, {5, "3 by 2"}};
  for (const auto& [count, size] : on_page) {
    const Figure page = with_panels(count, Width::kPage), column = with_panels(count, Width::kColumn);
    EXPECT_THAT(Tikz(page).text, HasSubstr("group size=" + size));
    EXPECT_THAT(Tikz(column).text, HasSubstr(fmt::format("group size=1 by {}", count)));
    EXPECT_EQ(count_of(Tikz(page).text, "\\nextgroupplot["), count);
    const auto frames = [&](const Figure& figure) {
      std::set<double> left, top;
      const Svg svg(figure);
      for (const Svg::Panel& panel : svg.panels) {
        left.insert(panel.left);
        top.insert(panel.top);
      }
      return std::pair(left.size(), top.size());
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
  const Svg svg(figure);
  expect_near(svg.line(1, 0), {{{1, 50}, {2, 60}}}, 0.001, 0.01);
  EXPECT_THAT(svg.texts(), testing::IsSupersetOf({"panel 1", "panel 2", "score 1", "score 2", "Dev BLEU", "a"}));
  EXPECT_EQ(std::ranges::count(svg.texts(), "updates"), 1);  // below the lower one
  const Tikz tikz(figure);
  EXPECT_THAT(tikz.plots.at("line 0"), ElementsAre(Points{{1, 5}, {2, 6}}, Points{{1, 50}, {2, 60}}));
  EXPECT_THAT(tikz.text, testing::AllOf(HasSubstr("title={panel 1}"), HasSubstr("title={panel 2}"),
                                        HasSubstr("ylabel={score 2}")));
  EXPECT_EQ(count_of(tikz.text, "xlabel={updates}"), 1);
}

TEST(Pictures, AreAsWideAsAColumnOrAPage) {
  using Width = TableSpec::Width;
  EXPECT_THAT(Svg(with_panels(1, Width::kColumn)).text, HasSubstr(" width=\"84mm\" "));
  EXPECT_THAT(Svg(with_panels(1, Width::kColumn)).text, HasSubstr(" viewBox=\"0 0 238.11 "));  // of 72 an inch
  EXPECT_THAT(Svg(with_panels(1, Width::kPage)).text, HasSubstr(" width=\"174mm\" "));
  EXPECT_THAT(Tikz(with_panels(1, Width::kColumn)).text, HasSubstr("\\begin{figure}\n"));
  EXPECT_THAT(Tikz(with_panels(1, Width::kPage)).text, HasSubstr("\\begin{figure*}\n"));
}

// On a black page its texts are legible, and in a page of HTML it changes nothing else.
TEST(Pictures, AreAsWideAsTheFigureSays) {
  Figure figure = with_panels(1, TableSpec::Width::kColumn);
  figure.own_width = 120;
  EXPECT_THAT(Svg(figure).text, HasSubstr(" width=\"120mm\" "));
  EXPECT_THAT(Tikz(figure).text, testing::AllOf(HasSubstr("\\begin{figure}\n"), HasSubstr("width={(120mm-")));
  EXPECT_THAT(Tikz(with_panels(1, TableSpec::Width::kColumn)).text, HasSubstr("width={(\\linewidth-"));
  EXPECT_THAT(Tikz(figure).text, HasSubstr("\\pgfplotsset{compat=1.16}\n"));
}

TEST(Pictures, HaveTheFontThatTheFigureAsksForAndKeepTheirWidth) {
  Figure figure = with_panels(1, TableSpec::Width::kColumn);
  const auto height_of_text = [](const std::string& svg) {
    std::smatch found;
    EXPECT_TRUE(std::regex_search(
        svg, found,
        std::regex("width=\"84mm\" height=\"[0-9.]+mm\" viewBox=\"0 0 ([0-9.]+) .*font-size=\"([0-9.]+)\"")));
    return 84 * std::stod(found[2]) / std::stod(found[1]);  // mm of the picture, whatever its units are
  };
  EXPECT_NEAR(height_of_text(Svg(figure).text), 8.5 * 25.4 / 72, 0.01);
  for (const double points : {6.0, 11.0}) {
    figure.font_size = points;
    EXPECT_NEAR(height_of_text(Svg(figure).text), points * 25.4 / 72.27, 0.01) << "of TeX's points";
    EXPECT_THAT(Tikz(figure).text, HasSubstr(fmt::format(" label style={{font=\\fontsize{{{:g}pt}}", points)));
    EXPECT_THAT(Tikz(figure).text, Not(HasSubstr("scriptsize")));
  }
  const auto numbers_on_x = [](std::optional<double> points) {
    Figure wide = figure_of({line({point(0, 5), point(100'000, 6)})});
    wide.font_size = points;
    return drawing_of(wide).panels[0].x.ticks.size();
  };
  EXPECT_LT(numbers_on_x(20), numbers_on_x({})) << "larger numbers have less room";
}

TEST(Pictures, LegendStandsInACornerThatIsFreeElseBelow) {
  const auto inside = [](std::vector<Figure::Line> lines) {
    Figure figure = figure_of(std::move(lines));
    figure.legend_inside = true;
    return figure;
  };
  const Figure rises = inside({line({point(0, 0), point(10, 10)}), line({point(0, 1), point(10, 10)})}),
               falls = inside({line({point(0, 10), point(10, 0)}), line({point(0, 10), point(10, 1)})}),
               zigzag =
                   inside({line({point(0, 0), point(2, 10), point(4, 0), point(6, 10), point(8, 0), point(10, 10)}),
                           line({point(0, 10), point(2, 0), point(4, 10), point(6, 0), point(8, 10), point(10, 0)})});
  Figure below = rises, limited = falls, two = zigzag;
  below.legend_inside = false;
  limited.panels[0].at_y = {9.5};
  two.panels.push_back(rises.panels[0]);
  two.panels[1].scale = 1;
  EXPECT_THAT(Tikz(rises).text, HasSubstr("\\node[anchor=north west, inner sep=3pt] at (rel axis cs:0,1) {\\usebox"));
  EXPECT_THAT(Tikz(falls).text, HasSubstr("\\node[anchor=north east, inner sep=3pt] at (rel axis cs:1,1) {\\usebox"));
  EXPECT_THAT(Tikz(limited).text, HasSubstr("anchor=south west")) << "a limit is above";
  Figure banded = falls, crossed = falls, limited_in_x = falls;
  banded.panels[0].lines[0].points = {point(0, 9, 10, 10), point(10, 0, 0, 10)};
  crossed.panels[0].lines[1].diverged = {{9.8, 9.8}};
  limited_in_x.panels[0].at_x = {9.5};
  for (const Figure* figure : {&banded, &crossed, &limited_in_x})
    EXPECT_THAT(Tikz(*figure).text, HasSubstr("anchor=south west")) << "what is in the corner keeps it out";
  EXPECT_LT(height_of_pgfplots(rises), height_of_pgfplots(below));
  for (const Figure& figure : {below, zigzag}) {
    EXPECT_THAT(Tikz(figure).text, Not(HasSubstr("\\usebox")));
    EXPECT_THAT(Tikz(figure).text, HasSubstr("\\par\\smallskip\n{\\footnotesize\\begin{tabular}"));
  }
  EXPECT_LT(height_of_svg(rises), height_of_svg(below));
  EXPECT_EQ(height_of_svg(zigzag), height_of_svg(below)) << "nothing is free";
  const Svg picture(two);
  const auto entry = std::ranges::find(picture.labels, "a", &Svg::Text::text);
  ASSERT_NE(entry, picture.labels.end());
  EXPECT_GT(entry->y, picture.panels[1].top) << "in the panel that has room";
  EXPECT_LT(entry->y, picture.panels[1].top + picture.panels[1].height);
}

TEST(Pictures, LeaveTheCaptionToTheTextWhereTheFigureSaysSo) {
  Figure figure = with_panels(1, TableSpec::Width::kColumn);
  const double with = height_of_svg(figure);
  figure.caption_in_picture = false;
  EXPECT_THAT(Svg(figure).texts(), Not(Contains("Dev BLEU")));
  EXPECT_LT(height_of_svg(figure), with);
  EXPECT_THAT(Tikz(figure).text, HasSubstr("\\caption{Dev BLEU}"));
}

TEST(Pictures, OfMorePanelsAreHigherInTheirOwnFormat) {
  for (const auto height : {height_of_svg, height_of_pgfplots}) {
    EXPECT_LT(height(with_panels(2, TableSpec::Width::kColumn)), 150);
    EXPECT_GT(height(with_panels(12, TableSpec::Width::kColumn)), 350);
    EXPECT_LT(height(with_panels(12, TableSpec::Width::kPage)), 229);
    Figure noted = with_panels(1, TableSpec::Width::kColumn);
    const double without = height(noted);
    noted.notes.assign(20, {"a note of one line"});
    EXPECT_NEAR(height(noted) - without, 20 * 4, 20) << "mm";
  }
}

TEST(Pictures, SvgIsWhiteBehindAndHasNoNamesOfItsOwn) {
  const std::string text = Svg(with_panels(2, TableSpec::Width::kColumn)).text;
  const size_t size = text.find("viewBox=\"0 0 ") + 13;
  const std::string width = text.substr(size, text.find(' ', size) - size),
                    height = text.substr(size + width.size() + 1, text.find('"', size) - size - width.size() - 1);
  EXPECT_THAT(text, HasSubstr(fmt::format(">\n<rect width=\"{}\" height=\"{}\" fill=\"#ffffff\"/>\n", width, height)));
  for (const char* name : {" id=", " class=", "<style", "url("}) EXPECT_THAT(text, Not(HasSubstr(name)));
}

TEST(Pictures, LegendNamesTheLinesOfEveryPanelOnceAndNumbersSayWhatTheyAreOf) {
  Figure figure = with_panels(2, TableSpec::Width::kColumn);
  figure.heading = {{"Norm"}, {"depth", "$\\ell$"}, {""}};
  figure.legend = {
      {{"ScaleNorm"}, {"4"}, {"7"}}, {{"√d", "$\\sqrt{d}$"}, {"2 layers"}, {""}}, {{"of no panel"}, {"1"}, {""}}};
  for (Figure::Panel& panel : figure.panels) panel.lines.resize(3);
  figure.panels[1].lines[1] = line({point(1, 5), point(2, 6)});
  const Svg svg(figure);
  EXPECT_EQ(std::ranges::count(svg.texts(), "ScaleNorm, depth = 4, 7"), 1);
  EXPECT_THAT(svg.texts(), Contains("√d, 2 layers"));
  EXPECT_THAT(svg.text, Not(HasSubstr("of no panel")));
  ASSERT_THAT(svg.legend, SizeIs(4)) << "a piece of line and a mark of each of two";
  EXPECT_THAT(svg.legend[2].attributes, HasSubstr("D55E00"));
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
  EXPECT_THAT(Svg(figure).legend, IsEmpty());
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

// Where the texts of a picture are that are not turned, in a font whose characters are half as wide as high.
std::vector<Box> boxes_of(const Svg& svg) {
  std::vector<Box> boxes;
  for (const Svg::Text& label : svg.labels) {
    if (label.is_turned) continue;
    const std::string text = std::regex_replace(label.text, std::regex("\u2009"), "");
    const double width = static_cast<double>(display_width(text)) * 0.5 * label.font,
                 middle = label.y - 0.36 * label.font;
    const double left = label.anchor == "start" ? label.x
                        : label.anchor == "end" ? label.x - width
                                                : label.x - width / 2;
    boxes.push_back({text, left, left + width, middle - label.font / 2, middle + label.font / 2});
  }
  return boxes;
}

void expect_no_overlap(const std::vector<Box>& boxes, double width) {
  for (size_t i = 0; i < boxes.size(); ++i) {
    EXPECT_GE(boxes[i].left, 0) << boxes[i].text;
    EXPECT_LE(boxes[i].right, width) << boxes[i].text;
    for (size_t k = 0; k < i; ++k) {
      EXPECT_TRUE(boxes[i].right <= boxes[k].left || boxes[k].right <= boxes[i].left ||
                  boxes[i].bottom <= boxes[k].top || boxes[k].bottom <= boxes[i].top)
          << boxes[k].text << " and " << boxes[i].text;
    }
  }
}
double points_across(const Figure& figure) { return (figure.width == TableSpec::Width::kPage ? 174 : 84) * 72 / 25.4; }

TEST(Pictures, LongTextsAreWrappedAndOverlapNothing) {
  for (const size_t count : {1, 2, 5, 12}) {
    for (const auto width : {TableSpec::Width::kColumn, TableSpec::Width::kPage}) {
      Figure figure = figure_of({});
      figure.width = width;
      figure.title = {
          "A caption of many words that is longer than a line of the picture is wide, even if it fills a page"};
      figure.notes = {
          {"A note that needs more than one line, too, since it says in many words how it came about and goes far to "
           "do so, and farther still."},
          Name{"A note."}};
      figure.legend.clear();
      for (size_t i = 0; i < count; ++i) {
        figure.panels[0].lines.push_back(line({point(1, static_cast<double>(i)), point(150'000, 5)}));
        figure.legend.push_back({{fmt::format("system {} {}", i, std::string(10 * i, 'x'))}});
      }
      figure.panels.push_back(figure.panels[0]);
      figure.panels[0].title = figure.panels[1].title = {"The title of a panel, which has many words like the others"};
      const Svg svg(figure);
      const std::vector<Box> boxes = boxes_of(svg);
      expect_no_overlap(boxes, points_across(figure));
      std::string all;
      for (const Box& box : boxes) all += box.text;
      EXPECT_EQ(std::ranges::count(all, 'x'), static_cast<int>(5 * count * (count - 1))) << all;
      const size_t size = svg.text.find(' ', svg.text.find("viewBox=\"0 0 ") + 13);
      EXPECT_LT(boxes.back().bottom, std::stod(svg.text.substr(size))) << "the last note";
    }
  }
}

TEST(Pictures, CaptionNotesAndLabelAreInLatex) {
  Figure figure = figure_of({line({point(1, 5)})});
  figure.notes = {Name{"Lines: the mean of 3 seeds."}, Name{"100 % of_it"}};
  const std::string text = render_pgfplots(figure);
  EXPECT_THAT(text, HasSubstr("\\caption{Dev BLEU}\n\\label{fig:dev}\n"));
  EXPECT_THAT(text, HasSubstr("Lines: the mean of 3 seeds.\\par\n100 \\% of\\_it\\par\n"));
  EXPECT_THAT(Svg(figure).texts(), testing::IsSupersetOf({"Lines: the mean of 3 seeds.", "100 % of_it"}));
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
  EXPECT_THAT(Svg(figure).texts(), testing::IsSupersetOf({"learning rate", "‖g‖", "a_b"}));
}

TEST(Pictures, LinesAreToldApartWithColourOrWithoutIt) {
  std::set<std::pair<std::string_view, std::string_view>> colour_and_dash, dash_and_mark, dash_and_path;
  for (size_t i = 0; i < 24; ++i) {
    const LineStyle style = style_of(i);
    colour_and_dash.emplace(style.colour, style.dash);
    dash_and_mark.emplace(style.dash, style.mark.pgfplots);
    dash_and_path.emplace(style.dash, style.mark.path);
    std::set<std::string_view> dashes = {style.dash};
    for (size_t source = 0; source < 3; ++source) {
      const LineStyle published = published_style_of(i, source);
      EXPECT_EQ(published.colour, style.colour);
      dashes.insert(published.dash);
      EXPECT_TRUE(published.mark.is_hollow && !style.mark.is_hollow);
      EXPECT_NE(published.mark.pgfplots, style.mark.pgfplots);
    }
    EXPECT_THAT(dashes, SizeIs(4));
    // Contrast with white by WCAG, of which 3 is what a line needs; Okabe and Ito's palest colours have 2.
    const auto channel = [&](size_t at) {
      const double value = std::stoi(std::string(style.colour.substr(at, 2)), nullptr, 16) / 255.0;
      return value <= 0.04045 ? value / 12.92 : std::pow((value + 0.055) / 1.055, 2.4);
    };
    EXPECT_GE(1.05 / (0.2126 * channel(0) + 0.7152 * channel(2) + 0.0722 * channel(4) + 0.05), 2) << style.colour;
  }
  EXPECT_THAT(colour_and_dash, SizeIs(24));
  EXPECT_THAT(dash_and_mark, SizeIs(24));
  EXPECT_THAT(dash_and_path, SizeIs(24));
}

// --- bars ------------------------------------------------------------------------------------------------------------

// At each of the labels a bar of each line; the third line is published, and beside the first.
Figure bars_of(std::vector<Figure::Line> lines, const std::vector<std::string>& labels = {"Base", "DS-Init"}) {
  Figure figure = figure_of(std::move(lines));
  figure.kind = FigureSpec::Kind::kBars;
  figure.from_zero = false;
  for (const std::string& label : labels) figure.labels.push_back({label, {"the " + label, "\\textit{" + label + "}"}});
  return figure;
}
Figure three_bars() {
  Figure figure = bars_of(
      {line({point(1, 4, 5, 7), point(2, 8)}), line({point(1, 6), point(2, 5, 6, 6.5)}), published({point(2, 9)})});
  figure.measured = {{2, 0}};
  return figure;
}

TEST(Bars, ReachFromZeroToTheMean) {
  const Svg svg(three_bars());
  const auto heights = [&](size_t line) {
    std::vector<double> heights;
    for (const Points& around : svg.area(0, line)) {
      EXPECT_NEAR(around.at(2)[1], 0, 0.003);
      EXPECT_EQ(around.at(0)[1], around.at(1)[1]);
      heights.push_back(around.at(0)[1]);
    }
    return heights;
  };
  EXPECT_THAT(heights(0), ElementsAre(DoubleNear(5, 0.003), DoubleNear(8, 0.003), DoubleNear(9, 0.003)))
      << "the last one is published, in the colour of what it is beside";
  EXPECT_THAT(heights(1), ElementsAre(DoubleNear(6, 0.003), DoubleNear(6, 0.003)));
}

TEST(Bars, StandInTheMiddleAboveTheirLabelAndPublishedOnesBehindTheMeasuredOne) {
  const Figure figure = three_bars();
  const Svg svg(figure);
  const Svg::Panel& panel = svg.panels.at(0);
  std::map<std::string, double> labels;
  for (const Svg::Text& text : svg.labels) labels[text.text] = text.x;
  EXPECT_NEAR(labels.at("the Base"), panel.left + panel.width / 4, 0.02);
  EXPECT_NEAR(labels.at("the DS-Init"), panel.left + panel.width * 3 / 4, 0.02);
  std::map<double, std::string> bars;  // by their left end
  double right = 0;
  for (const Svg::Path& path : panel.inside) {
    if (path.attributes.find("fill-opacity") == std::string::npos) continue;
    for (const Points& around : path.places) {
      bars[around.at(0)[0]] =
          path.attributes.substr(6, 7) + path.attributes.substr(path.attributes.find("city=") + 6, 3);
      EXPECT_NEAR(around.at(1)[0] - around.at(0)[0], panel.width / 2 * 0.8 / 3 * 0.9, 0.02);
      right = std::max(right, around.at(1)[0]);
    }
  }
  std::vector<std::string> styles;
  for (const auto& [at, style] : bars) styles.push_back(style);
  EXPECT_THAT(styles, ElementsAre("#0072B20.6", "#D55E000.6", "#0072B20.6", "#0072B20.1", "#D55E000.6"));
  const double first = bars.upper_bound(labels.at("the Base") + panel.width / 4)->first;
  EXPECT_NEAR((first + right) / 2, labels.at("the DS-Init"), 0.02) << "the middle of three";
}

TEST(Bars, HaveTheirBandAsAnErrorBarInTheMiddle) {
  const Figure figure = bars_of({line({point(1, 4, 5, 7), point(2, 8)})});
  const Svg svg(figure);
  Stretches strokes;
  for (const Svg::Path& path : svg.panels.at(0).inside) {
    if (path.attributes.starts_with("fill=\"none\" stroke=\"#0072B2\"")) strokes = path.places;
  }
  ASSERT_THAT(strokes, SizeIs(1 + 1 + 2 + 1)) << "two outlines, an error bar and its ends";
  const Points &outline = strokes[0], &error = strokes[1];
  EXPECT_NEAR(error[0][0], (outline[0][0] + outline[3][0]) / 2, 0.01);
  EXPECT_NEAR(svg.y_at(svg.panels[0], error[0][1]), 4, 0.005);
  EXPECT_NEAR(svg.y_at(svg.panels[0], error[1][1]), 7, 0.005);
  for (size_t i : {0U, 1U}) {
    EXPECT_EQ(strokes[2 + i][0][1], error[i][1]);
    EXPECT_LT(strokes[2 + i][0][0], error[i][0]);
    EXPECT_GT(strokes[2 + i][1][0], error[i][0]);
  }
}

TEST(Bars, AreInLatexWithTheirLabels) {
  const Tikz tikz(three_bars());
  constexpr double kShare = 0.8 / 3, kHalf = kShare * 0.9 / 2;
  const Points& bar = tikz.plots.at("band 1").at(0);  // of Base, the last of three
  const double middle = 1 + kShare;
  const std::vector<std::vector<double>> around = {
      {middle - kHalf, 6}, {middle + kHalf, 6}, {middle + kHalf, 0}, {middle - kHalf, 0}};
  for (size_t i = 0; i < around.size(); ++i) {
    EXPECT_NEAR(bar.at(i)[0], around[i][0], 1e-6);
    EXPECT_EQ(bar.at(i)[1], around[i][1]);
  }
  EXPECT_EQ(tikz.option("xtick"), "{1,2}");
  EXPECT_EQ(tikz.option("xticklabels"), "{{\\textit{Base}},{\\textit{DS-Init}}}");
  EXPECT_EQ(tikz.option("ymin"), "0");
  EXPECT_THAT(tikz.text,
              testing::AllOf(HasSubstr("fill=line0, fill opacity=0.6"), HasSubstr("fill=line2, fill opacity=0.15"),
                             HasSubstr("\\fill[band 0] (0,-2.5pt) rectangle (18pt,2.5pt)"),
                             HasSubstr("xticklabel style={text width="), HasSubstr("xmajorgrids=false")));
  EXPECT_THAT(tikz.text, Not(HasSubstr("\\draw[marks")));
}

TEST(Bars, HaveTheirLabelAsXInCsv) {
  const std::vector<Cells> rows = csv_of({three_bars()});
  EXPECT_THAT(rows.at(1), ElementsAre("dev", "dev.bleu", "Base", "5", "4", "7", "3", "", ""));
  EXPECT_THAT(rows.at(5), ElementsAre("dev", "dev.bleu", "DS-Init", "9", "9", "9", "", "Paper 2019", ""));
}

TEST(Bars, BelowZeroHangFromIt) {
  const Figure figure = bars_of({line({point(1, -4), point(2, 2)})});
  const Tikz tikz(figure);
  EXPECT_LT(std::stod(tikz.option("ymin")), -4);
  EXPECT_EQ(tikz.plots.at("band 0").at(0).at(0)[1], 0);
  EXPECT_EQ(tikz.plots.at("band 0").at(0).at(2)[1], -4);
  EXPECT_GE(std::stod(Tikz(bars_of({line({point(1, -4), point(2, -2)})})).option("ymax")), 0);
}

TEST(Bars, OnALogarithmicAxisBeginAtItsEnd) {
  Figure figure = bars_of({line({point(1, 10), point(2, 1000)})});
  figure.log_y = true;
  const Tikz tikz(figure);
  EXPECT_GT(std::stod(tikz.option("ymin")), 0);
  EXPECT_NEAR(tikz.plots.at("band 0").at(0).at(2)[1], std::stod(tikz.option("ymin")), 1e-6);
}

TEST(Bars, ThatAreAllZeroStandOnTheAxis) {
  const Tikz tikz(bars_of({line({point(1, 0), point(2, 0)})}));
  EXPECT_EQ(tikz.option("ymin"), "0");
  EXPECT_GT(std::stod(tikz.option("ymax")), 0);
}

TEST(Bars, OfWhichRunsDivergedHaveACrossAboveTheirPlace) {
  Figure figure = three_bars();
  figure.panels[0].lines[1].diverged = {{2, kNaN}};
  const Points cross = Tikz(figure).plots.at("diverged, line1").at(0);
  EXPECT_NEAR(cross.at(0)[0], 2 + 0.8 / 3, 1e-6) << "the last of three";
  EXPECT_EQ(cross.at(0)[1], std::stod(Tikz(figure).option("ymax")));
  EXPECT_THAT(render_text(figure, 80, false), HasSubstr(" 6 ×\n"));
}

TEST(Bars, LabelsThatHaveNoRoomSlantAndOthersAreBrokenBetweenWords) {
  const auto turned = [](const Svg& svg) { return std::ranges::count(svg.labels, true, &Svg::Text::is_turned); };
  std::vector<BandPoint> points;
  std::vector<std::string> words, names;
  for (int i = 1; i <= 7; ++i) {
    points.push_back(point(i, i));
    words.push_back(fmt::format("of w {}", i));
    names.push_back(fmt::format("LayerNorm-simple{}", i));
  }
  const Svg broken(bars_of({line(points)}, words)), slanting(bars_of({line(points)}, names));
  EXPECT_EQ(turned(broken), 1) << "that of y";
  EXPECT_THAT(broken.texts(), testing::IsSupersetOf({"the", "of w"}));
  expect_no_overlap(boxes_of(broken), 84 * 72 / 25.4);
  EXPECT_EQ(turned(slanting), 1 + 7 * 1);
  expect_no_overlap(boxes_of(slanting), 84 * 72 / 25.4);
  const double bottom = slanting.panels.at(0).top + slanting.panels.at(0).height;
  for (const Svg::Text& label : slanting.labels) {
    if (!label.is_turned || label.anchor != "end") continue;
    const double reach = static_cast<double>(label.text.size()) * 0.5 * label.font * std::sqrt(0.5);
    EXPECT_GE(label.x - reach, 0) << label.text;
    const auto x_name = std::ranges::find(slanting.labels, "updates", &Svg::Text::text);
    EXPECT_GE(x_name->y - x_name->font, bottom + reach) << label.text;
  }
  EXPECT_THAT(Tikz(bars_of({line(points)}, names)).text, HasSubstr("xticklabel style={rotate=45, anchor=north east"));
}

TEST(Bars, LegendHasBoxesOfTheirColour) {
  const Svg svg(three_bars());
  ASSERT_THAT(svg.legend, SizeIs(6)) << "an area and its outline of each";
  EXPECT_THAT(svg.legend[4].attributes, HasSubstr("fill=\"#0072B2\" fill-opacity=\"0.15\""));
  EXPECT_THAT(svg.legend[5].attributes, HasSubstr("stroke-dasharray=\"3 2\""));
}

TEST(Bars, AsTextAreRowsWhoseLengthsAreTheirMeans) {
  const std::string text = render_text(three_bars(), 80, false);
  std::map<std::string, size_t> lengths;
  std::vector<std::string> rows;
  for (const std::string_view view : split_lines(text)) {
    const std::string row(view);
    if (row.find("│") == std::string::npos) continue;
    EXPECT_LE(display_width(row), 80U);
    rows.push_back(row.substr(0, row.find("│")));
    lengths[row.substr(row.rfind(' ') + 1)] = display_width(row.substr(row.find("│") + 3)) - 2;
  }
  EXPECT_THAT(rows, ElementsAre("the Base     A ", "             C ", "             B ", "the DS-Init  A ",
                                "             C ", "             B "));
  EXPECT_NEAR(static_cast<double>(lengths.at("9")) / static_cast<double>(lengths.at("8")), 9 / 8.0, 0.04);
  EXPECT_THAT(text, testing::AllOf(HasSubstr("├"), HasSubstr("┼"), HasSubstr("┤ 5\n"), HasSubstr("░ 9\n"),
                                   HasSubstr("█"), HasSubstr(" 8\n")));
  EXPECT_THAT(text, HasSubstr("A  a\n"));
}

TEST(Bars, AsTextOnALogarithmicAxisHaveThreeLengthsOfThreePowers) {
  Figure figure = bars_of({line({point(1, 10), point(2, 100), point(3, 1000)})}, {"a", "b", "c"});
  figure.log_y = true;
  std::vector<size_t> lengths;
  const std::string text = render_text(figure, 80, false);
  for (const std::string_view row : split_lines(text)) {
    if (const size_t axis = row.find("│"); axis != std::string::npos)
      lengths.push_back(display_width(row.substr(axis, row.rfind(' ') - axis)) - 1);
  }
  ASSERT_THAT(lengths, SizeIs(3));
  EXPECT_GT(lengths[0], 0U) << "the least is seen";
  EXPECT_NEAR(static_cast<double>(lengths[2]) - static_cast<double>(lengths[1]),
              static_cast<double>(lengths[1]) - static_cast<double>(lengths[0]), 1);
}

TEST(Bars, AsTextHaveColoursAndNoBarForZero) {
  const Figure figure = bars_of({line({point(1, 0), point(2, 3)})});
  EXPECT_THAT(render_text(figure, 80, false), HasSubstr("the Base     A │ 0\n"));
  EXPECT_THAT(render_text(figure, 80, true), HasSubstr("│\033[38;5;31m█"));
}

// --- goldens -------------------------------------------------------------------------------------

// Everything that a figure can have.
Figure full_figure() {
  Figure figure = figure_of({});
  figure.title = {"Dev BLEU by update: 50 % of A & B_c"};
  figure.name = "dev-bleu";
  figure.width = TableSpec::Width::kPage;
  figure.heading = {{"Norm"}, {"depth"}};
  figure.legend = {{{"ScaleNorm", "\\textsc{ScaleNorm}"}, {"2"}}, {{"layer_norm"}, {"4"}}, {{"Paper: 100 %"}}};
  figure.notes = {Name{"Lines: the mean of 3 seeds; bands: their standard deviation."},
                  Name{"×: 2 runs diverged, in no mean."}};
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
TEST(Pictures, SvgGolden) { test::expect_golden("harness/figure.svg", render_svg(full_figure())); }
TEST(FigureCsv, Golden) {
  test::expect_golden("harness/figure.csv", render_csv({full_figure()}, Formulas::kAsTheyAre));
}

TEST(Pictures, TextsAreInSvgAsTheyAre) {
  const std::vector<std::string> texts = {"a_b^{c}",       "it's",  "\"f\\n",  "100%",
                                          "a < b & c > d", "&amp;", "</text>", "ä 中"};
  Figure figure = figure_of({});
  figure.legend.clear();
  for (const std::string& text : texts) {
    figure.panels[0].lines.push_back(line({point(1, 5), point(2, 6)}));
    figure.legend.push_back({{text}});
  }
  EXPECT_THAT(Svg(figure).texts(), testing::IsSupersetOf(texts));
  EXPECT_THAT(Svg(figure).text, HasSubstr(">a &lt; b &amp; c &gt; d</text>"));
}

}  // namespace
}  // namespace tearless::harness::formats_test
