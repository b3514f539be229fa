// The training loop. One call of run() is one attempt on a run directory: it goes on from the newest checkpoint, and
// ends with the run done, diverged, or stopped on request. Whatever the number of attempts, metrics.jsonl and
// scores.json come out the same, byte for byte: all that the loop remembers is in Memory, and Memory is in every
// checkpoint.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/files.h"
#include "base/run_directory.h"
#include "engine/train/checkpoint.h"
#include "engine/train/options.h"
#include "engine/train/schedule.h"
#include "engine/train/task.h"
#include "engine/train/updater.h"

namespace tearless::engine {

class Trainer {
 public:
  /// All borrowed things must outlive the trainer. `attempt`: its folder exists. `d_model` scales the schedules.
  Trainer(Task& task, const TrainOptions& train, const ExecutionOptions& execution, int64_t d_model,
          const RunDirectory& run, int64_t attempt);

  /// kExitDone, kExitDiverged or kExitStopped; the files say the same.
  ExitCode run();

 private:
  /// What of the run's past its future depends on, besides the buffers.
  struct Memory {
    int64_t update = 0;  // updates made
    int64_t pass = 0;
    int64_t batch = 0;         // next batch of the pass
    int64_t evaluated_at = 0;  // update of the last evaluation
    int64_t since_best = 0;    // evaluations since the best
    int64_t best_step = 0;     // 0: none yet
    double best_selection = 0;
    NamedNumbers best_numbers;  // of the best evaluation, with the training perplexities of its epoch
    LossSums epoch, report;     // since the last evaluation, since the last report
    double norm_sum = 0, norm_max = 0;
    uint64_t metrics_bytes = 0;
  };

  void restore_newest();
  void checkpoint();
  nlohmann::json memory_as_json() const;
  void memory_from_json(const nlohmann::json& state);

  /// Why training is over, or "".
  std::string end_reason() const;
  bool evaluation_due() const;
  void evaluate();
  /// Some updates, at most up to the next evaluation; false where something was not finite (divergence_ says what).
  bool make_updates();
  /// The update that is to be started next; the pass is started.
  int64_t next_batch();
  void account_for(const UpdateResult& result, double rate);
  void write_metric(const std::string& name, double value);
  void finish(const std::string& reason);
  void write_measured() const;

  Task& task_;
  const TrainOptions& train_;
  const ExecutionOptions& execution_;
  RunDirectory run_;
  int64_t attempt_;
  Checkpoints checkpoints_;
  Schedule schedule_;
  Moments moments_;
  TrainedState buffers_;
  std::unique_ptr<Updater> updater_;
  Memory memory_;
  std::optional<AppendFile> metrics_;
  int64_t batches_in_pass_ = 0;
  int64_t started_pass_ = -1;
  std::string divergence_;

  // Measured, never part of a result.
  uint64_t metrics_kept_bytes_ = 0;
  int64_t updates_made_ = 0, rows_seen_ = 0, fallback_ops_ = 0;
  double training_seconds_ = 0, attempt_seconds_ = 0;
};

}  // namespace tearless::engine
