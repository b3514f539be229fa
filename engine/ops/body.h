// Macros for kernel bodies (engine/cuda/*_body.h): nvcc compiles them for the device; any other compiler compiles them
// for the processor, where tests run them (tests/engine/cuda/kernels_on_host.h).
//   TEARLESS_BODY               a function of a kernel body: device code
//   TEARLESS_BOTH               a function for device and host code
//   TEARLESS_UNROLL(_BY(n))     #pragma unroll (n) for the loop that follows; nothing on the processor
#pragma once

#ifdef __CUDACC__
#define TEARLESS_BODY __device__ __forceinline__
#define TEARLESS_BOTH __host__ __device__ __forceinline__
#define TEARLESS_PRAGMA(text) _Pragma(#text)
#define TEARLESS_UNROLL TEARLESS_PRAGMA(unroll)
#define TEARLESS_UNROLL_BY(times) TEARLESS_PRAGMA(unroll times)
#else
#define TEARLESS_BODY inline
#define TEARLESS_BOTH inline
#define TEARLESS_UNROLL
#define TEARLESS_UNROLL_BY(times)
#endif
