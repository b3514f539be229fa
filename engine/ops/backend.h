// Which kernels run: on CPU tensors those of the widest instruction set that the processor supports, on CUDA tensors
// those of libtearless_cuda.so, once it is loaded (engine/cuda/cuda_library.h). An operation asks fast() for its
// kernels, then calls with_kernels(); where a device does not have them all it runs by its formula instead.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "engine/ops/kernels.h"
#include "engine/ops/packed_rows.h"
#include "engine/ops/tape.h"

namespace tearless::engine {

/// Launches that are repeated on the same memory, as a CUDA graph:
///   1. the first run() launches directly: the warm-up run, in which one-time allocations (a workspace, a longer table)
///      are made;
///   2. the second run() captures the launches and replays them;
///   3. every later run() replays.
class CapturedGraph {
 public:
  /// `launches` is not called any more once captured(). A null `capture`: always launches directly.
  void run(CaptureGraph capture, const std::function<void()>& launches) {
    if (!replay_ && capture && launched_) replay_ = capture(launches);
    if (replay_) return replay_();
    launches();
    launched_ = true;
  }
  bool captured() const { return replay_ != nullptr; }

 private:
  bool launched_ = false;
  std::function<void()> replay_;
};

/// All instruction sets, from the narrowest to the widest.
std::span<const Backend> cpu_backends();
/// The backend in use: the widest that is supported, unless use_cpu_backend() chose another.
const Backend& cpu_backend();
/// Selects a backend by name, for tests and profiles. UserError where the name is unknown or not supported by this
/// processor. Not thread-safe, like the next two functions.
void use_cpu_backend(std::string_view name);
/// As above, for a backend that is not in cpu_backends(). Borrows `backend`.
void use_cpu_backend(const Backend& backend);

/// Sets the backend for CUDA tensors, after their library has been loaded. Until then operations on CUDA tensors run by
/// their formulas.
void use_cuda_backend(const Backend& backend);

/// CUDA graph capture for x's device; null where it has none.
CaptureGraph capture_for(const at::Tensor& x);

/// Blocks until the current stream of x's device has finished its work.
void wait_for(const at::Tensor& x);

/// The current stream of x's device: a cudaStream_t, or null on the processor.
void* stream_for(const at::Tensor& x);

/// Copies `bytes` bytes of host memory to like's device, as a tensor of bytes.
at::Tensor copy_to_device(const void* host, int64_t bytes, const at::Tensor& like);

/// The tables of kernels for x's device; empty ones, all null, where the device has none.
template <class T>
const Kernels<T>& kernels_for(const at::Tensor& x);
const OptimiserKernels& optimiser_kernels_for(const at::Tensor& x);
const SearchKernels& search_kernels_for(const at::Tensor& x);

/// A host vector as an array that kernels on like's device can read: on the processor the vector itself, which must
/// outlive this; on a device the copy registered with Tape::set_device_copy(), or else a copy that this object owns.
template <class P>
class OnDevice {
 public:
  OnDevice(const Tape& tape, const std::vector<P>& host, const at::Tensor& like) : data_(host.data()) {
    if (host.empty()) return;
    if (const void* copy = tape.device_copy(host.data())) {
      data_ = static_cast<const P*>(copy);
    } else if (!like.device().is_cpu()) {
      copy_ = copy_to_device(host.data(), static_cast<int64_t>(host.size() * sizeof(P)), like);
      data_ = static_cast<const P*>(copy_.const_data_ptr());
    }
  }
  const P* data() const { return data_; }

 private:
  const P* data_;
  at::Tensor copy_;
};

/// The dropout counters of a packed side's rows, readable on like's device. `rows` must outlive it.
class DropoutCountersOnDevice {
 public:
  DropoutCountersOnDevice(const Tape& tape, const PackedRows& rows, const at::Tensor& like)
      : positions_(tape, rows.positions, like), sentence_ids_(tape, rows.sentence_ids, like) {}
  DropoutCounters get() const { return {positions_.data(), sentence_ids_.data()}; }

 private:
  OnDevice<int32_t> positions_, sentence_ids_;
};

/// The result of f(kernels, stream) with the Kernels<T> for x's element type and device.
template <class F>
auto with_kernels(const at::Tensor& x, F&& f) {
  if (x.scalar_type() == at::kDouble) return f(kernels_for<double>(x), stream_for(x));
  if (x.scalar_type() == at::kBFloat16) return f(kernels_for<bf16>(x), stream_for(x));
  return f(kernels_for<float>(x), stream_for(x));
}

/// Whether has(kernels), with the Kernels<T> for x's element type and device.
template <class Has>
bool kernels_have(const at::Tensor& x, Has&& has) {
  return with_kernels(x, [&](const auto& kernels, void*) -> bool { return has(kernels); });
}

/// Whether an operation on x is to run by the kernels that has(kernels) asks for: on a tape of Ops::kFast, where x's
/// device has them all. An operation asks for the kernel of its backward too.
template <class Has>
bool fast(const Tape& tape, const at::Tensor& x, Has&& has) {
  return tape.ops() == Tape::Ops::kFast && kernels_have(x, has);
}

/// Options for the statistics and sums of an operation on x: fp32 where x is bf16, else x's type (kernels.h: Wide).
inline at::TensorOptions wide_options(const at::Tensor& x) {
  return x.scalar_type() == at::kBFloat16 ? x.options().dtype(at::kFloat) : x.options();
}

/// x's elements as a typed pointer for a kernel to read; null where x is undefined.
template <class T>
const T* read(const at::Tensor& x) {
  if (!x.defined()) return nullptr;
  if constexpr (std::is_same_v<T, bf16>) {
    return reinterpret_cast<const bf16*>(x.const_data_ptr<at::BFloat16>());
  } else {
    return x.const_data_ptr<T>();
  }
}
/// The same for a kernel to write.
template <class T>
T* write(const at::Tensor& x) {
  if (!x.defined()) return nullptr;
  if constexpr (std::is_same_v<T, bf16>) {
    return reinterpret_cast<bf16*>(x.mutable_data_ptr<at::BFloat16>());
  } else {
    return x.mutable_data_ptr<T>();
  }
}

}  // namespace tearless::engine
