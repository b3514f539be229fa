// Random numbers for tests that draw samples: the same on every machine for the same seed.
#pragma once

#include <cstdint>

namespace tearless::harness {

/// SplitMix64 (Steele, Lea and Flood 2014): the i-th number is a hash of seed + i · kStep.
class Random {
 public:
  explicit Random(uint64_t seed) : counter_(seed) {}

  /// 64 random bits.
  uint64_t bits() {
    uint64_t z = counter_ += kStep;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  /// One of 0 … n − 1, for n below 2^32.
  uint64_t below(uint64_t n) { return (bits() >> 32) * n >> 32; }

 private:
  static constexpr uint64_t kStep = 0x9e3779b97f4a7c15;
  uint64_t counter_;
};

/// How a test draws its samples.
struct Sampling {
  int64_t samples = 10'000;
  uint64_t seed = 1;
};

}  // namespace tearless::harness
