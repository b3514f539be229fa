// Building blocks of the CPU kernels: vectors of the instruction set's width, threads, scratch memory and shared
// arithmetic. Included only by kernels.cc, which is compiled once for each instruction set, each in its own namespace.
//
// The trap: an inline function of the standard library (or of ours) that is instantiated in such a translation unit may
// be the copy that the linker retains for the whole program; a processor without AVX-512 would then execute AVX-512
// code. So nothing here uses std:: templates, and everything is in the unit's namespace.
#pragma once

#include <immintrin.h>
#include <omp.h>

#include <cstdint>
#include <new>

#include "engine/ops/kernels.h"

namespace tearless::engine::TEARLESS_ISA {

#if defined(__AVX512F__)
inline constexpr int64_t kVectorBytes = 64;
#elif defined(__AVX2__)
inline constexpr int64_t kVectorBytes = 32;
#else
inline constexpr int64_t kVectorBytes = 16;
#endif

template <class T>
struct VectorOf {
  typedef T type __attribute__((vector_size(kVectorBytes)));
};
template <class T>
using Vector = typename VectorOf<T>::type;
/// Elements in a vector.
template <class T>
inline constexpr int64_t kLanes = kVectorBytes / static_cast<int64_t>(sizeof(T));

template <class T>
inline Vector<T> load(const T* from) {
  Vector<T> v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}
template <class T>
inline void store(T* to, Vector<T> v) {
  __builtin_memcpy(to, &v, sizeof v);
}
template <class T>
inline Vector<T> broadcast(T x) {
  return x - Vector<T>{};
}

/// Calls f(v, i) for chunks of elements i … i + lanes - 1 that cover [0, n), where v is a vector of that many lanes
/// (only its type counts): whole vectors, or 16 bytes, or one lane where n is smaller. The last chunk may overlap the
/// one before it, so f may be called twice for an element. For rows too short for the loops that the compiler
/// vectorises.
template <class T, class F>
inline void for_chunks(int64_t n, F&& f) {
  const auto cover = [&]<class V>(V v) {
    constexpr int64_t kSize = static_cast<int64_t>(sizeof(V) / sizeof(T));
    for (int64_t i = 0; i + kSize < n; i += kSize) f(v, i);
    f(v, n - kSize);
  };
  typedef T Sixteen __attribute__((vector_size(16)));
  typedef T One __attribute__((vector_size(sizeof(T))));
  if (n >= kLanes<T>) {
    cover(Vector<T>{});
  } else if (n >= static_cast<int64_t>(16 / sizeof(T))) {
    cover(Sixteen{});
  } else if (n > 0) {
    cover(One{});
  }
}

inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
inline int64_t larger(int64_t a, int64_t b) { return a < b ? b : a; }
/// n rounded up to whole vectors of T.
template <class T>
inline int64_t padded(int64_t n) {
  return (n + kLanes<T> - 1) / kLanes<T> * kLanes<T>;
}

/// Temporary memory of a kernel, aligned for vectors, not initialised.
template <class T>
class Scratch {
 public:
  /// Throws std::bad_alloc. Allocates one vector more than `size`, so that vector loads may run past the end.
  explicit Scratch(int64_t size)
      : data_(static_cast<T*>(::operator new(static_cast<size_t>(size) * sizeof(T) + kAlignment, kAligned))) {}
  ~Scratch() { ::operator delete(data_, kAligned); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  T* get() const { return data_; }

 private:
  static constexpr size_t kAlignment = 64;
  static constexpr std::align_val_t kAligned{kAlignment};
  T* data_;
};

/// Work (count · cost) for each thread: below, starting a thread costs more than it saves.
inline constexpr int64_t kWorthAThread = 1 << 14;

/// Calls f(begin, end) in parallel on ranges that cover [0, count), one for each thread. `cost_of_one`: work of one
/// item, in elements. An item's result must not depend on the range that it is in.
template <class F>
inline void for_ranges(int64_t count, int64_t cost_of_one, F&& f) {
  int64_t threads = smaller(omp_get_max_threads(), count * cost_of_one / kWorthAThread);
  threads = smaller(threads, count);
  if (threads <= 1 || omp_in_parallel()) return f(int64_t{0}, count);
#pragma omp parallel num_threads(static_cast <int>(threads))
  {
    const int64_t n = omp_get_num_threads();
    const int64_t i = omp_get_thread_num();
    const int64_t begin = count * i / n;
    const int64_t end = count * (i + 1) / n;
    if (begin < end) f(begin, end);
  }
}

/// Rows in one block of a sum over rows. Fixed, so that the order of additions does not depend on the number of
/// threads.
inline constexpr int64_t kSumBlock = 64;

/// sum[c] += Σ over all rows, c < width. add_rows(begin, end, partial) adds rows begin … end - 1 to partial [width],
/// which starts as 0; the partial sums of the blocks are added in order.
template <class T, class AddRows>
inline void add_over_rows(int64_t rows, int64_t width, T* sum, AddRows&& add_rows) {
  const int64_t blocks = (rows + kSumBlock - 1) / kSumBlock;
  const Scratch<T> partial(blocks * width);
  for_ranges(blocks, kSumBlock * width, [&](int64_t first, int64_t last) {
    for (int64_t block = first; block < last; ++block) {
      T* to = partial.get() + block * width;
      for (int64_t c = 0; c < width; ++c) to[c] = T(0);
      add_rows(block * kSumBlock, smaller(rows, (block + 1) * kSumBlock), to);
    }
  });
  for (int64_t block = 0; block < blocks; ++block) {
    const T* p = partial.get() + block * width;
    for (int64_t c = 0; c < width; ++c) sum[c] += p[c];
  }
}

/// Lane i holds first + i.
template <class T>
inline Vector<T> count_from(int64_t first) {
  alignas(64) static constexpr T kCount[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  return load(kCount) + static_cast<T>(first);
}

/// Reduces all lanes to one number by op, halving the vector each time.
template <class Op>
inline float fold(float __attribute__((vector_size(16))) v, Op&& op) {
  v = op(v, __builtin_shufflevector(v, v, 2, 3, 0, 1));
  return op(v, __builtin_shufflevector(v, v, 1, 0, 3, 2))[0];
}
template <class Op>
inline double fold(double __attribute__((vector_size(16))) v, Op&& op) {
  return op(v, __builtin_shufflevector(v, v, 1, 0))[0];
}
#if defined(__AVX2__)
template <class Op>
inline float fold(float __attribute__((vector_size(32))) v, Op&& op) {
  return fold(op(__builtin_shufflevector(v, v, 0, 1, 2, 3), __builtin_shufflevector(v, v, 4, 5, 6, 7)), op);
}
template <class Op>
inline double fold(double __attribute__((vector_size(32))) v, Op&& op) {
  return fold(op(__builtin_shufflevector(v, v, 0, 1), __builtin_shufflevector(v, v, 2, 3)), op);
}
#endif
#if defined(__AVX512F__)
template <class Op>
inline float fold(float __attribute__((vector_size(64))) v, Op&& op) {
  return fold(op(__builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7),
                 __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15)),
              op);
}
template <class Op>
inline double fold(double __attribute__((vector_size(64))) v, Op&& op) {
  return fold(op(__builtin_shufflevector(v, v, 0, 1, 2, 3), __builtin_shufflevector(v, v, 4, 5, 6, 7)), op);
}
#endif

template <class T>
inline T sum_of_lanes(Vector<T> v) {
  return fold(v, [](auto a, auto b) { return a + b; });
}
template <class T>
inline T largest_of_lanes(Vector<T> v) {
  return fold(v, [](auto a, auto b) { return a < b ? b : a; });
}

// --- reductions of one row

/// Σ f(i) over [0, n). Lanes hold partial sums; the order is fixed by n and the instruction set.
template <class T, class F>
inline T sum_of(int64_t n, F&& f) {
  T sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += f(i);
  return sum;
}

template <class T>
inline T largest_of(const T* x, int64_t n) {
  T largest = x[0];
#pragma omp simd reduction(max : largest)
  for (int64_t i = 0; i < n; ++i) largest = x[i] > largest ? x[i] : largest;
  return largest;
}

/// 2ⁿ for an integer n given as a float; scalar and vector.
inline float power_of_two(float n) { return __builtin_bit_cast(float, (static_cast<int32_t>(n) + 127) << 23); }
inline Vector<float> power_of_two(Vector<float> n) {
  return (Vector<float>)((__builtin_convertvector(n, Vector<int32_t>) + 127) << 23);
}

/// e^x by range reduction and a degree-6 polynomial (relative error < 2e-7), for float and Vector<float>. x below -87
/// counts as -87. For double the C library's exp() is used.
template <class X>
inline X exp_in_float(X x) {
  x = x < -87.0f ? X{} - 87.0f : x;
  const float magic = 12582912.0f;  // 1.5 · 2²³: adding and subtracting it rounds to an integer
  const X n = (x * 1.44269504f + magic) - magic;
  const X r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  X p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  return ((p * r) * r + r + 1.0f) * power_of_two(n);
}
inline float exp_of(float x) { return exp_in_float(x); }
inline Vector<float> exp_of(Vector<float> x) { return exp_in_float(x); }
inline double exp_of(double x) { return __builtin_exp(x); }
inline Vector<double> exp_of(Vector<double> x) {
  for (int64_t i = 0; i < kLanes<double>; ++i) x[i] = __builtin_exp(x[i]);
  return x;
}
inline float root_of(float x) { return __builtin_sqrtf(x); }
inline double root_of(double x) { return __builtin_sqrt(x); }
inline float log_of(float x) { return __builtin_logf(x); }
inline double log_of(double x) { return __builtin_log(x); }

}  // namespace tearless::engine::TEARLESS_ISA
