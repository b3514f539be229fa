// Updates on the GPU as CUDA graphs. One graph is a complete update: forward pass, loss, backward, clipping and Adam.
// It has one batch: where several are accumulated, updates run operation by operation, as they do for an optimiser
// without a kernel (updater.h). What differs between updates (the batch, the update's number, the factors of Adam,
// 1 / tokens) is in device memory that the host writes before each replay. A graph serves all batches of a bucket of
// sizes (batch.h):
//   1. The first batch of a bucket runs operation by operation, padded; the bits are those of a replay (warm-up run).
//   2. The second batch is captured and replayed; later ones are replayed.
// Results therefore do not depend on the batches that a process has seen before.
//
// The host replays updates without waiting for the device, until collect() reads back losses and norms. If a gradient
// is not finite, the device itself stops changing the parameters.
#pragma once

#include <map>
#include <vector>

#include "engine/ops/backend.h"
#include "engine/train/updater.h"

namespace tearless::engine {

class CapturedUpdater final : public Updater {
 public:
  /// Borrows all references. `capture`: of the parameters' device, which must have OptimiserKernels::adam_on_device. At
  /// most `most_captured` buckets are captured; batches of further buckets run operation by operation.
  /// REQUIRES: the optimiser is a kind of Adam, and train.accumulate is 1 (std::logic_error).
  CapturedUpdater(Trainable& trained, const TrainOptions& train, OptimiserState& state, CaptureGraph capture,
                  int64_t most_captured = 512);
  ~CapturedUpdater() override;

  int64_t capacity() const override;
  void add(int64_t n, int64_t index) override;  // never called: an update has one batch
  void start(int64_t n, int64_t index, double learning_rate) override;
  std::vector<UpdateResult> collect() override;

  /// The number of buckets captured so far.
  int64_t captured() const { return captured_; }

 private:
  struct CapturedStep;
  struct Slot;

  /// Launches the kernels of one update.
  void launch(CapturedStep& step, uint32_t update);

  Trainable& trained_;
  const TrainOptions& train_;
  OptimiserState& state_;
  CaptureGraph capture_;
  int64_t most_captured_;
  std::map<std::vector<int64_t>, CapturedStep> steps_;  // by Batch::bucket()
  std::vector<Slot> slots_;                             // one per update in flight
  size_t in_flight_ = 0;                                // updates in flight
  size_t sums_;                                         // numbers that the loss sums
  at::Tensor outputs_;                                  // device memory: the results of the update that ran last
  int64_t captured_ = 0, fallback_ops_ = 0;
};

}  // namespace tearless::engine
