// What the database says of one run.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/runs/attempt_files.h"
#include "harness/runs/resume_check.h"
#include "harness/runs/states.h"

namespace tearless::harness {

/// The training program as it is now, with which results are compared.
struct ProgramNow {
  std::optional<int64_t> numerics = {};  // Probe::numerics; unset: not compared
  std::string file = {};                 // file_hash() of it; "": not compared
};

struct RunResult {
  std::string id = {};
  std::optional<RunState> state = {};           // unset for a run that the store does not know
  FailureClass failure = FailureClass::kNone;   // of the last attempt, if that failed
  std::string reason = {};                      // one phrase: why it failed, is held, or ended where it did; may be ""
  std::map<std::string, double> scores = {};    // score name → final value; empty before the run is done
  std::map<std::string, double> measured = {};  // runs/measured.h: name, as of a score, → value
  std::set<std::string> measured_on = {};       // the machines that it was measured on
  std::map<std::string, std::string> no_numbers = {};  // names in scores.json without a number → "null", "NaN" …
  std::optional<int64_t> step = {};  // the update at which it ended; if diverged: whose loss or gradient was not
                                     // finite
  std::vector<AttemptRecord> attempts = {};  // in ascending order of their numbers
  std::string stale = {};  // why its numbers are not those of the program now, one phrase; "": they are
  bool is_due = false;     // it has a result, but `tearless run` makes it again: its folder is gone, or it is outdated
  std::set<std::string> trained_on = {};   // machine_of() the attempts that it comes from; mixed if more than one
  std::set<std::string> trained_by = {};   // program_of() them; empty for tearless-engine's; mixed if more than one
  bool lacks_records = false;              // missing_attempt_record() of one of its attempts
  std::optional<ResumeCheck> resume = {};  // the newest outcome of `tearless verify-resume`

  bool is_mixed() const { return kinds_in(trained_on) > 1 || trained_by.size() > 1; }
};

}  // namespace tearless::harness
