// Statistics of the values of a score, one for each seed. Which of them tables show, and by which names: statistic.h.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace tearless::harness {

/// The arithmetic mean, that of equal values exactly; nullopt for no values. Values that cancel but for rounding errors
/// have the mean 0.
std::optional<double> mean(std::span<const double> values);

/// The sample standard deviation (divisor n − 1); nullopt for fewer than two values. Values that differ by rounding
/// errors alone (1e-14 of the greatest) have the deviation 0.
std::optional<double> sample_deviation(std::span<const double> values);

/// Half the width of Student's 95 % interval of the mean: t(0.975, n − 1) s / √n; nullopt for fewer than two values.
std::optional<double> half_interval(std::span<const double> values);

/// Half the width of Student's 95 % prediction interval of the mean of `runs` further values of the same distribution:
/// t(0.975, n − 1) s √(1 / runs + 1 / n); nullopt for fewer than two values. The further mean is independent of these
/// values, so of normal ones its distance from their mean has the variance σ² / runs + σ² / n, and divided by
/// s √(1 / runs + 1 / n) Student's distribution (Hahn and Meeker 1991, Statistical Intervals, chapter 4).
/// REQUIRES: runs > 0.
std::optional<double> half_prediction_interval(std::span<const double> values, size_t runs);

/// The median, for an even number of values the mean of the two middle ones; nullopt for no values.
std::optional<double> median(std::span<const double> values);
/// The same, but for an even number of values the lower middle one.
std::optional<double> lower_median(std::span<const double> values);

std::optional<double> least(std::span<const double> values);     ///< nullopt for no values
std::optional<double> greatest(std::span<const double> values);  ///< nullopt for no values

}  // namespace tearless::harness
