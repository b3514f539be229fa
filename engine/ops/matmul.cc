#include "engine/ops/matmul.h"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "base/utf8.h"

namespace tearless::engine {
namespace {

/// SGEMM of BLAS: column-major matrices, all arguments by address.
using Sgemm = void(const char* trans_a, const char* trans_b, const int* m, const int* n, const int* k,
                   const float* alpha, const float* a, const int* lda, const float* b, const int* ldb,
                   const float* beta, float* c, const int* ldc);

/// MKL's, exported by LibTorch and called directly: for small models the overhead of at::mm() is as large as the GEMM.
/// Weak symbols, because another build of LibTorch may not export them.
extern "C" __attribute__((weak)) Sgemm sgemm_;
extern "C" __attribute__((weak)) int MKL_Set_Num_Threads_Local(int threads);
extern "C" __attribute__((weak)) void MKL_Get_Version_String(char* buffer, int length);
bool has_mkl() { return sgemm_ && MKL_Set_Num_Threads_Local && MKL_Get_Version_String; }

// --- OpenBLAS ------------------------------------------------------------------------------------------------------

struct OpenBlas {
  Sgemm* sgemm = nullptr;
  std::string name = {};
  std::string error = {};  // why it cannot be used; "": it can
};

/// "OpenBLAS 0.3.34 DYNAMIC_ARCH …" → "OpenBLAS 0.3.34"
std::string first_two_words(std::string_view text) {
  return std::string(text.substr(0, text.find(' ', text.find(' ') + 1)));
}

OpenBlas open_openblas() {
  const Processor processor = this_processor();
  if (!processor.avx2) return {.error = "this processor has no AVX2"};
  const char* const elsewhere = std::getenv("TEARLESS_OPENBLAS");
  const char* const file = elsewhere ? elsewhere : TEARLESS_OPENBLAS;
  // It reads these when it is loaded. Its own threads are not used: they are not those of at::set_num_threads(). The
  // kernels are named because it does not know processors that are newer than it is.
  ::setenv("OPENBLAS_NUM_THREADS", "1", /*overwrite=*/1);
  ::setenv("OPENBLAS_CORETYPE", processor.avx512 ? "SkylakeX" : "Haswell", /*overwrite=*/0);
  void* const library = ::dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (!library) return {.error = fmt::format("{}: `make setup` fetches it", ::dlerror())};
  const auto sgemm = reinterpret_cast<Sgemm*>(::dlsym(library, "scipy_sgemm_"));
  const auto config = reinterpret_cast<const char* (*)()>(::dlsym(library, "scipy_openblas_get_config"));
  const auto kernels = reinterpret_cast<const char* (*)()>(::dlsym(library, "scipy_openblas_get_corename"));
  if (!sgemm || !config || !kernels) {
    return {.error = fmt::format("{} is not the OpenBLAS of the PyPI package scipy-openblas32: `make setup` fetches it",
                                 file)};
  }
  return {.sgemm = sgemm, .name = fmt::format("{} {}", first_two_words(config()), kernels())};
}

const OpenBlas& openblas() {
  static const OpenBlas library = open_openblas();
  return library;
}

// --- the choice ------------------------------------------------------------------------------------------------------

MatmulLibrary automatic() {
  // Where MKL is chosen anyway, OpenBLAS is not opened.
  const Processor processor = this_processor();
  if (matmul_library_for(processor, true) == MatmulLibrary::kMkl) return MatmulLibrary::kMkl;
  return matmul_library_for(processor, openblas().error.empty());
}

MatmulLibrary& library_in_use() {
  static MatmulLibrary library = automatic();
  return library;
}

bool& bf16_in_use() {
  static bool yes = false;
  return yes;
}

/// The word that follows `before` in `text`, up to a blank or a hyphen.
std::string_view word_after(std::string_view text, std::string_view before) {
  const size_t at = text.find(before);
  if (at == std::string_view::npos) return "";
  const std::string_view rest = text.substr(at + before.size());
  return rest.substr(0, rest.find_first_of("- "));
}

// --- matmuls --------------------------------------------------------------------------------------------------------

/// C as BLAS computes it, column-major: cᵀ = bᵀ aᵀ.
struct Matmul {
  int64_t rows, columns, inner;
  Matrix a, b;
  bool add;
  float* c;
  int64_t c_stride;

