// Which program trains a run is a part of what the run is. tearless-engine says by its settings and its `numerics` what
// its results are. To the settings of another program's run the harness appends one line, before it hashes them:
//
//   program.identity = "my_trainer 2"
#pragma once

#include <string>
#include <vector>

#include "harness/plan/program.h"

namespace tearless::harness {

/// Appends the line to the settings of each answer's run, hashes them again, and has derived runs name the new ids of
/// the runs that they derive from. Does nothing for "". The answers are of one plan: a derived run comes after the run
/// that it derives from.
void add_identity(std::vector<CheckAnswer>& answers, const std::string& identity);

/// The identity that the settings of a run name; "" for one of tearless-engine.
std::string identity_in(const std::string& settings);

}  // namespace tearless::harness
