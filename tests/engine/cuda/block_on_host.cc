#include "tests/engine/cuda/block_on_host.h"

#include <ucontext.h>

#include <bit>
#include <cstdio>
#include <cstdlib>
#include <deque>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace tearless::engine::test {
namespace {

constexpr size_t kStackBytes = 256 << 10;

ThreadOrder& thread_order() {
  static ThreadOrder order = ThreadOrder::kForwards;
  return order;
}

/// A reusable barrier for `expected` threads.
struct Barrier {
  int expected = 0;
  int arrived = 0;
  uint64_t passed = 0;  // how often it was passed
};

/// Of __builtin_setjmp(). swapcontext() makes a system call for the signal mask each time, and the address sanitizer
/// makes one at each longjmp(). The compiler refuses nothing, but a function that calls __builtin_setjmp() must not
/// call
/// __builtin_longjmp(), not even inlined.
using Registers = void* [5];

struct Fibre {
  std::unique_ptr<unsigned char[]> stack = std::make_unique_for_overwrite<unsigned char[]>(kStackBytes);
  bool started = false;
  Registers registers = {};  // where it was suspended
  const Barrier* waits_for = nullptr;
  uint64_t until = 0;  // runnable when waits_for->passed reaches it
  bool done = false;
  void* sanitizer_stack = nullptr;
};

/// The fibres of this thread, `count` of them or more. A fibre runs the thread of its number of one block after
/// another, of one launch after another: to begin a fibre takes system calls, which would cost more than most bodies.
std::deque<Fibre>& fibres_of_this_thread(size_t count) {
  thread_local std::deque<Fibre> fibres;
  while (fibres.size() < count) fibres.emplace_back();
  return fibres;
}

}  // namespace

class FibreBlock {
 public:
  FibreBlock(const Shape& shape, const std::function<void(BlockOnHost&)>& body)
      : body_(body),
        threads_(static_cast<size_t>(shape.threads)),
        fibres_(fibres_of_this_thread(threads_)),
        warp_barriers_(static_cast<size_t>(shape.threads / kLanes)),
        slots_(2 * BlockOnHost::kSlotWords * static_cast<size_t>(shape.threads)),
        shared_bytes_(static_cast<size_t>(shape.shared_bytes)),
        shared_(memory_of(shared_bytes_), &std::free) {
    if (shape.threads <= 0 || shape.threads % kLanes != 0 || shape.threads > 1024) {
      die("a block must have whole warps, and 1024 threads at most");
    }
    block_barrier_.expected = shape.threads;
    for (Barrier& barrier : warp_barriers_) barrier.expected = kLanes;
  }

  void run(int64_t index) {
    index_ = index;
    std::memset(shared_.get(), 0xFF, shared_bytes_);  // NaN as float, -1 as integer
    for (size_t i = 0; i < threads_; ++i) {
      fibres_[i].waits_for = nullptr;
      fibres_[i].done = false;
    }
    left_ = threads_;
    while (left_ > 0) {
      bool any = false;
      for (size_t i = 0; i < warp_barriers_.size(); ++i) {
        const size_t warp = in_order(i, warp_barriers_.size());
        while (step(warp)) any = true;
      }
      if (!any) die("threads of a block wait at a barrier that others never reach");
    }
  }

  int threads() const { return static_cast<int>(threads_); }
  unsigned char* shared() { return shared_.get(); }
  uint64_t* slot(int thread, int turn) {
    return &slots_[BlockOnHost::kSlotWords * (2 * static_cast<size_t>(thread) + static_cast<size_t>(turn))];
  }

  void wait_for_block() { wait(block_barrier_); }
  void wait_for_warp(int warp) { wait(warp_barriers_[static_cast<size_t>(warp)]); }

 private:
  static size_t in_order(size_t i, size_t count) {
    return thread_order() == ThreadOrder::kForwards ? i : count - 1 - i;
  }

  /// Runs every runnable thread of the warp to its next synchronisation; false where none is runnable.
  bool step(size_t warp) {
    bool any = false;
    for (size_t i = 0; i < kLanes; ++i) {
      const size_t next = warp * kLanes + in_order(i, kLanes);
      Fibre& fibre = fibres_[next];
      if (fibre.done || (fibre.waits_for && fibre.waits_for->passed < fibre.until)) continue;
      any = true;
      resume(next);
      if (fibre.done) --left_;
    }
    return any;
  }

  /// Exactly this size, so that the address sanitizer reports an access beyond it.
  static unsigned char* memory_of(size_t bytes) {
    void* memory = nullptr;
    if (::posix_memalign(&memory, 16, bytes) != 0) die("no memory for a block's shared memory");
    return static_cast<unsigned char*>(memory);
  }

  [[noreturn]] static void die(const char* sentence) {
    std::fprintf(stderr, "block on host: %s\n", sentence);
    std::abort();
  }

  /// What a fibre does: the thread of its number, of each block that has one.
  static void enter() {
    for (;;) {
      FibreBlock* block = current();
      block->on_fibre();
      const size_t thread = block->running_;
      {
        BlockOnHost on_host(*block, block->index_, static_cast<int>(thread));
        block->body_(on_host);
      }
      block->fibres_[thread].done = true;
      block->to_scheduler(&block->fibres_[thread].sanitizer_stack);
    }
  }

