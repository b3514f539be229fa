// A running attempt as its run folder shows it: whether it has begun, how far it is, whether it hangs, and whether it
// has got anywhere.
#pragma once

#include <cstdint>

#include "base/run_directory.h"
#include "harness/runs/attempt_files.h"
#include "harness/runs/progress.h"
#include "harness/schedule/signs_of_life.h"
#include "harness/store/store.h"

namespace tearless::harness {

class AttemptWatch {
 public:
  /// The attempt has a higher number than `attempts_before`. `now`: seconds of a steady clock, of the start.
  AttemptWatch(RunDirectory run, int64_t attempts_before, double now)
      : run_(std::move(run)),
        attempts_before_(attempts_before),
        checkpoint_before_(folder_of(run_, attempts_before).newest_checkpoint()),
        since_(now),
        signs_(now) {
    progress.id = run_.id();
  }

  /// The attempt's number; 0 while it has not begun.
  int64_t number() const;

  /// Records its start and new metrics, and looks for signs of life.
  void poll(Store& store, const Workspace& workspace, double now);

  /// It gives no sign of life, for so long that it hangs. `stall_seconds`: the longest silence that is allowed; 0: any.
  bool hangs(double stall_seconds, double now) const;

  /// It has written a checkpoint.
  bool made_progress() const {
    return folder_of(run_, run_.newest_begun_attempt()).newest_checkpoint() > checkpoint_before_;
  }
  /// Seconds since its start.
  double age(double now) const { return now - since_; }

  Progress progress;

 private:
  RunDirectory run_;
  int64_t attempts_before_;
  int64_t checkpoint_before_;  // newest checkpoint at the start
  double since_;
  SignsOfLife signs_;
  int64_t recorded_ = 0;  // the attempt's number once its start is in the store
};

}  // namespace tearless::harness
