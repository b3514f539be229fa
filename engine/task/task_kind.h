// The kinds of task that a run can have (the setting `task`).
//
// To add a kind:
//   1. a pair of files beside this one: in the header the struct of the task's settings (its sections and train.batch)
//      and a class derived from TaskOf (task_of.h), with its batches, loss, evaluation and scores; in the other a class
//      derived from TaskKindOf, which describes the settings, names, prepares and counts the data, and makes the task,
//      and a function `<name>_kind()` that makes one of these. The reader of its data belongs in engine/data/, its
//      model in engine/model/. For `bench` the kind also makes the task on batches that it makes up, from the parts in
//      made_up.h;
//   2. a line TASK(<name>) in tasks.def.
// It is then a legal `task`, with a page of its own among the generated settings pages. The training loop, checkpoints
// and the commands know tasks by this interface and by Task alone, except `decode`, which is for translation.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/kinds.h"
#include "base/settings.h"
#include "engine/data/raw_files.h"
#include "engine/train/options.h"
#include "engine/train/task.h"

namespace tearless::engine {

/// Counts by name.
using Counts = std::map<std::string, int64_t>;

/// A task on made-up batches, to be timed.
struct MadeUpTask {
  struct Decoded {
    int64_t sentences = 0, tokens = 0;
  };

  std::unique_ptr<Task> task;
  int64_t batches = 0;                   // that ready() of the task knows
  std::function<Decoded()> decode = {};  // translates all sources by beam search; null for a task that does not
};

class TaskKind {
 public:
  virtual ~TaskKind() = default;
  virtual std::unique_ptr<TaskKind> clone() const = 0;

  std::string_view name = {};     // set from tasks.def
  std::string_view meaning = {};  // for the settings page

  // --- settings

  /// Describes the task's settings: its sections, and [train.batch].
  virtual void describe_own(SettingsVisitor& visitor) = 0;
  /// Throws UserError if settings contradict each other.
  virtual void check_consistent(const TrainOptions& train) const = 0;

  /// Sets what this task has as other defaults in [train], such as its schedule. They are part of ids: once runs exist
  /// they must not change.
  virtual void set_defaults(TrainOptions& /*train*/) const {}

  /// Whether the data depend on train.seed.
  virtual bool data_follow_seed() const { return false; }

  // --- results

  /// The names of the numbers of the task that make() makes.
  virtual TaskNumbers numbers() const = 0;
  /// The parameters of its model with data of some size.
  virtual DeclaredParameters model_parameters() const = 0;

  // --- data

  /// The data files, by the settings that name them: those settings are paths, of which relative ones are made
  /// absolute. Borrows this.
  virtual DataFiles data_files() = 0;
  struct Size {
    int64_t parameters = 0;
    int64_t saved_numbers = 0;  // that training holds of a batch at a time: estimated_memory_bytes()
  };
  /// The size of the model; nothing while it depends on data that is not prepared. After
  /// DataFiles::fingerprint().
  virtual std::optional<Size> size(const TrainOptions& train) const = 0;
  /// About how many batches a pass over the training set has: those of a pass with seed 0. 0 while the data that it
  /// depends on are not prepared. After DataFiles::fingerprint().
  virtual int64_t pass_batches(const TrainOptions& train) const = 0;
  /// Prepares the data in advance, as training would do first. Returns a sentence that describes it. After
  /// DataFiles::fingerprint().
  virtual std::string prepare_data(const TrainOptions& train, const Say& say) const = 0;

  /// What the prepared data come to (docs/derived_runs.md): examples of each set, words, batches of the first pass.
  /// Prepares the data first. Throws DataError for files that are missing, or are not those that the run was planned
  /// with.
  virtual Counts data_counts(const TrainOptions& train, const Say& say) const = 0;
  /// The names of these counts.
  virtual std::vector<std::string> data_count_names() const = 0;

  /// Prepares the data and makes the task. Borrows this and both arguments: they must outlive the task.
  virtual std::unique_ptr<Task> make(const TrainOptions& train, const ExecutionOptions& execution,
                                     const Say& say) const = 0;

  /// The task on batches of random examples, drawn with the seed of the data order; needs no data. `vocab_size`: of its
  /// vocabulary, where it has one. `sizes`: a file of the sizes of batches (sizes_in() of made_up.h); "": one batch of
  /// equal examples that fills a batch of the task. Borrows this and the options: they must outlive the task. Throws
  /// UserError as sizes_in() does.
  virtual MadeUpTask made_up_task(const TrainOptions& train, const ExecutionOptions& execution, int64_t vocab_size,
                                  const std::filesystem::path& sizes) const = 0;
};

/// A kind with its settings, by which others know it: the class is its file's own.
template <class Options>
class TaskKindWith : public TaskKind {
 public:
  Options options;
};

/// The base of every kind.
template <class Options, class Kind>
using TaskKindOf = KindOf<TaskKindWith<Options>, Kind, TaskKind>;

/// The settings of a kind that has such ones; null: it is another.
template <class Options>
const Options* options_of(const TaskKind& kind) {
  const auto* const with = dynamic_cast<const TaskKindWith<Options>*>(&kind);
  return with ? &with->options : nullptr;
}

/// The names of counts.
std::vector<std::string> names_of(const Counts& counts);

/// All kinds with their settings at their defaults, in the order of tasks.def.
const Kinds<TaskKind>& task_kinds();
/// A copy of the kind called `name`; null if no kind has that name.
std::unique_ptr<TaskKind> make_task_kind(std::string_view name);

}  // namespace tearless::engine
