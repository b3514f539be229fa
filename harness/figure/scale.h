// Axes with round numbers. Internal to harness/figure.
#pragma once

#include <string>
#include <vector>

namespace tearless::harness {

struct Scale {
  double low = 0, high = 1;        // the ends of the axis; of a logarithmic one, their logarithms
  double step = 1;                 // 1, 2 or 5 times a power of ten
  std::vector<double> ticks = {};  // its multiples from end to end
  bool is_log = false;             // values are compared by their logarithms (to the base 10)

  /// Where a value lies: 0 at `low`, 1 at `high`, outside of these beyond them. NaN: it has no logarithm.
  double position(double value) const;
  /// A tick, with as many digits as all of them need.
  std::string label(double tick) const;
};

/// The smallest of 1, 2 and 5 times a power of ten of which `range` has at most so many. REQUIRES: range > 0.
double round_step(long double range, int most);

/// From a round number to a round number, so that the values lie between them; if low = high, in the middle of a scale
/// about them. REQUIRES: both are finite.
Scale round_scale(double low, double high, int most_ticks);

/// From `low` to `high`, with ticks at round numbers between them, `least_step` or more apart. REQUIRES: both are
/// finite.
Scale scale_between(double low, double high, int most_ticks, double least_step);

/// Logarithmic, with ticks at powers of ten, or where these are few also at twice and five times
/// such, and where even these are few at multiples of one step. REQUIRES: both
/// are finite and above 0.
Scale log_scale(double low, double high, int most_ticks);

}  // namespace tearless::harness
