// How fast one model trains and translates on this machine, on random tokens: no corpus and no run directory needed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/data/batches.h"
#include "engine/model/transformer.h"
#include "engine/ops/adam.h"
#include "engine/task/run_options.h"

namespace tearless::engine {

/// Rows of each sentence pair, batch by batch: sources with EOS, targets with BOS.
using BenchLengths = std::vector<std::vector<std::pair<int32_t, int32_t>>>;

/// Reads {"batches": [[[source, target], …], …]}. UserError names the file and what is wrong in it.
BenchLengths read_bench_lengths(const std::filesystem::path& path);
/// Batches of equal sentences, 24 rows a side, that fill `tokens` rows of both sides together.
BenchLengths equal_bench_lengths(int64_t tokens);

class Bench {
 public:
  /// `options` must outlive the bench. Tokens are drawn from train.seed.
  Bench(const RunOptions& options, int64_t vocabulary, const BenchLengths& lengths);

  /// One update (forward, loss, backward, clipping, Adam) on the next batch, first to last and around again; its wall
  /// time in seconds.
  double update(TapeProfile* profile = nullptr);
  /// Rows of both sides of the batch that the next update() takes.
  int64_t next_rows() const;

  struct Decoded {
    double seconds;
    int64_t sentences, tokens;
  };
  /// Translates every source by beam search.
  Decoded decode() const;

  /// Seconds that the products of a step take by themselves: each shape forward (x Wᵀ), for the weight's gradient and
  /// for the input's, as LibTorch multiplies them on this device with the threads that are set.
  double product_floor_seconds(const std::vector<TapeProfile::Product>& products) const;

  int64_t parameter_count() const { return parameters_.count(); }
  int64_t batch_count() const { return static_cast<int64_t>(batches_.size()); }

 private:
  /// Waits for the device.
  void synchronise() const;

  const RunOptions& options_;
  ParallelTokens corpus_;
  std::vector<BatchLines> batches_;
  Parameters parameters_;
  std::unique_ptr<Transformer> model_;
  at::Tensor first_moment_, second_moment_;
  int64_t updates_ = 0;
};

}  // namespace tearless::engine
