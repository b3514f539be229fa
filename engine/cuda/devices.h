// The C interface of libtearless_cuda.so, shared by nvcc and the engine's compiler: plain C types only, no CUDA or
// LibTorch header.
#pragma once

#include <stddef.h>
#include <stdint.h>

extern "C" {

struct TearlessCudaDevice {
  int index;
  char name[256];
  char uuid[48];  // "GPU-xxxxxxxx-xxxx-…", as nvidia-smi and CUDA_VISIBLE_DEVICES spell it
  uint64_t memory_bytes;
  int compute_major, compute_minor;
};

// Writes up to `capacity` devices and returns how many there are. On failure returns -1 and writes the CUDA runtime's
// error string to `error`.
int tearless_cuda_devices(TearlessCudaDevice* devices, int capacity, char* error, size_t error_size);
}
