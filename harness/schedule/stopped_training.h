// Trains one run in a folder of its own, outside of any sweep, and stops it on the way: what `tearless verify-resume`
// is made of. The attempts are started as `tearless run` starts them, but they end with this process.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "harness/devices/device.h"
#include "harness/runs/attempt_files.h"
#include "harness/runs/resume_check.h"
#include "harness/schedule/launcher.h"

namespace tearless::harness {

/// Draws up to `count` of the updates that the metrics of a finished run name, except the last: the run is over then.
/// The same run and seed give the same stops on any machine. SIGTERM and SIGKILL take turns.
std::vector<TrainingStop> draw_stops(const RunDirectory& run, int count, int64_t seed);

struct StoppedTraining {
  Launch launch;                    // its folder has run.toml and local.toml
  std::vector<Device> devices;      // the CUDA device to train on; none: the CPU
  std::vector<TrainingStop> stops;  // in ascending order of their updates
  double stall_seconds = 0;         // without sign of life, after which it is given up; 0: never

  /// Told the metrics that have been written since the last call, several times a second, and how many stops there
  /// were.
  std::function<void(const std::vector<MetricLine>& lines, size_t stops)> on_progress;
};

struct TrainingEnd {
  bool interrupted = false;         // by SIGINT or SIGTERM: the attempt was killed
  std::string failure;              // why there is no result, one phrase; "" if there is one, or if interrupted
  std::vector<TrainingStop> stops;  // those that happened: fewer than planned if the run ended before
};

/// Trains the run to its end. A stop is due once the attempt has written a metric of that update or of a later one; it
/// is followed by the next attempt. UserError if an attempt cannot be started.
TrainingEnd train_with_stops(StoppedTraining training);

}  // namespace tearless::harness
