// A thread's share of a row: a few neighbouring channels, moved with one instruction where they lie on 16 bytes.
//
// Four numbers of dropout come from one call of Philox, so a group is always a whole number of fours.
#pragma once

#include <cstdint>
#include <cstdlib>

#include "engine/cuda/block.h"
#include "engine/ops/bf16.h"
#include "engine/ops/body.h"

namespace tearless::engine {

/// Elements of T in 16 bytes: 4 floats, 8 bf16.
template <class T>
inline constexpr int kWideGroup = 16 / static_cast<int>(sizeof(T));

/// Size of a group: what fills 16 bytes where rows are aligned, else one call of Philox.
template <class T, bool kAligned>
inline constexpr int kGroup = kAligned ? kWideGroup<T> : 4;

/// True where every row of `stride` elements starts on 16 bytes and holds whole groups.
template <class T>
bool is_aligned(const T* data, int64_t stride) {
  return reinterpret_cast<uintptr_t>(data) % 16 == 0 && stride % kWideGroup<T> == 0;
}

/// Neighbours that are moved with one instruction.
template <class T, int kSize>
struct alignas(kSize * sizeof(T)) Packed {
  T at[kSize];
};
template <class T>
using SixteenBytes = Packed<T, kWideGroup<T>>;

template <class To, class T>
TEARLESS_BODY To load_packed(const T* from) {
#ifdef __CUDA_ARCH__
  if constexpr (sizeof(To) == 16) {  // left to itself the compiler may move a struct of small parts in those parts
    const uint4 words = *reinterpret_cast<const uint4*>(from);
    return *reinterpret_cast<const To*>(&words);
  } else if constexpr (sizeof(To) == 8) {
    const uint2 words = *reinterpret_cast<const uint2*>(from);
    return *reinterpret_cast<const To*>(&words);
  } else {
    return *reinterpret_cast<const To*>(from);
  }
#else
  if (reinterpret_cast<uintptr_t>(from) % alignof(To) != 0) std::abort();  // what the GPU would do
  To packed;
  __builtin_memcpy(&packed, from, sizeof(To));
  return packed;
#endif
}
template <class T>
TEARLESS_BODY SixteenBytes<T> load_sixteen(const T* from) {
  return load_packed<SixteenBytes<T>>(from);
}
template <class T>
TEARLESS_BODY void store_sixteen(T* to, const SixteenBytes<T>& bytes) {
#ifdef __CUDA_ARCH__
  *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(&bytes);
#else
  if (reinterpret_cast<uintptr_t>(to) % 16 != 0) std::abort();
  __builtin_memcpy(to, &bytes, 16);
#endif
}
/// Four bf16 from floats, to an address on eight bytes.
TEARLESS_BODY void store_eight_of(bf16* to, const float* x) {
#ifdef __CUDA_ARCH__
  *reinterpret_cast<uint2*>(to) = uint2{bf16_pair_bits(x[0], x[1]), bf16_pair_bits(x[2], x[3])};
#else
  if (reinterpret_cast<uintptr_t>(to) % 8 != 0) std::abort();
  for (int i = 0; i < 4; ++i) to[i] = static_cast<bf16>(x[i]);
#endif
}
#ifdef __CUDA_ARCH__
/// To global memory. Spelled out, because an ordinary store of four words is at times split into four.
__device__ __forceinline__ void store_words(void* to, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};"
               :
               : "l"(__cvta_generic_to_global(to)), "r"(a), "r"(b), "r"(c), "r"(d)
               : "memory");
}
#endif

/// Sixteen bytes of T from floats, to global memory.
TEARLESS_BODY void store_sixteen_of(float* to, const float* x) {
#ifdef __CUDA_ARCH__
  store_words(to, __float_as_uint(x[0]), __float_as_uint(x[1]), __float_as_uint(x[2]), __float_as_uint(x[3]));
#else
  store_sixteen(to, SixteenBytes<float>{{x[0], x[1], x[2], x[3]}});
#endif
}
TEARLESS_BODY void store_sixteen_of(bf16* to, const float* x) {
#ifdef __CUDA_ARCH__
  store_words(to, bf16_pair_bits(x[0], x[1]), bf16_pair_bits(x[2], x[3]), bf16_pair_bits(x[4], x[5]),
              bf16_pair_bits(x[6], x[7]));
#else
  SixteenBytes<bf16> bytes;
  for (int i = 0; i < 8; ++i) bytes.at[i] = static_cast<bf16>(x[i]);
  store_sixteen(to, bytes);
#endif
}

