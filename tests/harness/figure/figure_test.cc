// What a figure shows, read back from its text: the dots of its braille patterns, its letters and its numbers.
#include "harness/figure/figure.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/utf8.h"
#include "base/words.h"
#include "harness/figure/band.h"
#include "harness/figure/scale.h"
#include "harness/results/curves.h"

namespace tearless::harness::figure_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A picture of one panel, without colour.
struct Picture {
  int columns = 0, rows = 0;
  std::map<int, std::set<int>> dots;                 // column of dots → its rows of dots, from the top
  std::map<std::pair<int, int>, std::string> marks;  // column and row of characters → letter or ×
  std::map<int, std::string> numbers;                // row of characters → number at the axis of values
  std::vector<std::string> below;                    // the lines from the axis of updates on

  int dot_columns() const { return 2 * columns; }
  int dot_rows() const { return 4 * rows; }
  bool is_under_mark(int x, int y) const { return marks.contains({x / 2, y / 4}); }
};

std::vector<std::string> characters_of(const std::string& text) {
  std::vector<std::string> characters;
  for (size_t i = 0; i < text.size(); i += utf8_length(std::string_view(text).substr(i))) {
    characters.push_back(text.substr(i, utf8_length(std::string_view(text).substr(i))));
  }
  return characters;
}

Picture picture_of(const Figure& figure, size_t width = 80) {
  Picture picture;
  const std::string text = render_text(figure, width, /*colour=*/false);
  for (const std::string_view line : split_lines(text)) {
    const std::vector<std::string> characters = characters_of(std::string(line));
    const auto axis =
        std::find_if(characters.begin(), characters.end(), [](const std::string& c) { return c == "│" || c == "┤"; });
    if (axis == characters.end() || !picture.below.empty()) {
      if (picture.rows > 0) picture.below.emplace_back(line);
      continue;
    }
    std::string number;
    for (auto c = characters.begin(); c != axis; ++c) number += *c;
    if (*axis == "┤") picture.numbers[picture.rows] = std::string(split_words(number).at(0));
    picture.columns = static_cast<int>(width) - static_cast<int>(axis - characters.begin()) - 1;
    int column = 0;
    for (auto c = axis + 1; c != characters.end(); ++c, ++column) {
      if (*c == " ") continue;
      if (c->size() != 3 || (*c)[0] != '\xE2' || static_cast<unsigned char>((*c)[1]) < 0xA0) {
        picture.marks[{column, picture.rows}] = *c;
        continue;
      }
      const int pattern = (static_cast<unsigned char>((*c)[1]) & 3) << 6 | (static_cast<unsigned char>((*c)[2]) & 0x3F);
      constexpr int kBits[4][2] = {{0, 3}, {1, 4}, {2, 5}, {6, 7}};  // of the rows and columns of a pattern
      for (int y = 0; y < 4; ++y) {
        for (int x = 0; x < 2; ++x) {
          if (pattern >> kBits[y][x] & 1) picture.dots[2 * column + x].insert(4 * picture.rows + y);
        }
      }
    }
    ++picture.rows;
  }
  return picture;
}

// The mean of runs in a band from their least to their greatest value.
std::vector<BandPoint> range_of(std::vector<Curve> runs) {
  for (Curve& run : runs) put_in_order(run);
  return band_of(runs, FigureSpec::Band::kRange);
}

// A panel with these lines, each of these runs.
Figure figure_of(const std::vector<std::vector<Curve>>& lines) {
  Figure figure;
  figure.panels.push_back({.y = {"train.loss"}});
  figure.heading = {{"norm"}};
  for (size_t i = 0; i < lines.size(); ++i) {
    figure.panels[0].lines.push_back({.points = range_of(lines[i])});
    figure.legend.push_back({{fmt::format("label {}", i)}});
  }
  return figure;
}

Curve curve_of(const std::vector<double>& values, int64_t interval = 1) {
  Curve curve;
  for (size_t i = 0; i < values.size(); ++i)
    curve.push_back({static_cast<double>(static_cast<int64_t>(i) * interval), values[i]});
  return curve;
}

// --- summaries -----------------------------------------------------------------------------------------------------

