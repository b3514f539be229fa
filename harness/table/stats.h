// The statistics of replicates. A new one is one function here and one row where it is shown.
#pragma once

#include <optional>
#include <span>

namespace tearless::harness {

/// Nothing for no values.
std::optional<double> mean(std::span<const double> values);

/// The sample standard deviation (divided by n − 1); nothing for fewer than two values.
std::optional<double> sample_deviation(std::span<const double> values);

/// The middle value, the lower one of two; nothing for no values.
std::optional<double> lower_median(std::span<const double> values);

}  // namespace tearless::harness
