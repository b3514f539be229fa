// A thread block on the processor: the block's threads are fibres that run in a fixed order, one after another, and
// hand over where they synchronise. A warp runs on alone until all its threads wait for the block. So the logic between
// threads is run too, and what is wrong with it shows:
//   - a thread that misses a barrier, which on the GPU hangs or worse: the process aborts with a sentence;
//   - a read of what another thread has not yet written: the other order of threads gives other bits;
//   - shared memory that nobody has written: it holds NaNs;
//   - shared memory beyond what the body asked for: the address sanitizer sees it.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "engine/cuda/block.h"

namespace tearless::engine {

/// In which order the warps of a block and the threads of a warp run between two barriers. A right body gives the same
/// bits in both.
enum class ThreadOrder { kForwards, kBackwards };
void set_thread_order(ThreadOrder order);

class FibreBlock;

/// The block as one of its threads sees it (block.h).
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
        const int along = 2 * (lane() % 4) + half, across = lane() / 4;
        x[i] = (half ? x[i] : 0) | matrix_element(i, kTransposed ? along : across, kTransposed ? across : along)
                                       << 16 * half;
      }
    }
  }
  void mma(const uint32_t (&a)[4], uint32_t b0, uint32_t b1, float (&c)[4]);

 private:
  static constexpr size_t kPlaceWords = 3;  // what a lane passes at once, of 8 bytes each
  /// Two places a thread in turn: who is ahead does not write over what others have yet to read.
  uint64_t* place(int thread);
  template <class V>
  void exchange(V value) {
    static_assert(sizeof(V) <= kPlaceWords * sizeof(uint64_t));
    turn_ ^= 1;
    std::memcpy(place(thread_), &value, sizeof(V));
    warp_sync();
  }
  template <class V>
  V passed_by(int lane) {
    V value;
    std::memcpy(&value, place(warp() * kLanes + lane), sizeof(V));
    return value;
  }
  /// Of a matrix whose rows the lanes have passed.
  uint32_t matrix_element(int matrix, int row, int column);

  friend class FibreBlock;
  FibreBlock& fibres_;
  int64_t index_;
  int thread_;
  int turn_ = 0;
};

/// Runs `body` on every thread of every block of `shape`, block after block.
void run_blocks(const Shape& shape, const std::function<void(BlockOnHost&)>& body);

}  // namespace tearless::engine
