// Which kernels run: the widest instruction set that the processor has, or CUDA's once its library is open.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <string_view>

#include "engine/ops/kernels.h"
#include "engine/ops/tape.h"

namespace tearless::engine {

/// The processor's kernels for one instruction set.
struct CpuBackend {
  std::string_view name;  // "x86-64-v2": SSE4; "x86-64-v3": AVX2; "x86-64-v4": AVX-512
  bool supported;         // by the processor that we run on
  const Kernels<float>* float_kernels;
  const Kernels<double>* double_kernels;
  const OptimiserKernels* optimiser;
};
/// From the narrowest to the widest.
std::span<const CpuBackend> cpu_backends();
/// The one in use: the widest that is supported, unless use_cpu_backend() chose another.
const CpuBackend& cpu_backend();
/// For tests and profiles. UserError for a name that is unknown or not supported here.
void use_cpu_backend(std::string_view name);

/// The stream for a kernel on x's device: null on the processor.
void* stream_for(const at::Tensor& x);

template <class T>
const Kernels<T>& kernels_for(const at::Tensor& x);
const OptimiserKernels& optimiser_kernels_for(const at::Tensor& x);

/// Calls f(T{}, kernels, stream) with the tensor's element type and the kernels for its device.
template <class F>
void with_kernels(const at::Tensor& x, F&& f) {
  if (x.scalar_type() == at::kDouble) return f(double{}, kernels_for<double>(x), stream_for(x));
  f(float{}, kernels_for<float>(x), stream_for(x));
}

/// A tensor's elements as a kernel takes them; null where it is not defined.
template <class T>
const T* read(const at::Tensor& x) {
  return x.defined() ? x.const_data_ptr<T>() : nullptr;
}
template <class T>
T* write(const at::Tensor& x) {
  return x.defined() ? x.mutable_data_ptr<T>() : nullptr;
}

}  // namespace tearless::engine
