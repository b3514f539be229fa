// The kinds of derived run (the setting `derived.kind`). A derived run is a run of its own, with folder, settings and
// result, that is made from a run that has ended: a decoding, a score of outputs that are there, counts of its data, an
// analysis of its gradients.
//
// To add a kind:
//   1. a file beside this one with a class derived from DerivedKindOf, which holds the kind's settings (the keys below
//      derived.), and a function `<name>_derived()` that makes one;
//   2. a line DERIVED(<name>) in derived_kinds.def.
// It is then a legal `derived.kind`, and a `kind` of the section [derived.NAME] of a grid.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/kinds.h"
#include "base/run_directory.h"
#include "base/settings.h"
#include "engine/data/raw_files.h"
#include "engine/task/task_kind.h"

namespace tearless::engine {

/// What a derived run is made from.
struct DerivationSource {
  // The settings of the trained run.
  TaskKind& task;
  const TrainOptions& train;
  const ExecutionOptions& execution;
  RunDirectory of;  // the run that it derives from: the trained one, or one that derives from that
  Say say;
};

struct Derivation {
  FinalScores results;                             // the names begin with the set: "test.bleu"
  std::map<std::string, std::string> inputs = {};  // what was read → SHA-256, for DONE
};

/// The set of a decoding that translates pairs of the training set.
inline constexpr std::string_view kTrainingSample = "train";

class DerivedKind {
 public:
  /// What of the run that it derives from it reads. The settings and data are there whatever became of the training.
  enum class Reads { kSettings, kOutputs, kModel };

  virtual ~DerivedKind() = default;
  virtual std::unique_ptr<DerivedKind> clone() const = 0;

  std::string_view name = {};     // set from derived_kinds.def
  std::string_view meaning = {};  // for the settings page

  /// Describes the settings, keys below `derived.`.
  virtual void describe(SettingsVisitor& visitor) = 0;
  /// As describe(), but a setting may also be switched off by one of the trained run of that task. Not for canonical
  /// text: ids of derived runs are of their own settings.
  virtual void describe_beside(SettingsVisitor& visitor, const TaskKind& /*task*/) { describe(visitor); }
  /// Throws UserError if the settings contradict each other or the task. `of`: the kind of the run that it derives
  /// from; null: that is a trained run.
  virtual void check_consistent(const TaskKind& task, const DerivedKind* of) = 0;

  /// The names of the numbers that it gives: "test.bleu".
  virtual std::vector<std::string> score_names(const TaskKind& task) const = 0;

  /// The files of a set of its own, by the settings that name them. Borrows this.
  virtual DataFiles data_files() { return {.what = {}}; }
  virtual Reads reads() const = 0;
  /// The device and memory of the trained run.
  virtual bool needs_device() const { return reads() == Reads::kModel; }

  /// REQUIRES: source.of has a result; a diverged one only if reads() is kSettings. Throws UserError if something that
  /// it reads is gone or is not what was written, DataError for its own files. Writes nothing.
  virtual Derivation derive(const DerivationSource& source) = 0;

  /// The set that it leaves outputs of, and the file of its references; "" if that is the corpus'.
  virtual std::string set() const { return ""; }
  virtual std::string reference() const { return ""; }
};

/// The base of every kind.
template <class Kind>
using DerivedKindOf = KindOf<DerivedKind, Kind>;

/// All kinds with their settings at their defaults, in the order of derived_kinds.def.
const Kinds<DerivedKind>& derived_kinds();

/// Reads the model of the trained run into `task`, and returns its entry of Derivation::inputs. Throws UserError as
/// read_finished_model() does. REQUIRES: `source.of` is the trained run.
std::pair<std::string, std::string> read_model_of(const DerivationSource& source, Task& task);

/// The SHA-256 of the lines, each with its line feed.
std::string lines_sha256(const std::vector<std::string>& lines);

}  // namespace tearless::engine
