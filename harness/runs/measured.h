// What a run has measured of itself: seconds, memory, speeds. They are read like scores, as "measured.NAME", but depend
// on the machine and on what else it did, so they are no result: they stand in no scores.json, and are shown only where
// they are asked for by that name.
//
// A new one is a function of attempts and a row of the table in measured.cc.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "harness/runs/attempt_files.h"

namespace tearless::harness {

/// "measured.seconds_per_update" …: all names that there are.
const std::vector<std::string>& measured_names();

/// Whether a name, or a pattern of names, is of this kind: "measured.seconds", "beam8.measured.seconds", "measured.*".
bool is_measured(std::string_view name);

/// True if `name` matches `pattern`. Names of this kind match only patterns of this kind: * means all scores.
bool matches_score(std::string_view pattern, std::string_view name);

/// Whether `check` can say it before a run is trained: the number of parameters.
bool is_known_before_training(std::string_view score);

/// What the attempts of one run have measured together, by these names; only what is known.
std::map<std::string, double> measured_numbers(const std::vector<AttemptRecord>& attempts);

/// Where the attempts that have measured something ran: machine_of() them, and their threads.
std::set<std::string> measured_on(const std::vector<AttemptRecord>& attempts);

}  // namespace tearless::harness
