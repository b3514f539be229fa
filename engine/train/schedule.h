// The learning rate of each update (training.md §1.6–1.7; TwT eq. 7 and §2.4).
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "engine/train/options.h"

namespace tearless::engine {

class Schedule {
 public:
  Schedule(const ScheduleOptions& options, int64_t d_model) : options_(options), d_model_(d_model) {}

  /// The rate of update n, counted from 1, given the plateaus seen so far.
  double rate(int64_t n) const;

  /// Takes the dev BLEU (rounded to two decimals) of the evaluation after `updates` updates; may decay the rate.
  void on_evaluation(double rounded_bleu, int64_t updates);

  /// True once a decaying rate has fallen below `min_lr`. `invsqrt` never ends a run.
  bool exhausted(int64_t updates, double min_lr) const;

  /// All that on_evaluation() has changed, for checkpoints.
  nlohmann::json state() const;
  void restore(const nlohmann::json& state);

 private:
  bool plateau(double bleu);

  ScheduleOptions options_;
  int64_t d_model_;
  double decay_ = 1.0;          // product of all decays
  std::vector<double> scores_;  // dev BLEU of every evaluation
  int64_t stale_ = 0;           // best_patience: evaluations since the last new best
};

}  // namespace tearless::engine
