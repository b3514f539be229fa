// What a kernel body sees of its thread block, and the sums that threads make together. `Block` is a template parameter
// of every body: DeviceBlock on the GPU (kernels.cu), BlockOnHost on the processor (block_on_host.h). Both have
//
//   int64_t index()                  which block
//   int thread(), threads()          threads() is a multiple of 32
//   int lane(), warp(), warps()
//   void sync()                      all threads of the block; writes before it are seen after it
//   void warp_sync()                 the same for a warp
//   V from_lane(V, int lane)         what that lane of the warp passed; every lane must call
//   V butterfly(V, op)               all lanes' values joined by op, which is commutative: each lane joins its own with
//                                    that of the lane 16, 8, 4, 2, 1 away. The same bits in every lane
//   unsigned char* shared()          the block's shared memory, 16-byte aligned, not initialised
//
// All of a warp or block, or none of it, must come to a line that synchronises.
#pragma once

#include <cmath>
#include <cstdint>

#include "engine/ops/body.h"

namespace tearless::engine {

inline constexpr int kLanes = 32;

/// How a body is launched.
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

/// Room in shared memory that block_sum() and block_max() need.
template <class V>
inline constexpr int64_t kBlockSumBytes = kLanes * sizeof(V);

/// The same bits in every thread. `room`: kBlockSumBytes of shared memory, free again on return.
template <class V, class Block>
TEARLESS_BODY V block_sum(Block& block, V value, void* room) {
  V* of_warp = static_cast<V*>(room);
  value = warp_sum(block, value);
  if (block.lane() == 0) of_warp[block.warp()] = value;
  block.sync();
  V sum = of_warp[0];
  for (int w = 1; w < block.warps(); ++w) sum += of_warp[w];
  block.sync();
  return sum;
}
template <class Block>
TEARLESS_BODY float block_max(Block& block, float value, void* room) {
  float* of_warp = static_cast<float*>(room);
  value = warp_max(block, value);
  if (block.lane() == 0) of_warp[block.warp()] = value;
  block.sync();
  float largest = of_warp[0];
  for (int w = 1; w < block.warps(); ++w) largest = fmaxf(largest, of_warp[w]);
  block.sync();
  return largest;
}

TEARLESS_BOTH int64_t blocks_for(int64_t items, int64_t items_per_block) {
  return (items + items_per_block - 1) / items_per_block;
}

}  // namespace tearless::engine
