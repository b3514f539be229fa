// The learning rate of each update (TwT eq. 7 and §2.4; docs/spec/training.md §1.6–1.7).
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "engine/train/options.h"

namespace tearless::engine {

class Schedule {
 public:
  /// `width`: Task::schedule_width().
  Schedule(const ScheduleOptions& options, int64_t width) : options_(options), width_(width) {}

  /// The learning rate of update n, counted from 1, after the decays so far. With `peak_lr` p and a warm-up of w
  /// updates `invsqrt` is p · min(n / w, (w / n)^½), which is p at n = w alone; `valdecay` is p · n / w up to n = w - 1
  /// and stays there (at p for w = 1); `nowarmup` is p.
  double learning_rate(int64_t n) const;

  /// Reports the dev score, rounded as it is printed, of the evaluation after `updates` updates; higher is better. May
  /// decay the learning rate.
  void on_evaluation(double score, int64_t updates);

  /// True when a decaying learning rate has fallen below `min_lr`; always false for `invsqrt` and during warm-up.
  bool exhausted(int64_t updates, double min_lr) const;

  /// Everything that on_evaluation() changes, for checkpoints.
  nlohmann::json state() const;
  void restore(const nlohmann::json& state);

 private:
  /// Whether this evaluation completes a plateau, by options_.decay_rule.
  bool plateau(double score);

  ScheduleOptions options_;
  int64_t width_;
  double decay_ = 1.0;          // product of all decays
  std::vector<double> scores_;  // of every evaluation
  int64_t stale_ = 0;           // best_patience only: evaluations since the last new best
};

}  // namespace tearless::engine
