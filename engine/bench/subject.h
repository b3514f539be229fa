// What `tearless-engine bench` trains: a model of some task on made-up batches. Needs no corpus and no run directory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "engine/task/task_kind.h"

namespace tearless::engine {

/// The sizes of made-up batches: for each batch, those of its examples. A sentence pair has the rows of its source
/// (with EOS) and of its target (with BOS); a sentence its rows. A batch of images has one example: their number.
using BenchLengths = std::vector<std::vector<std::vector<int32_t>>>;

class BenchSubject final : public Trainable {
 public:
  struct Decoded {
    int64_t sentences = 0, tokens = 0;
  };
  using Decode = std::function<Decoded()>;

  /// A task whose batches are those to train on; null for a task that does not translate: `decode`.
  BenchSubject(std::unique_ptr<Task> task, int64_t batch_count, Decode decode = nullptr)
      : task_(std::move(task)), batch_count_(batch_count), decode_(std::move(decode)) {}

  Parameters& parameters() override { return task_->parameters(); }
  std::vector<std::string> loss_names() const override { return task_->loss_names(); }
  std::unique_ptr<Batch> ready(int64_t index, uint32_t update) override { return task_->ready(index, update); }
  LossSums loss(const ForwardContext& context, const Batch& batch) override { return task_->loss(context, batch); }

  int64_t batch_count() const { return batch_count_; }
  /// Translates all sources by beam search; nothing if the task does not translate.
  std::optional<Decoded> decode() const { return decode_ ? std::optional(decode_()) : std::nullopt; }

 private:
  std::unique_ptr<Task> task_;
  int64_t batch_count_;
  Decode decode_;
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