  void by(Sgemm& sgemm) const {
    const int m = static_cast<int>(columns), n = static_cast<int>(rows), k = static_cast<int>(inner);
    const int lda = static_cast<int>(b.stride), ldb = static_cast<int>(a.stride), ldc = static_cast<int>(c_stride);
    const char trans_a = b.transposed ? 'T' : 'N', trans_b = a.transposed ? 'T' : 'N';
    const float one = 1, beta = add ? 1 : 0;
    sgemm(&trans_a, &trans_b, &m, &n, &k, &one, b.data, &lda, a.data, &ldb, &beta, c, &ldc);
  }

  int64_t multiply_adds() const { return rows * columns * inner; }

  /// C's rows [row, row_end) and columns [column, column_end).
  Matmul part(int64_t row, int64_t row_end, int64_t column, int64_t column_end) const {
    Matmul part = *this;
    part.rows = row_end - row;
    part.columns = column_end - column;
    part.a.data += a.transposed ? row : row * a.stride;
    part.b.data += b.transposed ? column * b.stride : column;
    part.c += row * c_stride + column;
    return part;
  }
};

/// The parts into which a matmul is divided for threads. The last bits of an element may depend on the part that it
/// is computed in, so the parts follow from the shape alone, whatever the number of threads. They are few, because each
/// packs its operands again: on one thread two parts cost 3 %, four 7 %, and eight 15 % (512 × 512 × 2048, Zen 4).
struct Parts {
  int64_t rows, columns;
};
Parts parts_of(const Matmul& matmul) {
  constexpr int64_t kMinRows = 32, kMinColumns = 64;
  constexpr int64_t kWorthTwo = 1 << 22, kWorthFour = 1 << 29;  // multiply-adds
  const auto halves = [](bool worth, int64_t length, int64_t min) { return worth && length >= 2 * min ? 2 : 1; };
  const int64_t size = matmul.multiply_adds();
  const int64_t rows = halves(size >= kWorthTwo, matmul.rows, kMinRows);
  const bool by_columns = size >= kWorthFour || (size >= kWorthTwo && rows == 1);
  return {rows, halves(by_columns, matmul.columns, kMinColumns)};
}

/// The begin of part i of `parts` of a length, in whole tiles of the library's kernels.
int64_t part_begin(int64_t i, int64_t parts, int64_t length) {
  constexpr int64_t kTile = 16;
  return i == parts ? length : length * i / parts / kTile * kTile;
}

void by_parts(const Matmul& matmul, Sgemm& sgemm) {
  const Parts parts = parts_of(matmul);
  const auto compute = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i / parts.columns, column = i % parts.columns;
      matmul
          .part(part_begin(row, parts.rows, matmul.rows), part_begin(row + 1, parts.rows, matmul.rows),
                part_begin(column, parts.columns, matmul.columns),
                part_begin(column + 1, parts.columns, matmul.columns))
          .by(sgemm);
    }
  };
  at::parallel_for(0, parts.rows * parts.columns, 1, compute);
}

void by_mkl(const Matmul& matmul) {
  // With threads of its own MKL divides the inner dimension of some matmuls among them.
  MKL_Set_Num_Threads_Local(1);
  by_parts(matmul, sgemm_);
  MKL_Set_Num_Threads_Local(0);  // back to the global number
}

}  // namespace

Processor this_processor() {
  __builtin_cpu_init();
  const auto vendor = __builtin_cpu_is("intel") ? Processor::Vendor::kIntel
                      : __builtin_cpu_is("amd") ? Processor::Vendor::kAmd
                                                : Processor::Vendor::kOther;
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512cd");
  return {vendor, avx2, avx512, avx512 && __builtin_cpu_supports("avx512bf16"),
          avx512 && __builtin_cpu_supports("amx-bf16")};
}

MatmulLibrary matmul_library_for(const Processor& processor, bool openblas_is_there) {
  const bool is_intel = processor.vendor == Processor::Vendor::kIntel;
  return !is_intel && processor.avx2 && openblas_is_there ? MatmulLibrary::kOpenBlas : MatmulLibrary::kMkl;
}

