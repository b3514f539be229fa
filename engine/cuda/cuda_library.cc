#include "engine/cuda/cuda_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "engine/cuda/torch_folder.h"

namespace tearless::engine {

namespace {

constexpr int kMaxDevices = 64;
constexpr char kOtherVersion[] = "libtearless_cuda.so is of another version than the engine: build both again";

void* load() {
  const std::filesystem::path file = cuda_library_file();
  if (!std::filesystem::exists(file)) {
    fail(
        "device = \"cuda\" needs {}, which this build does not have: build on a machine with nvcc 13, or use device = "
        "\"cpu\"",
        file.string());
  }
  const char* const libraries = std::getenv(kLibrariesVariable);
  if (libraries && !std::filesystem::exists(torch_in_use() / "libtorch_cuda.so")) {
    const char* const asked = std::getenv("TEARLESS_TORCH");
    start_again_with(
        torch_with_cuda(asked ? asked : "", std::filesystem::canonical(libraries).parent_path().parent_path()));
  }
  // RTLD_GLOBAL, so that ATen's CUDA kernels register with the dispatcher that the engine already has.
  void* library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (!library)
    fail("device = \"cuda\" cannot be used, {} does not load ({}): {}", file.string(), ::dlerror(),
         libraries ? "pip install torch again, with all that it needs" : "run `make setup` beside an NVIDIA driver");
  return library;
}

void* library() {
  static void* const handle = load();
  return handle;
}

/// The address of a function that the library exports. UserError where it has no such function.
template <class Function>
Function* exported(const char* name) {
  const auto function = reinterpret_cast<Function*>(::dlsym(library(), name));
  if (!function) fail(kOtherVersion);
  return function;
}

}  // namespace

std::filesystem::path cuda_library_file() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "libtearless_cuda.so";
}

void open_cuda_library() { library(); }

std::vector<TearlessCudaDevice> cuda_devices() {
  const auto list = exported<decltype(tearless_cuda_devices)>("tearless_cuda_devices");
  std::vector<TearlessCudaDevice> devices(kMaxDevices);
  std::array<char, 256> error{};
  const int count = list(devices.data(), kMaxDevices, error.data(), error.size());
  if (count < 0) {
    throw MachineError(
        fmt::format("device = \"cuda\" cannot be used ({}); check the NVIDIA driver with nvidia-smi", error.data()));
  }
  devices.resize(static_cast<size_t>(std::min(count, kMaxDevices)));
  return devices;
}

const Backend& cuda_backend() {
  static const CudaKernels& kernels = *exported<decltype(tearless_cuda_kernels)>("tearless_cuda_kernels")();
  if (kernels.layout != kCudaKernelsLayout) fail(kOtherVersion);
  return kernels.backend;
}

}  // namespace tearless::engine