std::vector<std::string> texts_of(const std::vector<BandPoint>& points) {
  std::vector<std::string> texts;
  for (const BandPoint& p : points)
    texts.push_back(fmt::format("{}: {} {} {} n={}", p.x, p.low, p.mean, p.high, p.runs));
  return texts;
}

TEST(LogScale, ThatBeginsAboveItsPowerOfTenHasTheTicksBetween) {
  EXPECT_THAT(log_scale(3, 40, 8).ticks, ElementsAre(5, 10, 20));
  EXPECT_THAT(log_scale(0.3, 4000, 5).ticks, ElementsAre(1, 10, 100, 1000));
  EXPECT_NEAR(log_scale(3, 40, 8).low, std::log10(3), 1e-12);
}

TEST(Band, IsMeanLeastAndGreatestValueOfTheSeedsAtEachStep) {
  EXPECT_THAT(texts_of(range_of({curve_of({1, 4}, 10), curve_of({2, 0}, 10), curve_of({6, 5}, 10)})),
              ElementsAre("0: 1 3 6 n=3", "10: 0 3 5 n=3"));
  EXPECT_THAT(texts_of(range_of({curve_of({7})})), ElementsAre("0: 7 7 7 n=1"));
  EXPECT_TRUE(range_of({}).empty());
  EXPECT_TRUE(range_of({{}, {}}).empty());
}

TEST(Band, ARunCountsOnTheLineBetweenItsStepsAndNotBeforeOrAfterThem) {
  EXPECT_THAT(texts_of(range_of({{{0, 0.0}, {30, 3.0}}, {{10, 5.0}, {20, 6.0}, {40, 8.0}}, {}})),
              ElementsAre("0: 0 0 0 n=1", "10: 1 3 5 n=2", "20: 2 4 6 n=2", "30: 3 5 7 n=2", "40: 8 8 8 n=1"));
}

TEST(Band, AValueThatIsNotFiniteDoesNotCountNorDoesTheLineToIt) {
  EXPECT_THAT(texts_of(range_of({{{0, 1.0}, {10, kInfinity}, {20, 3.0}}, {{0, 3.0}, {5, 3.0}, {10, 3.0}, {20, 5.0}}})),
              ElementsAre("0: 1 2 3 n=2", "5: 3 3 3 n=1", "10: 3 3 3 n=1", "20: 3 4 5 n=2"));
  EXPECT_THAT(texts_of(range_of({{{0, std::nan("")}}})), ElementsAre("0: nan nan nan n=0"));
  EXPECT_THAT(texts_of(range_of({{{0, 1.5e308}}, {{0, 1.5e308}}})), ElementsAre("0: 1.5e+308 1.5e+308 1.5e+308 n=2"));
}

TEST(Band, OfAStepThatWasReportedTwiceTheLaterLineCounts) {
  EXPECT_THAT(texts_of(range_of({{{10, 1.0}, {20, 2.0}, {10, 7.0}}})), ElementsAre("10: 7 7 7 n=1", "20: 2 2 2 n=1"));
}

// --- scales --------------------------------------------------------------------------------------------------------

TEST(Scale, HasRoundNumbersAboutTheValues) {
  const auto labels = [](double low, double high) {
    const Scale scale = round_scale(low, high, 4);
    std::string all;
    for (const double tick : scale.ticks) all += (all.empty() ? "" : " ") + scale.label(tick);
    return all;
  };
  EXPECT_EQ(labels(0, 100), "0 50 100");
  EXPECT_EQ(labels(2.13, 9.87), "2 4 6 8 10");
  EXPECT_EQ(labels(0.1, 0.3), "0.10 0.15 0.20 0.25 0.30");
  EXPECT_EQ(labels(-0.4, 0.2), "-0.4 -0.2 0.0 0.2");
  EXPECT_EQ(labels(5, 5), "4.5 5.0 5.5");
  EXPECT_EQ(labels(0, 0), "-1.0 -0.5 0.0 0.5 1.0");
  EXPECT_EQ(labels(1e6, 3e6), "1.0e+06 1.5e+06 2.0e+06 2.5e+06 3.0e+06");
  EXPECT_EQ(labels(1e-9, 3e-9), "1.0e-09 1.5e-09 2.0e-09 2.5e-09 3.0e-09");
}

