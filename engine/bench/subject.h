// What `tearless-engine bench` trains: a model of some task on made-up batches. Needs no corpus and no run directory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>

#include "engine/task/task_kind.h"

namespace tearless::engine {

struct BenchSubject {
  struct Decoded {
    int64_t sentences = 0, tokens = 0;
  };

  std::unique_ptr<Task> task;
  int64_t batches;                       // that ready() of the task knows
  std::function<Decoded()> decode = {};  // translates all sources by beam search; null for a task that does not
};

/// A model of that task and batches whose tokens are drawn with the seed of the data order. `vocab_size`: V. The sizes
/// of the batches are read from `lengths`, {"batches": [[example, …], …]}: an example is the number of its rows, of
/// translation [source with EOS, target with BOS]; a batch of images has one example, their number. "": one batch of
/// equal examples that fills a batch of the task. All arguments must outlive the subject. Throws UserError for a task
/// that has no bench, and for a file that is wrong, naming the fault.
BenchSubject make_bench_subject(const TaskKind& task, const TrainOptions& train, const ExecutionOptions& execution,
                                int64_t vocab_size, const std::filesystem::path& lengths);

}  // namespace tearless::engine
