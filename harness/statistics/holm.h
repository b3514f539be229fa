// Holm's correction: of m tests together, the probability that any rejects wrongly stays below the level.
#pragma once

#include <span>
#include <vector>

namespace tearless::harness {

/// The adjusted p of each of a family of tests, in the order given: the i-th smallest is the greatest of
/// min(1, (m − j + 1) p of the j-th smallest) for j ≤ i.
std::vector<double> holm(std::span<const double> p);

}  // namespace tearless::harness
