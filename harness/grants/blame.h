// Which machines may be at fault. A run that fails soon after its start, without a checkpoint and on one machine only,
// says more of the machine than of itself. Pure: times come from the caller.
//
//   1. The first such failure of a run costs it nothing, if there is another machine for it; it is kept off the first
//      one for ten minutes.
//   2. The next one is the run's own, wherever it is. If it is on another machine, the first one is cleared of it.
//   3. A machine that two runs accuse within an hour, and on which none got on since, is left out for an hour.
// A run gets on when it writes a checkpoint, lives longer, or ends with a result. That clears its machine, and the run
// has a failure free again. So a run that fails everywhere costs one attempt more than it would on one machine alone,
// and a program that fails everywhere leaves no machine out: each run clears the first machine by failing on another.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

namespace tearless::harness {

class Blame {
 public:
  // Seconds.
  static constexpr double kSoon = 60;       // since its start: a failure that is later is the run's
  static constexpr double kKeptOff = 600;   // a run, off the machine that it accuses; then it is tried there again
  static constexpr double kLeftOut = 3600;  // a machine

  /// A run has failed soon after its start on `host`. True if that is to cost it nothing. `others`: machines that are
  /// there for it. `is_sound`: another run is getting on there meanwhile.
  bool note_failure(const std::string& run, const std::string& host, std::set<std::string> others, bool is_sound,
                    double now);

  /// A run got on; `host`: "" if it is not known where.
  void note_progress(const std::string& run, const std::string& host);

  /// Where the run is not to be tried now.
  std::set<std::string> not_on(const std::string& run, double now) const;

  struct LeftOut {
    double until = 0;
    std::vector<std::string> runs = {};  // that accuse it
  };
  /// By host.
  std::map<std::string, LeftOut> left_out(double now) const;

  bool is_empty() const { return failures_.empty(); }
  /// For a later service: how long ago each was, since clocks of two processes are not the same.
  nlohmann::json to_json(double now) const;
  /// `ago`: seconds since to_json(). nlohmann::json::exception if a member is missing or of another type.
  static Blame from_json(const nlohmann::json& json, double ago, double now);

 private:
  struct Failure {
    std::string host;
    double at = 0;
    bool accuses = true;       // the host; else it was the run's own, or nobody's
    bool is_forgiven = false;  // the run got on elsewhere since
  };
  std::map<std::string, Failure> failures_;  // run → its last one that cost nothing
  std::set<std::string> sound_;              // hosts on which a run got on
};

}  // namespace tearless::harness
