// Which kernels run: the widest instruction set that the processor has, or CUDA's once its library is open.
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

/// Records what `launches` gives the device to do, without doing it; the returned function has it done, as often as it
/// is called. What `launches` allocates stays where it is until that function is destroyed.
using Capture = std::function<void()> (*)(const std::function<void()>& launches);

/// Work for a device that is given to it again and again. The first time it is launched as it comes, so that it gets
/// what it wants once (a workspace, a longer table); the second time it is captured, and replayed from then on.
class Repeated {
 public:
  /// A null `capture`: launched as it comes.
  void run(Capture capture, const std::function<void()>& launches) {
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

/// The processor's kernels for one instruction set.
struct CpuBackend {
  std::string_view name;  // "x86-64-v2": SSE4; "x86-64-v3": AVX2; "x86-64-v4": AVX-512
  bool supported;         // by the processor that we run on
  const Kernels<float>* float_kernels;
  const Kernels<double>* double_kernels;
  const OptimiserKernels* optimiser;
  // No instruction set has these; tests that run a device's kernels on the processor do.
  const Kernels<bf16>* bf16_kernels = nullptr;
  const SearchKernels* search = nullptr;
  Capture capture = nullptr;
};
/// From the narrowest to the widest.
std::span<const CpuBackend> cpu_backends();
/// The one in use: the widest that is supported, unless use_cpu_backend() chose another.
const CpuBackend& cpu_backend();
/// For tests and profiles. UserError for a name that is unknown or not supported here.
void use_cpu_backend(std::string_view name);
/// As above, for a table that is not in the list; `backend` must outlive its use.
void use_cpu_backend(const CpuBackend& backend);

/// What a device's library brings.
struct DeviceKernels {
  const Kernels<float>* float_kernels = nullptr;
  const Kernels<bf16>* bf16_kernels = nullptr;
  const OptimiserKernels* optimiser = nullptr;
  const SearchKernels* search = nullptr;
  Capture capture = nullptr;
};
/// Names the kernels for CUDA, when their library has been opened. Until then operations on CUDA run by their formulas.
void use_cuda_kernels(const DeviceKernels& kernels);

/// True where there are kernels for x's device and type.
bool has_kernels(const at::Tensor& x);
/// How steps are captured on x's device; null where they are not.
Capture capture_for(const at::Tensor& x);

/// Waits until x's device has done what it was given.
void wait_for(const at::Tensor& x);

/// The stream for a kernel on x's device: a cudaStream_t, or null on the processor.
void* stream_for(const at::Tensor& x);

/// Bytes of the host as a tensor on like's device.
at::Tensor copy_to_device(const void* host, int64_t bytes, const at::Tensor& like);

template <class T>
const Kernels<T>& kernels_for(const at::Tensor& x);
const OptimiserKernels& optimiser_kernels_for(const at::Tensor& x);
const SearchKernels& search_kernels_for(const at::Tensor& x);

/// A host vector where a kernel on some device reads it: the vector itself, what the tape knows to stand on the device
/// for it, or a copy that lives as long as this.
template <class P>
class OnDevice {
 public:
  OnDevice(const Tape& tape, const std::vector<P>& host, const at::Tensor& like) : data_(host.data()) {
    if (host.empty()) return;
    if (const void* placed = tape.placed(host.data())) {
      data_ = static_cast<const P*>(placed);
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

/// The names of a packed side's rows on a device. On the processor `rows` must outlive it.
class NamesOnDevice {
 public:
  NamesOnDevice(const Tape& tape, const PackedRows& rows, const at::Tensor& like)
      : positions_(tape, rows.positions, like), lines_(tape, rows.lines, like) {}
  RowNames get() const { return {positions_.data(), lines_.data()}; }

 private:
  OnDevice<int32_t> positions_, lines_;
};

/// Calls f(kernels, stream) with the Kernels<T> for the tensor's element type and device.
template <class F>
void with_kernels(const at::Tensor& x, F&& f) {
  if (x.scalar_type() == at::kDouble) return f(kernels_for<double>(x), stream_for(x));
  if (x.scalar_type() == at::kBFloat16) return f(kernels_for<bf16>(x), stream_for(x));
  f(kernels_for<float>(x), stream_for(x));
}

/// The type of statistics and sums of operations on tensors like x (kernels.h: Wide).
inline at::TensorOptions wide_options(const at::Tensor& x) {
  return x.scalar_type() == at::kBFloat16 ? x.options().dtype(at::kFloat) : x.options();
}

/// A tensor's elements as a kernel takes them; null where it is not defined.
template <class T>
const T* read(const at::Tensor& x) {
  if (!x.defined()) return nullptr;
  if constexpr (std::is_same_v<T, bf16>) {
    return reinterpret_cast<const bf16*>(x.const_data_ptr<at::BFloat16>());
  } else {
    return x.const_data_ptr<T>();
  }
}
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
