// Measures how fast a model trains and translates on this machine. Uses random tokens: needs no corpus or run
// directory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/task/translate.h"
#include "engine/train/updater.h"

namespace tearless::engine {

/// For each batch, the rows of its sentence pairs (source with EOS, target with BOS).
using BenchLengths = std::vector<std::vector<std::pair<int32_t, int32_t>>>;

/// Reads {"batches": [[[source, target], …], …]}. Throws UserError, naming the file and the fault.
BenchLengths read_bench_lengths(const std::filesystem::path& path);
/// One batch of equal sentence pairs, 24 rows per side, that fills `tokens` rows of both sides together.
BenchLengths equal_bench_lengths(int64_t tokens);

class Bench final : private Trainable {
 public:
  /// Borrows all options, which must outlive the bench. Tokens are drawn with the seed of the data order.
  Bench(const TranslateOptions& options, const TrainOptions& train, const ExecutionOptions& execution,
        int64_t vocab_size, const BenchLengths& lengths);

  /// Makes `count` updates on the batches in turn. Returns the wall time of each in seconds; updates that are in flight
  /// together share theirs evenly.
  std::vector<double> updates(int64_t count);
  /// Rows of both sides of all updates so far.
  int64_t rows_seen() const { return rows_seen_; }
  /// Makes one update on each batch, operation by operation, and returns the times of the operations.
  TapeProfile profile();

  struct Decoded {
    double seconds;
    int64_t sentences, tokens;
  };
  /// Translates all sources by beam search.
  Decoded decode();

  /// Seconds that these matmuls take alone: for each shape the forward pass (x Wᵀ), the weight gradient and the input
  /// gradient, as LibTorch computes them on this device with the current number of threads.
  double matmul_floor_seconds(const std::vector<TapeProfile::Matmul>& matmuls) const;

  int64_t parameter_count() const { return parameters_.count(); }
  /// The updates to make before timing: with CUDA graphs, every bucket must have been seen twice.
  int64_t warm_up() const;
  int64_t batch_count() const { return static_cast<int64_t>(batches_.size()); }

 private:
  Parameters& parameters() override { return parameters_; }
  std::vector<std::string> loss_names() const override { return {"loss", "nll"}; }
  std::unique_ptr<Batch> ready(int64_t index, uint32_t update) override;
  LossSums loss(const ForwardContext& context, const Batch& batch) override;

  /// Makes `count` updates, at most updater.capacity(). Returns the wall time of all in seconds.
  double make(Updater& updater, int64_t count);

  const TranslateOptions& options_;
  const TrainOptions& train_;
  const ExecutionOptions& execution_;
  ParallelTokens corpus_;
  std::vector<SentenceIds> batches_;
  Parameters parameters_;
  std::unique_ptr<Transformer> model_;
  std::unique_ptr<Translator> translator_;
  std::optional<Moments> moments_;
  std::unique_ptr<Updater> updater_;
  int64_t updates_ = 0, rows_seen_ = 0;
  bool decoded_ = false;
};

}  // namespace tearless::engine
