// How long runs take, from runs of the same resource classes that have ended, and from calibrations.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/store/store.h"

namespace tearless::harness {

class Paces {
 public:
  /// Seconds that the runs of a class took for each update that they might have made. Of runs that make no update, or
  /// whose updates are not known yet, the whole run stands for one.
  struct Pace {
    int64_t runs = 0;
    double sum = 0, squares = 0;

    void add(double pace);
    double mean() const { return sum / static_cast<double>(runs); }
    double variance() const;
  };

  Paces() = default;
  /// `calibrations`: runs of a few updates.
  Paces(const std::vector<Timing>& ended, const std::vector<Timing>& calibrations);

  /// Of the ended runs that are like this one; null if none has ended.
  const Pace* measured(const Run& run) const;
  /// Seconds that a calibration of the run's class suggests; nullopt if there is none.
  std::optional<double> calibrated(const Run& run) const;
  /// Seconds that the run takes, as measured, else as calibrated; nullopt if neither is known.
  std::optional<double> seconds_of(const Run& run) const;

 private:
  using Key = std::pair<std::string, bool>;  // class; of a whole run

  // A run of few updates, taken apart: what it needs once, and for each update and evaluation, in seconds.
  struct Calibration {
    double once = 0, update = 0, evaluation = 0;
    explicit Calibration(const Timing& run);
  };

  std::map<Key, Pace> paces_;
  std::map<std::string, Calibration> calibrations_;  // by class
};

/// What a run counts for where a pace is multiplied: its updates, or one.
double work_of(const Run& run);

/// Of the runs of a workspace that are done; empty if it has no database.
std::vector<Timing> timings_in(const Workspace& workspace);

}  // namespace tearless::harness
