#include "engine/ops/cross_entropy.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/ones_like.h>

#include "engine/ops/dropout.h"
#include "engine/ops/rows.h"

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
  const int64_t kept = logits.data().size(1);
  assert(static_cast<int64_t>(labels.size()) == rows);
  std::vector<LossSums> terms(static_cast<size_t>(rows));
  at::Tensor dlogits = tape.recording() ? at::empty_like(logits.data()) : at::Tensor();
  for_scalar_type(logits.data(), [&](auto zero) {
    using T = decltype(zero);
    const T uniform = static_cast<T>(smoothing / static_cast<double>(kept));
    const T share = T(1) / static_cast<T>(rows);
    for_row_ranges(rows, kept, [&](int64_t begin, int64_t end) {
      std::vector<T> scratch(static_cast<size_t>(kept));
      for (int64_t t = begin; t < end; ++t) {
        const T* z = logits.data().const_data_ptr<T>() + t * kept;
        T* e = dlogits.defined() ? dlogits.mutable_data_ptr<T>() + t * kept : scratch.data();
        const int64_t gold = labels[static_cast<size_t>(t)];
        assert(gold >= 0 && gold < kept);
        T largest = z[0];
        for (int64_t v = 1; v < kept; ++v) largest = std::max(largest, z[v]);
        for (int64_t v = 0; v < kept; ++v) e[v] = exp_of(z[v] - largest);
        const T sum = sum_of<T>(kept, [&](int64_t v) { return e[v]; });
        const T log_normaliser = largest + std::log(sum);
        const T total = sum_of<T>(kept, [&](int64_t v) { return z[v]; });
        const T nll = log_normaliser - z[gold];
        const T smooth = static_cast<T>(kept) * log_normaliser - total;
        terms[static_cast<size_t>(t)] = {
            static_cast<double>((T(1) - static_cast<T>(smoothing)) * nll + uniform * smooth), static_cast<double>(nll),
            1};
        if (!dlogits.defined()) continue;
        const T inverse = T(1) / sum;
        for (int64_t v = 0; v < kept; ++v) e[v] = share * (e[v] * inverse - uniform);
        e[gold] -= share * static_cast<T>(1 - smoothing);
      }
    });
  });
  LossSums sums;
  for (const LossSums& term : terms) sums += term;
  tape.record([logits, dlogits] { logits.add_grad(dlogits); });
  return sums;
}

}  // namespace tearless::engine
