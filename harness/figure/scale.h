// Axes with round numbers. Internal to harness/figure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tearless::harness {

struct Scale {
  double low = 0, high = 1;        // the ends of the axis
  double step = 1;                 // 1, 2 or 5 times a power of ten
  std::vector<double> ticks = {};  // its multiples from end to end

  /// Where a value lies: 0 at `low`, 1 at `high`, outside of these beyond them.
  double position(double value) const;
  /// A tick, with as many digits as all of them need.
  std::string label(double tick) const;
};

/// The smallest of 1, 2 and 5 times a power of ten of which `range` has at most so many. REQUIRES: range > 0.
double round_step(long double range, int most);

/// From a round number to a round number, so that the values lie between them; if low = high, in the middle of a scale
/// about them. REQUIRES: both are finite.
Scale round_scale(double low, double high, int most_ticks);

/// From 0 to `last`, with ticks at round whole numbers.
Scale scale_of_steps(int64_t last, int most_ticks);

}  // namespace tearless::harness
