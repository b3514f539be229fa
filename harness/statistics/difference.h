// The difference of two means over seeds, with Student's interval: paired by seed, or Welch's of two samples. What the
// interval says beside a limit δ: equivalent, not worse, or further apart.
#pragma once

#include <optional>
#include <span>

#include "harness/statistics/interval.h"
#include "harness/statistics/seed_value.h"

namespace tearless::harness {

struct MeanDifference {
  double mean = 0;
  double standard_error = 0;               // 0: the differences are all the same or, of two samples, each is constant
  double degrees = 0;                      // of freedom; of Welch's test seldom a whole number
  std::optional<double> correlation = {};  // Pearson's, of pairs; nullopt: a side is constant
  double magnitude = 0;                    // the greatest of the values, for rounding errors

  /// All differences are the same, but not 0: what their variance is, nobody can say. Of scores that are rounded this
  /// comes by chance, so there is no interval and no p; these have the values below for what is exact, such as a number
  /// of parameters.
  bool is_constant() const { return standard_error == 0 && mean != 0; }

  /// mean ± t standard_error.
  Interval interval(double confidence = 0.95) const;
  /// Of Student's two-sided test that there is no difference. Without a standard error: 1 if the mean is 0, else 0.
  double p() const;
};

/// a − b of the seeds that both have; nullopt if these are fewer than two.
std::optional<MeanDifference> paired_difference(std::span<const SeedValue> a, std::span<const SeedValue> b);
/// a − b of independent samples whose variances may differ; nullopt if one has fewer than two values.
std::optional<MeanDifference> welch_difference(std::span<const double> a, std::span<const double> b);
std::optional<MeanDifference> difference_of(std::span<const SeedValue> a, std::span<const SeedValue> b, bool is_paired);

// With δ > 0, by the 90 % interval: each of its ends is a one-sided test at 5 %. If neither of the first two holds, the
// data cannot tell.
inline constexpr double kEquivalence = 0.9;
/// Equivalent: the interval is inside [−δ, δ].
bool lies_within(const MeanDifference& difference, double delta, double confidence = kEquivalence);
/// It is beyond δ, or below −δ.
bool lies_outside(const MeanDifference& difference, double delta, double confidence = kEquivalence);
/// Its lower end is not below −δ.
bool is_not_worse(const MeanDifference& difference, double delta, double confidence = kEquivalence);

}  // namespace tearless::harness
