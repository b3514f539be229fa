// What marks the body of a kernel: nvcc compiles it for the device, any other compiler for the processor
// (kernels_on_host.h), where the tests run it.
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
