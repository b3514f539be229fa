// The settings of training ([train] and its tables) and of execution ([run]).
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "base/settings.h"
#include "engine/ops/cross_entropy.h"
#include "engine/train/optimiser.h"
#include "engine/train/schedule.h"
#include "engine/train/select.h"

namespace tearless::engine {

/// [train]
struct TrainOptions {
  int64_t seed = 147;                                          // of initial values, data order and dropout
  std::optional<int64_t> init_seed, order_seed, dropout_seed;  // override `seed` for one of them
  std::optional<int64_t> epoch_updates = 1000;  // updates of an epoch; unset: it is a pass over the training set
  std::optional<int64_t> evaluate_updates = 0;  // between evaluations; 0: one after each epoch; unset: after each pass
  int64_t max_epochs = 200;                     // training ends after this many epochs
  int64_t max_updates = 0;                      // training ends after this many updates; 0: no such limit
  int64_t early_stop = 20;       // training ends after this many evaluations without a better the dev score; 0: never
  double min_lr = 1e-6;          // training ends at an evaluation after the warm-up, if the learning rate is below this
  double label_smoothing = 0.1;  // mass that is spread over the classes, of translation the tokens
  SmoothingForm label_smoothing_form = SmoothingForm::kTwt;  // how (docs/spec/training.md §6.0)
  /// What the loss of a batch is the mean of.
  enum class LossMean {
    kTokens,    // the losses of all labels
    kSentences  // the means of the losses of each sentence, so that labels of short sentences weigh more
  };
  LossMean loss_mean = LossMean::kTokens;
  /// How the batches of an update count.
  enum class AccumulateBy {
    kPredictions,  // the sum of all losses is divided by the number of all predictions
    kBatches       // the mean of the means of the batches
  };
  int64_t accumulate = 1;  // batches of an update
  AccumulateBy accumulate_by = AccumulateBy::kPredictions;
  double diverged_loss = 0;  // an update with a larger loss is a divergence; 0: none that is finite
  double clip_norm = 1.0;    // maximum global L2 norm of the gradient; 0: no clipping
  SelectOptions select;
  ScheduleOptions schedule;
  OptimiserOptions optimiser;
  AdamOptions adam;

  LabelSmoothing smoothing() const { return {label_smoothing, label_smoothing_form}; }
  uint32_t seed_for_init() const { return static_cast<uint32_t>(init_seed.value_or(seed)); }
  uint32_t seed_for_order() const { return static_cast<uint32_t>(order_seed.value_or(seed)); }
  uint32_t seed_for_dropout() const { return static_cast<uint32_t>(dropout_seed.value_or(seed)); }
  /// Whether an epoch or an evaluation ends with a pass.
  bool counts_passes() const { return !epoch_updates || !evaluate_updates; }
  /// The maximum number of updates: the smaller of max_updates (if set) and those of max_epochs. `pass_updates`: of a
  /// pass, if they are known; kUnlimited if they are not and nothing else limits the training. Passes may differ by a
  /// few batches, so with counts_passes() this is an estimate.
  int64_t update_limit(int64_t pass_updates = 0) const;
  /// The maximum number of evaluations, with the evaluation at the end. kUnlimited if it is not known.
  int64_t evaluation_limit(int64_t pass_updates = 0) const;
  static constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();
};
/// `data_follow_seed`: the data depend on `seed` too, so it has an effect even if all others are set apart.
void describe(SettingsVisitor& visitor, TrainOptions& options, bool data_follow_seed);

/// Throws UserError if settings contradict each other.
void check_consistent(const TrainOptions& options);
/// Throws UserError for a schedule that falls to a later update than the last, as the length of a pass decides it: to
/// lower that in silence would give runs that exist another learning rate. `pass_updates`: 0 if they are not known.
void check_falls_to_end(const TrainOptions& options, int64_t pass_updates);

/// [observe]: what is logged besides. All local: nothing but metrics.jsonl depends on it.
struct ObserveOptions {
  int64_t early_stop = 20;  // without train.early_stop: the patience whose stop is logged; 0: none (TwT, Appendix A)
  // At each report, of that update alone but for the means. On a GPU updates are then not captured.
  bool groups = false;        // gradient norm, and update, by itself and relative to the weights, of groups (observe.h)
  bool window_means = false;  // mean of the gradient norms of groups over the updates since the last report
  bool variances = false;     // variance of the sum of the residual stream and each sublayer's output

  enum class GroupBy { kSublayer, kLayer };
  GroupBy group_by = GroupBy::kSublayer;
  std::string only;  // the groups that are logged, "encoder.1, decoder.6"; "": all

  bool of_groups() const { return groups || window_means; }
  bool updates() const { return of_groups() || variances; }
};
void describe(SettingsVisitor& visitor, ObserveOptions& options);

/// Throws UserError for settings of the loss that need sentences of several labels.
void check_one_label_an_example(const TrainOptions& options);
/// Throws UserError for a schedule whose learning rate depends on the model width. For networks of `task` without one.
void check_schedule_without_width(const TrainOptions& options, std::string_view task);

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
  double checkpoint_share = 0.1;  // of the time, for checkpoints after evaluations (checkpoint_is_due())
  ObserveOptions observe = {};
};
/// Without those of `observe`, which is a table of its own.
void describe(SettingsVisitor& visitor, ExecutionOptions& options);

/// Throws UserError if the device does not support the precision: the CPU has fp32 only.
void check_consistent(const ExecutionOptions& options);

}  // namespace tearless::engine
