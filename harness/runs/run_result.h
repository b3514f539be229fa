// The result of one run, as tables and `tearless explain` use it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/runs/resume_check.h"
#include "harness/runs/states.h"

namespace tearless::harness {

struct RunResult {
  std::string id = {};
  std::optional<RunState> state = {};         // unset for a run that the store does not know
  std::string reason = {};                    // one phrase: why it failed, is held, or ended where it did; may be ""
  std::map<std::string, double> scores = {};  // score name → final value; empty before the run is done
  int64_t diverged_step = 0;                  // if diverged: the update whose loss or gradient was not finite
  bool stale = false;                         // made with another numerics number than the current program's
  std::set<std::string> trained_on = {};      // machine_of() the attempts that it comes from; mixed if more than one
  std::optional<ResumeCheck> resume = {};     // the newest outcome of `tearless verify-resume`
  std::string decoding = {};                  // that made it; "": it is the result of a trained run
  std::vector<RunResult> derived = {};        // results of the runs that derive from it, and of those runs' own

  /// The result that has a score: of the decoding whose name the score begins with, else this one. A decoding's scores
  /// are shown as scores of the trained run.
  const RunResult& with_score(const std::string& score) const {
    for (const RunResult& one : derived) {
      if (score.starts_with(one.decoding + ".")) return one;
    }
    return *this;
  }
};

}  // namespace tearless::harness
