// Measures how fast a model trains and translates on this machine.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/task/task_kind.h"
#include "engine/train/updater.h"

namespace tearless::engine {

class Bench {
 public:
  /// Borrows all arguments, which must outlive the bench.
  Bench(const MadeUpTask& subject, const TrainOptions& train, const ExecutionOptions& execution);

  /// Makes `count` updates on the batches in turn. Returns the wall time of each in seconds; updates that are in flight
  /// together share theirs evenly.
  std::vector<double> updates(int64_t count);
  /// Batch::rows() of all updates so far.
  int64_t rows_seen() const { return rows_seen_; }
  /// Makes one update on each batch, operation by operation, and returns the times of the operations.
  TapeProfile profile();

  struct TimedDecoding {
    double seconds;
    MadeUpTask::Decoded decoded;
  };
  /// MadeUpTask::decode(); nothing for a task that has none.
  std::optional<TimedDecoding> decode();

  /// Seconds that these matmuls take alone: for each shape the forward pass (x Wᵀ), the weight gradient and the input
  /// gradient, by the matmul library in use on this device with the current number of threads.
  double matmul_floor_seconds(const std::vector<TapeProfile::Matmul>& matmuls) const;

  /// Floating-point operations of an update's matmuls and attention, forward and backward, on average over the batches.
  double operations_per_update() { return profile().operations_needed() / static_cast<double>(batch_count()); }

  int64_t parameter_count() const { return subject_.task->parameters().count(); }
  /// The updates to make before timing: with CUDA graphs, every bucket must have been seen twice.
  int64_t warm_up() const;
  int64_t batch_count() const { return subject_.batches; }

 private:
  /// Makes `count` updates, at most updater.capacity(). Returns the wall time of all in seconds.
  double make(Updater& updater, int64_t count);

  const MadeUpTask& subject_;
  const TrainOptions& train_;
  const ExecutionOptions& execution_;
  OptimiserState optimiser_;
  std::unique_ptr<Updater> updater_;
  int64_t updates_ = 0, rows_seen_ = 0;
  bool decoded_ = false;
};

}  // namespace tearless::engine
