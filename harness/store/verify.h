// Compares all that a workspace holds with what vouches for it: the database with the run and sweep folders, and each
// folder with its own checksums.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/runs/workspace.h"

namespace tearless::harness {

/// What would make a difference go away.
enum class Remedy {
  kRebuild,   // the database is at fault, the folders are sound: repair() makes it anew
  kSetAside,  // a damaged checkpoint, and there is an older sound one: repair() moves it out of the way
  kPerson,    // a result, or the only state of a run, is at stake
};

struct Difference {
  std::string subject;  // "database", "run 0123…", "sweep norm-89ab…"
  std::string what;     // one phrase
  std::string todo;     // what to type
  Remedy remedy = Remedy::kPerson;
  bool result_at_stake = false;  // the database may hold the only good copy of a result: it is not made anew
  std::string checkpoint = {};   // the folder to set aside
};

struct VerifyReport {
  int64_t runs = 0, sweeps = 0;  // that were looked at
  std::vector<Difference> differences;
  std::vector<std::string> repaired;  // one sentence each
};

/// Changes nothing. Runs at work are passed over, as long as they are.
VerifyReport verify(const Workspace& workspace);

/// Sets damaged checkpoints aside (runs/<id>/set_aside) and makes the database anew where it is at fault and no result
/// is at stake; never deletes anything. The differences that are left. UserError while a `tearless run` is at work.
VerifyReport repair(const Workspace& workspace);

}  // namespace tearless::harness
