// The training loop. One call of run() is one attempt on a run directory: it resumes from the newest intact checkpoint
// and ends with the run done, diverged, or stopped on request.
//
// metrics.jsonl, gradient_norms.f32 and scores.json are the same, byte for byte, whatever the number of attempts:
// everything that the loop depends on is in State, the schedule and the trained buffers, and every checkpoint contains
// all three. A lost checkpoint costs time, never a result; so an evaluation may leave its checkpoint out where writing
// it would take too long (ExecutionOptions::checkpoint_share).
//
// An attempt writes only while its folder is the newest in attempts/. If it has been replaced (for example after a
// network file system lost the lock), it ends without writing another byte.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/run_directory.h"
#include "engine/train/checkpoint.h"
#include "engine/train/continued_file.h"
#include "engine/train/options.h"
#include "engine/train/phase.h"
#include "engine/train/schedule.h"
#include "engine/train/task.h"
#include "engine/train/updater.h"

namespace tearless::engine {

class Trainer {
 public:
  /// Borrows `task`, `train` and `execution`, which must outlive the trainer. `attempt`: its number; its folder must
  /// exist.
  Trainer(Task& task, const TrainOptions& train, const ExecutionOptions& execution, const RunDirectory& run,
          int64_t attempt);

  /// Makes the attempt. Returns kExitDone, kExitDiverged or kExitStopped, in agreement with the files. Throws UserError
  /// if the run cannot continue.
  ExitCode run();

 private:
  /// The state of the run besides the trained buffers and the schedule.
  struct State {
    int64_t update = 0;                  // updates made
    int64_t pass = 0;                    // from 0
    int64_t batch = 0;                   // next batch of the pass
    int64_t pass_ended_at = 0;           // the latest update with the last batch of a pass; 0: none
    int64_t evaluated_at = 0;            // update of the last evaluation
    int64_t reported_at = 0;             // update of the last report
    int64_t since_best = 0;              // evaluations since the best
    double best_selection = 0;           // selection value of the best evaluation
    int64_t would_stop_at = 0;           // update at which observe.early_stop would have ended the training; 0: none
    std::vector<SelectedStep> selected;  // the evaluations whose checkpoints make the model, in ascending order
    LossSums epoch, report;              // sums since the last evaluation, since the last report
    double loss_sum = 0;                 // sum of the losses of the updates of this epoch
    double norm_sum = 0, norm_max = 0;   // sum and maximum of the gradient norms so far
    double report_norm_sum = 0;          // sum of the gradient norms since the last report
    /// Sum of the gradient norms of each observed group since the last report, and of how many updates: another attempt
    /// may have observed other groups.
    std::map<std::string, std::pair<double, int64_t>> report_group_norms;
    FilePrefix metrics, gradient_norms;  // these files at the last checkpoint

    /// Calls f(name in a checkpoint, field) for each field.
    template <class F>
    void for_each_field(F&& f);
  };

  /// Rolls back to the newest checkpoint from which the run can continue, or to the start. Removes the checkpoints from
  /// which it cannot.
  void restore();
  /// Restores the checkpoint of that step, after verifying what it depends on: the selected checkpoints and the
  /// beginnings of metrics.jsonl and gradient_norms.f32. Throws DamagedCheckpoint if one of them is not as written.
  void restore_from(int64_t step);
  void restore_start();
  void checkpoint();
  /// Writes the kept checkpoint if the model is still made of it.
  void write_kept();
  /// After an evaluation: checkpoint() where it is due; where not, keeps what the model may be made of.
  void checkpoint_or_keep();
  nlohmann::json state_as_json();
  State state_from_json(const nlohmann::json& state) const;
  Schedule new_schedule() const { return {train_.schedule, task_.schedule_width(), train_.update_limit()}; }
  /// The dev number that compares evaluations, rounded, with the sign that makes higher better.
  double selection_value(const NamedNumbers& evaluation) const;
  std::vector<int64_t> selected_steps() const;
  bool is_selected(int64_t step) const;

