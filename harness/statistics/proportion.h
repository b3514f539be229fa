// The share of runs that fail, or of anything that is counted, with Wilson's interval.
#pragma once

#include <cstddef>
#include <optional>

#include "harness/statistics/interval.h"

namespace tearless::harness {

/// Wilson's interval of the share of which `count` of `n` is a sample; nullopt for n = 0. It is inside [0, 1], and not
/// empty even for 0 of n and n of n.
std::optional<Interval> wilson_interval(size_t count, size_t n, double confidence = 0.95);

/// The p of the one-sided exact test that the share is at most one half: P(X ≥ count) of n tosses of a coin. 1 for
/// n = 0.
double more_than_half_p(size_t count, size_t n);

/// The two-sided p of Fisher's exact test that two shares are equal: of all tables with these sums the probability of
/// those that are at most as probable.
double equal_shares_p(size_t count_a, size_t n_a, size_t count_b, size_t n_b);

}  // namespace tearless::harness
