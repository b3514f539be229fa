#include "engine/ops/random.h"

#include <cassert>
#include <cmath>

namespace tearless::engine {

Dropout Dropout::with(double p, RandomStream stream, uint32_t update) {
  assert(p >= 0 && p < 1);
  return {stream, update, static_cast<uint32_t>(std::llround(p * 0x1p32)), static_cast<float>(1.0 / (1.0 - p))};
}

}  // namespace tearless::engine