  /// Throws Superseded if a newer attempt has begun.
  void end_if_superseded() const;
  void report(Phase phase) const { write_phase(run_, attempt_, phase); }

  /// Why training is over, or "".
  std::string end_reason() const;
  bool evaluation_due() const;
  /// Whether the last update ended a pass, or an epoch.
  bool pass_ended() const { return state_.update > 0 && state_.update == state_.pass_ended_at; }
  bool epoch_ended() const { return train_.epoch_updates ? state_.update % *train_.epoch_updates == 0 : pass_ended(); }
  /// Epochs that have ended.
  int64_t epochs() const { return train_.epoch_updates ? state_.update / *train_.epoch_updates : state_.pass; }
  /// The epochs that the updates so far make, with the part of the current one: of a pass the part of its batches.
  double epochs_made();
  bool at_limit() const { return state_.update >= train_.update_limit() || epochs() >= train_.max_epochs; }
  void evaluate();
  /// Makes some updates, at most up to the next evaluation. Returns false if a loss or gradient is not finite (the
  /// reason is in divergence_).
  bool make_updates();
  /// The number of batches of the current pass; starts the pass if needed.
  int64_t batches_in_pass();
  /// The index of the next batch in its pass.
  int64_t next_batch();
  /// Why an update is a divergence; "" if it is none.
  std::string divergence_of(const UpdateResult& result) const;
  void account_for(const UpdateResult& result, double learning_rate);
  /// Logs that observe.early_stop would have ended the training here, if it is the first time.
  void observe_early_stop();
  void write_metric(const std::string& name, double value);
  void write_gradient_norms();
  /// Writes and syncs both continued files.
  void sync_files();
  ExitCode train_to_the_end();
  struct Results {
    nlohmann::json scores;
    std::map<std::string, std::string> files;  // as FinalScores::files
  };
  /// Makes the model of the selected checkpoints, and scores it. Throws DamagedCheckpoint if one of them is no longer
  /// as written. REQUIRES: a checkpoint is selected.
  Results results();
  /// Publishes the model and its results, then DONE. Throws DamagedCheckpoint if a continued file is no longer as
  /// written.
  void publish(const Results& results, const std::string& outcome, int64_t step, const std::string& reason);
  void finish(const std::string& reason);
  /// Of a run that has a selected checkpoint with the results of that one.
  void finish_diverged();
  void write_measured() const;

  Task& task_;
  const TrainOptions& train_;
  const ExecutionOptions& execution_;
  RunDirectory run_;
  int64_t attempt_;
  std::vector<std::string> loss_names_;
  Selection selection_;
  Checkpoints checkpoints_;
  Schedule schedule_;
  OptimiserState optimiser_;
  TrainedState buffers_;
  std::unique_ptr<Updater> updater_;
  State state_;
  std::optional<ContinuedFile> metrics_, gradient_norms_;
  /// A checkpoint that is not written yet, of a selected step: later ones may replace it.
  struct Kept {
    int64_t step;
    TrainedState buffers;
    nlohmann::json state;
  };
  std::optional<Kept> kept_;
  std::optional<std::chrono::steady_clock::time_point> checkpoint_written_;  // when the last one was, in this attempt
  double checkpoint_seconds_ = 0;                                            // that it took
  std::vector<float> unwritten_norms_;                                       // of the last updates
  int64_t batches_in_pass_ = 0;                                              // of the started pass
  int64_t started_pass_ = -1;  // the pass that the task has cut into batches; -1: none
  std::string divergence_;     // why the run diverged; "": it has not

  // Measured, never part of a result.
  uint64_t metrics_kept_bytes_ = 0;
  int64_t updates_made_ = 0, rows_seen_ = 0, fallback_ops_ = 0;
  double training_seconds_ = 0, evaluation_seconds_ = 0, attempt_seconds_ = 0;
  int64_t evaluations_made_ = 0;
  DecodingTime decoding_;
};

}  // namespace tearless::engine
