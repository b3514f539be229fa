// Normal deviates for simulations: the same bits on every machine, and cheap enough for 10⁸ of them in a command.
#pragma once

#include <cstdint>
#include <span>

#include "harness/statistics/random.h"

namespace tearless::harness {

/// Independent standard normal deviates, each one of 2¹⁶ equally probable ones: the quantiles in the middle of as many
/// slices. They are rounded to float, so that a last bit of a machine's own logarithm decides nothing.
class Normals {
 public:
  explicit Normals(uint64_t seed) : random_(seed) {}

  void fill(std::span<float> deviates);

 private:
  Random random_;
};

}  // namespace tearless::harness
