#include "engine/ops/cross_entropy.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/ones_like.h>

#include <cassert>

#include "engine/ops/backend.h"
#include "engine/ops/dropout.h"

namespace tearless::engine {

LossSums& LossSums::operator+=(const LossSums& other) {
  loss += other.loss;
  nll += other.nll;
  tokens += other.tokens;
  return *this;
}

namespace {

/// By formula: the judge, and devices without loops.
LossSums by_formula(Tape& tape, const Value& logits, const std::vector<int32_t>& labels, double smoothing) {
  const at::Tensor gold = index_tensor(labels, logits.data()).unsqueeze(1);
  const auto tokens = static_cast<int64_t>(labels.size());
  const auto terms = [gold](const at::Tensor& x) {
    const at::Tensor log_p = at::log_softmax(x, 1);
    return std::pair{-log_p.gather(1, gold).squeeze(1), -log_p.sum(1)};  // nll [T], smooth [T]
  };
  const double uniform = smoothing / static_cast<double>(logits.data().size(1));
  const Value mean = tape.by_formula({logits}, [&](const std::vector<at::Tensor>& in) {
    const auto [nll, smooth] = terms(in[0]);
    return (((1 - smoothing) * nll + uniform * smooth).sum() / static_cast<double>(tokens)).unsqueeze(0);
  });
  if (tape.recording()) mean.add_grad(at::ones_like(mean.data()));
  const auto [nll, smooth] = terms(logits.data().to(at::kDouble));
  const double nll_sum = nll.sum().item<double>();
  return {(1 - smoothing) * nll_sum + uniform * smooth.sum().item<double>(), nll_sum, tokens};
}

}  // namespace

LossSums smoothed_cross_entropy(Tape& tape, const Value& logits, const std::vector<int32_t>& labels, double smoothing) {
  if (!tape.fast(logits.data())) return by_formula(tape, logits, labels, smoothing);
  const int64_t rows = logits.data().size(0);
  assert(static_cast<int64_t>(labels.size()) == rows);
  const OnDevice<int32_t> gold(labels, logits.data());
  const at::Tensor row_losses = at::empty({rows, 2}, logits.data().options().dtype(at::kDouble));  // RowLoss each
  with_kernels(logits.data(), [&](auto zero, const auto& kernels, void* stream) {
    using T = decltype(zero);
    kernels.cross_entropy({.rows = rows,
                           .types = logits.data().size(1),
                           .logits = write<T>(logits.data()),
                           .labels = gold.data(),
                           .smoothing = smoothing,
                           .share = 1.0 / static_cast<double>(rows),
                           .gradient = tape.recording(),
                           .row_losses = reinterpret_cast<RowLoss*>(write<double>(row_losses))},
                          stream);
  });
  LossSums sums;
  const at::Tensor on_host = row_losses.cpu();
  const double* row = read<double>(on_host);
  for (int64_t t = 0; t < rows; ++t, row += 2) sums += {row[0], row[1], 1};
  tape.record("cross-entropy", [logits] { logits.add_grad(logits.data()); });
  return sums;
}

}  // namespace tearless::engine
