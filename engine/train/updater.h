// Makes updates of the parameters: forward pass, loss, backward, clipping, optimiser. Two implementations with the same
// results: operation by operation, and on the GPU as CUDA graphs (captured_updater.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/train/options.h"
#include "engine/train/trainable.h"

namespace tearless::engine {

/// The result of one update, over all of its batches.
struct UpdateResult {
  LossSums sums = {};
  double gradient_norm = 0;                     // global L2 norm before clipping
  int64_t rows = 0;                             // Batch::rows()
  int64_t fallback_ops = 0;                     // operations that ran by formula, not by a kernel
  std::map<std::string, double> observed = {};  // of an update that is reported: the metrics of ObserveOptions
  /// With ObserveOptions::window_means, of every update: the gradient norms by group.
  std::map<std::string, double> group_norms = {};

  /// Whether the loss and the gradient norm are finite.
  bool finite() const;
};

class Updater {
 public:
  virtual ~Updater() = default;

  /// The maximum number of start() calls before collect() must be called.
  virtual int64_t capacity() const = 0;
  /// Adds the gradients of batch `index` of the started pass to update n. For all batches of an update but the last:
  /// train.accumulate - 1 of them.
  virtual void add(int64_t n, int64_t index) = 0;
  /// Starts update n, counted from 1, whose last batch is batch `index` of the started pass.
  virtual void start(int64_t n, int64_t index, double learning_rate) = 0;
  /// Waits for the started updates and returns their results, oldest first, up to and including the first that is not
  /// finite. The parameters are then those after the last finite update.
  virtual std::vector<UpdateResult> collect() = 0;
};

/// A CapturedUpdater if captures_updates(), an update has one batch, none is observed, and the device has graph capture
/// and the optimiser's kernels for it. Otherwise, or with `profile` (which needs operations one by one), an updater
/// that runs operation by operation. All arguments must outlive it.
std::unique_ptr<Updater> make_updater(Trainable& trained, const TrainOptions& train, const ExecutionOptions& execution,
                                      OptimiserState& state, TapeProfile* profile = nullptr);

}  // namespace tearless::engine
