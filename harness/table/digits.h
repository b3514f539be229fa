// How the numbers of a column are written.
#pragma once

#include <span>
#include <string>

namespace tearless::harness {

/// Which digit of a column's numbers is the last one.
struct Digits {
  int decimals = 2;       // its place after the point; below 0: before the point
  bool is_given = false;  // by the grid file, for every number

  /// Two significant digits of the median spread that is not 0. Without one: whole numbers for whole means of which one
  /// is at least 1000, else two digits after the point, and two significant digits where the median mean has none
  /// there.
  static Digits of(std::span<const double> means, std::span<const double> spreads);
};

/// A number in fixed notation, or as "2.5e-08" where that would print zeros or more than 15 digits before the point.
/// `scale` decides on the notation: the greatest of the numbers that this one is compared with. A number that is
/// printed as zero has no minus.
std::string number_text(double value, double scale, const Digits& digits);
inline std::string number_text(double value, const Digits& digits) { return number_text(value, value, digits); }

/// The same with its sign, also for zero: "+0.00".
std::string signed_text(double value, double scale, const Digits& digits);

/// A minus as print has it: the hyphen before a number becomes U+2212, that of an exponent stays.
std::string with_minus(const std::string& number);

}  // namespace tearless::harness
