// How fast one model trains and translates on this machine, on random tokens: no corpus and no run directory needed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/data/batches.h"
#include "engine/decode/search.h"
#include "engine/model/transformer.h"
#include "engine/task/run_options.h"
#include "engine/train/updater.h"

namespace tearless::engine {

/// Rows of each sentence pair, batch by batch: sources with EOS, targets with BOS.
using BenchLengths = std::vector<std::vector<std::pair<int32_t, int32_t>>>;

/// Reads {"batches": [[[source, target], …], …]}. UserError names the file and what is wrong in it.
BenchLengths read_bench_lengths(const std::filesystem::path& path);
/// Batches of equal sentences, 24 rows a side, that fill `tokens` rows of both sides together.
BenchLengths equal_bench_lengths(int64_t tokens);

class Bench final : private Trainable {
 public:
  /// `options` must outlive the bench. Tokens are drawn from train.seed.
  Bench(const RunOptions& options, int64_t vocabulary, const BenchLengths& lengths);

  /// Updates (forward, loss, backward, clipping, Adam) on the next batches, first to last and around again; the wall
  /// time of each in seconds. Those that are under way together share theirs evenly.
  std::vector<double> updates(int64_t count);
  /// Rows of both sides of the batches so far.
  int64_t rows_seen() const { return rows_seen_; }
  /// One update on each batch, operation by operation.
  TapeProfile profile();

  struct Decoded {
    double seconds;
    int64_t sentences, tokens;
  };
  /// Translates every source by beam search.
  Decoded decode();

  /// Seconds that the products of a step take by themselves: each shape forward (x Wᵀ), for the weight's gradient and
  /// for the input's, as LibTorch multiplies them on this device with the threads that are set.
  double product_floor_seconds(const std::vector<TapeProfile::Product>& products) const;

  int64_t parameter_count() const { return parameters_.count(); }
  /// Updates that must be made before any is timed: where steps are captured, each bucket is seen twice first.
  int64_t warm_up() const;
  int64_t batch_count() const { return static_cast<int64_t>(batches_.size()); }

 private:
  Parameters& parameters() override { return parameters_; }
  ReadyBatch ready(int64_t index, uint32_t update) override;
  LossSums loss(const Step& step, const ReadyBatch& batch) override;

  /// `count` updates, at most as many as may be under way; the wall time of all.
  double make(Updater& updater, int64_t count);

  const RunOptions& options_;
  ParallelTokens corpus_;
  std::vector<BatchLines> batches_;
  Parameters parameters_;
  std::unique_ptr<Transformer> model_;
  std::unique_ptr<Translator> translator_;
  Moments moments_;
  std::unique_ptr<Updater> updater_;
  int64_t updates_ = 0, rows_seen_ = 0;
  bool decoded_ = false;
};

}  // namespace tearless::engine
