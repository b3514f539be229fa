// Measures what the runs on one GPU make together, for Sharing. Pure: times come from the caller.
//
// Runs report their updates now and then, so a count of updates between two moments is wrong by up to a report of each
// run. Measured is therefore each run's own span, from one of its reports to another, and the rates of the runs are
// added:
//
//   run a  ----|======|======|===|-->      (last step - first step) / (last time - first time)
//   run b  -|========|=========|---->      likewise; the sum is the observation
//          ^ the same runs since here
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/devices/sharing.h"

namespace tearless::harness {

class Throughput {
 public:
  static constexpr double kWindow = 120;  // seconds; a report is seen up to a second late, at each end of a span

  struct Run {
    std::string id;
    std::string resource_class;
    int64_t step = 0;  // updates that it has reported, in this attempt and those before
  };

  /// `runs`: those on the device now. Returns an observation when the same runs, all of one resource class, have been
  /// on it for kWindow and each has reported twice; the next window begins then.
  std::optional<SharingObservation> note(const std::vector<Run>& runs, double now);

 private:
  struct Span {
    std::string resource_class;
    int64_t step_seen = 0;
    std::optional<double> first_time;  // of the first report in this window
    double last_time = 0;
    int64_t first_step = 0;
  };
  using Spans = std::map<std::string, Span>;  // run → its span

  bool is_of_the_same(const std::vector<Run>& runs) const;

  Spans spans_;
  double since_ = 0;
};

}  // namespace tearless::harness
