// The share of runs that fail, or of anything that is counted, with Wilson's interval.
#pragma once

#include <cstddef>
#include <optional>

#include "harness/statistics/interval.h"

namespace tearless::harness {

/// Wilson's interval of the share of which `count` of `n` is a sample; nullopt for n = 0. It is inside [0, 1], and not
/// empty even for 0 of n and n of n.
std::optional<Interval> wilson_interval(size_t count, size_t n, double confidence = 0.95);

}  // namespace tearless::harness
