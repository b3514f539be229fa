// Dropout multipliers for whole rows: Philox4x32-10 (random.h), one counter per vector lane.
#pragma once

#include "engine/ops/cpu/simd.h"

namespace tearless::engine::TEARLESS_ISA {

using Words = Vector<uint32_t>;
inline constexpr int64_t kBlocks = kLanes<uint32_t>;  // Philox calls in parallel, each of four numbers

/// The 64-bit products of the even lanes with a constant.
inline Words multiply_even(Words x, uint32_t constant) {
#if defined(__AVX512F__)
  return (Words)_mm512_maskz_mul_epu32(__mmask8(-1), (__m512i)x, _mm512_set1_epi32(static_cast<int>(constant)));
#elif defined(__AVX2__)
  return (Words)_mm256_mul_epu32((__m256i)x, _mm256_set1_epi32(static_cast<int>(constant)));
#else
  return (Words)_mm_mul_epu32((__m128i)x, _mm_set1_epi32(static_cast<int>(constant)));
#endif
}

struct WideProduct {
  Words high, low;
};
inline WideProduct multiply(Words x, uint32_t constant) {
  using Pairs = Vector<uint64_t>;
  const Pairs low_half = broadcast<uint64_t>(0xFFFFFFFFu);
  const Pairs even = (Pairs)multiply_even(x, constant);
  const Pairs odd = (Pairs)multiply_even((Words)((Pairs)x >> 32), constant);
  return {(Words)((even >> 32) | (odd & ~low_half)), (Words)((even & low_half) | (odd << 32))};
}

struct Bits {
  Words words[4];  // words[i]: number i of each call
};
inline Bits philox(uint32_t key0, uint32_t key1, Words c0, Words c1, Words c2, Words c3) {
  for (int round = 0; round < 10; ++round) {
    const WideProduct a = multiply(c0, 0xD2511F53u);
    const WideProduct b = multiply(c2, 0xCD9E8D57u);
    c0 = b.high ^ c1 ^ broadcast(key0);
    c2 = a.high ^ c3 ^ broadcast(key1);
    c1 = b.low;
    c3 = a.low;
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

/// Writes the multipliers (0 or dropout.scale) of `rows` rows: row r, whose counter is outer(r) and sentence(r), has
/// 4 · quarters of them, those of inner = 4 · first_quarter …, starting at out + r · 4 · quarters. REQUIRES: `out` has
/// keep_size() elements.
template <class T, class Outer, class Sentence>
inline void fill_keep(const Dropout& dropout, int64_t rows, int64_t quarters, Outer&& outer, Sentence&& sentence,
                      T* out, int64_t first_quarter = 0) {
  const T scale = static_cast<T>(dropout.scale);
  alignas(kVectorBytes) uint32_t inner[kBlocks], outers[kBlocks], sentences[kBlocks];
  alignas(kVectorBytes) uint32_t bits[4][kBlocks];
  int64_t row = 0, quarter = 0;
  const int64_t blocks = rows * quarters;
  for (int64_t done = 0; done < blocks; done += kBlocks) {
    for (int64_t j = 0; j < kBlocks; ++j) {  // the last iteration runs past rows · quarters: keep_size() allows for it
      inner[j] = static_cast<uint32_t>(first_quarter + quarter);
      outers[j] = static_cast<uint32_t>(outer(row));
      sentences[j] = static_cast<uint32_t>(sentence(row));
      if (++quarter == quarters) {
        quarter = 0;
        if (row + 1 < rows) ++row;
      }
    }
    const Bits drawn = philox(dropout.stream.seed, dropout.stream.stream, load(inner), load(outers), load(sentences),
                              broadcast(dropout.update));
    for (int i = 0; i < 4; ++i) store(bits[i], drawn.words[i]);
    T* to = out + 4 * done;
    for (int64_t j = 0; j < kBlocks; ++j) {
      for (int64_t i = 0; i < 4; ++i) to[4 * j + i] = bits[i][j] >= dropout.threshold ? scale : T(0);
    }
  }
}

/// Philox calls for a row of `width` channels.
inline int64_t quarters_of(int64_t width) { return (width + 3) / 4; }
/// Upper bound of the elements that fill_keep() writes.
inline int64_t keep_size(int64_t rows, int64_t width) { return rows * 4 * quarters_of(width) + 4 * kBlocks; }

/// Calls f(t, keep) for rows begin … end - 1: keep points to the row's `width` multipliers, or is null where dropout is
/// off.
template <class T, class F>
inline void for_rows_with_keep(const Dropout& dropout, const DropoutCounters& counters, int64_t begin, int64_t end,
                               int64_t width, F&& f) {
  if (!dropout.active()) {
    for (int64_t t = begin; t < end; ++t) f(t, static_cast<const T*>(nullptr));
    return;
  }
  const int64_t quarters = quarters_of(width);
  const int64_t at_once = larger(1, 2048 / (4 * quarters));  // rows whose multipliers fit in the L1 cache
  const Scratch<T> keep(keep_size(at_once, width));
  for (int64_t first = begin; first < end; first += at_once) {
    const int64_t count = smaller(at_once, end - first);
    fill_keep(
        dropout, count, quarters, [&](int64_t r) { return counters.positions[first + r]; },
        [&](int64_t r) { return counters.sentence_ids[first + r]; }, keep.get());
    for (int64_t r = 0; r < count; ++r) f(first + r, static_cast<const T*>(keep.get() + r * 4 * quarters));
  }
}

}  // namespace tearless::engine::TEARLESS_ISA
