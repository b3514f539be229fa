#include "engine/ops/logit_summaries.h"

#include <ATen/ops/amax.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/logsumexp.h>

#include <limits>

#include "engine/ops/backend.h"

namespace tearless::engine {

LogitSummary summary_of(const Tape& tape, const at::Tensor& logits) {
  const int64_t rows = logits.size(0), blocks = (logits.size(1) + kLogitBlock - 1) / kLogitBlock;
  if (!fast(tape, logits, [](const auto& kernels) { return kernels.logit_summaries; })) {
    const int64_t missing = blocks * kLogitBlock - logits.size(1);
    const at::Tensor whole = at::constant_pad_nd(logits, {0, missing}, -std::numeric_limits<double>::infinity());
    return {at::logsumexp(logits, 1), at::amax(whole.view({rows, blocks, kLogitBlock}), 2)};
  }
  LogitSummary summary{at::empty({rows}, logits.options()), at::empty({rows, blocks}, logits.options())};
  with_kernels(logits, [&]<class T>(const Kernels<T>& kernels, void* stream) {
    kernels.logit_summaries({.rows = rows,
                             .vocab_size = logits.size(1),
                             .stride = logits.stride(0),
                             .logits = read<T>(logits),
                             .log_sums = write<T>(summary.log_sums),
                             .maxima = write<T>(summary.maxima)},
                            stream);
  });
  return summary;
}

}  // namespace tearless::engine
