// A curve of any length in a bounded number of points, for a page that people read: of each stretch of the curve the
// least and the greatest value stay, so that every spike is seen.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "harness/statistics/curve.h"

namespace tearless::harness {

/// Collects a curve in memory for `points` points. Stretches have the same number of points; where there are more of
/// them than may stay, each two neighbours become one.
class ThinCurve {
 public:
  /// REQUIRES: `points` is at least 4.
  explicit ThinCurve(size_t points) : most_((points - 2) / 2) {}

  /// In the order of x. A value that is not finite stays where its stretch has nothing else.
  void add(double x, double y);

  /// In the order of x, with the first and the last point. NaN where a stretch has no finite value.
  Curve curve() const;
  size_t added() const { return added_; }

 private:
  struct Stretch {
    CurvePoint least, greatest;
    void add(const Stretch& other);
  };

  void halve();

  size_t most_, each_ = 1, added_ = 0;
  std::vector<Stretch> stretches_ = {};
  CurvePoint first_, last_;
};

/// x and y of each point in turn, fp32 with the low byte first, in base64.
std::string base64_of(const Curve& curve);

}  // namespace tearless::harness
