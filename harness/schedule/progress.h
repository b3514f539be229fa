// How far a run has come, from the metrics that it writes: what a live line shows. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/store/store.h"

namespace tearless::harness {

struct Progress {
  std::string id;
  std::string label;  // its coordinates
  int64_t step = 0;
  int64_t updates = 0;  // the most that it can make; 0: unknown
  std::optional<double> loss;
  std::string dev_name;  // the first score of an evaluation, e.g. "dev.bleu"
  std::optional<double> dev_score;
  double updates_per_second = 0;  // of this attempt; 0: not known yet
  std::optional<double> tokens_per_second;
  bool stopping = false;

  /// Takes in lines that appeared at `now` (seconds of a steady clock).
  void take(const std::vector<MetricLine>& lines, double now);

  /// Seconds to the last update it may make (it may stop earlier), where the speed is known.
  std::optional<double> seconds_left() const;

 private:
  int64_t first_step_ = -1;  // where the speed is measured from
  double first_time_ = 0;
};

/// "1:02:03", "4:05", or "-" for nothing.
std::string duration_text(std::optional<double> seconds);

}  // namespace tearless::harness
