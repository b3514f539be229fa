// Runs of the task digits small enough for a test: IDX files with bars in place of digits, and settings of a tiny
// network.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/ops/random.h"
#include "engine/task/digits.h"
#include "tests/engine/run/small_runs.h"

namespace tearless::engine::test {

inline constexpr int kBarSide = 12;  // pixels

inline std::string big_endian(uint32_t n) {
  return {static_cast<char>(n >> 24), static_cast<char>(n >> 16), static_cast<char>(n >> 8), static_cast<char>(n)};
}

/// NAME.images and NAME.labels: `count` images of a bar in noise. The digit says where the bar is: 0–4 from left to
/// right, 5–9 from top to bottom.
inline void write_bars(const std::filesystem::path& folder, const std::string& name, uint32_t count, uint32_t seed) {
  const RandomStream random(seed, "bars");
  std::string images = big_endian(0x803) + big_endian(count) + big_endian(kBarSide) + big_endian(kBarSide);
  std::string labels = big_endian(0x801) + big_endian(count);
  for (uint32_t i = 0; i < count; ++i) {
    const int digit = static_cast<int>(random.draw(0, 1, i, 0) % 10), at = 2 + 2 * (digit % 5);
    for (int y = 0; y < kBarSide; ++y) {
      for (int x = 0; x < kBarSide; ++x) {
        const uint32_t noise = random.draw(static_cast<uint32_t>(y * kBarSide + x), 0, i, 0) % 96;
        const int across = digit < 5 ? x : y;
        images += static_cast<char>(across == at || across == at - 1 ? 159 + noise : noise);
      }
    }
    labels += static_cast<char>(digit);
  }
  write_text(folder / (name + ".images"), images);
  write_text(folder / (name + ".labels"), labels);
}

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
  return options.as<DigitsKind>("this test").options;
}

}  // namespace tearless::engine::test
