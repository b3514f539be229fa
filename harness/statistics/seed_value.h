// The values of a score, each with the seed of its run, and the pairs that two cells have of the same seeds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tearless::harness {

struct SeedValue {
  int64_t seed = 0;
  double value = 0;
};

/// The values without their seeds.
std::vector<double> numbers_of(std::span<const SeedValue> values);

/// Values of two cells, paired by seed.
struct SeedPairs {
  std::vector<double> first = {}, second = {};  // equally many

  size_t size() const { return first.size(); }
  /// first − second; 0 where the two differ by rounding errors alone.
  std::vector<double> differences() const;
  /// How far apart two differences may be by rounding errors alone.
  double rounding() const;
};

/// Of the seeds that both have, in the order of `a`.
SeedPairs pairs_of(std::span<const SeedValue> a, std::span<const SeedValue> b);

}  // namespace tearless::harness
