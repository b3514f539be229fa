// Runs of the task parse small enough for a test: sentences of three patterns, and settings of a tiny network.
#pragma once

#include <filesystem>
#include <string>

#include "engine/task/parse.h"
#include "tests/engine/run/small_runs.h"
#include "tests/support/made_up_text.h"

namespace tearless::engine::test {

/// 24 sentences for training, 9 for dev and 8 for test.
inline void write_treebank(const std::filesystem::path& folder, uint32_t first = 0, const std::string& prefix = "") {
  for (const auto& [set, count] : {std::pair("train", 24u), {"dev", 9u}, {"test", 8u}}) {
    std::string text;
    for (uint32_t i = 0; i < count; ++i) text += tearless::test::tree_of_three_patterns(first++);
    write_text(folder / (prefix + set + ".conllu"), text);
  }
}

/// Twelve updates in three passes of four batches, the last a smaller one, over the files of write_treebank(); a tiny
/// network in which everything is switched on.
inline Settings small_parser() {
  return {{"task", "parse"},
          {"data.name", "sentences"},
          {"data.train", "train.conllu"},
          {"data.dev", "dev.conllu"},
          {"data.test", "test.conllu"},
          {"model.embedding", 6},
          {"model.hidden", 10},
          {"model.dropout.hidden", 0.1},
          {"train.seed", 1},
          {"train.batch.examples", 60},
          {"train.epoch_updates", 3},
          {"train.max_epochs", 4},
          {"train.early_stop", 0},
          {"train.schedule.kind", "nowarmup"},
          {"train.schedule.lr", 0.02},
          {"run.log_updates", 1}};
}

inline ParseOptions& parse_options(const RunOptions& options) { return options.as<ParseOptions>("this test"); }

}  // namespace tearless::engine::test
