// Times of the hand-written operations, forward and backward, and of the matmuls of the same layer.
// Timings, not tests.
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros_like.h>
#include <benchmark/benchmark.h>
#include <torch/csrc/autograd/autograd.h>

#include <functional>

#include "engine/norm/norm.h"
#include "engine/ops/adam.h"
#include "engine/ops/add_norm.h"
#include "engine/ops/attention.h"
#include "engine/ops/bias_relu_dropout.h"
#include "engine/ops/cross_entropy.h"
#include "engine/ops/images.h"
#include "engine/ops/linear.h"
#include "engine/ops/memory.h"

namespace tearless::engine {
namespace {

/// As the engine does: without it large tensors cost a page fault a page.
[[maybe_unused]] const bool kMemoryIsCached = (cache_freed_memory(), true);

constexpr int32_t kSentences = 40, kLength = 25;  // a batch of ordinary sentences
constexpr int64_t kRows = kSentences * kLength;

PackedRows rows() {
  PackedRows packed;
  packed.offsets.push_back(0);
  for (int32_t sentence = 0; sentence < kSentences; ++sentence) {
    for (int32_t position = 0; position < kLength; ++position) {
      packed.tokens.push_back(kUnk);
      packed.positions.push_back(position);
      packed.sentence_ids.push_back(sentence);
    }
    packed.offsets.push_back(static_cast<int32_t>(packed.tokens.size()));
  }
  return packed;
}

Dropout some_dropout() { return Dropout::with(0.1, RandomStream(1, "bench"), 1); }

/// Times one operation with its backward; prints rows per second.
void time_step(benchmark::State& state, const std::function<Value(Tape&)>& forward) {
  for (auto _ : state) {
    Tape tape(Tape::Kind::kRecording);
    const Value out = forward(tape);
    out.add_grad(at::ones_like(out.data()));
    tape.backward();
  }
  state.SetItemsProcessed(state.iterations() * kRows);
}

Value parameter(std::initializer_list<int64_t> shape) {
  const at::Tensor data = at::randn(shape);
  return Value::parameter(data, at::zeros_like(data));
}

void matmul(benchmark::State& state) {
  const int64_t d = state.range(0);
  const Value weight = parameter({d, d}), bias = parameter({d});
  const at::Tensor x = at::randn({kRows, d});
  time_step(state, [&](Tape& tape) { return linear(tape, Value(x), weight, bias); });
}

void attention_of_8_heads(benchmark::State& state) {
  const int64_t d = state.range(0);
  const PackedRows packed = rows();
  const AttentionSpans spans = AttentionSpans::self(packed, /*causal=*/true);
  const at::Tensor x = at::randn({kRows, 3 * d});
  time_step(state, [&](Tape& tape) {
    const Value qkv(x);
    return attention(tape, {qkv, 0}, {qkv, d}, {qkv, 2 * d}, d, 8, spans, some_dropout());
  });
}

void residual_and_layer_norm(benchmark::State& state) {
  const int64_t d = state.range(0);
  const PackedRows packed = rows();
  const NormOp norm = norm_kind("layer_norm").make(parameter({d}), parameter({d}), {.eps = 1e-5}, d);
  const at::Tensor x = at::randn({kRows, d}), y = at::randn({kRows, d});
  time_step(state, [&](Tape& tape) {
    return norm_rows(tape, add_dropped(tape, Value(x), Value(y), some_dropout(), packed), norm);
  });
}

void relu_and_dropout(benchmark::State& state) {
  const int64_t f = 4 * state.range(0);
  const PackedRows packed = rows();
  const Value bias = parameter({f});
  const at::Tensor x = at::randn({kRows, f});
  time_step(state, [&](Tape& tape) { return bias_relu_dropout(tape, Value(x), bias, some_dropout(), packed); });
}

void cross_entropy_over_4000_types(benchmark::State& state) {
  const at::Tensor logits = at::randn({kRows, 4000});
  const std::vector<int32_t> labels(kRows, 7);
  for (auto _ : state) {
    Tape tape(Tape::Kind::kRecording);
    benchmark::DoNotOptimize(smoothed_cross_entropy(tape, Value(logits), labels, 0.1));
    tape.backward();
  }
  state.SetItemsProcessed(state.iterations() * kRows);
}

void clip_and_adam_per_million(benchmark::State& state) {
  at::Tensor gradients = at::randn({1000000}), theta = at::randn({1000000});
  at::Tensor m = at::zeros_like(theta), v = at::zeros_like(theta);
  for (auto _ : state) adam_step({.learning_rate = 1e-4}, global_norm(gradients), gradients, theta, m, v);
  state.SetItemsProcessed(state.iterations() * 1000000);
}

// --- the convolutions of a small network for digits, beside LibTorch's; arguments: which one, threads ---

constexpr int64_t kImages = 32, kWindow = 5;

struct Convolution {
  ImageShape image;
  int64_t channels_out;
  bool of_pixels;  // its input wants no gradient
};
constexpr Convolution kConvolutions[] = {{{28, 28, 1}, 20, true}, {{12, 12, 20}, 50, false}};

void convolution(benchmark::State& state) {
  const Convolution& c = kConvolutions[state.range(0)];
  at::set_num_threads(static_cast<int>(state.range(1)));
  const at::Tensor x = at::randn({kImages * c.image.pixels(), c.image.channels});
  const Value weight = parameter({c.channels_out, kWindow * kWindow * c.image.channels});
  const Value bias = parameter({c.channels_out});
  time_step(state, [&](Tape& tape) {
    return linear(tape, patches(tape, Value(x, !c.of_pixels), c.image, kWindow), weight, bias);
  });
}

void patches_alone(benchmark::State& state) {
  const Convolution& c = kConvolutions[state.range(0)];
  at::set_num_threads(static_cast<int>(state.range(1)));
  const at::Tensor x = at::randn({kImages * c.image.pixels(), c.image.channels});
  time_step(state, [&](Tape& tape) { return patches(tape, Value(x, !c.of_pixels), c.image, kWindow); });
}

/// The pooling after each.
void pooling(benchmark::State& state) {
  const Convolution& c = kConvolutions[state.range(0)];
  at::set_num_threads(static_cast<int>(state.range(1)));
  const ImageShape image{c.image.height - kWindow + 1, c.image.width - kWindow + 1, c.channels_out};
  const at::Tensor x = at::randn({kImages * image.pixels(), image.channels});
  time_step(state, [&](Tape& tape) { return max_pool(tape, Value(x), image); });
}

/// The same by LibTorch's operation and autograd: forward, then the gradients of `inputs`.
void time_autograd(benchmark::State& state, const std::vector<at::Tensor>& inputs,
                   const std::function<at::Tensor()>& forward) {
  const at::AutoGradMode record(true);
  for (auto _ : state) {
    const at::Tensor y = forward();
    benchmark::DoNotOptimize(torch::autograd::grad({y}, inputs, {at::ones_like(y)}));
  }
}

void convolution_of_libtorch(benchmark::State& state) {
  const Convolution& c = kConvolutions[state.range(0)];
  at::set_num_threads(static_cast<int>(state.range(1)));
  const at::Tensor x = at::randn({kImages, c.image.channels, c.image.height, c.image.width});
  const at::Tensor weight = at::randn({c.channels_out, c.image.channels, kWindow, kWindow});
  const at::Tensor bias = at::randn({c.channels_out});
  std::vector<at::Tensor> inputs = {weight, bias};
  if (!c.of_pixels) inputs.push_back(x);
  for (const at::Tensor& input : inputs) input.requires_grad_(true);
  time_autograd(state, inputs, [&] { return at::conv2d(x, weight, bias); });
}

void pooling_of_libtorch(benchmark::State& state) {
  const Convolution& c = kConvolutions[state.range(0)];
  at::set_num_threads(static_cast<int>(state.range(1)));
  const at::Tensor x = at::randn({kImages, c.channels_out, c.image.height - kWindow + 1, c.image.width - kWindow + 1});
  x.requires_grad_(true);
  time_autograd(state, {x}, [&] { return at::max_pool2d(x, {2, 2}); });
}

BENCHMARK(matmul)->Arg(64)->Arg(512);
BENCHMARK(attention_of_8_heads)->Arg(64)->Arg(512);
BENCHMARK(residual_and_layer_norm)->Arg(64)->Arg(512);
BENCHMARK(relu_and_dropout)->Arg(64)->Arg(512);
BENCHMARK(cross_entropy_over_4000_types);
BENCHMARK(clip_and_adam_per_million);
BENCHMARK(convolution)->ArgsProduct({{0, 1}, {1, 2}})->UseRealTime();
BENCHMARK(convolution_of_libtorch)->ArgsProduct({{0, 1}, {1, 2}})->UseRealTime();
BENCHMARK(patches_alone)->ArgsProduct({{0, 1}, {1, 2}})->UseRealTime();
BENCHMARK(pooling)->ArgsProduct({{0, 1}, {1, 2}})->UseRealTime();
BENCHMARK(pooling_of_libtorch)->ArgsProduct({{0, 1}, {1, 2}})->UseRealTime();

}  // namespace
}  // namespace tearless::engine
