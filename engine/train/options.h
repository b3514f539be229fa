// The settings of training ([train] and its tables) and of execution ([run]).
#pragma once

#include <cstdint>
#include <optional>

#include "base/settings.h"

namespace tearless::engine {

/// Learning rate at update n; d: Task::schedule_width(), w: warmup_updates.
enum class ScheduleKind {
  kInvsqrt,   // scale · d^-½ · min(n · w^-1.5, n^-½) (TwT eq. 7)
  kValdecay,  // the same warm-up, then decay on plateaus of the dev score
  kNowarmup   // `lr` from the first update, decay on plateaus of the dev score
};
/// When the dev score is on a plateau.
enum class DecayRule {
  kMinWindow,    // below each of the last `decay_patience` evaluations (TwT's code)
  kBestPatience  // `decay_patience` evaluations without a new best (TwT's text)
};

/// [train.schedule] (docs/spec/training.md §1.6–1.7)
struct ScheduleOptions {
  ScheduleKind kind = ScheduleKind::kInvsqrt;
  double scale = 1.0;             // factor of the learning rate with warm-up; "2×LR" is 2. Not with nowarmup
  int64_t warmup_updates = 8000;  // updates of linear warm-up; not with nowarmup
  double lr = 3e-4;               // learning rate of nowarmup
  // Highest learning rate, for every kind; replaces `scale` and `lr`. invsqrt reaches it at update w, nowarmup begins
  // with it, valdecay stays at update w - 1 of the ramp to it: at peak_lr · (w - 1) / w (the code of TwT).
  // peak_lr = scale · d^-½ · w^-½ gives the learning rates of `scale`, under another id.
  std::optional<double> peak_lr;
  double decay_factor = 0.8;   // multiplies the learning rate on a plateau; not with invsqrt
  int64_t decay_patience = 3;  // evaluations that decay_rule looks back on; not with invsqrt
  DecayRule decay_rule = DecayRule::kMinWindow;

  /// Whether learning rates depend on the width of the model.
  bool uses_width() const { return kind != ScheduleKind::kNowarmup && !peak_lr; }
};
void describe(SettingsVisitor& visitor, ScheduleOptions& options);

/// [train.adam] (docs/spec/training.md §1.5)
struct AdamOptions {
  double beta1 = 0.9;    // decay of the first moment
  double beta2 = 0.999;  // decay of the second moment
  double eps = 1e-8;     // added outside the root
};
void describe(SettingsVisitor& visitor, AdamOptions& options);

/// [train]
struct TrainOptions {
  int64_t seed = 147;                                          // of initial values, data order and dropout
  std::optional<int64_t> init_seed, order_seed, dropout_seed;  // override `seed` for one of them
  int64_t epoch_updates = 1000;  // updates per epoch; each epoch ends with an evaluation on dev
  int64_t max_epochs = 200;      // training ends after this many epochs
  int64_t max_updates = 0;       // training ends after this many updates; 0: no such limit
  int64_t early_stop = 20;       // training ends after this many evaluations without a better the dev score; 0: never
  double min_lr = 1e-6;          // training ends when the learning rate falls below this; not with invsqrt
  double label_smoothing = 0.1;  // mass spread evenly over the output vocabulary, the gold token included
  double clip_norm = 1.0;        // maximum global L2 norm of the gradient; 0: no clipping
  ScheduleOptions schedule;
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
  int64_t keep_checkpoints = 1;   // newest checkpoints to retain, besides the best
};
void describe(SettingsVisitor& visitor, ExecutionOptions& options);

/// Throws UserError if the device does not support the precision: the CPU has fp32 only.
void check_consistent(const ExecutionOptions& options);

}  // namespace tearless::engine
