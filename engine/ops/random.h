// Counter-based random numbers. Each number is a pure function of (seed, stream, update, element): there is no
// generator state to save, a dropout mask does not depend on how batches are cut or on the number of threads, and
// backward recomputes a mask instead of storing it.
//
// The generator is Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"). Its 64-bit key
// and 128-bit counter are laid out as follows, and must stay so, or every seed would give another result:
//
// clang-format off
//   key     = { seed, stream }                       stream = FNV-1a hash of a name: "drop.encoder.1.ffn",
//                                                             "init.encoder.1.ffn.w1", "order"
//   counter = { inner / 4, outer, sentence, update }   one call gives the four numbers inner = 4k … 4k + 3
//
//   used for             outer                          sentence      inner           update
//   rows of a batch      position in the sentence       sentence id   channel         update number
//   pixels of a batch    y · width + x                  image number  channel         update number
//   attention weights    query position | head << 16    sentence id   key position    update number
//   word dropout         position in the sentence       sentence id   0               update number
//   initial values       row                            0             column          0
//   shuffles             as the shuffle defines it      pass          draw            as the shuffle defines it
// clang-format on
//
// A sentence id is the sentence's line in the corpus, an image number that of the image in its set.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/hash.h"

namespace tearless::engine {

using PhiloxBlock = std::array<uint32_t, 4>;

/// One call of Philox4x32 with ten rounds: four numbers.
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

/// One independent sequence of random numbers: a seed and the hash of a name.
struct RandomStream {
  uint32_t seed = 0;
  uint32_t stream = 0;

  RandomStream() = default;
  RandomStream(uint32_t seed_, std::string_view name) : seed(seed_), stream(fnv1a32(name)) {}

  /// The four numbers of inner = 4 · inner_quarter … 4 · inner_quarter + 3.
  PhiloxBlock block(uint32_t inner_quarter, uint32_t outer, uint32_t sentence, uint32_t update) const {
    return philox({seed, stream}, {inner_quarter, outer, sentence, update});
  }
  /// One number, uniform over 32 bits.
  uint32_t draw(uint32_t inner, uint32_t outer, uint32_t sentence, uint32_t update) const {
    return block(inner / 4, outer, sentence, update)[inner % 4];
  }
};

/// A uniform number in (0, 1), never 0 nor 1: (bits + ½) / 2³².
constexpr double uniform_open(uint32_t bits) { return (static_cast<double>(bits) + 0.5) * 0x1p-32; }

/// Inverted dropout with probability p: an element is kept where its 32 random bits are ≥ threshold, and is then scaled
/// by 1/(1-p).
struct Dropout {
  RandomStream stream;
  uint32_t update = 0;     // number of the update
  uint32_t threshold = 0;  // round(p · 2³²); 0 = off
  float scale = 1.0f;      // 1 / (1 - p)
  /// CUDA only, for a captured update: device memory that is read instead of `update` when a kernel runs; or null.
  const uint32_t* update_at = nullptr;

  bool active() const { return threshold != 0; }
  static Dropout off() { return {}; }
  /// REQUIRES: 0 ≤ p < 1 (std::logic_error).
  static Dropout with(double p, RandomStream stream, uint32_t update);
};

/// The four multipliers (0 or scale) of inner = 4 · inner_quarter … 4 · inner_quarter + 3. The reference for the masks
/// of all kernels.
inline std::array<float, 4> keep_scales(const Dropout& d, uint32_t inner_quarter, uint32_t outer, uint32_t sentence) {
  const PhiloxBlock bits = d.stream.block(inner_quarter, outer, sentence, d.update);
  std::array<float, 4> scales{};
  for (size_t i = 0; i < 4; ++i) scales[i] = bits[i] >= d.threshold ? d.scale : 0.0f;
  return scales;
}

}  // namespace tearless::engine
