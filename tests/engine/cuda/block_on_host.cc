#undef _FORTIFY_SOURCE  // its longjmp() check aborts on a jump to another stack

#include "tests/engine/cuda/block_on_host.h"

#include <setjmp.h>
#include <ucontext.h>

#include <bit>
#include <cstdio>
#include <cstdlib>

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

struct Fibre {
  ucontext_t context;  // its start
  jmp_buf registers;   // where it was suspended
  bool started = false;
  unsigned char* stack = nullptr;
  const Barrier* waits_for = nullptr;
  uint64_t until = 0;  // runnable when waits_for->passed reaches it
  bool done = false;
  void* sanitizer_stack = nullptr;
};

/// The stack of thread i. Stacks are reused by later launches: mapping and unmapping them would cost more than most
/// bodies.
unsigned char* stack(size_t i) {
  thread_local std::vector<std::unique_ptr<unsigned char[]>> stacks;
  while (stacks.size() <= i) stacks.push_back(std::make_unique_for_overwrite<unsigned char[]>(kStackBytes));
  return stacks[i].get();
}

}  // namespace

class FibreBlock {
 public:
  FibreBlock(const Shape& shape, const std::function<void(BlockOnHost&)>& body)
      : body_(body),
        fibres_(static_cast<size_t>(shape.threads)),
        warp_barriers_(static_cast<size_t>(shape.threads / kLanes)),
        slots_(2 * BlockOnHost::kSlotWords * static_cast<size_t>(shape.threads)),
        shared_bytes_(static_cast<size_t>(shape.shared_bytes)),
        shared_(memory_of(shared_bytes_), &std::free) {
    if (shape.threads <= 0 || shape.threads % kLanes != 0 || shape.threads > 1024) {
      die("a block must have whole warps, and 1024 threads at most");
    }
    block_barrier_.expected = shape.threads;
    for (Barrier& barrier : warp_barriers_) barrier.expected = kLanes;
    for (size_t i = 0; i < fibres_.size(); ++i) fibres_[i].stack = stack(i);
  }

  void run(int64_t index) {
    index_ = index;
    std::memset(shared_.get(), 0xFF, shared_bytes_);  // NaN as float, -1 as integer
    for (size_t i = 0; i < fibres_.size(); ++i) start(i);
    left_ = fibres_.size();
    while (left_ > 0) {
      bool any = false;
      for (size_t i = 0; i < warp_barriers_.size(); ++i) {
        const size_t warp = in_order(i, warp_barriers_.size());
        while (step(warp)) any = true;
      }
      if (!any) die("threads of a block wait at a barrier that others never reach");
    }
  }

  int threads() const { return static_cast<int>(fibres_.size()); }
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

  void start(size_t i) {
    Fibre& fibre = fibres_[i];
    fibre.done = false;
    fibre.started = false;
    ::getcontext(&fibre.context);
    fibre.context.uc_stack.ss_sp = fibre.stack;
    fibre.context.uc_stack.ss_size = kStackBytes;
    fibre.context.uc_link = nullptr;
    // makecontext() passes ints, so the pointer is split in two.
    const auto self = reinterpret_cast<uintptr_t>(this);
    ::makecontext(&fibre.context, reinterpret_cast<void (*)()>(&FibreBlock::enter), 2, static_cast<unsigned>(self),
                  static_cast<unsigned>(self >> 32));
  }

  static void enter(unsigned low, unsigned high) {
    auto* self = reinterpret_cast<FibreBlock*>(static_cast<uintptr_t>(low) | static_cast<uintptr_t>(high) << 32);
    self->on_fibre();
    const size_t thread = self->running_;
    {
      BlockOnHost block(*self, self->index_, static_cast<int>(thread));
      self->body_(block);
    }
    self->fibres_[thread].done = true;
    self->to_scheduler(nullptr);
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

  // Switches by longjmp(), not swapcontext(), which makes a system call for the signal mask each time. The address
  // sanitizer must be told of every switch of stacks.
  void resume(size_t i) {
    running_ = i;
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(&scheduler_sanitizer_stack_, fibres_[i].stack, kStackBytes);
#endif
    if (::_setjmp(scheduler_) == 0) switch_to(fibres_[i]);
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(scheduler_sanitizer_stack_, nullptr, nullptr);
#endif
  }
  [[noreturn]] static void switch_to(Fibre& fibre) {
    if (fibre.started) ::_longjmp(fibre.registers, 1);
    fibre.started = true;
    ::setcontext(&fibre.context);
    die("a thread of a block cannot be started");
  }
  void to_scheduler([[maybe_unused]] void** sanitizer_stack) {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(sanitizer_stack, scheduler_stack_, scheduler_stack_bytes_);
#endif
    if (::_setjmp(fibres_[running_].registers) == 0) ::_longjmp(scheduler_, 1);
  }
  void on_fibre() {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(fibres_[running_].sanitizer_stack, &scheduler_stack_, &scheduler_stack_bytes_);
#endif
  }

  const std::function<void(BlockOnHost&)>& body_;
  std::vector<Fibre> fibres_;
  std::vector<Barrier> warp_barriers_;
  Barrier block_barrier_;
  std::vector<uint64_t> slots_;
  size_t shared_bytes_;
  std::unique_ptr<unsigned char, decltype(&std::free)> shared_;
  jmp_buf scheduler_;
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
