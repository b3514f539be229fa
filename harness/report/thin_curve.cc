#include "harness/report/thin_curve.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/base64.h"

namespace tearless::harness {

void ThinCurve::Stretch::add(const Stretch& other) {
  const auto is_new = [](const CurvePoint& now, const CurvePoint& point, bool is_beyond) {
    return std::isfinite(point.y) && (!std::isfinite(now.y) || is_beyond);
  };
  if (is_new(least, other.least, other.least.y < least.y)) least = other.least;
  if (is_new(greatest, other.greatest, other.greatest.y > greatest.y)) greatest = other.greatest;
}

void ThinCurve::add(double x, double y) {
  const CurvePoint point{x, std::isfinite(y) ? y : std::numeric_limits<double>::quiet_NaN()};
  if (added_ == 0) first_ = point;
  last_ = point;
  if (added_ % each_ == 0) {
    if (stretches_.size() == most_) halve();
    if (added_ % each_ == 0) stretches_.push_back({point, point});
  }
  stretches_.back().add({point, point});
  ++added_;
}

void ThinCurve::halve() {
  for (size_t i = 0; 2 * i < stretches_.size(); ++i) {
    stretches_[i] = stretches_[2 * i];
    if (2 * i + 1 < stretches_.size()) stretches_[i].add(stretches_[2 * i + 1]);
  }
  stretches_.resize((stretches_.size() + 1) / 2);
  each_ *= 2;
}

Curve ThinCurve::curve() const {
  Curve curve;
  const auto add = [&](const CurvePoint& point) {
    if (curve.empty() || point.x > curve.back().x) curve.push_back(point);
  };
  if (added_ == 0) return curve;
  add(first_);
  for (const Stretch& stretch : stretches_) {
    const bool rises = stretch.least.x < stretch.greatest.x;
    add(rises ? stretch.least : stretch.greatest);
    add(rises ? stretch.greatest : stretch.least);
  }
  add(last_);
  return curve;
}

std::string base64_of(const Curve& curve) {
  std::string bytes;
  bytes.reserve(8 * curve.size());
  for (const CurvePoint& point : curve) {
    for (const double value : {point.x, point.y}) {
      constexpr double kLargest = std::numeric_limits<float>::max();
      const auto bits = std::bit_cast<uint32_t>(static_cast<float>(std::clamp(value, -kLargest, kLargest)));
      for (const int shift : {0, 8, 16, 24}) bytes.push_back(static_cast<char>(bits >> shift & 0xff));
    }
  }
  return base64(bytes);
}

}  // namespace tearless::harness