TEST(Scale, OfRandomValuesEnclosesThemWithFewTicksAtRoundMultiples) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> exponent(-300, 299), unit(-1, 1);
  for (int i = 0; i < 2000; ++i) {
    const double size = std::pow(10, exponent(random)), a = unit(random) * size, b = unit(random) * size;
    const Scale scale = round_scale(std::min(a, b), std::max(a, b), 4);
    SCOPED_TRACE(fmt::format("{} {}", a, b));
    ASSERT_GE(scale.ticks.size(), 2u);
    ASSERT_LE(scale.ticks.size(), 4u + 2u);
    EXPECT_GE(scale.position(std::min(a, b)), -1e-6);
    EXPECT_LE(scale.position(std::max(a, b)), 1 + 1e-6);
    const double digit = scale.step / std::pow(10, std::floor(std::log10(scale.step) + 1e-9));
    EXPECT_TRUE(std::abs(digit - 1) < 1e-6 || std::abs(digit - 2) < 1e-6 || std::abs(digit - 5) < 1e-6) << scale.step;
    for (const double tick : scale.ticks) {
      EXPECT_NEAR(std::stod(scale.label(tick)), tick, scale.step * 1e-6);
      EXPECT_NEAR(tick / scale.step, std::round(tick / scale.step), 1e-6);
    }
  }
}

// A scale with a step that no double has would have ticks without end.
TEST(Scale, OfTheLeastAndTheGreatestNumbersHasFewTicks) {
  const double values[] = {0,      5e-324, 1e-323, 2.5e-323, 1e-310, 2.3e-308, 1e-301,
                           1e-300, 2e-300, 1e-290, 1.1e-290, 1,      1e300};
  for (const double a : values) {
    for (const double b : values) {
      for (const auto& [low, high] : {std::pair(a, b), std::pair(-a, b), std::pair(-a, -b)}) {
        if (low > high) continue;
        const Scale scale = round_scale(low, high, 4);
        SCOPED_TRACE(fmt::format("{} {}", low, high));
        ASSERT_GE(scale.ticks.size(), 2u);
        ASSERT_LE(scale.ticks.size(), 6u);
        EXPECT_GT(scale.step, 0);
        EXPECT_GE(scale.position(low), -1e-6);
        EXPECT_LE(scale.position(high), 1 + 1e-6);
        for (const double tick : scale.ticks) EXPECT_NEAR(std::stod(scale.label(tick)), tick, scale.step * 1e-6);
      }
    }
  }
}

// --- pictures ------------------------------------------------------------------------------------------------------

TEST(Figure, ACurveOfYEqualToXIsTheDiagonalFromCornerToCorner) {
  Curve diagonal;
  for (int step = 0; step <= 100; ++step) diagonal.push_back({1.0 * step, 1.0 * step});
  for (const size_t width : {80, 160}) {
    const Picture picture = picture_of(figure_of({{diagonal}}), width);
    EXPECT_EQ(picture.columns, static_cast<int>(width) - 5);  // "100 ┤"
    EXPECT_EQ(picture.numbers.at(0), "100");
    EXPECT_EQ(picture.numbers.at(picture.rows - 1), "0");
    EXPECT_EQ(picture.numbers.size(), width == 80 ? 3u : 6u);
    const int last_x = picture.dot_columns() - 1, last_y = picture.dot_rows() - 1;
    int seen = 0;
    for (int x = 0; x <= last_x; ++x) {
      const double y = last_y - static_cast<double>(x) * last_y / last_x;
      if (picture.is_under_mark(x, static_cast<int>(std::lround(y)))) continue;
      ASSERT_EQ(picture.dots.count(x), 1u) << x;
      for (const int dot : picture.dots.at(x)) EXPECT_NEAR(dot, y, 1) << x;
      ++seen;
    }
    EXPECT_GT(seen, last_x * 9 / 10);
    EXPECT_EQ(picture.dots.at(0), std::set<int>({last_y}));
    EXPECT_EQ(picture.dots.at(last_x), std::set<int>({0}));
  }
}

