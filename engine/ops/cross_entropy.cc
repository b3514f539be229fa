#include "engine/ops/cross_entropy.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/stack.h>

#include <algorithm>
#include <cassert>

#include "engine/ops/backend.h"
#include "engine/ops/dropout.h"

namespace tearless::engine {

CrossEntropySums& CrossEntropySums::operator+=(const CrossEntropySums& other) {
  loss += other.loss;
  nll += other.nll;
  tokens += other.tokens;
  return *this;
}

namespace {

/// The reference implementation, also for devices without kernels.
CrossEntropySums by_formula(Tape& tape, const Value& logits, const std::vector<int32_t>& labels, double smoothing,
                            double loss_scale, const LossOnDevice* on_device) {
  const at::Tensor label = index_tensor(labels, logits.data());
  const at::Tensor counts = label.ge(0).to(at::kDouble);  // [T]
  const at::Tensor gold = label.clamp_min(0).unsqueeze(1);
  const double uniform = smoothing / static_cast<double>(logits.data().size(1));
  const auto sums = [&](const at::Tensor& x) {
    const at::Tensor log_p = at::log_softmax(x, 1);
    const at::Tensor count = counts.to(x.scalar_type());
    const at::Tensor nll = (-log_p.gather(1, gold).squeeze(1) * count).sum();
    const at::Tensor smooth = (-log_p.sum(1) * count).sum();
    return std::pair{(1 - smoothing) * nll + uniform * smooth, nll};
  };
  const Value mean = tape.by_formula(
      {logits}, [&](const std::vector<at::Tensor>& in) { return (sums(in[0]).first * loss_scale).unsqueeze(0); });
  if (tape.recording()) mean.add_grad(at::ones_like(mean.data()));
  const auto [loss, nll] = sums(logits.data().to(at::kDouble));
  if (on_device) {
    on_device->sums.slice(0, 0, 2).add_(at::stack({loss, nll}));
    return {};
  }
  return {loss.item<double>(), nll.item<double>(), 0};
}

}  // namespace

CrossEntropySums smoothed_cross_entropy(Tape& tape, const Value& logits, const std::vector<int32_t>& labels,
                                        double smoothing, const LossOnDevice* on_device) {
  const int64_t rows = logits.data().size(0);
  assert(static_cast<int64_t>(labels.size()) == rows);
  const int64_t tokens = std::count_if(labels.begin(), labels.end(), [](int32_t label) { return label >= 0; });
  const double loss_scale = tape.loss_scale().value_or(tokens > 0 ? 1.0 / static_cast<double>(tokens) : 0.0);
  CrossEntropySums sums;
  if (!fast(tape, logits.data(), [](const auto& kernels) { return kernels.cross_entropy; })) {
    sums = by_formula(tape, logits, labels, smoothing, loss_scale, on_device);
  } else {
    const OnDevice<int32_t> gold(tape, labels, logits.data());
    const at::Tensor row_losses = at::empty({rows, 2}, logits.data().options().dtype(at::kDouble));  // RowLoss each
    with_kernels(logits.data(), [&]<class T>(const Kernels<T>& kernels, void* stream) {
      kernels.cross_entropy({.rows = rows,
                             .vocab_size = logits.data().size(1),
                             .logits = write<T>(logits.data()),
                             .labels = gold.data(),
                             .smoothing = smoothing,
                             .loss_scale = loss_scale,
                             .gradient = tape.recording(),
                             .row_losses = reinterpret_cast<RowLoss*>(write<double>(row_losses)),
                             .loss_scale_at = on_device ? read<double>(on_device->loss_scale) : nullptr,
                             .sum = on_device ? reinterpret_cast<RowLoss*>(write<double>(on_device->sums)) : nullptr},
                            stream);
    });
    tape.record("cross-entropy", [logits] { logits.add_grad(logits.data()); });
    if (on_device) return {};
    const at::Tensor on_host = row_losses.cpu();
    const double* row = read<double>(on_host);
    for (int64_t t = 0; t < rows; ++t, row += 2) sums += {row[0], row[1], 0};
  }
  if (!on_device) sums.tokens = tokens;
  return sums;
}

}  // namespace tearless::engine
