// Label-smoothed cross-entropy, loss and gradient in place (kernels.h: CrossEntropy). One block per row, which it reads
// once for the sum of exponentials and once more, from the cache, to overwrite it with the gradient.
//
//   nll              = log Σ_v e^(z_v - largest) + largest - z_gold
//   Σ_v -log p(v)    = K · nll - Σ_v (z_v - z_gold)        the smoothing term, from a sum of small numbers
#pragma once

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "engine/cuda/block.h"
#include "engine/cuda/exp_sum_body.h"
#include "engine/cuda/group.h"
#include "engine/ops/kernels.h"

namespace tearless::engine {

template <class T, bool kAligned>
struct CrossEntropyRow {
  static constexpr const char* kName = "cross_entropy";
  static constexpr int kThreads = 256;
  static constexpr int kSize = kAligned ? kWideGroup<T> : 1;  // with 1, a warp's loads are still coalesced
  CrossEntropy<T> a;

  Shape shape() const {
    // Fewer warps for a small vocabulary.
    const int warps = static_cast<int>(blocks_for(a.vocab_size, 2 * kLanes * kSize));
    return {a.rows, kLanes * std::clamp(warps, 1, kThreads / kLanes), kBlockSumBytes<float>};
  }

  template <class Block>
  TEARLESS_BODY void operator()(Block& block) const {
    const int64_t t = block.index();
    T* row = a.logits + t * a.vocab_size;
    const int64_t gold = a.labels[t];
    const int64_t step = int64_t{block.threads()} * kSize;
    const int64_t begin = int64_t{block.thread()} * kSize;
    if (gold < 0) {
      if (block.thread() == 0) a.row_losses[t] = {0, 0};
      const float zeros[kSize] = {};
      for (int64_t v = begin; a.gradient && v < a.vocab_size; v += step) {
        store_group<kAligned>(row + v, inside<kSize>(v, a.vocab_size), zeros);
      }
      return;
    }
    const float of_gold = static_cast<float>(row[gold]);

    ExpSum exps;
    float above_gold = 0;
    for (int64_t v = begin; v < a.vocab_size; v += step) {
      const int count = inside<kSize>(v, a.vocab_size);
      float z[kSize];
      load_group<kAligned>(row + v, count, z);
      exps.raise(z, count);
      TEARLESS_UNROLL
      for (int i = 0; i < kSize; ++i) {
        if (i >= count) continue;
        exps.add(z[i]);
        above_gold += z[i] - of_gold;
      }
    }
    const ExpSum of_row = exps.joined(block);
    const float top = of_row.largest, sum = of_row.sum;
    above_gold = block_sum(block, above_gold, block.shared());

    const double uniform = a.smoothing / static_cast<double>(a.vocab_size);
    if (block.thread() == 0) {
      const double nll = static_cast<double>(logf(sum)) + (static_cast<double>(top) - static_cast<double>(of_gold));
      const double smooth = static_cast<double>(a.vocab_size) * nll - static_cast<double>(above_gold);
      a.row_losses[t] = {(1 - a.smoothing) * nll + uniform * smooth, nll};
    }
    if (!a.gradient) return;
    const double loss_scale = a.loss_scale_at ? *a.loss_scale_at : a.loss_scale;
    const float factor = static_cast<float>(loss_scale) / sum;
    const float flat = static_cast<float>(loss_scale * uniform);
    const float of_label = static_cast<float>(loss_scale * (1 - a.smoothing));
    for (int64_t v = begin; v < a.vocab_size; v += step) {
      const int count = inside<kSize>(v, a.vocab_size);
      float z[kSize];
      load_group<kAligned>(row + v, count, z);
      TEARLESS_UNROLL
      for (int i = 0; i < kSize; ++i) {
        z[i] = expf(z[i] - top) * factor - flat;
        if (v + i == gold) z[i] -= of_label;
      }
      store_group<kAligned>(row + v, count, z);
    }
  }
};

/// *sum += Σ row_losses, by one block in a fixed order: each thread adds every kThreads-th row, then block_sum().
struct SumRowLosses {
  static constexpr const char* kName = "cross_entropy_sum";
  static constexpr int kThreads = 256;
  const RowLoss* row_losses;
  int64_t rows;
  RowLoss* sum;

  Shape shape() const { return {1, kThreads, kBlockSumBytes<double>}; }

  template <class Block>
  TEARLESS_BODY void operator()(Block& block) const {
    double loss = 0, nll = 0;
    for (int64_t t = block.thread(); t < rows; t += kThreads) {
      loss += row_losses[t].loss;
      nll += row_losses[t].nll;
    }
    loss = block_sum(block, loss, block.shared());
    nll = block_sum(block, nll, block.shared());
    if (block.thread() != 0) return;
    sum->loss += loss;
    sum->nll += nll;
  }
};

template <class T, class Runner>
void launch(const CrossEntropy<T>& a, Runner& runner) {
  if (a.rows == 0) return;
  if (is_aligned(a.logits, a.vocab_size)) {
    runner.run(CrossEntropyRow<T, true>{a});
  } else {
    runner.run(CrossEntropyRow<T, false>{a});
  }
  if (a.sum) runner.run(SumRowLosses{a.row_losses, a.rows, a.sum});
}

}  // namespace tearless::engine