TEST(Figure, TheUpdatesOfTheAxisAreBelowTheirColumns) {
  const Picture picture = picture_of(figure_of({{curve_of({1, 2, 3, 4, 5}, 200)}}));
  const std::vector<std::string> axis = characters_of(picture.below.at(0)),
                                 numbers = characters_of(picture.below.at(1));
  const int begin = 80 - picture.columns;
  EXPECT_EQ(axis.at(begin - 1), "└");
  EXPECT_EQ(axis.size(), 80u);
  std::map<int, int> middle_of;  // number → the column of its middle
  for (size_t i = 0; i < numbers.size();) {
    size_t end = i;
    std::string text;
    while (end < numbers.size() && numbers[end] != " ") text += numbers[end++];
    if (!text.empty()) middle_of[std::stoi(text)] = static_cast<int>(i + text.size() / 2);
    i = end + 1;
  }
  ASSERT_THAT(middle_of, testing::SizeIs(5));
  for (const int step : {0, 200, 400, 600}) {
    const int column = begin + static_cast<int>(std::lround(step / 800.0 * (picture.dot_columns() - 1))) / 2;
    EXPECT_EQ(axis.at(column), "┬") << step;
    EXPECT_EQ(middle_of.at(step), column) << step;
  }
  EXPECT_THAT(picture.below.at(1), testing::EndsWith(" 800"));
}

TEST(Figure, WhereUpdatesShareAColumnTheirMeanIsDrawn) {
  Curve noisy;
  for (int step = 0; step < 20000; ++step) noisy.push_back({1.0 * step, step % 2 == 0 ? 0.0 : 10.0});
  const Picture picture = picture_of(figure_of({{noisy}}));
  EXPECT_EQ(picture.numbers.at(0), "10");
  for (const auto& [x, dots] : picture.dots) {
    for (const int y : dots) EXPECT_NEAR(y, (picture.dot_rows() - 1) / 2.0, 1) << x;
  }
}

TEST(Figure, TheBandHasADottedEndAtTheLeastAndTheGreatestSeed) {
  const Picture picture = picture_of(figure_of({{curve_of({2, 2, 2}), curve_of({4, 4, 4}), curve_of({9, 9, 9})}}));
  // The scale is 2 … 10.
  const int last = picture.dot_rows() - 1;
  const int high = static_cast<int>(std::lround(last * (1 - 7.0 / 8))),
            mean = static_cast<int>(std::lround(last * 5.0 / 8));
  for (int x = 0; x < picture.dot_columns(); ++x) {
    for (int y = 0; y <= last; ++y) {
      if (picture.is_under_mark(x, y)) continue;
      const bool expected = y == mean || ((y == high || y == last) && x % 4 == 0);
      EXPECT_EQ(picture.dots.contains(x) && picture.dots.at(x).contains(y), expected) << x << " " << y;
    }
  }
}

TEST(Figure, ABandHasNoDotsInTheCharactersOfALine) {
  const Picture picture = picture_of(figure_of(
      {{curve_of({2, 2, 2})}, {curve_of({10, 10, 10})}, {curve_of({5.9, 5.9, 5.9}), curve_of({6.1, 6.1, 6.1})}}));
  const int mean = static_cast<int>(std::lround((picture.dot_rows() - 1) / 2.0));
  for (const auto& [x, dots] : picture.dots) {
    for (const int y : dots)
      EXPECT_TRUE(y == mean || y / 4 != mean / 4 || picture.is_under_mark(x, y)) << x << " " << y;
  }
}

TEST(Figure, ALineIsInterruptedWhereItsValueIsNotFinite) {
  const Picture picture = picture_of(figure_of({{curve_of({1, 1, kInfinity, 1, 1}, 100)}}));
  const int last = picture.dot_columns() - 1;
  for (int x = 0; x <= last; ++x) {
    const bool expected = x <= std::lround(last / 4.0) || x >= std::lround(last * 3 / 4.0);
    const bool is_drawn = picture.dots.contains(x) || picture.marks.contains({x / 2, picture.rows / 2}) ||
                          picture.marks.contains({x / 2, picture.rows / 2 - 1});
    EXPECT_EQ(is_drawn, expected) << x;
  }
}

