// What `tearless-engine bench` trains: a model of some task on made-up batches. Needs no corpus and no run directory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "engine/task/task_kind.h"
#include "engine/train/trainable.h"

namespace tearless::engine {

/// The sizes of made-up batches: for each batch, those of its examples. A sentence pair has the rows of its source
/// (with EOS) and of its target (with BOS); a sentence its rows. A batch of images has one example: their number.
using BenchLengths = std::vector<std::vector<std::vector<int32_t>>>;

class BenchSubject : public Trainable {
 public:
  virtual int64_t batch_count() const = 0;

  struct Decoded {
    int64_t sentences = 0, tokens = 0;
  };
  /// Translates all sources by beam search; nothing if the task does not translate.
  virtual std::optional<Decoded> decode() { return std::nullopt; }
};

/// Reads {"batches": [[example, …], …]}: an example is a number, or [source, target] for translation. Throws
/// UserError, naming the file and the fault.
BenchLengths read_bench_lengths(const std::filesystem::path& path, const TaskKind& task);
/// One batch of equal examples of 24 rows a side that fills a batch of that task.
BenchLengths equal_bench_lengths(const TaskKind& task);

/// A model of that task and batches of those sizes. Tokens are drawn with the seed of the data order. `vocab_size`: V.
/// All arguments must outlive the subject. Throws UserError for a task that has no bench.
std::unique_ptr<BenchSubject> make_bench_subject(const TaskKind& task, const TrainOptions& train,
                                                 const ExecutionOptions& execution, int64_t vocab_size,
                                                 const BenchLengths& lengths);

}  // namespace tearless::engine
