#include "engine/ops/backend.h"

#include <ATen/ops/from_blob.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "base/error.h"
#include "engine/ops/matmul.h"

namespace tearless::engine {

#define TEARLESS_DECLARE_ISA(isa)                  \
  namespace isa {                                  \
  extern const Kernels<float> float_kernels;       \
  extern const Kernels<double> double_kernels;     \
  extern const OptimiserKernels optimiser_kernels; \
  }
TEARLESS_DECLARE_ISA(isa_v2)
TEARLESS_DECLARE_ISA(isa_v3)
TEARLESS_DECLARE_ISA(isa_v4)
#undef TEARLESS_DECLARE_ISA

namespace {

const Backend* widest() {
  const Backend* best = nullptr;
  for (const Backend& backend : cpu_backends()) {
    if (backend.supported) best = &backend;
  }
  return best;
}

Backend cuda;

const Backend*& chosen() {
  static const Backend* backend = widest();
  return backend;
}

const Backend& backend_for(const at::Tensor& x) { return x.device().is_cpu() ? cpu_backend() : cuda; }

template <class Table>
const Table& table_or_none(const Table* table) {
  static constexpr Table kNone{};
  return table ? *table : kNone;
}

}  // namespace

std::span<const Backend> cpu_backends() {
  static const Backend backends[] = {
      {.name = "x86-64-v2",
       .supported = true,
       .float_kernels = &isa_v2::float_kernels,
       .double_kernels = &isa_v2::double_kernels,
       .optimiser = &isa_v2::optimiser_kernels},
      {.name = "x86-64-v3",
       .supported = this_processor().avx2,
       .float_kernels = &isa_v3::float_kernels,
       .double_kernels = &isa_v3::double_kernels,
       .optimiser = &isa_v3::optimiser_kernels},
      {.name = "x86-64-v4",
       .supported = this_processor().avx512,
       .float_kernels = &isa_v4::float_kernels,
       .double_kernels = &isa_v4::double_kernels,
       .optimiser = &isa_v4::optimiser_kernels},
  };
  return backends;
}

const Backend& cpu_backend() { return *chosen(); }

void use_cpu_backend(std::string_view name) {
  std::string known;
  for (const Backend& backend : cpu_backends()) {
    if (backend.name == name) {
      if (!backend.supported) fail("this processor has no {}; the widest it has is {}", name, widest()->name);
      chosen() = &backend;
      return;
    }
    known += fmt::format("{}{}", known.empty() ? "" : ", ", backend.name);
  }
  fail("there is no instruction set \"{}\"; choose one of: {}", name, known);
}

void use_cpu_backend(const Backend& backend) { chosen() = &backend; }

void use_cuda_backend(const Backend& backend) { cuda = backend; }

CaptureGraph capture_for(const at::Tensor& x) { return backend_for(x).capture; }

void* stream_for(const at::Tensor& x) {
  if (x.device().is_cpu()) return nullptr;
  return c10::impl::VirtualGuardImpl(x.device().type()).getStream(x.device()).native_handle();
}

void wait_for(const at::Tensor& x) {
  if (x.device().is_cpu()) return;
  const c10::impl::VirtualGuardImpl device(x.device().type());
  device.synchronizeStream(device.getStream(x.device()));
}

at::Tensor copy_to_device(const void* host, int64_t bytes, const at::Tensor& like) {
  return at::from_blob(const_cast<void*>(host), {bytes}, at::kByte).to(like.device());
}

template <class T>
const Kernels<T>& kernels_for(const at::Tensor& x) {
  const Backend& backend = backend_for(x);
  if constexpr (std::is_same_v<T, float>) return table_or_none(backend.float_kernels);
  if constexpr (std::is_same_v<T, bf16>) return table_or_none(backend.bf16_kernels);
  if constexpr (std::is_same_v<T, double>) return table_or_none(backend.double_kernels);
}
template const Kernels<float>& kernels_for(const at::Tensor& x);
template const Kernels<bf16>& kernels_for(const at::Tensor& x);
template const Kernels<double>& kernels_for(const at::Tensor& x);

const SearchKernels& search_kernels_for(const at::Tensor& x) { return table_or_none(backend_for(x).search); }

const OptimiserKernels& optimiser_kernels_for(const at::Tensor& x) { return table_or_none(backend_for(x).optimiser); }

}  // namespace tearless::engine