TEST(Figure, ALineOfFewerSeedsHasGaps) {
  Figure figure = figure_of({{curve_of({1, 1, 1, 1, 1}, 100)}});
  for (const size_t i : {3, 4}) figure.panels[0].lines[0].points[i].is_of_fewer = true;
  const Picture picture = picture_of(figure);
  const auto drawn_in = [&](int from, int to) {
    int drawn = 0;
    for (int x = from; x < to; ++x) drawn += picture.dots.contains(x) || picture.is_under_mark(x, 0) ? 1 : 0;
    return drawn;
  };
  const int half = picture.dot_columns() / 2;
  EXPECT_GE(drawn_in(0, half), half - 4) << "but for what its letters hide";
  EXPECT_NEAR(drawn_in(half, 2 * half), half / 2, 6);
}

TEST(Figure, ADivergedLineLeavesThePictureAndEndsInACross) {
  Figure figure = figure_of({{curve_of({5, 4, 3, 2})}, {curve_of({5, 1e8})}});
  figure.panels[0].lines[1].sets_scale = false;
  figure.panels[0].lines[1].diverged = {{1, 1e8}};
  const Picture picture = picture_of(figure);
  EXPECT_EQ(picture.numbers.at(0), "5");
  EXPECT_EQ(picture.numbers.at(picture.rows - 1), "2");
  const int column = static_cast<int>(std::lround((picture.dot_columns() - 1) / 3.0)) / 2;
  EXPECT_EQ(picture.marks.at({column, 0}), "×");

  figure.panels[0].lines[0].sets_scale = false;
  EXPECT_EQ(picture_of(figure).numbers.at(0), "1.0e+08") << "where all have diverged, they set the scale";
}

TEST(Figure, EachLineOfWhichARunDivergedHasACross) {
  Figure figure = figure_of({{curve_of({5, 4, 3, 2})}, {curve_of({5, 4, 4, 5})}});
  figure.panels[0].lines[0].diverged = {{3, 2}};
  figure.panels[0].lines[1].diverged = {{0, 5}};
  const Picture picture = picture_of(figure);
  EXPECT_EQ(picture.marks.at({picture.dot_columns() / 2 - 1, picture.rows - 1}), "×");
  EXPECT_EQ(picture.marks.at({0, 0}), "×");
}

TEST(Figure, OnePointAndEqualValuesAreInTheMiddle) {
  for (const Curve& curve : {Curve{{800, 3.0}}, Curve{{0, 3.0}, {800, 3.0}}, Curve{{0, 0.0}}}) {
    const Picture picture = picture_of(figure_of({{curve}}));
    ASSERT_FALSE(picture.marks.empty());
    for (const auto& [place, mark] : picture.marks) {
      EXPECT_EQ(mark, "A");
      EXPECT_EQ(place.second, picture.rows / 2);
    }
  }
}

TEST(Figure, LinesAreToldApartByTheLettersOfTheLegend) {
  std::vector<std::vector<Curve>> lines(8, {curve_of({1, 1, 1})});  // all alike: the hardest
  lines.push_back({curve_of({2})});
  lines.push_back({curve_of({2})});  // one point at the same place
  const Picture picture = picture_of(figure_of(lines));
  std::set<std::string> letters;
  for (const auto& [place, mark] : picture.marks) letters.insert(mark);
  EXPECT_THAT(letters, ElementsAre("A", "B", "C", "D", "E", "F", "G", "H", "I", "J"));
  for (int i = 0; i < 10; ++i) {
    EXPECT_THAT(picture.below, testing::Contains(fmt::format("{}  label {}", letters_of(i, 10), i)));
  }
}

TEST(Figure, EveryLineHasLettersOfItsOwnHoweverManyThereAre) {
  for (const size_t lines : {1, 10, 62, 63, 3844, 3845}) {
    std::set<std::string> letters;
    for (size_t i = 0; i < lines; ++i) letters.insert(letters_of(i, lines));
    EXPECT_EQ(letters.size(), lines);
    EXPECT_EQ(letters.begin()->size(), lines <= 62 ? 1u : lines <= 3844 ? 2u : 3u);
    EXPECT_EQ(letters.rbegin()->size(), letters.begin()->size()) << "none is the beginning of another";
  }
  std::vector<std::vector<Curve>> lines;
  for (int i = 0; i < 70; ++i) lines.push_back({curve_of({1.0 * i, 1.0 * i})});
  const Picture picture = picture_of(figure_of(lines), 160);
  for (const int i : {0, 61, 62, 69}) {
    EXPECT_THAT(picture.below, testing::Contains(fmt::format("{}  label {}", letters_of(i, 70), i)));
  }
  std::map<int, std::string> rows;
  for (const auto& [place, mark] : picture.marks) rows[place.second] += mark;
  std::string all;
  for (const auto& [row, marks] : rows) all += marks + " ";
  EXPECT_THAT(all, HasSubstr("BH")) << "both letters of the last line are in the picture";
}

