// One statement of several data sets, from the p of each. The tests must be one-sided, or the caller see to it that all
// differences have the same sign: a two-sided p does not say which system is better.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace tearless::harness {

/// "Better on all": the intersection–union test, whose p is the largest and needs no correction. nullopt for no set.
std::optional<double> p_on_all(std::span<const double> p);

/// "Better on k of m" (Dror et al. 2017): how many p Holm's correction leaves at the level or below.
size_t rejected_by_holm(std::span<const double> p, double level = 0.05);

}  // namespace tearless::harness