/// x[i] = from[i] for i < count, 0 behind. Aligned: count is 0 or kSize.
template <bool kAligned, int kSize, class T>
TEARLESS_BODY void load_group(const T* from, int count, float (&x)[kSize]) {
  if constexpr (kAligned) {
    static_assert(kSize % kWideGroup<T> == 0);
    TEARLESS_UNROLL
    for (int i = 0; i < kSize; i += kWideGroup<T>) {
      SixteenBytes<T> bytes = {};
      if (count > 0) bytes = load_sixteen(from + i);
      TEARLESS_UNROLL
      for (int j = 0; j < kWideGroup<T>; ++j) x[i + j] = static_cast<float>(bytes.at[j]);
    }
  } else {
    TEARLESS_UNROLL
    for (int i = 0; i < kSize; ++i) x[i] = i < count ? static_cast<float>(from[i]) : 0.0f;
  }
}

/// to[i] = x[i] for i < count.
template <bool kAligned, int kSize, class T>
TEARLESS_BODY void store_group(T* to, int count, const float (&x)[kSize]) {
  if constexpr (kAligned) {
    static_assert(kSize % kWideGroup<T> == 0);
    if (count == 0) return;
    TEARLESS_UNROLL
    for (int i = 0; i < kSize; i += kWideGroup<T>) store_sixteen_of(to + i, x + i);
  } else {
    TEARLESS_UNROLL
    for (int i = 0; i < kSize; ++i) {
      if (i < count) to[i] = static_cast<T>(x[i]);
    }
  }
}

/// Four neighbours of a flat buffer, whose end may cut the last of them.
template <bool kAligned>
TEARLESS_BODY void load_four(const float* from, int count, float (&x)[4]) {
  if (count == 4) {
    load_group<kAligned>(from, 4, x);
  } else {
    load_group<false>(from, count, x);
  }
}
template <bool kAligned>
TEARLESS_BODY void store_four(float* to, int count, const float (&x)[4]) {
  if (count == 4) {
    store_group<kAligned>(to, 4, x);
  } else {
    store_group<false>(to, count, x);
  }
}

/// Channels of the group at `channel` that the row has.
template <int kSize>
TEARLESS_BODY int inside(int64_t channel, int64_t width) {
  const int64_t left = width - channel;
  return left >= kSize ? kSize : left > 0 ? static_cast<int>(left) : 0;
}

/// Threads over rows that lie side by side: `across` of them (a power of two) along a row, a group of channels each;
/// the others below, a row each.
struct Tiling {
  static constexpr int kThreads = 256;
  int across_log2 = 0;
  uint32_t tiles = 1;  // along a row

  static Tiling of(int64_t width, int group) {
    Tiling tiling;
    while (tiling.across() < kThreads && int64_t{tiling.across()} * group < width) ++tiling.across_log2;
    tiling.tiles = static_cast<uint32_t>(blocks_for(width, int64_t{tiling.across()} * group));
    return tiling;
  }
  /// Blocks for so many rows, a thread taking a group of each of rows_per_thread rows.
  int64_t blocks(int64_t rows, int rows_per_thread = 1) const {
    return blocks_for(rows, int64_t{rows_per_thread} * down()) * tiles;
  }
  TEARLESS_BOTH int across() const { return 1 << across_log2; }
  TEARLESS_BOTH int down() const { return kThreads >> across_log2; }
  TEARLESS_BOTH int x(int thread) const { return thread & (across() - 1); }
  TEARLESS_BOTH int y(int thread) const { return thread >> across_log2; }
  // In 32 bits, which a grid never exceeds: a GPU divides 64 bits by a long routine.
  TEARLESS_BOTH int64_t part_of(int64_t block) const { return static_cast<uint32_t>(block) / tiles; }
  TEARLESS_BOTH int64_t column_of(int64_t block, int thread, int group) const {
    return (int64_t{static_cast<uint32_t>(block) % tiles} * across() + x(thread)) * group;
  }
};

/// A thread's groups of neighbouring channels where tiles cover rows: of row `row` and, where a thread takes several,
/// of the rows down() apart behind it.
struct TiledGroup {
  int64_t row, channel;
  int count;  // channels that the row has; 0: nothing to do
};
template <int kSize, class Block>
TEARLESS_BODY TiledGroup group_of(const Tiling& tiling, const Block& block, int64_t width, int rows_per_thread = 1) {
  const int64_t channel = tiling.column_of(block.index(), block.thread(), kSize);
  return {tiling.part_of(block.index()) * rows_per_thread * tiling.down() + tiling.y(block.thread()), channel,
          inside<kSize>(channel, width)};
}

}  // namespace tearless::engine
