// Which difference so many seeds could have found.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace tearless::harness {

/// √(Σ (nᵢ − 1) sᵢ² / Σ (nᵢ − 1)) over cells that have two values or more; nullopt if none has.
std::optional<double> pooled_deviation(std::span<const std::vector<double>> cells);

/// The smallest difference of two cells of n seeds each, with this deviation, that the two-sided t test at the level
/// finds with the probability `power`: (t(1 − level / 2) + t(power)) deviation √(2 / n), t with 2n − 2 degrees of
/// freedom. nullopt for n below 2.
std::optional<double> detectable_difference(double deviation, size_t n, double power = 0.8, double level = 0.05);

}  // namespace tearless::harness
