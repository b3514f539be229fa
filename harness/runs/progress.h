// The progress of a running run, computed from its metrics, for the live display. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/runs/attempt_files.h"

namespace tearless::harness {

/// What an attempt that has begun for the service is doing.
enum class Phase {
  kRunning,
  kGranted,  // no worker has taken it yet
  kSilent,   // its worker gives no sign of life
};

struct Progress {
  std::string id;
  std::string label;                        // coordinates and seed, label_of()
  std::string axes;                         // the names of the label's parts, label_axes(); "": not known
  int64_t step = 0;                         // updates made
  int64_t updates = 0;                      // the most updates that it can make; 0: unknown
  std::optional<double> loss;               // the newest train.loss
  std::string dev_name;                     // the first development score that it reported, e.g. "dev.bleu"
  std::optional<double> dev_score;          // the newest value of that score
  double updates_per_second = 0;            // of this attempt; 0: not known yet
  std::optional<double> tokens_per_second;  // from measured.json
  bool stopping = false;                    // it was asked to stop
  Phase phase = Phase::kRunning;
  std::string waits_for = {};  // what keeps it from getting on, or from ending, one sentence; ""

  /// Updates the fields with metrics that were read at time `now` (seconds of a steady clock). Call it with none, too,
  /// from the start of an attempt on: the first report then has a speed.
  void take(const std::vector<MetricLine>& lines, double now);

  /// Seconds until `updates` is reached, if the speed is known. The run may stop earlier.
  std::optional<double> seconds_left() const;

 private:
  std::optional<double> waiting_since_;  // time of the first call without a metric, if there was one before any metric
  int64_t first_step_ = -1;              // step and time from which the speed is measured
  double first_time_ = 0;
};

/// The speed of runs together: "5300 tokens/s" if all of them report tokens, else "7.25 updates/s"; "" if it is not
/// known.
std::string speed_text(const std::vector<Progress>& runs);

/// "1:02:03", "4:05", or "-" for an unset duration.
std::string duration_text(std::optional<double> seconds);

}  // namespace tearless::harness
