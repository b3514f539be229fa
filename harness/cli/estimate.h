// How long a plan will take, and how much room on the disk, from runs of the same shapes that have ended.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "harness/store/store.h"

namespace tearless::harness {

/// A run that is to be trained.
struct UntrainedRun {
  std::string shape;  // RunNeeds::shape; "" if it is not known
  std::string device = "cpu";
  int threads = 1;
  int64_t updates = 0;      // the most that it can make
  int64_t evaluations = 0;  // likewise; 0 if it is not known
};

struct Estimate {
  int64_t known = 0, unknown = 0;  // runs, by whether a run of their shape, or a calibration of it, has ended
  int64_t calibrated = 0;          // of the known runs, those with a calibration only
  int64_t measurable = 0;          // of the unknown runs, those that have a shape: a calibration would make them known
  int64_t ended = 0;               // runs that the estimate of the others is made from
  double cpu_seconds = 0;          // of the known runs on the CPU: of one core, added over cores and runs
  double gpu_seconds = 0;  // of the known runs on GPUs, each alone on its GPU or sharing it as those that ended did
  double error = 0;        // relative, twice the standard error; 0: not known, from one run of each shape or calibrated
};

/// A run is taken to make the same part of its most updates, each as fast, as those of its shape on average. Of a shape
/// that is only in `calibrations`, runs of a few updates (`tearless run --calibrate`), it is taken to make all its
/// updates and evaluations, as fast as these.
Estimate estimate_of(const std::vector<UntrainedRun>& runs, const std::vector<Timing>& ended,
                     const std::vector<Timing>& calibrations = {});

/// What these runs will have on the disk: each as much as the largest of a few runs of its shape that have ended. Unset
/// if a run has a shape of which none has ended. `bytes_of`: the size of a run's folder.
std::optional<int64_t> disk_estimate(const std::vector<UntrainedRun>& runs, const std::vector<Timing>& ended,
                                     const std::function<int64_t(const std::string& id)>& bytes_of);

/// "about 1:36:00 on 2 cores, ± 8 %, from 12 runs that have ended"; "" if nothing is known. `gpus` may be 0.
std::string estimate_text(const Estimate& estimate, int cores, int gpus);

}  // namespace tearless::harness
