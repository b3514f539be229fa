// The CPU kernels for one instruction set. Compiled once for each, with TEARLESS_ISA as the namespace
// (tools/cmake/isa.cmake); engine/ops/backend.cc selects one at run time.
#include "engine/ops/cpu/add_norm.h"
#include "engine/ops/cpu/attention.h"
#include "engine/ops/cpu/bias_relu_dropout.h"
#include "engine/ops/cpu/cross_entropy.h"
#include "engine/ops/cpu/cube.h"
#include "engine/ops/cpu/embedding.h"
#include "engine/ops/cpu/gates.h"
#include "engine/ops/cpu/images.h"
#include "engine/ops/cpu/logit_summaries.h"
#include "engine/ops/cpu/optimiser.h"
#include "engine/ops/cpu/packed_matmul.h"
#include "engine/ops/cpu/relative_attention.h"
#include "engine/ops/cpu/running_means.h"
#include "engine/ops/cpu/span_means.h"
#include "engine/ops/cpu/sums_of_terms.h"

namespace tearless::engine::TEARLESS_ISA {

template <class T>
constexpr Kernels<T> table() {
  return {.add_norm = add_norm<T>,
          .add_norm_backward = add_norm_backward<T>,
          .bias_relu_dropout = bias_relu_dropout<T>,
          .bias_relu_dropout_backward = bias_relu_dropout_backward<T>,
          .attention_saved_size = attention_saved_size,
          .attention = attention<T>,
          .attention_backward = attention_backward<T>,
          .relative_attention = relative_attention<T>,
          .relative_attention_backward = relative_attention_backward<T>,
          .cross_entropy = cross_entropy<T>,
          .embedding = embedding<T>,
          .embedding_backward = embedding_backward<T>,
          .column_sums = column_sums<T>,
          .packed_matmul = packed_matmul<T>,
          .panel_width = kPanelVectors * kLanes<T>,
          .span_means = span_means<T>,
          .span_means_backward = span_means_backward<T>,
          .running_means = running_means<T>,
          .running_means_backward = running_means_backward<T>,
          .gated_sum = gated_sum<T>,
          .gated_sum_backward = gated_sum_backward<T>,
          .cube = cube<T>,
          .cube_backward = cube_backward<T>,
          .sums_of_terms = sums_of_terms<T>,
          .sums_of_terms_backward = sums_of_terms_backward<T>,
          .patches = patches<T>,
          .patches_backward = patches_backward<T>,
          .max_pool = max_pool<T>,
          .max_pool_backward = max_pool_backward<T>,
          .logit_summaries = logit_summaries<T>};
}

extern const Kernels<float> float_kernels;
extern const Kernels<double> double_kernels;
extern const OptimiserKernels optimiser_kernels;
const Kernels<float> float_kernels = table<float>();
const Kernels<double> double_kernels = table<double>();
const OptimiserKernels optimiser_kernels = {.squared_norm = squared_norm, .adam = adam};

}  // namespace tearless::engine::TEARLESS_ISA
