// Groups: the few consecutive channels of a row that one thread handles, loaded and stored with 16-byte instructions
// where the row is aligned; and Tiling, the assignment of threads to rows and groups.
//
// Values are float in registers, whatever T in memory. One Philox call gives four dropout numbers, so a group that
// dropout acts on has a multiple of four channels.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <type_traits>

#include "engine/cuda/block.h"
#include "engine/ops/bf16.h"
#include "engine/ops/body.h"

namespace tearless::engine {

/// Elements of T in 16 bytes: 4 floats, 8 bf16.
template <class T>
inline constexpr int kWideGroup = 16 / static_cast<int>(sizeof(T));

/// Channels in a group: 16 bytes where rows are aligned, else four (one Philox call).
template <class T, bool kAligned>
inline constexpr int kGroup = kAligned ? kWideGroup<T> : 4;

/// True where rows that are `stride` elements apart all start at a multiple of 16 bytes; a row of `stride` elements
/// then has whole groups.
template <class T>
bool is_aligned(const T* data, int64_t stride) {
  return reinterpret_cast<uintptr_t>(data) % 16 == 0 && stride % kWideGroup<T> == 0;
}

/// Whether that holds for all of these, of which some may be null.
template <class... T>
bool all_aligned(int64_t stride, const T*... data) {
  return (is_aligned(data, stride) && ...);
}

/// Calls f(std::true_type) or f(std::false_type), so that a body can be instantiated for `aligned`.
template <class F>
void with_alignment(bool aligned, F&& f) {
  aligned ? f(std::true_type()) : f(std::false_type());
}

/// kSize consecutive elements that are moved with one instruction.
template <class T, int kSize>
struct alignas(kSize * sizeof(T)) Packed {
  T at[kSize];
};
template <class T>
using SixteenBytes = Packed<T, kWideGroup<T>>;

/// Loads a To (a Packed, or a word) from consecutive elements. REQUIRES: `from` is aligned for it.
template <class To, class T>
TEARLESS_BODY To load_packed(const T* from) {
#ifdef __CUDA_ARCH__
  if constexpr (sizeof(To) == 16) {  // otherwise the compiler may load a struct of small members one by one
    const uint4 words = *reinterpret_cast<const uint4*>(from);
    return *reinterpret_cast<const To*>(&words);
  } else if constexpr (sizeof(To) == 8) {
    const uint2 words = *reinterpret_cast<const uint2*>(from);
    return *reinterpret_cast<const To*>(&words);
  } else {
    return *reinterpret_cast<const To*>(from);
  }
#else
  if (reinterpret_cast<uintptr_t>(from) % alignof(To) != 0) std::abort();  // the GPU would report a misaligned address
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
/// Four floats as bf16, to an 8-byte aligned address.
TEARLESS_BODY void store_eight_of(bf16* to, const float* x) {
#ifdef __CUDA_ARCH__
  *reinterpret_cast<uint2*>(to) = uint2{bf16_pair_bits(x[0], x[1]), bf16_pair_bits(x[2], x[3])};
#else
  if (reinterpret_cast<uintptr_t>(to) % 8 != 0) std::abort();
  for (int i = 0; i < 4; ++i) to[i] = static_cast<bf16>(x[i]);
#endif
}
/// Two floats as bf16, to a 4-byte aligned address.
TEARLESS_BODY void store_four_of(bf16* to, float low, float high) {
#ifdef __CUDA_ARCH__
  *reinterpret_cast<uint32_t*>(to) = bf16_pair_bits(low, high);
#else
  if (reinterpret_cast<uintptr_t>(to) % 4 != 0) std::abort();
  to[0] = static_cast<bf16>(low);
  to[1] = static_cast<bf16>(high);
#endif
}
#ifdef __CUDA_ARCH__
/// One 16-byte store to global memory. In PTX, because the compiler sometimes splits an ordinary store of four words.
__device__ __forceinline__ void store_words(void* to, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};"
               :
               : "l"(__cvta_generic_to_global(to)), "r"(a), "r"(b), "r"(c), "r"(d)
               : "memory");
}
#endif

/// Floats as 16 bytes of T (4 floats or 8 bf16), to global memory.
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

