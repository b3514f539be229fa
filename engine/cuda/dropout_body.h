// Dropout multipliers inside a kernel: Philox4x32-10 with the counters of random.h, computed where they are needed and
// never written to global memory.
#pragma once

#include <cstdint>

#include "engine/ops/body.h"
#include "engine/ops/kernels.h"
#include "engine/ops/random.h"

namespace tearless::engine {

/// The mask of one Dropout, with the update's number read from device memory where update_at is given.
class Mask {
 public:
  /// `wanted` = false: as if p = 0.
  TEARLESS_BODY explicit Mask(const Dropout& dropout, bool wanted = true)
      : seed_(dropout.stream.seed),
        stream_(dropout.stream.stream),
        update_(dropout.update_at ? *dropout.update_at : dropout.update),
        threshold_(wanted ? dropout.threshold : 0),
        scale_(threshold_ != 0 ? dropout.scale : 1.0f) {}

  TEARLESS_BODY bool active() const { return threshold_ != 0; }
  /// The factor of a kept element.
  TEARLESS_BODY float scale() const { return scale_; }

  /// keep[i] = 0 or scale for inner = 4 · quarter + i.
  TEARLESS_BODY void keep_four(uint32_t quarter, uint32_t outer, uint32_t sentence, float* keep) const {
    uint32_t drawn[4];
    draw(quarter, outer, sentence, drawn);
    TEARLESS_UNROLL
    for (int i = 0; i < 4; ++i) keep[i] = drawn[i] >= threshold_ ? scale_ : 0.0f;
  }
  /// The same as bits: bit i is 1 where element i is kept.
  TEARLESS_BODY uint32_t keep_bits(uint32_t quarter, uint32_t outer, uint32_t sentence) const {
    uint32_t drawn[4], bits = 0;
    draw(quarter, outer, sentence, drawn);
    TEARLESS_UNROLL
    for (int i = 0; i < 4; ++i) bits |= drawn[i] >= threshold_ ? 1u << i : 0u;
    return bits;
  }

  /// x[i] *= keep for the group of channels at `channel`, a multiple of 4.
  template <int kSize>
  TEARLESS_BODY void apply(int64_t channel, uint32_t outer, uint32_t sentence, float (&x)[kSize]) const {
    static_assert(kSize % 4 == 0);
    if (!active()) return;
    TEARLESS_UNROLL
    for (int i = 0; i < kSize; i += 4) {
      float keep[4];
      keep_four(static_cast<uint32_t>((channel + i) / 4), outer, sentence, keep);
      TEARLESS_UNROLL
      for (int j = 0; j < 4; ++j) x[i + j] *= keep[j];
    }
  }

 private:
  /// The four numbers of one Philox call.
  TEARLESS_BODY void draw(uint32_t quarter, uint32_t outer, uint32_t sentence, uint32_t (&words)[4]) const {
    uint32_t c0 = quarter, c1 = outer, c2 = sentence, c3 = update_, key0 = seed_, key1 = stream_;
    TEARLESS_UNROLL
    for (int round = 0; round < 10; ++round) {
      const uint64_t a = uint64_t{0xD2511F53u} * c0;
      const uint64_t b = uint64_t{0xCD9E8D57u} * c2;
      c0 = static_cast<uint32_t>(b >> 32) ^ c1 ^ key0;
      c2 = static_cast<uint32_t>(a >> 32) ^ c3 ^ key1;
      c1 = static_cast<uint32_t>(b);
      c3 = static_cast<uint32_t>(a);
      key0 += 0x9E3779B9u;
      key1 += 0xBB67AE85u;
    }
    words[0] = c0;
    words[1] = c1;
    words[2] = c2;
    words[3] = c3;
  }

  uint32_t seed_, stream_, update_, threshold_;
  float scale_;
};

/// A row's dropout counter (random.h).
struct RowCounter {
  uint32_t outer = 0, sentence = 0;
};
/// That of row t; {0, 0} where the mask is not active, because `counters` may then be null.
TEARLESS_BODY RowCounter counter_of(const Mask& mask, const DropoutCounters& counters, int64_t t) {
  if (!mask.active()) return {};
  return {static_cast<uint32_t>(counters.positions[t]), static_cast<uint32_t>(counters.sentence_ids[t])};
}

}  // namespace tearless::engine
