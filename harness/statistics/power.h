// Which difference so many seeds could have found, and how many seeds find one.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "harness/statistics/interval.h"
#include "harness/statistics/looks.h"

namespace tearless::harness {

/// √(Σ (nᵢ − 1) sᵢ² / Σ (nᵢ − 1)) over cells that have two values or more; nullopt if none has.
std::optional<double> pooled_deviation(std::span<const std::vector<double>> cells);

/// The smallest difference of two cells of n seeds each, with this deviation, that the two-sided t test at the level
/// finds with the probability `power`: (t(1 − level / 2) + t(power)) deviation √(2 / n), t with 2n − 2 degrees of
/// freedom. nullopt for n below 2.
std::optional<double> detectable_difference(double deviation, size_t n, double power = 0.8, double level = 0.05);

/// The interval of a normal distribution's standard deviation, from a sample's with so many degrees of freedom, by χ².
Interval deviation_interval(double deviation, double degrees, double confidence = 0.8);

/// A test that holds if the interval d ± t(1 − level) SE of a difference is between two limits: of a difference 0 and
/// ∞, of equivalence −δ and δ (two one-sided tests, Schuirmann 1987). In standard deviations: kPaired of the
/// differences within seeds, kWelch of the scores of either cell.
struct PlannedTest {
  Design design = Design::kPaired;
  double level = 0.025;  // of each end: half of that of a two-sided test
  double to_lower = 1;   // from the true difference down to the lower limit
  double to_upper = std::numeric_limits<double>::infinity();
};

/// The probability that it holds with n pairs, or n values of each cell. Exact: the integral over the distribution of
/// the standard error, and of Welch's test over its degrees of freedom. REQUIRES: n ≥ 2.
double power_of(const PlannedTest& test, size_t n);

/// Up to so many seeds are thought of.
inline constexpr size_t kMaxSeeds = 1000;
/// The least n with which it holds so often; nullopt if kMaxSeeds do not suffice.
std::optional<size_t> least_seeds(const PlannedTest& test, double power = 0.8);

/// A test that is repeated at looks until it decides: its interval is between the limits, or beyond one of them.
struct PowerAtLooks {
  std::vector<double> decided = {};  // at this look or before
  double power = 0;                  // it holds at some look
  double seeds = 0;                  // on average
};
/// By 50,000 simulated paths with a fixed seed: the standard error of a probability is up to 0.2 %. `test.level`: of
/// each look. `looks`: as for constant_level().
PowerAtLooks power_at_looks(const PlannedTest& test, std::span<const size_t> looks);

}  // namespace tearless::harness
