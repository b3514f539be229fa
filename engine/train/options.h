// The knobs of training: schedule, optimiser, epochs, stopping, seeds.
#pragma once

#include <cstdint>
#include <optional>

#include "base/settings.h"
#include "engine/data/options.h"

namespace tearless::engine {

enum class ScheduleKind { kInvsqrt, kValdecay, kNowarmup };
enum class DecayRule { kMinWindow, kBestPatience };

/// [train.schedule] (training.md §1.6–1.7)
struct ScheduleOptions {
  ScheduleKind kind = ScheduleKind::kInvsqrt;
  double scale = 1.0;
  int64_t warmup_updates = 8000;
  double lr = 3e-4;
  double decay_factor = 0.8;
  int64_t decay_patience = 3;
  DecayRule decay_rule = DecayRule::kMinWindow;
};
void describe(SettingsVisitor& visitor, ScheduleOptions& options);

/// [train.adam]
struct AdamOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
};
void describe(SettingsVisitor& visitor, AdamOptions& options);

/// [train]
struct TrainOptions {
  int64_t seed = 147;
  std::optional<int64_t> init_seed, order_seed, dropout_seed;
  int64_t epoch_updates = 1000;
  int64_t max_epochs = 200;
  int64_t max_updates = 0;
  int64_t early_stop = 20;
  double min_lr = 1e-6;
  double label_smoothing = 0.1;
  double clip_norm = 1.0;
  BatchOptions batch;
  ScheduleOptions schedule;
  AdamOptions adam;

  uint32_t seed_for_init() const { return static_cast<uint32_t>(init_seed.value_or(seed)); }
  uint32_t seed_for_order() const { return static_cast<uint32_t>(order_seed.value_or(seed)); }
  uint32_t seed_for_dropout() const { return static_cast<uint32_t>(dropout_seed.value_or(seed)); }
  /// The most updates the run can make.
  int64_t update_limit() const;
};
void describe(SettingsVisitor& visitor, TrainOptions& options);

/// [run]: where and how a run is executed. Only device and precision belong to its identity.
struct ExecutionOptions {
  enum class Device { kCpu, kCuda };
  enum class Precision { kFp32, kTf32, kBf16 };
  enum class Ops { kFast, kReference };

  Device device = Device::kCpu;
  Precision precision = Precision::kFp32;
  Ops ops = Ops::kFast;
  int64_t threads = 1;
  int64_t log_updates = 50;
  int64_t keep_checkpoints = 1;
};
void describe(SettingsVisitor& visitor, ExecutionOptions& options);

/// Checks what no single field can: that the device has the precision. UserError.
void check_consistent(const ExecutionOptions& options);

}  // namespace tearless::engine
