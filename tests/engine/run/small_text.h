// Runs of the task language_model small enough for a test.
#pragma once

#include <filesystem>
#include <string>

#include "engine/task/language_model.h"
#include "tests/engine/run/small_runs.h"
#include "tests/support/made_up_text.h"

namespace tearless::engine::test {

inline void write_texts(const std::filesystem::path& folder, uint32_t seed = 1, const std::string& prefix = "") {
  write_text(folder / (prefix + "train.txt"), tearless::test::mostly_alphabetical(160, seed));
  write_text(folder / (prefix + "dev.txt"), tearless::test::mostly_alphabetical(75, seed + 1));
  write_text(folder / (prefix + "test.txt"), tearless::test::mostly_alphabetical(70, seed + 2));
}

/// Twelve updates of two streams of 80 symbols, eleven segments of eight with a shorter one in a pass; a tiny model in
/// which everything is switched on.
inline Settings small_language_model() {
  return {{"task", "language_model"},
          {"data.name", "letters"},
          {"data.train", "train.txt"},
          {"data.dev", "dev.txt"},
          {"data.test", "test.txt"},
          {"model.layers", 2},
          {"model.d_model", 8},
          {"model.d_ff", 12},
          {"model.heads", 2},
          {"model.memory", 12},
          {"model.dropout.residual", 0.1},
          {"model.dropout.attention", 0.1},
          {"model.dropout.relu", 0.1},
          {"evaluate.streams", 3},
          {"evaluate.segment", 4},
          {"evaluate.memory", 6},
          {"train.seed", 1},
          {"train.batch.streams", 2},
          {"train.batch.segment", 8},
          {"train.epoch_updates", 3},
          {"train.max_epochs", 4},
          {"train.max_updates", 0},
          {"train.schedule.kind", "nowarmup"},
          {"train.schedule.lr", 0.02},
          {"run.log_updates", 1}};
}

inline LanguageModelOptions& language_model_options(const RunOptions& options) {
  return options.as<LanguageModelOptions>("this test");
}

}  // namespace tearless::engine::test
