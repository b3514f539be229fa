// How long a plan will take, and how much room on the disk, from runs of the same resource classes that have ended.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "harness/store/store.h"

namespace tearless::harness {

struct Estimate {
  int64_t known = 0, unknown = 0;  // runs, by whether a run of their class, or a calibration of it, has ended
  int64_t calibrated = 0;          // of the known runs, those with a calibration only
  int64_t untimed = 0;             // of the unknown runs, those with a class: a calibration would make them known
  int64_t untimed_classes = 0;     // the number of their classes
  int64_t ended = 0;               // runs that the estimate of the others is made from
  double cpu_seconds = 0;          // of the known runs on the CPU: of one core, added over cores and runs
  double gpu_seconds = 0;  // of the known runs on GPUs, each alone on its GPU or sharing it as those that ended did
  double error = 0;        // relative, twice the standard error; 0: not known, from one run of each class or calibrated
};

/// Assumes the average speed, and the average part of the maximum updates, of the ended runs of the same resource
/// class. Of a class that is only in `calibrations`, runs of a few updates (`tearless run --calibrate`), assumes their
/// speed and all updates and evaluations. `runs`: those that are to be trained.
Estimate estimate_of(const std::vector<Run>& runs, const std::vector<Timing>& ended,
                     const std::vector<Timing>& calibrations = {});

/// What these runs will have on the disk: each as much as the largest of a few runs of its resource class that have
/// ended. Unset if a run has a class of which none has ended. `bytes_of`: the size of a run's folder.
std::optional<int64_t> disk_estimate(const std::vector<Run>& runs, const std::vector<Timing>& ended,
                                     const std::function<int64_t(const std::string& id)>& bytes_of);

/// "62 of 230 runs: about 1:36:00 on 2 cores, ± 8 %, from 12 ended runs of the same resource classes", a line for the
/// others with the command `calibrate`, and none for what there is not. `gpus` may be 0.
std::vector<std::string> estimate_lines(const Estimate& estimate, int cores, int gpus, const std::string& calibrate);

}  // namespace tearless::harness
