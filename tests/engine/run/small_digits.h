// Runs of the task digits small enough for a test: bars in place of digits, and settings of a tiny network.
#pragma once

#include <filesystem>

#include "engine/task/digits.h"
#include "tests/engine/run/small_runs.h"
#include "tests/support/bars.h"

namespace tearless::engine::test {

using tearless::test::write_bars;

/// Twelve updates in six passes of two batches, the second a smaller one, over the files of write_digits(); a tiny
/// network in which everything is switched on.
inline Settings small_digits() {
  return {{"task", "digits"},
          {"data.name", "bars"},
          {"data.train_images", "train.images"},
          {"data.train_labels", "train.labels"},
          {"data.test_images", "test.images"},
          {"data.test_labels", "test.labels"},
          {"data.dev_first", 12},
          {"model.conv1_channels", 3},
          {"model.conv2_channels", 5},
          {"model.kernel", 3},
          {"model.hidden", 7},
          {"model.dropout.conv", 0.1},
          {"model.dropout.hidden", 0.1},
          {"train.seed", 1},
          {"train.batch.images", 16},
          {"train.epoch_updates", 3},
          {"train.max_epochs", 4},
          {"train.early_stop", 0},
          {"train.schedule.kind", "nowarmup"},
          {"train.schedule.lr", 0.01},
          {"run.log_updates", 1}};
}

/// 36 images for training and dev, 11 for test.
inline void write_digits(const std::filesystem::path& folder) {
  write_bars(folder, "train", 36, 1);
  write_bars(folder, "test", 11, 2);
}

inline DigitsTaskOptions& digits_options(const RunOptions& options) {
  return options.as<DigitsTaskOptions>("this test");
}

}  // namespace tearless::engine::test
