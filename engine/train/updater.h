// Updates of the parameters, one after another: forward, loss, backward, clipping, Adam. Two ways to the same numbers:
// operation by operation, read back at once; and, on a device, as captured steps that the host only feeds
// (captured_updater.h).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/ops/adam.h"
#include "engine/train/options.h"
#include "engine/train/trainable.h"

namespace tearless::engine {

/// What an update leaves to be reported.
struct UpdateResult {
  LossSums sums = {};
  double gradient_norm = 0;  // before clipping
  int64_t rows = 0;          // of both sides, padding not counted
  int64_t fallback_ops = 0;  // operations that ran by formula

  bool finite() const;
};

class Updater {
 public:
  virtual ~Updater() = default;

  /// Updates that may be started before collect() must be called.
  virtual int64_t capacity() const = 0;
  /// Gives update n, counted from 1, its work: batch `index` of the pass that was started.
  virtual void start(int64_t n, int64_t index, double learning_rate) = 0;
  /// Waits for the updates that were started and returns their results, oldest first. The parameters are those after
  /// the last one that is finite: behind one that is not, none has moved them.
  virtual std::vector<UpdateResult> collect() = 0;
};

/// The optimiser's memory, [P] each.
struct Moments {
  at::Tensor first, second;
  explicit Moments(const at::Tensor& parameters);
};

/// The settings of one update's step.
AdamStep adam_step_of(const TrainOptions& train, double learning_rate, int64_t update);

/// Captured where the device can, unless run.ops = "reference"; operation by operation where `profile` wants to see
/// each. All borrowed things must outlive the updater.
std::unique_ptr<Updater> make_updater(Trainable& trained, const TrainOptions& train, const ExecutionOptions& execution,
                                      Moments& moments, TapeProfile* profile = nullptr);

}  // namespace tearless::engine
