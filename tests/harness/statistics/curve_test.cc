// Numbers of curves, on curves whose numbers are known, and against plain loops on random ones.
#include "harness/statistics/curve.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace tearless::harness::curve_test {
namespace {

std::optional<double> taken(std::string_view name, const Curve& curve, const CurveLimits& limits = {},
                            const CurveExtent& extent = {}) {
  for (const CurveMeasure& one : curve_measures()) {
    if (one.name == name) return measure(one, curve, limits, extent).number;
  }
  ADD_FAILURE() << name;
  return std::nullopt;
}

const Curve kRise = {{100, 1}, {200, 3}, {300, 2}, {400, 6}};

TEST(CurveMeasures, FirstXAtWhichItReachesAValue) {
  EXPECT_EQ(taken("first_at_least", kRise, {.value = 2}), 200);
  EXPECT_EQ(taken("first_at_least", kRise, {.value = 3}), 200) << "equal counts";
  EXPECT_EQ(taken("first_at_least", kRise, {.value = 6.5}), std::nullopt);
  EXPECT_EQ(taken("first_at_least", {{5, 0.7 + 0.1}}, {.value = 0.8}), 5) << "but for a rounding error";
  EXPECT_EQ(taken("first_at_most", {{5, 0.1 + 0.2}}, {.value = 0.3}), 5);
  EXPECT_EQ(taken("first_at_most", kRise, {.value = 2}), 100);
  EXPECT_EQ(taken("first_at_most", kRise, {.from = 150, .value = 2}), 300);
}

TEST(CurveMeasures, LastValueMeanAndArea) {
  EXPECT_EQ(taken("final", kRise), 6);
  EXPECT_EQ(taken("final", kRise, {.to = 399}), 2);
  EXPECT_EQ(taken("mean", kRise), 3);
  EXPECT_EQ(taken("mean", kRise, {.from = 200, .to = 300}), 2.5) << "the limits are in it";
  EXPECT_EQ(taken("area", kRise), 200 + 250 + 400);
  EXPECT_EQ(taken("area", {{0, 1}, {10, 1}, {40, 1}}), 40) << "by x, not by points";
  EXPECT_EQ(taken("area", {{0, 1}}), std::nullopt);
  EXPECT_EQ(taken("final", {}), std::nullopt);
  EXPECT_EQ(taken("mean", {}), std::nullopt);
}

TEST(CurveMeasures, TheLastShareIsOfTheWayToTheEnd) {
  EXPECT_EQ(taken("mean", kRise, {.last = 0.5}), 4) << "above 200: its beginning is not in it";
  EXPECT_EQ(taken("mean", kRise, {.last = 0.51}), 11 / 3.0);
  EXPECT_EQ(taken("mean", kRise, {.last = 1}), 3);
  EXPECT_EQ(taken("mean", kRise, {.last = 0.01}), 6) << "the last point is always in it";
  EXPECT_EQ(taken("mean", {{100, 1}, {900, 2}, {1000, 5}}, {.last = 0.1}, {.end = 1000}), 5);
  EXPECT_EQ(taken("mean", {{100, 1}, {920, 2}, {940, 5}}, {.last = 0.07}, {.end = 1000}), 5) << "of 1,000";
  EXPECT_EQ(taken("mean", {{100, 1}, {1000, 5}}, {.last = 0.9}), 5) << "100 is the end of the first tenth";
  EXPECT_EQ(taken("mean", {{100, 1}, {200, 3}, {300, std::nan("")}}, {.last = 0.1}), std::nullopt);
  EXPECT_EQ(taken("mean", {}, {.last = 0.1}), std::nullopt);
}

TEST(CurveMeasures, OfWindowsThoseCountThatLieInThePartWhole) {
  const Curve curve = {{50, 1}, {100, 2}, {150, 4}, {180, 8}};  // of 1 to 50, 51 to 100, 101 to 150, 151 to 180
  const CurveExtent windows = {.end = 180, .windows = true};
  const auto mean_of = [&](const CurveLimits& limits) { return taken("mean", curve, limits, windows); };
  EXPECT_EQ(mean_of({}), 3.75);
  EXPECT_EQ(mean_of({.from = 1}), 3.75);
  EXPECT_EQ(mean_of({.from = 2}), 14 / 3.0) << "the first is of update 1, too";
  EXPECT_EQ(mean_of({.from = 100}), 6);
  EXPECT_EQ(mean_of({.from = 101, .to = 150}), 4);
  EXPECT_EQ(mean_of({.from = 102, .to = 179}), std::nullopt);
  EXPECT_EQ(mean_of({.last = 0.25}), 8) << "above 135";
  EXPECT_EQ(mean_of({.last = 80 / 180.0}), 6) << "above 100";
  EXPECT_EQ(mean_of({.last = 0.1}), std::nullopt) << "the last begins before 162";
  EXPECT_EQ(taken("mean", curve, {.last = 0.5}, {.end = 300, .windows = true}), 8);
  EXPECT_EQ(taken("final", {{50, 1}, {100, std::nan("")}, {150, 4}}, {.from = 60, .to = 150}, windows), 4)
      << "a report without a number is one";
}

TEST(CurveMeasures, VarianceIsTheSampleVariance) {
  EXPECT_DOUBLE_EQ(*taken("variance", kRise), (4 + 0 + 1 + 9) / 3.0);
  EXPECT_EQ(taken("variance", {{1, 0.1}, {2, 0.1}, {3, 0.1}}), 0) << "of equal values exactly";
  EXPECT_EQ(taken("variance", {{1, 5}}), std::nullopt);
}

TEST(CurveMeasures, SlopeAndR2AreThoseOfLeastSquares) {
  const Curve line = {{1, 5}, {2, 7}, {3, 9}, {6, 15}};
  EXPECT_DOUBLE_EQ(*taken("slope", line), 2);
  EXPECT_DOUBLE_EQ(*taken("r2", line), 1);
  const Curve bent = {{1, 1}, {2, 2}, {3, 2}};  // slope 1/2, R² = 3/4
  EXPECT_DOUBLE_EQ(*taken("slope", bent), 0.5);
  EXPECT_DOUBLE_EQ(*taken("r2", bent), 0.75);
  EXPECT_EQ(taken("r2", {{1, 0.3}, {2, 0.3}, {3, 0.3}}), 0) << "a line explains nothing of a constant";
  EXPECT_EQ(taken("slope", {{1, 2}}), std::nullopt);
  EXPECT_EQ(taken("r2", {{1, 2}, {2, 3}}), std::nullopt) << "any two points are on a line";
}

TEST(CurveMeasures, SpikesAreAboveThreeTimesTheMedianOfThePointsBefore) {
  Curve curve;
  for (int i = 0; i < 14; ++i) curve.push_back({1.0 * i, 1});
  curve[5].y = 3;    // not above
  curve[9].y = 3.1;  // above
  curve[13].y = 50;
  EXPECT_EQ(taken("spikes", curve, {.window = 4}), 2 / 10.0);
  EXPECT_EQ(taken("spikes", curve, {.from = 10, .window = 2}), 1 / 4.0) << "the first two medians are of 8 to 10";
  EXPECT_EQ(taken("spikes", curve, {.from = 2, .to = 12, .window = 4}), 1 / 9.0)
      << "4 is the first with four before it";
  EXPECT_EQ(taken("spikes", curve, {.from = 9, .window = 9}), 2 / 5.0);
  EXPECT_EQ(taken("spikes", curve, {.from = 13.5, .window = 2}), std::nullopt) << "no point is in the part";
  EXPECT_EQ(taken("spikes", curve, {.window = 14}), std::nullopt) << "no point has so many before it";
}

TEST(CurveMeasures, SpikesAgreeWithAPlainLoop) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 50; ++round) {
    const int window = 1 + static_cast<int>(random() % 9);
    Curve curve;
    for (int i = 0; i < 60; ++i) curve.push_back({1.0 * i, 1.0 * (random() % 12)});  // many are equal
    int spikes = 0;
    for (size_t i = window; i < curve.size(); ++i) {
      std::vector<double> before;
      for (size_t k = i - window; k < i; ++k) before.push_back(curve[k].y);
      std::ranges::sort(before);
      const double median = (before[(before.size() - 1) / 2] + before[before.size() / 2]) / 2;
      if (curve[i].y > 3 * median) ++spikes;
    }
    EXPECT_DOUBLE_EQ(*taken("spikes", curve, {.window = window}), spikes / (60.0 - window)) << window;
    EXPECT_EQ(taken("spikes", curve, {.from = 1.0 * window, .window = window}),
              taken("spikes", curve, {.window = window}));
  }
}

