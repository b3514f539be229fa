#include "harness/statistics/curve.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include "harness/statistics/rounding.h"

namespace tearless::harness {
namespace {

using Points = std::span<const CurvePoint>;

// --- when ------------------------------------------------------------------------------------------------------------

template <class Reaches>
std::optional<double> first_that(Points curve, const Reaches& reaches) {
  const auto first = std::ranges::find_if(curve, reaches, &CurvePoint::y);
  return first == curve.end() ? std::nullopt : std::optional(first->x);
}
std::optional<double> first_at_least(Points curve, const CurveLimits& limits) {
  return first_that(curve, [&](double y) { return !is_less(y, limits.value); });
}
std::optional<double> first_at_most(Points curve, const CurveLimits& limits) {
  return first_that(curve, [&](double y) { return !is_less(limits.value, y); });
}

// --- how high --------------------------------------------------------------------------------------------------------

std::optional<double> final_value(Points curve, const CurveLimits&) {
  return curve.empty() ? std::nullopt : std::optional(curve.back().y);
}

std::optional<double> mean_of(Points curve) {
  if (curve.empty()) return std::nullopt;
  // About the first: equal values have their value as the mean, and the variance 0.
  const long double first = curve.front().y;
  long double sum = 0;
  for (const CurvePoint& point : curve) sum += point.y - first;
  return static_cast<double>(first + sum / static_cast<long double>(curve.size()));
}
std::optional<double> mean_value(Points curve, const CurveLimits&) { return mean_of(curve); }

/// With straight lines between the points.
std::optional<double> area(Points curve, const CurveLimits&) {
  if (curve.size() < 2) return std::nullopt;
  long double sum = 0;
  for (size_t i = 1; i < curve.size(); ++i) {
    const CurvePoint &a = curve[i - 1], &b = curve[i];
    sum += (static_cast<long double>(b.x) - a.x) * (static_cast<long double>(a.y) + b.y) / 2;
  }
  return static_cast<double>(sum);
}

// --- how restless ----------------------------------------------------------------------------------------------------

/// The sample variance.
std::optional<double> variance(Points curve, const CurveLimits&) {
  if (curve.size() < 2) return std::nullopt;
  const double mean = *mean_of(curve);
  long double sum = 0;
  for (const CurvePoint& point : curve) sum += std::pow(static_cast<long double>(point.y) - mean, 2);
  return static_cast<double>(sum / static_cast<long double>(curve.size() - 1));
}

/// The median of the last values that were added, of at most `size` of them.
class RunningMedian {
 public:
  explicit RunningMedian(Points curve) : curve_(curve) {}

  void add(size_t i) {
    const double y = curve_[i].y;
    (upper_.empty() || y < *upper_.begin() ? lower_ : upper_).insert(y);
    balance();
  }
  void remove(size_t i) {
    const double y = curve_[i].y;
    auto& half = !lower_.empty() && y <= *lower_.rbegin() ? lower_ : upper_;
    half.erase(half.find(y));
    balance();
  }
  double median() const {
    return lower_.size() == upper_.size() ? (*lower_.rbegin() + *upper_.begin()) / 2 : *lower_.rbegin();
  }

 private:
  // The lower half has as many as the upper one, or one more.
  void balance() {
    if (lower_.size() < upper_.size()) {
      lower_.insert(upper_.extract(upper_.begin()));
    } else if (lower_.size() > upper_.size() + 1) {
      upper_.insert(lower_.extract(std::prev(lower_.end())));
    }
  }

