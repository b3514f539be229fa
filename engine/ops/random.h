// Counter-based random numbers: every one is a pure function of (seed, stream, update, element), so there is no
// generator state to save, masks do not depend on how a batch was cut or how many threads there are, and backward makes
// them anew.
//
// Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"). The bit layout, once and for all:
//   key     = { seed, stream }                    stream = FNV-1a of a name: "drop.encoder.1.ffn",
//   "init.encoder.1.ffn.w1", "order" counter = { inner / 4, outer, line, update }  one call gives the four numbers
//   inner = 4k … 4k + 3
// where for a row of a batch    outer = position in the sentence, line = corpus line, inner = channel;
//       for attention weights   outer = query position | head << 16, line = corpus line, inner = key position;
//       for word dropout        outer = position, line = corpus line, inner = 0;
//       for initial values      outer = row, inner = column, line = update = 0;
//       for shuffles            line = pass, inner = draw (outer, update as the shuffle says).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/hash.h"

namespace tearless::engine {

using PhiloxBlock = std::array<uint32_t, 4>;

/// One block of Philox4x32 with ten rounds.
constexpr PhiloxBlock philox(std::array<uint32_t, 2> key, PhiloxBlock counter) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53u} * counter[0];
    const uint64_t b = uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

/// Names one source of randomness.
struct RandomStream {
  uint32_t seed = 0;
  uint32_t stream = 0;

  RandomStream() = default;
  RandomStream(uint32_t seed_, std::string_view name) : seed(seed_), stream(fnv1a32(name)) {}

  PhiloxBlock block(uint32_t inner_quarter, uint32_t outer, uint32_t line, uint32_t update) const {
    return philox({seed, stream}, {inner_quarter, outer, line, update});
  }
  uint32_t draw(uint32_t inner, uint32_t outer, uint32_t line, uint32_t update) const {
    return block(inner / 4, outer, line, update)[inner % 4];
  }
};

/// A uniform number in (0, 1), never 0 nor 1: (bits + ½) / 2³².
constexpr double uniform_open(uint32_t bits) { return (static_cast<double>(bits) + 0.5) * 0x1p-32; }

/// Inverted dropout with probability p: an element lives where its 32 random bits are ≥ threshold, and is then scaled
/// by 1/(1-p).
struct Dropout {
  RandomStream stream;
  uint32_t update = 0;
  uint32_t threshold = 0;  // round(p · 2³²); 0 = off
  float scale = 1.0f;      // 1 / (1 - p)
  /// CUDA only: device memory that is read instead of `update` when a kernel runs, so that a captured step can be
  /// replayed.
  const uint32_t* update_at = nullptr;

  bool active() const { return threshold != 0; }
  static Dropout off() { return {}; }
  static Dropout with(double p, RandomStream stream, uint32_t update);
};

/// The four multipliers (0 or scale) of inner = 4·inner_quarter … + 3: what every kernel's masks are held to.
inline std::array<float, 4> keep_scales(const Dropout& d, uint32_t inner_quarter, uint32_t outer, uint32_t line) {
  const PhiloxBlock bits = d.stream.block(inner_quarter, outer, line, d.update);
  std::array<float, 4> scales{};
  for (size_t i = 0; i < 4; ++i) scales[i] = bits[i] >= d.threshold ? d.scale : 0.0f;
  return scales;
}

}  // namespace tearless::engine
