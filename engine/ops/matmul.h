// C = A B or C += A B in fp32 on the processor, by one of two libraries:
//
//   MKL       is inside LibTorch. On processors that are not Intel's it uses AVX2 at most.
//   OpenBLAS  is a shared library of its own (tools/setup.sh fetches it), opened when it is chosen. It uses AVX-512 on
//             AMD's processors too.
//
// The automatic choice follows from the processor and from whether OpenBLAS is there, never from a timing: the two
// differ in the last bits of their sums, so a choice that could change from run to run would change results.
//
// bf16 matmuls are computed by a third one, the oneDNN inside LibTorch (linear.cc).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tearless::engine {

enum class MatmulLibrary { kMkl, kOpenBlas };

/// What the choice depends on.
struct Processor {
  enum class Vendor { kIntel, kAmd, kOther };
  Vendor vendor;
  bool avx2, avx512;  // AVX-512: the F, VL, BW, DQ and CD sets together
  bool bf16 = false;  // AVX512_BF16, which every processor with AMX has too
  bool amx = false;   // AMX_BF16
};
Processor this_processor();

/// The faster of the libraries that are there.
MatmulLibrary matmul_library_for(const Processor& processor, bool openblas_is_there);

/// Chooses the library of this process; without a value matmul_library_for() does, as where this was never called.
/// UserError where OpenBLAS is asked for and cannot be used here. Not thread-safe.
void use_matmul_library(std::optional<MatmulLibrary> library);

/// Whether matmul() (linear.h) of fp32 matrices on the processor rounds its operands and its result to bf16, with sums
/// in fp32. Gradients of weights, too, are rounded before they are added up in fp32. UserError where the processor has
/// no instructions for it. Not thread-safe.
void use_bf16_matmuls(bool yes);
bool uses_bf16_matmuls();

/// False where MKL is chosen and this build of LibTorch does not export it: there is then at::mm() alone.
bool has_matmul_library();

/// The library in use with its version, and the instruction set of OpenBLAS's kernels: "MKL 2024.2",
/// "OpenBLAS 0.3.34 SkylakeX", "oneDNN 3.10.2 bf16", "oneDNN 3.10.2 bf16 AMX".
std::string matmul_library_name();

/// The variables of the environment that are set and change the sums of a library, "ONEDNN_MAX_CPU_ISA=AVX2"; "": none.
std::string arithmetic_settings();
/// Library and variables. Runs that were trained with different ones are mixed: what the last bits of a number depend
/// on besides the processor.
std::string arithmetic_name();

/// Why OpenBLAS cannot be used on this machine; "" if it can.
std::string why_no_openblas();

/// " (OpenBLAS would be faster, but …)" where `auto` would take it if it were there; else "".
std::string missing_matmul_library();

/// Makes the matmuls of MKL give the same bits for any number of threads, by setting MKL_CBWR in the environment
/// (unless it is set already). Call once, before the first matmul, when MKL reads it.
void fix_matmul_order();

/// A matrix whose rows, or where `transposed` whose columns, are `stride` elements apart.
struct Matrix {
  const float* data;
  int64_t stride;
  bool transposed;
};

/// c = a b, or c += a b where `add`: a [rows, inner], b [inner, columns], c [rows, columns] with rows `c_stride`
/// elements apart. Uses the threads that at::set_num_threads() set; the bits do not depend on their number. REQUIRES:
/// has_matmul_library().
void multiply(int64_t rows, int64_t columns, int64_t inner, const Matrix& a, const Matrix& b, bool add, float* c,
              int64_t c_stride);

}  // namespace tearless::engine
