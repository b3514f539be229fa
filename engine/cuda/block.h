// The thread block as a kernel body sees it, and reductions over a warp or a block. `Block` is a template parameter of
// every body: DeviceBlock on the GPU (kernels.cu); in the tests an emulation on the processor
// (tests/engine/cuda/block_on_host.h). Both have
//
//   int64_t index()                  blockIdx.x
//   int thread(), threads()          threadIdx.x, blockDim.x (a multiple of 32)
//   int lane(), warp(), warps()
//   void sync()                      __syncthreads(): writes before it are visible to the block after it
//   void warp_sync()                 __syncwarp(): the same for a warp
//   V from_lane(V, int lane)         a warp shuffle: the value that `lane` passed; every lane must call
//   V butterfly(V, op)               a warp reduction by a commutative op: each lane combines its value with that of
//                                    the lane 16, 8, 4, 2, 1 away. The same bits in every lane
//   unsigned char* shared()          the block's shared memory, 16-byte aligned, not initialised
//   void load_matrices<t>(from, x)   PTX ldmatrix: four 8 × 8 matrices of bf16 from shared memory. Lane l passes the
//                                    address of the 16 bytes of row l % 8 of matrix l / 8. x[i] holds elements
//                                    [l / 4][2 (l % 4)] and [l / 4][2 (l % 4) + 1] of matrix i, or where t of its
//                                    transpose
//   void mma(a, b0, b1, c)           PTX mma.m16n8k16: c += a · b on tensor cores. With g = lane / 4, t = lane % 4, and
//                                    a register holding two consecutive elements of a row of a, or of a column of b, a
//                                    lane has
//                                      a [16, 16]: [g][2t], [g + 8][2t], [g][2t + 8], [g + 8][2t + 8]
//                                      b [16, 8]:  [2t][g], [2t + 8][g]
//                                      c [16, 8]:  [g][2t], [g][2t + 1], [g + 8][2t], [g + 8][2t + 1]
//
// Every call that synchronises (sync(), warp_sync(), from_lane(), butterfly(), load_matrices(), mma() and the
// reductions below) must be reached by all threads of the block, or warp, or by none.
#pragma once

#include <cmath>
#include <cstdint>

#include "engine/ops/body.h"

namespace tearless::engine {

inline constexpr int kLanes = 32;

/// The launch configuration of a body.
struct Shape {
  int64_t blocks = 0;
  int threads = 0;
  int64_t shared_bytes = 0;
};

#ifdef __CUDACC__
extern __shared__ __align__(16) unsigned char tearless_shared_memory[];

struct DeviceBlock {
  __device__ int64_t index() const { return blockIdx.x; }
  __device__ int thread() const { return static_cast<int>(threadIdx.x); }
  __device__ int threads() const { return static_cast<int>(blockDim.x); }
  __device__ int lane() const { return thread() % kLanes; }
  __device__ int warp() const { return thread() / kLanes; }
  __device__ int warps() const { return threads() / kLanes; }
  __device__ void sync() { __syncthreads(); }
  __device__ void warp_sync() { __syncwarp(); }
  template <class V>
  __device__ V from_lane(V value, int lane) {
    return __shfl_sync(0xFFFFFFFFu, value, lane);
  }
  template <class V, class Op>
  __device__ V butterfly(V value, Op op) {
#pragma unroll
    for (int away = kLanes / 2; away > 0; away /= 2) value = op(value, __shfl_xor_sync(0xFFFFFFFFu, value, away));
    return value;
  }
  __device__ unsigned char* shared() { return tearless_shared_memory; }
  template <bool kTransposed>
  __device__ void load_matrices(const void* from, uint32_t (&x)[4]) {
    const auto at = static_cast<uint32_t>(__cvta_generic_to_shared(from));
    if constexpr (kTransposed) {
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                   : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                   : "r"(at)
                   : "memory");
    } else {
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                   : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                   : "r"(at)
                   : "memory");
    }
  }
  __device__ void mma(const uint32_t (&a)[4], uint32_t b0, uint32_t b1, float (&c)[4]) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
};
#endif

template <class V, class Block>
TEARLESS_BODY V warp_sum(Block& block, V value) {
  return block.butterfly(value, [](V a, V b) { return a + b; });
}
template <class Block>
TEARLESS_BODY float warp_max(Block& block, float value) {
  return block.butterfly(value, [](float a, float b) { return fmaxf(a, b); });
}

/// Bytes of shared memory that block_sum() and block_max() need.
template <class V>
inline constexpr int64_t kBlockSumBytes = kLanes * sizeof(V);

/// The values of all threads of the block, reduced by a commutative op; the same bits in every thread. `scratch`:
/// kBlockSumBytes of shared memory, which may be reused on return. All threads must call.
template <class V, class Block, class Op>
TEARLESS_BODY V block_reduce(Block& block, V value, void* scratch, Op op) {
  V* of_warp = static_cast<V*>(scratch);
  value = block.butterfly(value, op);
  if (block.lane() == 0) of_warp[block.warp()] = value;
  block.sync();
  V all = of_warp[0];
  for (int w = 1; w < block.warps(); ++w) all = op(all, of_warp[w]);
  block.sync();
  return all;
}
template <class V, class Block>
TEARLESS_BODY V block_sum(Block& block, V value, void* scratch) {
  return block_reduce(block, value, scratch, [](V a, V b) { return a + b; });
}
template <class Block>
TEARLESS_BODY float block_max(Block& block, float value, void* scratch) {
  return block_reduce(block, value, scratch, [](float a, float b) { return fmaxf(a, b); });
}

TEARLESS_BOTH int64_t blocks_for(int64_t items, int64_t items_per_block) {
  return (items + items_per_block - 1) / items_per_block;
}

}  // namespace tearless::engine
