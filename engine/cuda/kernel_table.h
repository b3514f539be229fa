// Makes the tables of kernels (engine/ops/kernels.h) from the kernel bodies, for a Runner: CUDA's (kernels.cu), or that
// of the tests, which runs them on the processor (tests/engine/cuda/kernels_on_host.cc). A Runner is constructed from
// the stream for each call of a kernel and has
//
//   void run(const Body&)             launches the body with its shape(), in order after the earlier launches
//   V* workspace<V>(int64_t count)    device memory for this call's launches, not initialised; the next call of
//                                     workspace() invalidates it
//
// The kernels of a call are launched by `launch(call, runner)`, defined beside its bodies.
#pragma once

#include "engine/cuda/add_norm_body.h"
#include "engine/cuda/attention_body.h"
#include "engine/cuda/beam_body.h"
#include "engine/cuda/best_tokens_body.h"
#include "engine/cuda/bias_relu_dropout_body.h"
#include "engine/cuda/column_sums_body.h"
#include "engine/cuda/cross_entropy_body.h"
#include "engine/cuda/cube_body.h"
#include "engine/cuda/embedding_body.h"
#include "engine/cuda/gates_body.h"
#include "engine/cuda/images_body.h"
#include "engine/cuda/optimiser_body.h"
#include "engine/cuda/relative_attention_body.h"
#include "engine/cuda/running_means_body.h"
#include "engine/cuda/span_means_body.h"

namespace tearless::engine {

template <class Call, class Runner>
void run_call(const Call& call, void* stream) {
  Runner runner(stream);
  launch(call, runner);
}

template <class T, class Runner>
constexpr Kernels<T> kernel_table() {
  return {.add_norm = run_call<AddNorm<T>, Runner>,
          .add_norm_backward = run_call<AddNormBackward<T>, Runner>,
          .bias_relu_dropout = run_call<BiasReluDropout<T>, Runner>,
          .bias_relu_dropout_backward = run_call<BiasReluDropoutBackward<T>, Runner>,
          .attention_saved_size = attention_saved_size,
          .attention = run_call<Attention<T>, Runner>,
          .attention_backward = run_call<AttentionBackward<T>, Runner>,
          .stores_attention = true,
          .relative_attention = run_call<RelativeAttention<T>, Runner>,
          .relative_attention_backward = run_call<RelativeAttentionBackward<T>, Runner>,
          .cross_entropy = run_call<CrossEntropy<T>, Runner>,
          .embedding = run_call<Embedding<T>, Runner>,
          .embedding_backward = run_call<EmbeddingBackward<T>, Runner>,
          .column_sums = run_call<ColumnSums<T>, Runner>,
          .span_means = run_call<SpanMeans<T>, Runner>,
          .span_means_backward = run_call<SpanMeansBackward<T>, Runner>,
          .running_means = run_call<RunningMeans<T>, Runner>,
          .running_means_backward = run_call<RunningMeansBackward<T>, Runner>,
          .gated_sum = run_call<GatedSum<T>, Runner>,
          .gated_sum_backward = run_call<GatedSumBackward<T>, Runner>,
          .cube = run_call<Cube<T>, Runner>,
          .cube_backward = run_call<CubeBackward<T>, Runner>,
          .patches = run_call<Patches<T>, Runner>,
          .patches_backward = run_call<PatchesBackward<T>, Runner>,
          .max_pool = run_call<MaxPool<T>, Runner>,
          .max_pool_backward = run_call<MaxPoolBackward<T>, Runner>,
          .widest_head = kMaxHead,
          .best_tokens = run_call<BestTokens<T>, Runner>};
}
template <class Runner>
constexpr SearchKernels search_table() {
  return {.beam_step = run_call<BeamStep, Runner>};
}
template <class Runner>
constexpr OptimiserKernels optimiser_table() {
  return {.squared_norm = run_call<SquaredNorm, Runner>,
          .adam = run_call<Adam, Runner>,
          .adam_on_device = run_call<AdamOnDevice, Runner>};
}

}  // namespace tearless::engine
