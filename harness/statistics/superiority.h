// P(A > B): the probability that a run of A scores higher than a run of B (Bouthillier et al. 2021).
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "harness/statistics/interval.h"
#include "harness/statistics/random.h"

namespace tearless::harness {

/// Up to so many runs of either cell are few: the bootstrap's interval of them is too narrow.
inline constexpr size_t kFewRuns = 10;

struct Superiority {
  double probability = 0;  // ties count ½
  Interval interval = {};  // at 95 %
};

/// Of independent runs; nullopt if either cell has none.
///
/// The interval of few runs is exact over permutations: it reaches as far from the probability as that of two equal
/// cells is from ½ in all but 5 % of the ways to deal the runs out to them. So it contains ½ unless the exact rank test
/// rejects. For more runs it is the percentile bootstrap over the runs of each cell.
std::optional<Superiority> superiority(std::span<const double> a, std::span<const double> b,
                                       const Sampling& sampling = {});

}  // namespace tearless::harness