// Of a colour of the cube among a terminal's 256 colours, by the formula of WCAG 2.
double luminance_of(int number) {
  EXPECT_GE(number, 16) << "themes change these";
  EXPECT_LT(number, 232);
  const int cube = number - 16;
  const auto light = [](int level) {
    const double c = std::array{0, 95, 135, 175, 215, 255}.at(level) / 255.0;
    return c <= 0.03928 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * light(cube / 36) + 0.7152 * light(cube / 6 % 6) + 0.0722 * light(cube % 6);
}

TEST(Figure, ColoursAreLegibleOnWhiteAndOnBlack) {
  std::vector<std::vector<Curve>> lines(20, {curve_of({1, 5}), curve_of({2, 4})});
  const std::string text = render_text(figure_of(lines), 80, true);
  std::set<int> colours;
  const std::string kBegin = "38;5;";
  for (size_t at = 0; (at = text.find(kBegin, at)) != std::string::npos; ++at) {
    colours.insert(std::stoi(text.substr(at + kBegin.size())));
  }
  EXPECT_GE(colours.size(), 6u);
  for (const int colour : colours) {
    const double luminance = luminance_of(colour);
    EXPECT_GE(1.05 / (luminance + 0.05), 3) << colour;
    EXPECT_GE((luminance + 0.05) / 0.05, 3) << colour;
  }
  EXPECT_THAT(text, Not(HasSubstr("\033[2;"))) << "no dimmed colour, which has less contrast";
}

TEST(Figure, WhereTheLegendDoesNotFitWhatIsConstantGoes) {
  Figure figure = figure_of({{curve_of({1, 2})}, {curve_of({2, 1})}});
  const std::string constant(40, 'c'), varies(25, 'v');
  figure.heading = {{"model.norm"}, {"model.size"}, {"seeds"}};
  figure.legend = {{{constant}, {varies + "1"}, {"3"}}, {{constant}, {varies + "2"}, {"3"}}};
  EXPECT_THAT(render_text(figure, 80, false), HasSubstr(fmt::format("\nA  {}  {}1  3\nB  ", constant, varies)));
  EXPECT_THAT(render_text(figure, 60, false), HasSubstr(fmt::format("\n   size\nA  {}1\nB  {}2\n", varies, varies)));
}

TEST(Figure, TheLegendNamesItsColumnsByTheirLastWordsWhereTheWholeNamesDoNotFit) {
  Figure figure = figure_of({{curve_of({1, 2})}});
  figure.heading = {{"model.norm.kind"}, {"train.schedule.peak_lr"}, {"seeds"}};
  figure.legend = {{{"scale_norm"}, {"0.001"}, {"2"}}};
  EXPECT_THAT(render_text(figure, 80, false),
              HasSubstr("\n   model.norm.kind  train.schedule.peak_lr  seeds\nA  scale_norm "));
  EXPECT_THAT(render_text(figure, 40, false),
              HasSubstr("\n   kind        peak_lr  seeds\nA  scale_norm  0.001    2\n"));
}

// The first and the last point of a logarithmic axis are in the picture, and any range has numbers at its axis.
TEST(Figure, OnLogarithmicAxesEveryPointIsDrawnAndThereAreNumbers) {
  for (const auto& [low, high] :
       {std::pair(2.0, 8.0), std::pair(3.0, 24.0), std::pair(6.0, 12.0), std::pair(3e-4, 4e-3), std::pair(2.1, 4.9),
        std::pair(5.5, 9.5), std::pair(7.0, 7.0)}) {
    SCOPED_TRACE(fmt::format("{} {}", low, high));
    Figure figure = figure_of({{{{low, low}, {high, high}}}});
    figure.log_x = figure.log_y = true;
    figure.from_zero = false;
    const Picture picture = picture_of(figure);
    EXPECT_GE(picture.numbers.size(), 1u);
    std::set<int> columns;
    for (const auto& [x, dots] : picture.dots) columns.insert(x / 2);
    for (const auto& [place, mark] : picture.marks) columns.insert(place.first);
    if (low < high) {
      EXPECT_TRUE(columns.contains(0));
      EXPECT_TRUE(columns.contains(picture.columns - 1));
    } else {
      EXPECT_FALSE(columns.empty());
    }
  }
}

TEST(Figure, WithoutAFiniteValueItSaysSo) {
  EXPECT_EQ(render_text(figure_of({{{}}}), 80, false), "train.loss\n  no finite value\n\n   norm\nA  label 0\n");
  EXPECT_THAT(render_text(figure_of({{curve_of({kInfinity})}}), 80, false), HasSubstr("no finite value"));
}

TEST(Figure, PanelsShareTheUpdatesAndTheLegend) {
  Figure figure = figure_of({{curve_of({1, 2, 3}, 100)}});
  figure.panels.push_back({.y = {"dev.bleu"}, .lines = {{.points = range_of({{{100, 20.0}}})}}});
  figure.notes = {Name{"a note"}, Name{"another"}};
  const std::string text = render_text(figure, 80, false);
  EXPECT_LT(text.find("train.loss\n"), text.find("dev.bleu\n"));
  EXPECT_EQ(text.find("A  label 0"), text.rfind("A  label 0"));
  EXPECT_EQ(text.find(" 200\n"), text.rfind(" 200\n", text.find("dev.bleu")));
  EXPECT_NE(text.find(" 200\n", text.find("dev.bleu")), std::string::npos);
  EXPECT_THAT(text, testing::EndsWith("\na note\nanother\n"));
}

// The text without its escapes.
std::string plain(const std::string& text) {
  std::string rest;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\033') {
      i = text.find('m', i);
    } else {
      rest += text[i];
    }
  }
  return rest;
}

