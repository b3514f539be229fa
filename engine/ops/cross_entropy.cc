#include "engine/ops/cross_entropy.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "engine/ops/backend.h"
#include "engine/ops/dropout.h"
#include "engine/ops/packed_rows.h"

namespace tearless::engine {

CrossEntropySums& CrossEntropySums::operator+=(const CrossEntropySums& other) {
  loss += other.loss;
  nll += other.nll;
  tokens += other.tokens;
  return *this;
}

namespace {

/// The target distribution of a row: `each` for every column but `without`, and `gold` more for the label.
struct Masses {
  double gold = 1, each = 0;
  int32_t without = -1;
  double entropy = 0;  // what the form subtracts
};

Masses masses_of(const LabelSmoothing& smoothing, int64_t columns) {
  const double mass = smoothing.mass;
  const bool label_included = smoothing.form == SmoothingForm::kTwt || smoothing.form == SmoothingForm::kFairseq;
  if (label_included || mass == 0) {
    return {.gold = 1 - mass, .each = mass / static_cast<double>(columns), .without = -1, .entropy = 0};
  }
  const bool joey = smoothing.form == SmoothingForm::kJoey;
  const double each = mass / static_cast<double>(columns - (joey ? 2 : 1));
  return {.gold = 1 - mass - each,
          .each = each,
          .without = joey ? kPad : -1,
          .entropy = -(1 - mass) * std::log(1 - mass) - mass * std::log(each)};
}

/// The reference implementation, also for devices without kernels.
CrossEntropySums by_formula(Tape& tape, const Value& logits, const std::vector<int32_t>& labels, const Masses& masses,
                            double loss_scale, const LossOnDevice* on_device, const std::vector<float>* row_weights) {
  const at::Tensor label = index_tensor(labels, logits.data());
  const at::Tensor counts = label.ge(0).to(at::kDouble);  // [T]
  const at::Tensor gold = label.clamp_min(0).unsqueeze(1);
  const auto sums = [&](const at::Tensor& x, const at::Tensor& of_rows) {
    const at::Tensor log_p = at::log_softmax(x, 1);
    const at::Tensor count = of_rows.to(x.scalar_type());
    const at::Tensor nll = (-log_p.gather(1, gold).squeeze(1) * count).sum();
    at::Tensor all = log_p.sum(1);
    if (masses.without >= 0) all = all - log_p.select(1, masses.without);
    const at::Tensor smooth = (-all * count).sum();
    return std::pair{masses.gold * nll + masses.each * smooth - masses.entropy * count.sum(), nll};
  };
  const at::Tensor weights =
      row_weights ? counts * at::tensor(at::ArrayRef<float>(*row_weights), at::kDouble).to(counts.device()) : counts;
  const Value mean = tape.by_formula({logits}, [&](const std::vector<at::Tensor>& in) {
    return (sums(in[0], weights).first * loss_scale).unsqueeze(0);
  });
  if (tape.recording()) mean.add_grad(at::ones_like(mean.data()));
  const auto [loss, nll] = sums(logits.data().to(at::kDouble), counts);
  if (on_device) {
    on_device->sums.slice(0, 0, 2).add_(at::stack({loss, nll}));
    return {};
  }
  return {loss.item<double>(), nll.item<double>(), 0};
}

}  // namespace

CrossEntropySums smoothed_cross_entropy(Tape& tape, const Value& logits, const std::vector<int32_t>& labels,
                                        const LabelSmoothing& smoothing, const LossOnDevice* on_device,
                                        const RowWeights* row_weights) {
  const int64_t rows = logits.data().size(0);
  require(static_cast<int64_t>(labels.size()) == rows, "cross-entropy: not one label for each row");
  require(!row_weights || static_cast<int64_t>(row_weights->weights.size()) == rows,
          "cross-entropy: not one weight for each row");
  const int64_t tokens = std::count_if(labels.begin(), labels.end(), [](int32_t label) { return label >= 0; });
  const int64_t divisor = row_weights ? row_weights->divisor : tokens;
  const double loss_scale = tape.loss_scale().value_or(divisor > 0 ? 1.0 / static_cast<double>(divisor) : 0.0);
  const Masses masses = masses_of(smoothing, logits.data().size(1));
  CrossEntropySums sums;
  if (!fast(tape, logits.data(), [](const auto& kernels) { return kernels.cross_entropy; })) {
    sums =
        by_formula(tape, logits, labels, masses, loss_scale, on_device, row_weights ? &row_weights->weights : nullptr);
  } else {
    const OnDevice<int32_t> gold(tape, labels, logits.data());
    const std::vector<float> unweighted;
    const OnDevice<float> weights(tape, row_weights ? row_weights->weights : unweighted, logits.data());
    const at::Tensor row_losses = at::empty({rows, 2}, logits.data().options().dtype(at::kDouble));  // RowLoss each
    with_kernels(logits.data(), [&]<class T>(const Kernels<T>& kernels, void* stream) {
      kernels.cross_entropy({.rows = rows,
                             .vocab_size = logits.data().size(1),
                             .stride = logits.data().stride(0),
                             .logits = write<T>(logits.data()),
                             .labels = gold.data(),
                             .gold = masses.gold,
                             .each = masses.each,
                             .without = masses.without,
                             .entropy = masses.entropy,
                             .row_weights = row_weights ? weights.data() : nullptr,
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