  void wait(Barrier& barrier) {
    Fibre& fibre = fibres_[running_];
    fibre.waits_for = &barrier;
    fibre.until = barrier.passed + 1;
    if (++barrier.arrived == barrier.expected) {
      barrier.arrived = 0;
      ++barrier.passed;
    }
    to_scheduler(&fibre.sanitizer_stack);
    on_fibre();
  }

  // The address sanitizer must be told of every switch of stacks. It must not look at the functions that switch: they
  // are left without a return.
  [[gnu::no_sanitize_address]] void resume(size_t i) {
    running_ = i;
    current() = this;
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(&scheduler_sanitizer_stack_, fibres_[i].stack.get(), kStackBytes);
#endif
    if (__builtin_setjmp(scheduler_) == 0) switch_to(fibres_[i]);
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(scheduler_sanitizer_stack_, nullptr, nullptr);
#endif
  }
  [[gnu::no_sanitize_address, gnu::noinline, noreturn]] static void switch_to(Fibre& fibre) {
    if (fibre.started) __builtin_longjmp(fibre.registers, 1);
    fibre.started = true;
    ucontext_t begin;
    ::getcontext(&begin);
    begin.uc_stack.ss_sp = fibre.stack.get();
    begin.uc_stack.ss_size = kStackBytes;
    begin.uc_link = nullptr;
    ::makecontext(&begin, &FibreBlock::enter, 0);
    ::setcontext(&begin);
    die("a thread of a block cannot be started");
  }
  [[gnu::no_sanitize_address]] void to_scheduler([[maybe_unused]] void** sanitizer_stack) {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(sanitizer_stack, scheduler_stack_, scheduler_stack_bytes_);
#endif
    if (__builtin_setjmp(fibres_[running_].registers) == 0) jump(scheduler_);
  }
  [[gnu::no_sanitize_address, gnu::noinline, noreturn]] static void jump(Registers& to) { __builtin_longjmp(to, 1); }
  void on_fibre() {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(fibres_[running_].sanitizer_stack, &scheduler_stack_, &scheduler_stack_bytes_);
#endif
  }

  /// The block that this thread runs.
  static FibreBlock*& current() {
    thread_local FibreBlock* block = nullptr;
    return block;
  }

  const std::function<void(BlockOnHost&)>& body_;
  size_t threads_;
  std::deque<Fibre>& fibres_;
  std::vector<Barrier> warp_barriers_;
  Barrier block_barrier_;
  std::vector<uint64_t> slots_;
  size_t shared_bytes_;
  std::unique_ptr<unsigned char, decltype(&std::free)> shared_;
  Registers scheduler_ = {};
  void* scheduler_sanitizer_stack_ = nullptr;
  const void* scheduler_stack_ = nullptr;
  size_t scheduler_stack_bytes_ = 0;
  size_t running_ = 0;
  size_t left_ = 0;  // threads not yet done
  int64_t index_ = 0;
};

int BlockOnHost::threads() const { return fibres_.threads(); }
void BlockOnHost::sync() { fibres_.wait_for_block(); }
void BlockOnHost::warp_sync() { fibres_.wait_for_warp(warp()); }
unsigned char* BlockOnHost::shared() { return fibres_.shared(); }
uint64_t* BlockOnHost::slot(int thread) { return fibres_.slot(thread, turn_); }

uint32_t BlockOnHost::matrix_element(int matrix, int row, int column) {
  const auto* from = reinterpret_cast<const unsigned char*>(passed_by<uintptr_t>(8 * matrix + row));
  if (reinterpret_cast<uintptr_t>(from) % 16 != 0) std::abort();  // the GPU would report a misaligned address
  uint16_t bits = 0;
  std::memcpy(&bits, from + column * static_cast<int>(sizeof bits), sizeof bits);
  return bits;
}

void BlockOnHost::mma(const uint32_t (&a)[4], uint32_t b0, uint32_t b1, float (&c)[4]) {
  struct Registers {
    uint32_t a[4], b[2];
  };
  exchange(Registers{{a[0], a[1], a[2], a[3]}, {b0, b1}});
  const int g = lane() / 4, t = lane() % 4;
  float of_a[2][16], of_b[2][16];  // rows g and g + 8 of a, columns 2t and 2t + 1 of b
  const auto unpack = [](uint32_t pair, float* to) {
    to[0] = std::bit_cast<float>(pair << 16);
    to[1] = std::bit_cast<float>(pair & 0xFFFF0000u);
  };
  for (int pair = 0; pair < 4; ++pair) {
    const Registers row = passed_by<Registers>(4 * g + pair);
    for (int x = 0; x < 4; ++x) unpack(row.a[x], &of_a[x % 2][2 * pair + x / 2 * 8]);
    for (int i = 0; i < 2; ++i) {
      const Registers column = passed_by<Registers>(4 * (2 * t + i) + pair);
      for (int x = 0; x < 2; ++x) unpack(column.b[x], &of_b[i][2 * pair + x * 8]);
    }
  }
  for (int x = 0; x < 4; ++x) {
    for (int k = 0; k < 16; ++k) c[x] += of_a[x / 2][k] * of_b[x % 2][k];
  }
}

void set_thread_order(ThreadOrder order) { thread_order() = order; }

void run_blocks(const Shape& shape, const std::function<void(BlockOnHost&)>& body) {
  if (shape.blocks == 0) return;
  FibreBlock fibres(shape, body);
  for (int64_t i = 0; i < shape.blocks; ++i) fibres.run(i);
}

}  // namespace tearless::engine::test
