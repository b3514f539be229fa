// The training loop. One call of run() is one attempt on a run directory: it goes on from the newest checkpoint that is
// whole, and ends with the run done, diverged, or stopped on request. Whatever the number of attempts, metrics.jsonl
// and scores.json come out the same, byte for byte: all that the loop remembers is in Memory, and Memory is in every
// checkpoint. So a checkpoint that is lost costs time, never a result.
//
// An attempt writes only while its folder is the newest in attempts/: one that was replaced, as after a lock that a
// network file system lost, ends without another byte.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/run_directory.h"
#include "engine/train/checkpoint.h"
#include "engine/train/metrics_file.h"
#include "engine/train/options.h"
#include "engine/train/phase.h"
#include "engine/train/schedule.h"
#include "engine/train/task.h"
#include "engine/train/updater.h"

namespace tearless::engine {

class Trainer {
 public:
  /// All borrowed things must outlive the trainer. `attempt`: its folder exists. `d_model` scales the schedules.
  Trainer(Task& task, const TrainOptions& train, const ExecutionOptions& execution, int64_t d_model,
          const RunDirectory& run, int64_t attempt);

  /// kExitDone, kExitDiverged or kExitStopped; the files say the same. UserError where the run cannot go on.
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
    FilePrefix metrics;  // of metrics.jsonl, up to here
  };

  /// Goes back to the newest checkpoint from which the run can go on, or to the start; removes those from which it
  /// cannot.
  void restore();
  /// The checkpoint of that step with all that it needs: its best checkpoint, and metrics.jsonl as it was.
  /// DamagedCheckpoint where one of them is not as it was written.
  void restore_from(int64_t step);
  void restore_start();
  void checkpoint();
  nlohmann::json memory_as_json() const;
  static Memory memory_from_json(const nlohmann::json& state);

  /// Throws Superseded where a newer attempt has begun.
  void end_if_superseded() const;
  void tell(Phase phase) const { tell_phase(run_, attempt_, phase); }

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
  ExitCode train_to_the_end();
  /// Scores the best checkpoint and publishes the results. DamagedCheckpoint where something has been lost since it was
  /// written.
  void finish(const std::string& reason);
  void publish_divergence();
  void write_measured() const;

  Task& task_;
  const TrainOptions& train_;
  const ExecutionOptions& execution_;
  RunDirectory run_;
  int64_t attempt_;
  int64_t d_model_;
  Checkpoints checkpoints_;
  Schedule schedule_;
  Moments moments_;
  TrainedState buffers_;
  std::unique_ptr<Updater> updater_;
  Memory memory_;
  std::optional<MetricsFile> metrics_;
  int64_t batches_in_pass_ = 0;
  int64_t started_pass_ = -1;
  std::string divergence_;

  // Measured, never part of a result.
  uint64_t metrics_kept_bytes_ = 0;
  int64_t updates_made_ = 0, rows_seen_ = 0, fallback_ops_ = 0;
  double training_seconds_ = 0, attempt_seconds_ = 0;
};

}  // namespace tearless::engine
