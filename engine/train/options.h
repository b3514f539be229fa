// The settings of training ([train] and its tables) and of execution ([run]).
#pragma once

#include <cstdint>
#include <optional>

#include "base/settings.h"
#include "engine/train/optimiser.h"
#include "engine/train/schedule.h"
#include "engine/train/select.h"

namespace tearless::engine {

/// [train]
struct TrainOptions {
  int64_t seed = 147;                                          // of initial values, data order and dropout
  std::optional<int64_t> init_seed, order_seed, dropout_seed;  // override `seed` for one of them
  int64_t epoch_updates = 1000;  // updates per epoch; each epoch ends with an evaluation on dev
  int64_t max_epochs = 200;      // training ends after this many epochs
  int64_t max_updates = 0;       // training ends after this many updates; 0: no such limit
  int64_t early_stop = 20;       // training ends after this many evaluations without a better the dev score; 0: never
  double min_lr = 1e-6;          // training ends at an evaluation after the warm-up, if the learning rate is below this
  double label_smoothing = 0.1;  // mass spread evenly over the output vocabulary, the gold token included
  /// How the batches of an update count.
  enum class AccumulateBy {
    kPredictions,  // the sum of all losses is divided by the number of all predictions
    kBatches       // the mean of the means of the batches
  };
  int64_t accumulate = 1;  // batches of an update
  AccumulateBy accumulate_by = AccumulateBy::kPredictions;
  double clip_norm = 1.0;  // maximum global L2 norm of the gradient; 0: no clipping
  SelectOptions select;
  ScheduleOptions schedule;
  OptimiserOptions optimiser;
  AdamOptions adam;

  uint32_t seed_for_init() const { return static_cast<uint32_t>(init_seed.value_or(seed)); }
  uint32_t seed_for_order() const { return static_cast<uint32_t>(order_seed.value_or(seed)); }
  uint32_t seed_for_dropout() const { return static_cast<uint32_t>(dropout_seed.value_or(seed)); }
  /// The maximum number of updates: the smaller of max_updates (if set) and epoch_updates · max_epochs.
  int64_t update_limit() const;
  /// The maximum number of evaluations: one after each epoch, and one at the end.
  int64_t evaluation_limit() const;
};
/// `data_follow_seed`: the data depend on `seed` too, so it applies even if all others are set apart.
void describe(SettingsVisitor& visitor, TrainOptions& options, bool data_follow_seed);

/// Throws UserError if settings contradict each other.
void check_consistent(const TrainOptions& options);

/// [observe]: what is logged besides. All local: nothing but metrics.jsonl depends on it.
struct ObserveOptions {
  int64_t early_stop = 20;  // without train.early_stop: the patience whose stop is logged; 0: none (TwT, Appendix A)
};
void describe(SettingsVisitor& visitor, ObserveOptions& options);

/// [run]: where and how a run is executed. device, precision and ops are part of a run's identity (at cpu, fp32 and
/// fast they are left out of it); the other settings are local.
struct ExecutionOptions {
  enum class Device { kCpu, kCuda };
  enum class Precision {
    kFp32,
    kTf32,  // cuda only: matmuls with 10 bits of fraction
    kBf16   // cuda only: rows and matmuls in bf16; weights, their gradients, norms, softmax, loss and Adam in fp32
  };
  enum class Matmul { kAuto, kMkl, kOpenBlas };  // engine/ops/matmul.h
  enum class Ops {
    kFast,      // kernels, where the device has them
    kReference  // every operation by its formula: slow, the reference implementation
  };

  Device device = Device::kCpu;
  Precision precision = Precision::kFp32;
  Ops ops = Ops::kFast;
  int64_t threads = 1;            // CPU threads; results do not depend on it
  Matmul matmul = Matmul::kAuto;  // library of the CPU's matmuls; results depend on it in their last bits
  int64_t log_updates = 50;       // updates between two reports of training loss, learning rate and gradient norm
  int64_t keep_checkpoints = 1;   // newest checkpoints to retain, besides the selected ones
  ObserveOptions observe;
};
/// Without those of `observe`, which is a table of its own.
void describe(SettingsVisitor& visitor, ExecutionOptions& options);

/// Throws UserError if the device does not support the precision: the CPU has fp32 only.
void check_consistent(const ExecutionOptions& options);

}  // namespace tearless::engine