TEST(Figure, ColoursChangeNothingButTheColour) {
  const Figure figure = figure_of({{curve_of({1, 5, 2}), curve_of({2, 4, 3})}, {curve_of({3, 1, 4})}});
  const std::string with = render_text(figure, 80, true), without = render_text(figure, 80, false);
  EXPECT_THAT(without, Not(HasSubstr("\033")));
  EXPECT_THAT(with, HasSubstr("\033[1;38;5;31mA\033[0m  label 0"));
  EXPECT_THAT(with, HasSubstr("\033[38;5;31m"));
  EXPECT_EQ(plain(with), without);
}

TEST(Figure, NoLineIsLongerThanTheTerminalWhateverTheValues) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937_64 random(seed);
  const double values[] = {0, -0.0, 1, -1, 1e-300, 1e308, -1e308, kInfinity, -kInfinity, std::nan(""), 1e15, 5e-324};
  for (int i = 0; i < 300; ++i) {
    std::vector<std::vector<Curve>> lines(1 + random() % 70);
    for (std::vector<Curve>& runs : lines) {
      runs.resize(random() % 3);
      for (Curve& run : runs) {
        const size_t points = random() % 5;
        for (size_t k = 0; k < points; ++k) {
          run.push_back({static_cast<double>(random() % (i % 2 == 0 ? 7 : 1'000'000'000)), values[random() % 12]});
        }
      }
    }
    Figure figure = figure_of(lines);
    figure.legend[0][0].text = "日本 " + std::string(random() % 200, 'x');
    for (Figure::Line& line : figure.panels[0].lines) {
      if (random() % 4 == 0) line.diverged = {{static_cast<double>(random() % 9), values[random() % 12]}};
      line.sets_scale = random() % 2 == 0;
    }
    figure.log_x = random() % 3 == 0;
    figure.log_y = random() % 3 == 0;
    figure.from_zero = random() % 2 == 0;
    figure.panels[0].at_x = {values[random() % 12]};
    figure.panels[0].at_y = {values[random() % 12]};
    const size_t width = 40 + random() % 200;
    const std::string text = render_text(figure, width, false);
    for (const std::string_view line : split_lines(text)) EXPECT_LE(display_width(line), width) << line;
  }
}

}  // namespace
}  // namespace tearless::harness::figure_test
