// A thread block emulated on the processor: a Block of engine/cuda/block.h, so that kernel bodies run without a GPU.
// Its threads are fibres that run one after another in a fixed order and switch where they synchronise; a warp runs
// until all its threads wait for the block. So errors of synchronisation are found without a GPU:
//   - a thread that misses a barrier (undefined on the GPU): the process aborts with a message;
//   - a read of what another thread has not yet written: the other ThreadOrder gives other bits;
//   - a read of shared memory that was never written: it holds NaN;
//   - an access beyond the shared memory in the launch shape: the address sanitizer reports it.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "engine/cuda/block.h"

namespace tearless::engine::test {

/// The order in which the warps of a block, and the threads of a warp, run between two barriers. A correct body gives
/// the same bits in both.
enum class ThreadOrder { kForwards, kBackwards };
/// For all later launches of the process. Default: kForwards.
void set_thread_order(ThreadOrder order);

class FibreBlock;

/// The `Block` of block.h, for one thread.
class BlockOnHost {
 public:
  BlockOnHost(FibreBlock& fibres, int64_t index, int thread) : fibres_(fibres), index_(index), thread_(thread) {}

  int64_t index() const { return index_; }
  int thread() const { return thread_; }
  int threads() const;
  int lane() const { return thread_ % kLanes; }
  int warp() const { return thread_ / kLanes; }
  int warps() const { return threads() / kLanes; }
  void sync();
  void warp_sync();
  template <class V>
  V from_lane(V value, int lane) {
    exchange(value);
    return passed_by<V>(lane);
  }
  template <class V, class Op>
  V butterfly(V value, Op op) {
    exchange(value);
    V values[kLanes], joined[kLanes];
    for (int lane = 0; lane < kLanes; ++lane) values[lane] = passed_by<V>(lane);
    for (int away = kLanes / 2; away > 0; away /= 2) {
      for (int lane = 0; lane < kLanes; ++lane) joined[lane] = op(values[lane], values[lane ^ away]);
      std::memcpy(values, joined, sizeof values);
    }
    return values[lane()];
  }
  unsigned char* shared();
  template <bool kTransposed>
  void load_matrices(const void* from, uint32_t (&x)[4]) {
    exchange(reinterpret_cast<uintptr_t>(from));
    for (int i = 0; i < 4; ++i) {
      for (int half = 0; half < 2; ++half) {
        const int column = 2 * (lane() % 4) + half, row = lane() / 4;
        x[i] = (half ? x[i] : 0) | matrix_element(i, kTransposed ? column : row, kTransposed ? row : column)
                                       << 16 * half;
      }
    }
  }
  void mma(const uint32_t (&a)[4], uint32_t b0, uint32_t b1, float (&c)[4]);

 private:
  static constexpr size_t kSlotWords = 3;  // 8-byte words that a lane can pass in one exchange
  /// The thread's exchange slot. It has two, used in turn, so that a thread that is ahead does not overwrite a value
  /// that others have yet to read.
  uint64_t* slot(int thread);
  /// Passes a value to the other lanes, which read it with passed_by().
  template <class V>
  void exchange(V value) {
    static_assert(sizeof(V) <= kSlotWords * sizeof(uint64_t));
    turn_ ^= 1;
    std::memcpy(slot(thread_), &value, sizeof(V));
    warp_sync();
  }
  template <class V>
  V passed_by(int lane) {
    V value;
    std::memcpy(&value, slot(warp() * kLanes + lane), sizeof(V));
    return value;
  }
  /// Element of matrix 0 … 3 (load_matrices()), whose row addresses the lanes have passed.
  uint32_t matrix_element(int matrix, int row, int column);

  friend class FibreBlock;
  FibreBlock& fibres_;
  int64_t index_;
  int thread_;
  int turn_ = 0;
};

/// Runs `body` for every thread of every block of `shape`, one block after another.
void run_blocks(const Shape& shape, const std::function<void(BlockOnHost&)>& body);

}  // namespace tearless::engine::test