TEST(CurveMeasures, AReportOfUpdateZeroIsOfNoPartThatBeginsLater) {
  EXPECT_EQ(taken("mean", {{0, 9}, {50, 1}}, {.from = 1}, {.windows = true}), 1);
  EXPECT_EQ(taken("mean", {{0, 9}, {50, 1}}, {}, {.windows = true}), 5);
}

TEST(CurveMeasures, APointThatIsNotFiniteIsNotLeftOut) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const auto at = [](std::string_view name, const Curve& curve, const CurveLimits& limits = {}) {
    const auto one = std::ranges::find(curve_measures(), name, &CurveMeasure::name);
    const Measured found = measure(*one, curve, limits);
    EXPECT_FALSE(found.number.has_value()) << name;
    return found.not_finite ? found.not_finite->x : 0;
  };
  for (const double broken : {std::nan(""), kInfinity, -kInfinity}) {
    const Curve curve = {{1, 1}, {2, 2}, {3, broken}, {4, 3}, {5, broken}, {6, 4}, {7, 5}, {8, 6}};
    for (const CurveMeasure& one : curve_measures()) {
      const bool is_of_a_part = one.name == "final" || one.name.starts_with("first");
      if (!is_of_a_part) EXPECT_EQ(at(one.name, curve, {.window = 2}), 3) << one.name;
      EXPECT_TRUE(taken(one.name, curve, {.from = 6, .value = 5, .window = 2})) << one.name;
    }
    EXPECT_EQ(taken("final", curve), 6) << "the end is a number";
    EXPECT_EQ(at("final", curve, {.to = 5}), 5);
    EXPECT_EQ(taken("first_at_least", curve, {.value = 2}), 2) << "reached before";
    EXPECT_EQ(at("first_at_least", curve, {.value = 3}), 3);
    EXPECT_EQ(at("first_at_most", curve, {.value = 0.5}), 3) << "-Infinity reaches nothing";
  }
}

TEST(CurveMeasures, ANumberThatNoDoubleHoldsIsNone) {
  EXPECT_EQ(taken("variance", {{1, 1e308}, {2, -1e308}}), std::nullopt);
}

}  // namespace
}  // namespace tearless::harness::curve_test
