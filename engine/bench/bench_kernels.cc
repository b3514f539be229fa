#include "engine/bench/bench_kernels.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>

#include "engine/ops/adam.h"
#include "engine/ops/backend.h"
#include "engine/ops/kernel_variants.h"
#include "engine/ops/linear.h"
#include "engine/ops/matmul.h"

namespace tearless::engine {
namespace {

using Clock = std::chrono::steady_clock;

/// The median time of one call. Each measurement launches several calls before it waits for the device.
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
  return median(std::move(tries));
}

/// Measures kernels on the device of `like` and collects their rates.
struct Rates {
  const at::Tensor& like;
  std::vector<KernelRate> rates = {};

  /// bytes: what `call` reads and writes at least.
  void measure(const char* name, double bytes, const std::function<void()>& call) {
    rates.push_back({name, bytes, seconds_of(like, call)});
  }
};

/// A copy, LayerNorm, and a sublayer connection with its backward, on [rows, width].
void measure_rows(Rates& rates, int64_t rows, int64_t width) {
  const auto options = rates.like.options();
  const double tensor = static_cast<double>(rows * width * rates.like.element_size());
  const at::Tensor x = at::ones({rows, width}, options), y = at::ones({rows, width}, options);
  at::Tensor sum = at::empty_like(x), normed = at::empty_like(x);
  const at::Tensor gain = at::ones({width}, wide_options(x)), bias = at::zeros({width}, wide_options(x));
  const at::Tensor d_gain = at::zeros({width}, wide_options(x)), d_bias = at::zeros({width}, wide_options(x));
  const at::Tensor statistics = at::empty({rows, 3}, wide_options(x));
  const at::Tensor counters = at::zeros({rows}, options.dtype(at::kInt));
  const double per_row = static_cast<double>(rows * 3) * static_cast<double>(statistics.element_size());
  rates.measure("copy", 2 * tensor, [&] { sum.copy_(x); });
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
    rates.measure("LayerNorm", 2 * tensor + per_row, [&] { kernels.add_norm(norm, stream); });
    AddNorm<T> connection = norm;
    connection.y = read<T>(y);
    connection.dropout = Dropout::with(0.1, RandomStream(1, "bench"), 1);
    connection.counters = {read<int32_t>(counters), read<int32_t>(counters)};
    connection.sum = write<T>(sum);
    rates.measure("residual + dropout + LayerNorm", 4 * tensor + per_row,
                  [&] { kernels.add_norm(connection, stream); });
    const AddNormBackward<T> backward{
        .rows = rows,
        .width = width,
        .x = read<T>(sum),
        .statistics = reinterpret_cast<const RowStatistics<Wide<T>>*>(read<Wide<T>>(statistics)),
        .norm = norm.norm,
        .gain = norm.gain,
        .gain_size = width,
        .dropout = connection.dropout,
        .counters = connection.counters,
        .d_normed = read<T>(normed),
        .d_sum = read<T>(y),
        .d_residual = write<T>(y),
        .d_y = write<T>(x),
        .d_gain = write<Wide<T>>(d_gain),
        .d_bias = write<Wide<T>>(d_bias),
        .ahead = kernel_variants().norm_backward};
    rates.measure("its backward", 5 * tensor + per_row, [&] { kernels.add_norm_backward(backward, stream); });
  });
}

/// Clipping and Adam: where the device has it as in a captured update, with Adam writing the bf16 copy too.
void measure_optimiser(Rates& rates, int64_t parameters) {
  const auto options = rates.like.options();
  const auto flat = [&] { return at::ones({parameters}, options.dtype(at::kFloat)); };
  at::Tensor gradients = flat(), values = flat(), first = flat(), second = flat();
  const double buffer = 4.0 * static_cast<double>(parameters);  // bytes of one
  const OptimiserKernels& optimiser = optimiser_kernels_for(values);
  void* stream = stream_for(values);
  const AdamStep step{.learning_rate = 1e-4};
  if (!optimiser.adam_on_device) {
    const at::Tensor norm = at::zeros({1}, options.dtype(at::kDouble));
    rates.measure("clip + Adam", 9 * buffer, [&] {
      optimiser.squared_norm({.size = parameters, .gradients = read<float>(gradients), .sum = write<double>(norm)},
                             stream);
      adam_step(step, 1.0, gradients, values, first, second);
    });
    return;
  }
  const at::Tensor outcome_bytes = at::zeros({sizeof(UpdateOutcome)}, options.dtype(at::kByte));
  const at::Tensor inputs = at::zeros({sizeof(UpdateInputs)}, options.dtype(at::kByte));
  auto* outcome = reinterpret_cast<UpdateOutcome*>(outcome_bytes.mutable_data_ptr<uint8_t>());
  const at::Tensor bf16_copy = at::empty({parameters}, options.dtype(at::kBFloat16));
  rates.measure("clip + Adam", 9.5 * buffer, [&] {
    optimiser.squared_norm({.size = parameters, .gradients = read<float>(gradients), .sum = &outcome->squared_norm},
                           stream);
    optimiser.adam_on_device({.adam = adam_call(step, gradients, values, first, second),
                              .clip_norm = 1,
                              .inputs = reinterpret_cast<const UpdateInputs*>(inputs.const_data_ptr<uint8_t>()),
                              .outcome = outcome,
                              .theta_bf16 = reinterpret_cast<uint16_t*>(write<bf16>(bf16_copy))},
                             stream);
  });
}

}  // namespace

std::vector<KernelRate> kernel_rates(const at::Tensor& like, int64_t width, int64_t bytes, int64_t parameters) {
  Rates rates{like};
  measure_rows(rates, bytes / (width * like.element_size()), width);
  measure_optimiser(rates, parameters);
  return std::move(rates.rates);
}

double peak_operations_per_second() {
  double best = 0;
  for (const MatmulLibrary library : {MatmulLibrary::kMkl, MatmulLibrary::kOpenBlas}) {
    if (library == MatmulLibrary::kOpenBlas && !why_no_openblas().empty()) continue;
    use_matmul_library(library);
    for (const int64_t n : {512, 1024, 2048}) {
      constexpr double kOperationsATry = 2e10;
      const double operations = 2.0 * static_cast<double>(n * n * n);
      const at::Tensor a = at::ones({n, n}), b = at::ones({n, n});
      at::Tensor c = at::empty_like(a);
      for (double done = 0; done < kOperationsATry; done += operations) {
        const Clock::time_point start = Clock::now();
        matmul(a, b, c, /*add=*/false);
        best = std::max(best, operations / std::chrono::duration<double>(Clock::now() - start).count());
      }
    }
  }
  use_matmul_library(std::nullopt);
  return best;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

}  // namespace tearless::engine
