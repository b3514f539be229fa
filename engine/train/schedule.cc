#include "engine/train/schedule.h"

#include <algorithm>
#include <cmath>

namespace tearless::engine {

double Schedule::learning_rate(int64_t n) const {
  if (options_.kind == ScheduleKind::kNowarmup) return options_.peak_lr.value_or(options_.lr) * decay_;
  const auto w = static_cast<double>(options_.warmup_updates);
  const double scale =
      options_.peak_lr ? *options_.peak_lr * std::sqrt(w) : options_.scale / std::sqrt(static_cast<double>(width_));
  const auto ramp = [&](int64_t update) { return scale * static_cast<double>(update) * std::pow(w, -1.5); };
  if (n < options_.warmup_updates) return ramp(n);
  if (options_.kind == ScheduleKind::kInvsqrt) return scale / std::sqrt(static_cast<double>(n));
  // TwT's code stays at the learning rate of update w - 1, not at the peak of update w (docs/spec/training.md §1.6).
  return ramp(std::max<int64_t>(1, options_.warmup_updates - 1)) * decay_;
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
  const bool warm = options_.kind == ScheduleKind::kValdecay && updates < options_.warmup_updates;
  if (flat && options_.kind != ScheduleKind::kInvsqrt && !warm) decay_ *= options_.decay_factor;
}

bool Schedule::exhausted(int64_t updates, double min_lr) const {
  if (options_.kind == ScheduleKind::kInvsqrt) return false;
  if (options_.kind == ScheduleKind::kValdecay && updates < options_.warmup_updates) return false;
  return learning_rate(updates + 1) < min_lr;
}

nlohmann::json Schedule::state() const { return {{"decay", decay_}, {"scores", scores_}, {"stale", stale_}}; }

void Schedule::restore(const nlohmann::json& state) {
  decay_ = state.at("decay");
  scores_ = state.at("scores").get<std::vector<double>>();
  stale_ = state.at("stale");
}

}  // namespace tearless::engine
