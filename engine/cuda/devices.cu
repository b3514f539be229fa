// Lists the GPUs that this process may use.
#include <cuda_runtime.h>

#include <cstdio>

#include "engine/cuda/cuda_kernels.h"

namespace {

// "GPU-" and the 16 bytes in hexadecimal, in groups of 4-2-2-2-6.
void format_uuid(const cudaUUID_t& uuid, char* text, size_t size) {
  const auto byte = [&](int i) { return static_cast<unsigned>(static_cast<unsigned char>(uuid.bytes[i])); };
  snprintf(text, size, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", byte(0), byte(1),
           byte(2), byte(3), byte(4), byte(5), byte(6), byte(7), byte(8), byte(9), byte(10), byte(11), byte(12),
           byte(13), byte(14), byte(15));
}

}  // namespace

extern "C" int tearless_cuda_devices(TearlessCudaDevice* devices, int capacity, char* error, size_t error_size) {
  int count = 0;
  cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaErrorNoDevice) return 0;
  for (int i = 0; status == cudaSuccess && i < count && i < capacity; ++i) {
    cudaDeviceProp properties;
    status = cudaGetDeviceProperties(&properties, i);
    if (status != cudaSuccess) break;
    TearlessCudaDevice& device = devices[i];
    device.index = i;
    snprintf(device.name, sizeof device.name, "%s", properties.name);
    format_uuid(properties.uuid, device.uuid, sizeof device.uuid);
    device.memory_bytes = properties.totalGlobalMem;
    device.compute_major = properties.major;
    device.compute_minor = properties.minor;
  }
  if (status == cudaSuccess) return count;
  std::string why = cudaGetErrorString(status);
  if (int known = 0, needed = 0; status == cudaErrorInsufficientDriver) {
    cudaDriverGetVersion(&known);
    cudaRuntimeGetVersion(&needed);
    why = tearless::engine::driver_too_old(known, needed);
  }
  snprintf(error, error_size, "%s", why.c_str());
  return -1;
}
