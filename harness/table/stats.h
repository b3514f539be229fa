// Statistics over the seeds of a cell. To add one, add a function here, a field of Cell that fill_cell() sets, and its
// text in cell_text().
#pragma once

#include <optional>
#include <span>

namespace tearless::harness {

/// The arithmetic mean, that of equal values exactly; nullopt for no values. Values that cancel but for rounding errors
/// have the mean 0.
std::optional<double> mean(std::span<const double> values);

/// The sample standard deviation (divisor n − 1); nullopt for fewer than two values. Values that differ by rounding
/// errors alone (1e-14 of the greatest) have the deviation 0.
std::optional<double> sample_deviation(std::span<const double> values);

/// The median, for an even number of values the lower middle one; nullopt for no values.
std::optional<double> lower_median(std::span<const double> values);

}  // namespace tearless::harness