/// x[i] = from[i] for i < count, else 0. Where kAligned, a group that is not empty is loaded whole, so it must lie
/// inside the row's stride, and x[i] for i >= count is what lies there.
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

/// to[i] = x[i] for i < count. Where kAligned, a group that is not empty is stored whole, so it must lie inside the
/// row's stride.
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

/// Four consecutive elements of a flat buffer; fewer (count < 4) at its end.
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

/// How many channels of the group at `channel` lie inside the row: 0 … kSize.
template <int kSize>
TEARLESS_BODY int inside(int64_t channel, int64_t width) {
  const int64_t left = width - channel;
  return left >= kSize ? kSize : left > 0 ? static_cast<int>(left) : 0;
}

/// Assigns the threads of a block to a tile of a matrix: across() threads (a power of two) along a row, one group of
/// channels each, and down() threads down the rows. A grid has blocks(rows) blocks, `tiles` of them along a row.
struct Tiling {
  static constexpr int kThreads = 256;
  int across_log2 = 0;
  uint32_t tiles = 1;  // in a row

  static Tiling of(int64_t width, int group) {
    Tiling tiling;
    while (tiling.across() < kThreads && int64_t{tiling.across()} * group < width) ++tiling.across_log2;
    tiling.tiles = static_cast<uint32_t>(blocks_for(width, int64_t{tiling.across()} * group));
    return tiling;
  }
  /// Blocks for `rows` rows where a thread takes one group in each of rows_per_thread rows.
  int64_t blocks(int64_t rows, int rows_per_thread = 1) const {
    return blocks_for(rows, int64_t{rows_per_thread} * down()) * tiles;
  }
  TEARLESS_BOTH int across() const { return 1 << across_log2; }
  TEARLESS_BOTH int down() const { return kThreads >> across_log2; }
  /// The thread's column and row in the tile.
  TEARLESS_BOTH int x(int thread) const { return thread & (across() - 1); }
  TEARLESS_BOTH int y(int thread) const { return thread >> across_log2; }
  // The block's row of tiles, and the thread's first channel. In 32 bits, which a grid never exceeds, because a 64-bit
  // division is a slow subroutine on a GPU.
  TEARLESS_BOTH int64_t part_of(int64_t block) const { return static_cast<uint32_t>(block) / tiles; }
  TEARLESS_BOTH int64_t column_of(int64_t block, int thread, int group) const {
    return (int64_t{static_cast<uint32_t>(block) % tiles} * across() + x(thread)) * group;
  }
};

/// A thread's group under a Tiling. Where a thread takes several rows, they are row, row + down(), row + 2 · down(), …
struct TiledGroup {
  int64_t row, channel;  // `row` may be past the last row
  int count;             // channels inside the row; 0: nothing to do
};
template <int kSize, class Block>
TEARLESS_BODY TiledGroup group_of(const Tiling& tiling, const Block& block, int64_t width, int rows_per_thread = 1) {
  const int64_t channel = tiling.column_of(block.index(), block.thread(), kSize);
  return {tiling.part_of(block.index()) * rows_per_thread * tiling.down() + tiling.y(block.thread()), channel,
          inside<kSize>(channel, width)};
}

/// The base of bodies in which a thread takes one group of channels of a row.
template <class T, bool kAligned>
struct GroupBody {
  static constexpr int kThreads = Tiling::kThreads;
  static constexpr int kSize = kGroup<T, kAligned>;
  int64_t rows, width;
  Tiling tiling = Tiling::of(width, kSize);

  Shape shape() const { return {tiling.blocks(rows), kThreads, 0}; }

  /// With count = 0 past the last row.
  template <class Block>
  TEARLESS_BODY TiledGroup group(const Block& block) const {
    TiledGroup group = group_of<kSize>(tiling, block, width);
    if (group.row >= rows) group.count = 0;
    return group;
  }
};
/// Runs Body<T, aligned>, derived from GroupBody, for the arguments `call`.
template <template <class, bool> class Body, template <class> class Call, class T, class Runner>
void launch_groups(const Call<T>& call, int64_t rows, int64_t width, bool aligned_rows, Runner& runner) {
  with_alignment(aligned_rows, [&](auto aligned) { runner.run(Body<T, aligned.value>{{rows, width}, call}); });
}

}  // namespace tearless::engine
