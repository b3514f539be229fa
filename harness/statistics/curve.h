// Numbers of one curve: when it reaches a value, how often it jumps, how steep it is. They are scores of a run that the
// grid file defines (grid/defined_score.h). A new one is a function and a row of kMeasures in curve.cc.
#pragma once

#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace tearless::harness {

struct CurvePoint {
  double x = 0, y = 0;

  bool operator==(const CurvePoint&) const = default;
};
/// In the order of x, each x once.
using Curve = std::vector<CurvePoint>;

/// Least squares through points.
struct StraightLine {
  double slope = 0;
  double r2 = 0;  // of points with one y it is 0: the line explains nothing of them
};
/// REQUIRES: two points or more, each of another x.
StraightLine straight_line(std::span<const CurvePoint> points);

/// What a measure of a curve needs to know besides the curve.
struct CurveLimits {
  double from = -std::numeric_limits<double>::infinity(), to = std::numeric_limits<double>::infinity();  // of x
  double last = 1;   // the share of the x axis, up to its end, that counts: 0.1 is the last tenth
  double value = 0;  // that the curve reaches
  int window = 100;  // points before one, with whose median it is compared
};

/// What a curve is over.
struct CurveExtent {
  double end = 0;        // the last x; that of the last point if it is less
  bool windows = false;  // a point is of all whole x after that of the point before it; else of its own
};

/// The points that count: which is the first, and which the first after them. A point of a window counts if all of it
/// lies between the limits.
std::pair<size_t, size_t> part_of(const Curve& curve, const CurveLimits& limits, const CurveExtent& extent);

struct CurveMeasure {
  /// The last two are no keys. kLowestIsBest: of two such numbers the lower is better, unless the table says otherwise.
  /// kOfEnd: only the last point counts.
  enum Key : unsigned { kValue = 1, kWindow = 2, kLowestIsBest = 4, kOfEnd = 8 };

  std::string_view name;  // in a grid file: take = "…"
  unsigned keys;          // of CurveLimits, besides from and to; kValue is needed
  /// Of the points that count, all of them finite, and with kWindow the `window` points before; nullopt where too few
  /// are there, or none reaches the value.
  std::optional<double> (*of)(std::span<const CurvePoint> curve, const CurveLimits& limits);
};

std::span<const CurveMeasure> curve_measures();

struct Measured {
  std::optional<double> number;
  std::optional<CurvePoint> not_finite;  // the point that keeps the number from being one
};

/// The measure of the curve between the limits. A point that is not finite makes it no number, unless the value was
/// reached before, and but for the last point it does not count where only that does.
Measured measure(const CurveMeasure& measure, const Curve& curve, const CurveLimits& limits,
                 const CurveExtent& extent = {});

}  // namespace tearless::harness
