// The gradients of a linear map's weight and bias as one matmul of cuBLASLt, whose epilogue adds up the columns.
#include <ATen/cuda/CUDAContextLight.h>
#include <cublasLt.h>

#include <memory>
#include <stdexcept>
#include <string>

#include "engine/cuda/cuda_kernels.h"

namespace tearless::engine {
namespace {

void check(cublasStatus_t status) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw std::runtime_error(std::string("cuBLASLt, gradient of a weight: ") + cublasGetStatusString(status));
}

template <class T, cublasStatus_t (*destroy)(T*)>
struct Destroy {
  void operator()(T* object) const { destroy(object); }
};
using Description =
    std::unique_ptr<cublasLtMatmulDescOpaque_t, Destroy<cublasLtMatmulDescOpaque_t, cublasLtMatmulDescDestroy>>;
using Layout =
    std::unique_ptr<cublasLtMatrixLayoutOpaque_t, Destroy<cublasLtMatrixLayoutOpaque_t, cublasLtMatrixLayoutDestroy>>;
using Preference = std::unique_ptr<cublasLtMatmulPreferenceOpaque_t,
                                   Destroy<cublasLtMatmulPreferenceOpaque_t, cublasLtMatmulPreferenceDestroy>>;

template <class V>
void set(const Description& description, cublasLtMatmulDescAttributes_t attribute, const V& value) {
  check(cublasLtMatmulDescSetAttribute(description.get(), attribute, &value, sizeof value));
}

/// Column-major.
Layout layout(cudaDataType_t type, int64_t rows, int64_t columns, int64_t stride) {
  cublasLtMatrixLayout_t made = nullptr;
  check(cublasLtMatrixLayoutCreate(&made, type, static_cast<uint64_t>(rows), static_cast<uint64_t>(columns), stride));
  return Layout(made);
}

}  // namespace

// A row-major matrix is a column-major one transposed, so with columns first
//   d_weightᵀ [in, out] += xᵀ [in, rows] · d_y [rows, out]
// and the bias has the sums over the columns of the second operand (BGRADB).
bool weight_gradient_by_cublaslt(const WeightGradient<bf16>& g, void* stream) {
  cublasLtMatmulDesc_t made = nullptr;
  check(cublasLtMatmulDescCreate(&made, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  const Description description(made);
  set(description, CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_T);
  set(description, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BGRADB);
  set(description, CUBLASLT_MATMUL_DESC_BIAS_POINTER, g.bias_sums);
  set(description, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, CUDA_R_32F);
  const Layout x = layout(CUDA_R_16BF, g.in, g.rows, g.x_stride),
               d_y = layout(CUDA_R_16BF, g.out, g.rows, g.d_y_stride),
               d_weight = layout(CUDA_R_32F, g.in, g.out, g.d_weight_stride);

  const size_t workspace_size = at::cuda::getCUDABlasLtWorkspaceSize();
  void* const workspace = at::cuda::getCUDABlasLtWorkspace();
  cublasLtMatmulPreference_t preferred = nullptr;
  check(cublasLtMatmulPreferenceCreate(&preferred));
  const Preference preference(preferred);
  check(cublasLtMatmulPreferenceSetAttribute(preferred, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace_size,
                                             sizeof workspace_size));
  cublasLtMatmulHeuristicResult_t best = {};
  int found = 0;
  const cublasLtHandle_t handle = at::cuda::getCurrentCUDABlasLtHandle();
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(handle, made, x.get(), d_y.get(), d_weight.get(),
                                                               d_weight.get(), preferred, 1, &best, &found);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || found == 0) return false;
  check(status);
  const float one = 1;
  check(cublasLtMatmul(handle, made, &one, g.x, x.get(), g.d_y, d_y.get(), &one, g.d_weight, d_weight.get(), g.d_weight,
                       d_weight.get(), &best.algo, workspace, workspace_size, static_cast<cudaStream_t>(stream)));
  return true;
}

}  // namespace tearless::engine
