// Updates on a device as captured steps. A step is everything from the embeddings to Adam, captured once for a bucket
// of batch sizes (padded_batch.h) and replayed; what differs between updates, the batch, the update's number, the
// learning rate and 1 / tokens, lies in device memory that the host writes before. Nothing waits for the device until
// collect(): losses and norms come back then, and a step whose gradient is not finite freezes the parameters by itself.
//
// The first batch of a bucket runs operation by operation on the same padded batch, which gives the same bits; the
// second is captured. So it does not show in a result which batches a process has seen before.
#pragma once

#include <map>

#include "engine/ops/backend.h"
#include "engine/train/padded_batch.h"
#include "engine/train/updater.h"

namespace tearless::engine {

class CapturedUpdater final : public Updater {
 public:
  /// `capture`: for the device of the parameters, which has OptimiserKernels::adam_on_device. Batches of further
  /// buckets than `most_captured` run operation by operation.
  CapturedUpdater(Trainable& trained, const TrainOptions& train, Moments& moments, Capture capture,
                  int64_t most_captured = 512);
  ~CapturedUpdater() override;

  int64_t capacity() const override;
  void start(int64_t n, int64_t index, double learning_rate) override;
  std::vector<UpdateResult> collect() override;

  /// Steps that were captured so far.
  int64_t captured() const { return captured_; }

 private:
  struct CapturedStep;
  struct Slot;

  /// One update's work for the device: a walk over the whole step.
  void launch(CapturedStep& step, uint32_t update);

  Trainable& trained_;
  const TrainOptions& train_;
  Moments& moments_;
  Capture capture_;
  int64_t most_captured_;
  std::map<Bucket, CapturedStep> steps_;
  std::vector<Slot> slots_;  // one an update under way
  size_t under_way_ = 0;
  at::Tensor left_;  // on the device: StepLeft
  int64_t captured_ = 0, fallback_ops_ = 0;
};

}  // namespace tearless::engine