void use_matmul_library(std::optional<MatmulLibrary> library) {
  if (library == MatmulLibrary::kOpenBlas && !why_no_openblas().empty()) {
    fail("run.matmul = \"openblas\" cannot be used here: {}; \"auto\" takes what there is", why_no_openblas());
  }
  library_in_use() = library ? *library : automatic();
}

std::string why_no_openblas() { return openblas().error; }

std::string missing_matmul_library() {
  if (matmul_library_for(this_processor(), true) == MatmulLibrary::kMkl || why_no_openblas().empty()) return "";
  return fmt::format(" (OpenBLAS would be faster, but it cannot be used: {})", why_no_openblas());
}

bool has_matmul_library() { return library_in_use() == MatmulLibrary::kOpenBlas || has_mkl(); }

void use_bf16_matmuls(bool yes) {
  if (yes && !this_processor().bf16) {
    fail("run.precision = \"bf16\" on the CPU needs a processor with AVX512_BF16 instructions, which this one lacks");
  }
  bf16_in_use() = yes;
}

bool uses_bf16_matmuls() { return bf16_in_use(); }

std::string matmul_library_name() {
  // "Intel(R) MKL-DNN v3.10.2 (Git Hash …)"
  if (bf16_in_use()) {
    return fmt::format("oneDNN {} bf16{}", word_after(at::get_mkldnn_version(), " v"),
                       this_processor().amx ? " AMX" : "");
  }
  if (library_in_use() == MatmulLibrary::kOpenBlas) return openblas().name;
  if (!has_mkl()) return "LibTorch";
  // "Intel(R) oneAPI Math Kernel Library Version 2024.2-Matmul Build 20240605 for …"
  char text[256] = "";
  MKL_Get_Version_String(text, sizeof text);
  return fmt::format("MKL {}", word_after(text, "Version "));
}

namespace {

/// What MKL_CBWR must be; null: it must not be set.
const char* order_of_mkl() {
  // On AMD processors MKL gives the same bits without the variable, and does not with it (matrices of width 8 and 12,
  // measured on an EPYC).
  const Processor processor = this_processor();
  if (processor.vendor != Processor::Vendor::kIntel) return nullptr;
  return processor.avx512 ? "AVX512,STRICT" : "AVX2,STRICT";
}

}  // namespace

void fix_matmul_order() {
  if (const char* const order = order_of_mkl()) ::setenv("MKL_CBWR", order, /*overwrite=*/0);
}

std::string arithmetic_settings() {
  // Of MKL, oneDNN under both of its names, LibTorch's own kernels, the C library's functions, and CUDA's libraries.
  constexpr auto kVariables = std::to_array<const char*>(
      {"MKL_CBWR", "MKL_ENABLE_INSTRUCTIONS", "MKL_DEBUG_CPU_TYPE", "ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA",
       "ONEDNN_CPU_ISA_HINTS", "DNNL_CPU_ISA_HINTS", "ONEDNN_DEFAULT_FPMATH_MODE", "DNNL_DEFAULT_FPMATH_MODE",
       "ATEN_CPU_CAPABILITY", "GLIBC_TUNABLES", "NVIDIA_TF32_OVERRIDE", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
       "CUBLAS_WORKSPACE_CONFIG"});
  std::string text;
  for (const std::string_view name : kVariables) {
    const char* const value = std::getenv(name.data());
    if (!value || !*value) continue;
    if (name == "MKL_CBWR" && order_of_mkl() && value == std::string_view(order_of_mkl())) continue;
    if (name == "GLIBC_TUNABLES" && std::string_view(value).find("hwcaps") == std::string_view::npos) continue;
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, printable(value));
  }
  return text;
}

std::string arithmetic_name() {
  const std::string settings = arithmetic_settings();
  return matmul_library_name() + (settings.empty() ? "" : " " + settings);
}

void multiply(int64_t rows, int64_t columns, int64_t inner, const Matrix& a, const Matrix& b, bool add, float* c,
              int64_t c_stride) {
  const Matmul matmul{rows, columns, inner, a, b, add, c, c_stride};
  if (library_in_use() == MatmulLibrary::kOpenBlas) return by_parts(matmul, *openblas().sgemm);
  assert(has_mkl());
  by_mkl(matmul);
}

}  // namespace tearless::engine
