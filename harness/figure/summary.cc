#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <set>

#include "harness/figure/figure.h"

namespace tearless::harness {
namespace {

// By step, each once: of a step that was reported twice the later value.
void put_in_order(Series& curve) {
  const auto is_late = [](const Reported& a, const Reported& b) { return a.step >= b.step; };
  if (std::adjacent_find(curve.begin(), curve.end(), is_late) == curve.end()) return;  // nearly all are in order
  const auto by_step = [](const Reported& a, const Reported& b) { return a.step < b.step; };
  std::stable_sort(curve.begin(), curve.end(), by_step);
  const auto is_same = [](const Reported& a, const Reported& b) { return a.step == b.step; };
  curve.erase(curve.begin(), std::unique(curve.rbegin(), curve.rend(), is_same).base());
}

// Reads a curve at steps that only grow.
class Reader {
 public:
  explicit Reader(const Series& curve) : next_(curve.begin()), begin_(curve.begin()), end_(curve.end()) {}

  // NaN where the run does not count.
  double at(int64_t step) {
    while (next_ != end_ && next_->step < step) ++next_;
    if (next_ == end_ || (next_ == begin_ && next_->step > step)) return std::numeric_limits<double>::quiet_NaN();
    if (next_->step == step) return next_->value;
    const Reported& before = *std::prev(next_);
    const auto part = static_cast<double>(step - before.step) / static_cast<double>(next_->step - before.step);
    return before.value * (1 - part) + next_->value * part;
  }

 private:
  Series::const_iterator next_;
  const Series::const_iterator begin_, end_;
};

}  // namespace

std::vector<CurvePoint> summary_of(std::vector<Series> runs) {
  std::vector<int64_t> steps;
  for (Series& run : runs) {
    put_in_order(run);
    std::vector<int64_t> merged, own;
    for (const Reported& point : run) own.push_back(point.step);
    std::set_union(steps.begin(), steps.end(), own.begin(), own.end(), std::back_inserter(merged));
    steps = std::move(merged);
  }
  std::vector<Reader> readers(runs.begin(), runs.end());
  std::vector<CurvePoint> points;
  points.reserve(steps.size());
  for (const int64_t step : steps) {
    constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
    CurvePoint point = {.step = step, .runs = 0, .mean = kNone, .low = kNone, .high = kNone};
    long double sum = 0;  // of doubles: it cannot overflow
    for (Reader& reader : readers) {
      const double value = reader.at(step);
      if (!std::isfinite(value)) continue;
      point.low = point.runs == 0 ? value : std::min(point.low, value);
      point.high = point.runs == 0 ? value : std::max(point.high, value);
      sum += value;
      ++point.runs;
    }
    if (point.runs > 0) point.mean = static_cast<double>(sum / point.runs);
    points.push_back(point);
  }
  return points;
}

}  // namespace tearless::harness
