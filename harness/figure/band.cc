#include "harness/figure/band.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>

#include "harness/statistics/stats.h"

namespace tearless::harness {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

/// Reads a curve at values of x that only grow.
class CurveReader {
 public:
  CurveReader(const Curve& curve, bool joins)
      : next_(curve.begin()), begin_(curve.begin()), end_(curve.end()), joins_(joins) {}

  /// NaN where the run does not count.
  double at(double x) {
    while (next_ != end_ && next_->x < x) ++next_;
    if (next_ == end_) return kNone;
    if (next_->x == x) return next_->y;
    if (!joins_ || next_ == begin_) return kNone;
    const CurvePoint& before = *std::prev(next_);
    const double part = (x - before.x) / (next_->x - before.x);
    return before.y * (1 - part) + next_->y * part;
  }

 private:
  Curve::const_iterator next_;
  const Curve::const_iterator begin_, end_;
  const bool joins_;
};

using Values = std::span<const double>;
struct Ends {
  double low, high;
};
Ends about(double mean, std::optional<double> half) { return {mean - half.value_or(0), mean + half.value_or(0)}; }

Ends no_band(double mean, Values) { return {mean, mean}; }
Ends std_band(double mean, Values values) { return about(mean, sample_deviation(values)); }
Ends ci95_band(double mean, Values values) { return about(mean, half_interval(values)); }
Ends range_band(double, Values values) { return {*least(values), *greatest(values)}; }

struct Kind {
  const char* text;
  Ends (*of)(double mean, Values values);
};
// In the order of FigureSpec::Band.
constexpr std::array<Kind, 4> kBands = {{{"", no_band},
                                         {"the mean ± the standard deviation", std_band},
                                         {"the 95 % interval of the mean", ci95_band},
                                         {"from the least to the greatest", range_band}}};

const Kind& kind_of(FigureSpec::Band band) { return kBands.at(static_cast<size_t>(band)); }

/// Without values it interrupts the line.
BandPoint point_of(double x, Values values, FigureSpec::Band band) {
  BandPoint point = {.x = x, .runs = static_cast<int>(values.size()), .mean = kNone, .low = kNone, .high = kNone};
  if (values.empty()) return point;
  long double sum = 0;  // of doubles: it cannot overflow
  for (const double value : values) sum += value;
  point.mean = static_cast<double>(sum / static_cast<long double>(values.size()));
  const Ends ends = kind_of(band).of(point.mean, values);
  point.low = ends.low;
  point.high = ends.high;
  return point;
}

}  // namespace

std::vector<BandPoint> band_of(const std::vector<Curve>& runs, FigureSpec::Band band, bool joins) {
  std::vector<double> all;
  for (const Curve& run : runs) {
    std::vector<double> own, merged;
    std::ranges::transform(run, std::back_inserter(own), &CurvePoint::x);
    std::ranges::set_union(all, own, std::back_inserter(merged));
    all = std::move(merged);
  }
  std::vector<CurveReader> readers;
  for (const Curve& run : runs) readers.emplace_back(run, joins);
  std::vector<BandPoint> points;
  points.reserve(all.size());
  std::vector<double> values;
  for (const double x : all) {
    values.clear();
    for (CurveReader& reader : readers) {
      const double value = reader.at(x);
      if (std::isfinite(value)) values.push_back(value);
    }
    points.push_back(point_of(x, values, band));
  }
  return points;
}

std::string text_of(FigureSpec::Band band) { return kind_of(band).text; }

Curve smoothed(const Curve& curve, int count) {
  if (count <= 1) return curve;
  const auto before = static_cast<size_t>((count - 1) / 2), after = static_cast<size_t>(count) - 1 - before;
  Curve smooth = curve;
  for (size_t i = 0; i < curve.size(); ++i) {
    const size_t first = i - std::min(i, before), last = std::min(curve.size() - 1, i + after);
    if (!std::isfinite(curve[i].y)) continue;
    long double sum = 0;
    int finite = 0;
    for (size_t k = first; k <= last; ++k) {
      if (!std::isfinite(curve[k].y)) continue;
      sum += curve[k].y;
      ++finite;
    }
    smooth[i].y = static_cast<double>(sum / finite);
  }
  return smooth;
}

Curve binned(const Curve& curve, int bins, double low, double high, bool log_x) {
  const auto scaled = [&](double x) { return log_x ? std::log(x) : x; };
  const double begin = scaled(low), width = (scaled(high) - begin) / bins;
  if (!(width > 0) || !std::isfinite(width)) return curve;
  std::vector<long double> sums(bins);
  std::vector<int64_t> counts(bins);
  std::vector<bool> is_interrupted(bins);
  for (const CurvePoint& point : curve) {
    const double position = (scaled(point.x) - begin) / width;
    if (!std::isfinite(position)) continue;
    const int bin = std::clamp(static_cast<int>(position), 0, bins - 1);
    is_interrupted[bin] = is_interrupted[bin] || !std::isfinite(point.y);
    if (!std::isfinite(point.y)) continue;
    sums[bin] += point.y;
    ++counts[bin];
  }
  Curve means;
  for (int bin = 0; bin < bins; ++bin) {
    if (counts[bin] == 0 && !is_interrupted[bin]) continue;
    const double middle = begin + (bin + 0.5) * width;
    means.push_back(
        {log_x ? std::exp(middle) : middle,
         counts[bin] == 0 ? kNone : static_cast<double>(sums[bin] / static_cast<long double>(counts[bin]))});
  }
  return means;
}

}  // namespace tearless::harness
