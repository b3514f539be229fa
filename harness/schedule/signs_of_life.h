// Whether an attempt that reports nothing hangs. A sign of life is growth of its metrics or of its output; while it
// trains, its reports have a rhythm.
#pragma once

#include <cstdint>

namespace tearless::harness {

class SignsOfLife {
 public:
  /// `now`: the time of the attempt's start, in seconds of a steady clock.
  explicit SignsOfLife(double now = 0) : last_(now) {}

  /// Notes the sizes of metrics.jsonl and log.txt at a poll, in bytes. Output is a sign of life until log.txt is full
  /// or was cut: a program that floods its log may be making no progress.
  void note(int64_t metrics_bytes, int64_t log_bytes, double now);

  /// Seconds since the last sign, or since the start.
  double quiet(double now) const { return now - last_; }

  /// Seconds without output after which a training attempt counts as hung: many times the longest gap so far. Infinity
  /// until a few reports have shown a rhythm.
  double longest_in_training() const;

 private:
  double last_;               // time of the last sign
  int signs_ = 0;             // how many were seen
  double longest_gap_ = 0;    // seconds between two of them
  int64_t size_seen_ = -1;    // bytes of both files together, at the last poll
  int64_t log_seen_ = 0;      // bytes of log.txt at the last poll
  bool log_is_full_ = false;  // output is no longer a sign of life
};

}  // namespace tearless::harness
