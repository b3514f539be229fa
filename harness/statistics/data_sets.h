// One statement of several data sets, from the p of each. The tests must be one-sided, or the caller see to it that all
// differences have the same sign: a two-sided p does not say which system is better.
#pragma once

#include <optional>
#include <span>

namespace tearless::harness {

/// "Better on all": the intersection–union test, whose p is the largest and needs no correction. nullopt for no set.
std::optional<double> p_on_all(std::span<const double> p);

}  // namespace tearless::harness
