#include "engine/train/schedule.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace tearless::engine {

#define SCHEDULE(kind) std::unique_ptr<ScheduleKind> kind##_schedule();
#include "engine/train/schedules.def"
#undef SCHEDULE

namespace {

constexpr auto kDecayRules = std::to_array<std::string_view>({"min_window", "best_patience"});

/// "`invsqrt`, `valdecay`", for the settings page.
std::string kinds_with(ScheduleKind::Height height) {
  std::string text;
  for (const auto& kind : schedule_kinds()) {
    if (kind->height == height) text += fmt::format("{}`{}`", text.empty() ? "" : ", ", kind->name);
  }
  return text;
}

}  // namespace

const Kinds<ScheduleKind>& schedule_kinds() {
#define SCHEDULE(kind) {#kind, kind##_schedule},
  static const Kinds<ScheduleKind> kinds{{
#include "engine/train/schedules.def"
  }};
#undef SCHEDULE
  return kinds;
}

// --- settings --------------------------------------------------------------------------------------------------------

void describe(SettingsVisitor& v, ScheduleOptions& o) {
  static const std::vector<std::string_view> names = schedule_kinds().names();
  static const std::string meaning =
      "learning rate at update n, d the model width, w the warm-up: " + schedule_kinds().meanings();
  using Height = ScheduleKind::Height;
  static const std::string scale = fmt::format("multiplies {} (2 = \"2×LR\")", kinds_with(Height::kScale));
  static const std::string lr = fmt::format("learning rate of {}", kinds_with(Height::kLr));
  v.word({.key = "kind", .meaning = meaning, .choices = names}, o.kind);
  const ScheduleKind& chosen = o.chosen();
  const auto unless = [](bool has_it) { return has_it ? "" : "train.schedule.kind"; };
  const auto unless_height_is = [&](Height height) {
    return chosen.height == height && o.peak_lr ? "train.schedule.peak_lr" : unless(chosen.height == height);
  };
  v.number(
      {.key = "scale", .meaning = scale, .min = 0, .max = 1000, .switched_off_by = unless_height_is(Height::kScale)},
      o.scale);
  v.integer({.key = "warmup_updates",
             .meaning = "updates of linear warm-up",
             .min = 1,
             .max = 1e9,
             .switched_off_by = unless(chosen.has_warmup)},
            o.warmup_updates);
  v.number({.key = "lr", .meaning = lr, .min = 0, .max = 10, .switched_off_by = unless_height_is(Height::kLr)}, o.lr);
  v.optional_number({.key = "peak_lr",
                     .meaning = "the highest learning rate, for every kind; replaces scale and lr: `invsqrt` reaches "
                                "it at update w, `nowarmup` begins with it, `valdecay` stays at update w - 1 of the "
                                "ramp to it (the code of TwT). peak_lr = scale · d^-½ · w^-½; unset, as a default of "
                                "it is where the one that it would replace is written: scale or lr, of the kinds that "
                                "have one",
                     .min = 1e-12,
                     .max = 10},
                    o.peak_lr);
  v.number({.key = "decay_factor",
            .meaning = "the learning rate is multiplied by this on a plateau",
            .min = 0,
            .max = 1,
            .switched_off_by = unless(chosen.decays)},
           o.decay_factor);
  v.integer({.key = "decay_patience",
             .meaning = "evaluations that the plateau rule looks back on",
             .min = 1,
             .max = 1000,
             .switched_off_by = unless(chosen.decays)},
            o.decay_patience);
  v.choice({.key = "decay_rule",
            .meaning = "`min_window`: below each of the last evaluations (the code of TwT); `best_patience`: that many "
                       "evaluations without a "
                       "new best (its text)",
            .switched_off_by = unless(chosen.decays)},
           o.decay_rule, kDecayRules);
  for (const auto& kind : o.kinds_) {
    v.table_of(kind->name, [&] { kind->describe_own(v, unless(kind->name == o.kind)); });
  }
}

void check_consistent(const ScheduleOptions& o, int64_t updates) {
  const ScheduleKind& kind = o.chosen();
  if (kind.height == ScheduleKind::Height::kNone && !o.peak_lr) {
    fail("train.schedule.kind = \"{}\" has no highest learning rate of its own; set train.schedule.peak_lr", kind.name);
  }
  if (kind.falls_to_end && updates <= o.warmup_updates) {
    fail(
        "train.schedule.kind = \"{}\" falls from the end of the warm-up to the last update, but the warm-up has {} "
        "updates and the training at most {}; lower train.schedule.warmup_updates, or raise train.max_epochs or "
        "train.max_updates",
        kind.name, o.warmup_updates, updates);
  }
  kind.check({o, /*width=*/1, updates});
}

// --- learning rates --------------------------------------------------------------------------------------------------

double Schedule::learning_rate(int64_t n) const {
  return options_.chosen().learning_rate(n, {options_, width_, updates_}) * decay_;
}

bool Schedule::plateau(double score) {
  const auto window = static_cast<size_t>(options_.decay_patience);
  if (options_.decay_rule == DecayRule::kMinWindow) {
    // Strictly below each of the last `patience` scores. No counter and no reset: BLEU that keeps falling decays the
    // learning rate at every evaluation.
    return scores_.size() >= window &&
           score < *std::min_element(scores_.end() - options_.decay_patience, scores_.end());
  }
  const bool best = scores_.empty() || score > *std::max_element(scores_.begin(), scores_.end());
  stale_ = best ? 0 : stale_ + 1;
  if (stale_ < options_.decay_patience) return false;
  stale_ = 0;
  return true;
}

void Schedule::on_evaluation(double score, int64_t updates) {
  const bool flat = plateau(score);
  scores_.push_back(score);  // during warm-up too: the window may reach back into it
  if (flat && options_.chosen().decays && !warming_up(updates)) decay_ *= options_.decay_factor;
}

bool Schedule::exhausted(int64_t updates, double min_lr) const {
  return !warming_up(updates) && learning_rate(updates + 1) < min_lr;
}

nlohmann::json Schedule::state() const { return {{"decay", decay_}, {"scores", scores_}, {"stale", stale_}}; }

void Schedule::restore(const nlohmann::json& state) {
  decay_ = state.at("decay");
  scores_ = state.at("scores").get<std::vector<double>>();
  stale_ = state.at("stale");
}

}  // namespace tearless::engine
