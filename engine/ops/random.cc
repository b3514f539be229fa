#include "engine/ops/random.h"

#include <cmath>

#include "base/error.h"

namespace tearless::engine {

Dropout Dropout::with(double p, RandomStream stream, uint32_t update) {
  require(p >= 0 && p < 1, "dropout: a probability that is not in [0, 1)");
  return {stream, update, static_cast<uint32_t>(std::llround(p * 0x1p32)), static_cast<float>(1.0 / (1.0 - p))};
}

}  // namespace tearless::engine
