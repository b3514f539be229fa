// How often those who listen are told of a change. Who is told asks for the page again, and that costs what it costs:
// so the next change is told when the work since the last one is at most a hundredth of the time since then.
#pragma once

#include <limits>

namespace tearless::harness {

class Pace {
 public:
  /// Somebody begins to listen. `work`: seconds of computing time that the server has used so far.
  explicit Pace(double work) : work_then_(work) {}

  /// Something has changed.
  void change() { is_pending_ = true; }

  /// Whether there is a change to tell at time `now`, in seconds; it is told then.
  bool tells(double now, double work) {
    constexpr double kShare = 0.01;  // of a core
    if (!is_pending_ || kShare * (now - told_at_) < work - work_then_) return false;
    told_at_ = now;
    work_then_ = work;
    is_pending_ = false;
    return true;
  }

 private:
  double told_at_ = -std::numeric_limits<double>::infinity(), work_then_;
  bool is_pending_ = false;
};

}  // namespace tearless::harness