  Points curve_;
  std::multiset<double> lower_, upper_;
};

/// The share of points above three times the median of those before them, as soon as there are `window` of these.
std::optional<double> spikes(Points curve, const CurveLimits& limits) {
  constexpr double kFactor = 3;
  const auto window = static_cast<size_t>(limits.window);
  if (curve.size() <= window) return std::nullopt;
  RunningMedian before(curve);
  for (size_t i = 0; i < window; ++i) before.add(i);
  size_t found = 0;
  for (size_t i = window; i < curve.size(); ++i) {
    if (curve[i].y > kFactor * before.median()) ++found;
    before.add(i);
    before.remove(i - window);
  }
  return static_cast<double>(found) / static_cast<double>(curve.size() - window);
}

// --- a straight line through it --------------------------------------------------------------------------------------

std::optional<double> slope(Points curve, const CurveLimits&) {
  return curve.size() < 2 ? std::nullopt : std::optional(straight_line(curve).slope);
}

std::optional<double> r2(Points curve, const CurveLimits&) {
  return curve.size() < 3 ? std::nullopt : std::optional(straight_line(curve).r2);
}

constexpr CurveMeasure kMeasures[] = {
    {"first_at_least", CurveMeasure::kValue | CurveMeasure::kLowestIsBest, first_at_least},
    {"first_at_most", CurveMeasure::kValue | CurveMeasure::kLowestIsBest, first_at_most},
    {"final", CurveMeasure::kOfEnd, final_value},
    {"mean", 0, mean_value},
    {"area", 0, area},
    {"variance", 0, variance},
    {"spikes", CurveMeasure::kWindow, spikes},
    {"slope", 0, slope},
    {"r2", 0, r2},
};

}  // namespace

StraightLine straight_line(std::span<const CurvePoint> points) {
  long double mean_x = 0;
  for (const CurvePoint& point : points) mean_x += point.x / static_cast<long double>(points.size());
  const long double mean_y = *mean_of(points);
  long double xx = 0, xy = 0, yy = 0;
  for (const CurvePoint& point : points) {
    const long double x = point.x - mean_x, y = point.y - mean_y;
    xx += x * x;
    xy += x * y;
    yy += y * y;
  }
  return {static_cast<double>(xy / xx), yy > 0 ? static_cast<double>(xy * xy / (xx * yy)) : 0};
}

std::span<const CurveMeasure> curve_measures() { return kMeasures; }

std::pair<size_t, size_t> part_of(const Curve& curve, const CurveLimits& limits, const CurveExtent& extent) {
  const double last_x = curve.empty() ? 0 : std::max(extent.end, curve.back().x), before = last_x * (1 - limits.last);
  size_t first = 0, end = curve.size();
  const auto is_of_part = [&](size_t i) {
    const double after = i == 0 ? 1 : curve[i - 1].x + 1,
                 begin = extent.windows ? std::min(after, curve[i].x) : curve[i].x;
    return begin >= limits.from && (limits.last == 1 || is_less(before, begin));
  };
  while (first < end && !is_of_part(first)) ++first;
  while (end > first && curve[end - 1].x > limits.to) --end;
  return {first, end};
}

Measured measure(const CurveMeasure& measure, const Curve& curve, const CurveLimits& limits,
                 const CurveExtent& extent) {
  const auto is_finite = [](const CurvePoint& point) { return std::isfinite(point.y); };
  auto [first, end] = part_of(curve, limits, extent);
  if (measure.keys & CurveMeasure::kOfEnd && end > first) first = end - 1;
  const Points part = Points(curve).subspan(first, end - first);
  const auto broken = std::ranges::find_if_not(part, is_finite);
  const bool is_whole = broken == part.end();
  Curve before;  // the part, of which medians are taken
  for (size_t i = first; measure.keys & CurveMeasure::kWindow && i-- > 0 && std::ssize(before) < limits.window;)
    if (is_finite(curve[i])) before.push_back(curve[i]);
  Points counted(part.begin(), broken);
  if (!before.empty()) {
    std::ranges::reverse(before);
    before.insert(before.end(), part.begin(), broken);
    counted = before;
  }
  std::optional<double> number;
  if (is_whole || measure.keys & CurveMeasure::kValue) number = measure.of(counted, limits);
  if (number && !std::isfinite(*number)) number.reset();
  return {number, number || is_whole ? std::nullopt : std::optional(*broken)};
}

}  // namespace tearless::harness
