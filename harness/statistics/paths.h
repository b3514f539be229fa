// Simulated scores without any difference, as a test sees them at each of its looks. For looks.cc and power.cc.
#pragma once

#include <array>
#include <boost/math/distributions/students_t.hpp>
#include <cstddef>
#include <span>

#include "harness/statistics/looks.h"
#include "harness/statistics/normals.h"

namespace tearless::harness {

// not in long double, as is Boost's default: four times as fast, and what is simulated is counted, not printed
using FastStudentsT =
    boost::math::students_t_distribution<double,
                                         boost::math::policies::policy<boost::math::policies::promote_double<false>>>;

/// Of the first values of a cell.
struct Moments {
  double mean = 0, variance = 0;
};
using MomentsAtLooks = std::array<Moments, kMaxLooks>;

/// A cell with the mean 0 and the deviation 1. `looks`: its values at each, as constant_level() requires.
MomentsAtLooks draw_cell(std::span<const size_t> looks, Normals& normals);

/// The difference a − r b of two cells of n values; r is the ratio of their deviations.
struct WelchPath {
  double difference;
  double error;    // squared
  double degrees;  // by Welch and Satterthwaite

  /// Of a test of one side whose statistic has this numerator. 0 where the values do not vary.
  double tail(double numerator) const;
};
/// A cell without any deviation is a constant, and Welch's test then Student's of one sample: so r = 0 is the paired
/// design.
WelchPath welch_path(const Moments& a, const Moments& b, double ratio, size_t n);

}  // namespace tearless::harness
