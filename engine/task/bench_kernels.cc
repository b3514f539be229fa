#include "engine/task/bench_kernels.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <chrono>
#include <functional>

#include "engine/ops/adam.h"
#include "engine/ops/backend.h"

namespace tearless::engine {
namespace {

using Clock = std::chrono::steady_clock;

/// Median over tries, each of some calls that are under way together.
double seconds_of(const at::Tensor& like, const std::function<void()>& call) {
  constexpr int kTries = 7, kCalls = 10;
  call();
  wait_for(like);
  std::vector<double> tries;
  for (int i = 0; i < kTries; ++i) {
    const Clock::time_point start = Clock::now();
    for (int n = 0; n < kCalls; ++n) call();
    wait_for(like);
    tries.push_back(std::chrono::duration<double>(Clock::now() - start).count() / kCalls);
  }
  std::nth_element(tries.begin(), tries.begin() + kTries / 2, tries.end());
  return tries[kTries / 2];
}

}  // namespace

std::vector<KernelRate> kernel_rates(const at::Tensor& like, int64_t width, int64_t bytes, int64_t parameters) {
  std::vector<KernelRate> rates;
  const auto options = like.options();
  const int64_t rows = bytes / (width * like.element_size());
  const double tensor = static_cast<double>(rows * width * like.element_size());
  const auto rate = [&](const char* name, double moved, const std::function<void()>& call) {
    rates.push_back({name, moved, seconds_of(like, call)});
  };

  const at::Tensor x = at::ones({rows, width}, options), y = at::ones({rows, width}, options);
  at::Tensor sum = at::empty_like(x), normed = at::empty_like(x);
  const at::Tensor gain = at::ones({width}, wide_options(x)), bias = at::zeros({width}, wide_options(x));
  const at::Tensor d_gain = at::zeros({width}, wide_options(x)), d_bias = at::zeros({width}, wide_options(x));
  const at::Tensor statistics = at::empty({rows, 3}, wide_options(x));
  const at::Tensor names = at::zeros({rows}, options.dtype(at::kInt));
  const double per_row = static_cast<double>(rows * 3) * static_cast<double>(statistics.element_size());
  rate("copy", 2 * tensor, [&] { sum.copy_(x); });
  with_kernels(x, [&]<class T>(const Kernels<T>& kernels, void* stream) {
    AddNorm<T> norm{.rows = rows,
                    .width = width,
                    .residual = read<T>(x),
                    .norm = {.centred = true, .denominator = RowNorm::Denominator::kRootAddEps, .eps = 1e-5},
                    .gain = read<Wide<T>>(gain),
                    .gain_size = width,
                    .bias = read<Wide<T>>(bias),
                    .normed = write<T>(normed),
                    .statistics = reinterpret_cast<RowStatistics<Wide<T>>*>(write<Wide<T>>(statistics))};
    rate("LayerNorm", 2 * tensor + per_row, [&] { kernels.add_norm(norm, stream); });
    AddNorm<T> seam = norm;
    seam.y = read<T>(y);
    seam.dropout = Dropout::with(0.1, RandomStream(1, "bench"), 1);
    seam.names = {read<int32_t>(names), read<int32_t>(names)};
    seam.sum = write<T>(sum);
    rate("residual + dropout + LayerNorm", 4 * tensor + per_row, [&] { kernels.add_norm(seam, stream); });
    const AddNormBackward<T> backward{
        .rows = rows,
        .width = width,
        .x = read<T>(sum),
        .statistics = reinterpret_cast<const RowStatistics<Wide<T>>*>(read<Wide<T>>(statistics)),
        .norm = norm.norm,
        .gain = norm.gain,
        .gain_size = width,
        .dropout = seam.dropout,
        .names = seam.names,
        .d_normed = read<T>(normed),
        .d_sum = read<T>(y),
        .d_residual = write<T>(y),
        .d_y = write<T>(x),
        .d_gain = write<Wide<T>>(d_gain),
        .d_bias = write<Wide<T>>(d_bias)};
    rate("its backward", 5 * tensor + per_row, [&] { kernels.add_norm_backward(backward, stream); });
  });

  const auto flat = [&] { return at::ones({parameters}, options.dtype(at::kFloat)); };
  at::Tensor gradients = flat(), values = flat(), first = flat(), second = flat();
  const double numbers = 4.0 * static_cast<double>(parameters);
  const OptimiserKernels& optimiser = optimiser_kernels_for(values);
  void* stream = stream_for(values);
  const at::Tensor left = at::zeros({sizeof(UpdateOutcome)}, options.dtype(at::kByte));
  const at::Tensor inputs = at::zeros({sizeof(UpdateInputs)}, options.dtype(at::kByte));
  auto* outcome = reinterpret_cast<UpdateOutcome*>(left.mutable_data_ptr<uint8_t>());
  const at::Tensor norm = at::zeros({1}, options.dtype(at::kDouble));
  const at::Tensor narrow = at::empty({parameters}, options.dtype(at::kBFloat16));
  const AdamStep step{.learning_rate = 1e-4};
  if (optimiser.adam_on_device) {  // as a captured step has it: clip and Adam with the bf16 copy
    rate("clip + Adam", 9.5 * numbers, [&] {
      optimiser.squared_norm({.size = parameters, .gradients = read<float>(gradients), .sum = &outcome->squared_norm},
                             stream);
      optimiser.adam_on_device({.adam = adam_call(step, gradients, values, first, second),
                                .clip_norm = 1,
                                .inputs = reinterpret_cast<const UpdateInputs*>(inputs.const_data_ptr<uint8_t>()),
                                .outcome = outcome,
                                .theta_bf16 = reinterpret_cast<uint16_t*>(write<bf16>(narrow))},
                               stream);
    });
  } else {
    rate("clip + Adam", 9 * numbers, [&] {
      optimiser.squared_norm({.size = parameters, .gradients = read<float>(gradients), .sum = write<double>(norm)},
                             stream);
      adam_step(step, 1.0, gradients, values, first, second);
    });
  }
  return rates;
}

}  // namespace tearless::engine
