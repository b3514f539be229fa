// The learning rate of each update: kinds of schedule (train.schedule.kind), and the decay on plateaus that some of
// them share (TwT eq. 7 and §2.4; docs/spec/training.md §1.6–1.7).
//
// To add a kind:
//   1. a file beside this one with a class derived from ScheduleKindOf and a function `<name>_schedule()` that makes
//      one. A file may hold several kinds of one family;
//   2. a line SCHEDULE(<name>) in schedules.def.
// It is then a legal train.schedule.kind, listed on the generated settings page. It states which of the settings that
// schedules share apply to it; those that it describes itself are train.schedule.<name>.<option>.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/kinds.h"
#include "base/settings.h"

namespace tearless::engine {

struct ScheduleOptions;

/// What a formula is made of.
struct ScheduleInputs {
  const ScheduleOptions& options;
  int64_t width;    // d: Task::schedule_width()
  int64_t updates;  // the number of the last update: TrainOptions::update_limit()
};

class ScheduleKind {
 public:
  virtual ~ScheduleKind() = default;
  virtual std::unique_ptr<ScheduleKind> clone() const = 0;

  // What a kind states of itself, set in its constructor.
  std::string_view name = {};     // set from schedules.def
  std::string_view meaning = {};  // formula and source, for the settings page
  /// The setting that stands for the highest learning rate where peak_lr is unset.
  enum class Height {
    kScale,  // scale, of learning rates that are proportional to d^-½
    kLr,     // lr
    kNone    // none: peak_lr must be set
  };
  Height height = Height::kNone;
  bool has_warmup = true;     // warmup_updates applies
  bool decays = false;        // on plateaus of the dev score: decay_factor, decay_patience and decay_rule apply
  bool falls_to_end = false;  // from the end of the warm-up to the last update, of which there must be some

  /// Describes the options of this kind alone, as one table. `switched_off_by`: that of each Field.
  virtual void describe_own(SettingsVisitor& /*visitor*/, std::string_view /*switched_off_by*/) {}
  /// Throws UserError if settings contradict each other.
  virtual void check(const ScheduleInputs& /*in*/) const {}
  /// The learning rate of update n, counted from 1, before decays.
  virtual double learning_rate(int64_t n, const ScheduleInputs& in) const = 0;
};

/// The base of every kind.
template <class Kind>
using ScheduleKindOf = KindOf<ScheduleKind, Kind>;

/// All kinds with their options at their defaults, in the order of schedules.def.
const Kinds<ScheduleKind>& schedule_kinds();

/// When the dev score is on a plateau.
enum class DecayRule {
  kMinWindow,    // below each of the last `decay_patience` evaluations (TwT's code)
  kBestPatience  // `decay_patience` evaluations without a new best (TwT's text)
};

/// [train.schedule]
struct ScheduleOptions {
  std::string kind = "invsqrt";
  double scale = 1.0;             // factor of the learning rate; "2×LR" is 2. Of kinds with Height::kScale
  int64_t warmup_updates = 8000;  // updates of linear warm-up
  double lr = 3e-4;               // learning rate of kinds with Height::kLr
  // Highest learning rate, for every kind; replaces `scale` and `lr`, a default of it only where that one is not
  // written. peak_lr = scale · d^-½ · w^-½ gives the learning rates of `scale`, under another id.
  std::optional<double> peak_lr;
  double decay_factor = 0.8;   // multiplies the learning rate on a plateau
  int64_t decay_patience = 3;  // evaluations that decay_rule looks back on
  DecayRule decay_rule = DecayRule::kMinWindow;

  /// The chosen kind, with the values of its own options.
  const ScheduleKind& chosen() const { return kinds_.at(kind); }
  /// Whether learning rates depend on the width of the model.
  bool uses_width() const { return chosen().height == ScheduleKind::Height::kScale && !peak_lr; }

 private:
  friend void describe(SettingsVisitor& visitor, ScheduleOptions& options);
  Kinds<ScheduleKind> kinds_ = schedule_kinds();  // one of each kind: a grid may set options of several kinds
};
void describe(SettingsVisitor& visitor, ScheduleOptions& options);

/// Throws UserError if the chosen kind lacks a setting that it needs, or settings contradict each other. `updates`:
/// TrainOptions::update_limit().
void check_consistent(const ScheduleOptions& options, int64_t updates);

class Schedule {
 public:
  /// `width`, `updates`: as in ScheduleInputs.
  Schedule(const ScheduleOptions& options, int64_t width, int64_t updates)
      : options_(options), width_(width), updates_(updates) {}

  /// The learning rate of update n, counted from 1, after the decays so far.
  double learning_rate(int64_t n) const;

  /// Reports the dev score, rounded as it is printed, of the evaluation after `updates` updates; higher is better. May
  /// decay the learning rate, of kinds that decay.
  void on_evaluation(double score, int64_t updates);

  /// True when the learning rate has fallen below `min_lr`; always false during warm-up.
  bool exhausted(int64_t updates, double min_lr) const;

  /// Everything that on_evaluation() changes, for checkpoints.
  nlohmann::json state() const;
  void restore(const nlohmann::json& state);

 private:
  /// Whether this evaluation completes a plateau, by options_.decay_rule.
  bool plateau(double score);
  bool warming_up(int64_t updates) const { return options_.chosen().has_warmup && updates < options_.warmup_updates; }

  ScheduleOptions options_;
  int64_t width_, updates_;
  double decay_ = 1.0;          // product of all decays
  std::vector<double> scores_;  // of every evaluation
  int64_t stale_ = 0;           // best_patience only: evaluations since the last new best
};

}  // namespace tearless::engine
