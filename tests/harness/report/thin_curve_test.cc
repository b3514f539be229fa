#include "harness/report/thin_curve.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "tests/support/sanitized.h"

namespace tearless::harness {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

TEST(ThinCurve, ThatIsShortStaysAsItIs) {
  ThinCurve thin(500);
  Curve curve;
  for (int i = 1; i <= 248; ++i) curve.push_back({static_cast<double>(i), i * 0.5});
  for (const CurvePoint& point : curve) thin.add(point.x, point.y);
  EXPECT_EQ(thin.curve(), curve);
  EXPECT_EQ(thin.added(), curve.size());
  EXPECT_TRUE(ThinCurve(500).curve().empty());
}

TEST(ThinCurve, OfTenMillionPointsKeepsEachSpikeAndBothEnds) {
  constexpr int kPoints = test::kSanitized ? 500'000 : 10'000'000, kHigh = kPoints / 81, kLow = kPoints / 4 * 3 + 1;
  ThinCurve thin(500);
  for (int i = 1; i <= kPoints; ++i) thin.add(i, i == kHigh ? 1000 : i == kLow ? -1000 : 2 + std::sin(i * 0.001));
  const Curve curve = thin.curve();
  EXPECT_LE(curve.size(), 500u);
  EXPECT_GE(curve.size(), 250u) << "as many as may stay, within a halving";
  EXPECT_NE(std::ranges::find(curve, CurvePoint{kHigh, 1000}), curve.end());
  EXPECT_NE(std::ranges::find(curve, CurvePoint{kLow, -1000}), curve.end());
  EXPECT_EQ(curve.front().x, 1);
  EXPECT_EQ(curve.back().x, kPoints);
  EXPECT_TRUE(std::ranges::is_sorted(curve, {}, &CurvePoint::x));
}

TEST(ThinCurve, OfEachStretchHasTheLeastAndTheGreatestValue) {
  ThinCurve thin(10);  // four stretches
  const std::vector<double> values = {5, 1, 9, 3, 4, 2, 8, 6, 7, 0, 3, 3, 1, 2, 5, 4};
  for (size_t i = 0; i < values.size(); ++i) thin.add(static_cast<double>(i), values[i]);
  const Curve expected = {{0, 5}, {1, 1}, {2, 9}, {5, 2}, {6, 8}, {8, 7}, {9, 0}, {12, 1}, {14, 5}, {15, 4}};
  EXPECT_EQ(thin.curve(), expected);
}

TEST(ThinCurve, HasAPointThatIsNotFiniteWhereItsStretchHasNothingElse) {
  ThinCurve thin(10);
  for (int i = 0; i < 16; ++i) thin.add(i, i >= 8 && i < 12 ? kNaN : i == 13 ? kNaN : i);
  const Curve curve = thin.curve();
  EXPECT_EQ(std::ranges::count_if(curve, [](const CurvePoint& point) { return std::isnan(point.y); }), 1);
  EXPECT_TRUE(std::ranges::any_of(curve, [](const CurvePoint& point) { return point.x == 8 && std::isnan(point.y); }));
}

TEST(ThinCurve, WithAnUpdateThatComesAgainHasItOnce) {
  ThinCurve thin(500);
  for (const double x : {1, 2, 3, 2, 3, 4}) thin.add(x, x * 10);
  EXPECT_EQ(thin.curve(), (Curve{{1, 10}, {2, 20}, {3, 30}, {4, 40}}));
}

TEST(Base64OfACurve, IsFp32WithTheLowByteFirst) {
  EXPECT_EQ(base64_of({{1, 2}}), "AACAPwAAAEA=");  // 00 00 80 3f, 00 00 00 40
  EXPECT_EQ(base64_of({}), "");
  EXPECT_EQ(base64_of({{1, 1e40}}), base64_of({{1, std::numeric_limits<float>::max()}})) << "not infinite";
  EXPECT_NE(base64_of({{1, kNaN}}), base64_of({{1, 0}}));
}

}  // namespace
}  // namespace tearless::harness
