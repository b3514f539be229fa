// The sign-flip test over seeds: if two cells are equal, each difference is as likely to have the other sign.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "harness/statistics/random.h"
#include "harness/statistics/seed_value.h"

namespace tearless::harness {

/// So many pairs have all their 2^n signs counted. Of more, signs are drawn.
inline constexpr size_t kMaxExactSignFlips = 20;

/// Two-sided, of the seeds that both have: the share of all choices of signs s with |Σ sᵢdᵢ| ≥ |Σ dᵢ|; of drawn ones
/// (count + 1) / (samples + 1). nullopt if there is no pair.
std::optional<double> sign_flip_p(std::span<const SeedValue> a, std::span<const SeedValue> b,
                                  const Sampling& sampling = {});

/// The least p that n pairs can have: 2^(1 − n), or 1 / (samples + 1) where signs are drawn. If it exceeds the level, n
/// seeds cannot decide.
double least_sign_flip_p(size_t n, const Sampling& sampling = {});

}  // namespace tearless::harness
