// The full consistency check of a workspace (`tearless verify`): the database against the run and sweep folders, and
// each folder against its own checksums.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/runs/workspace.h"

namespace tearless::harness {

/// How a difference can be repaired.
enum class Remedy {
  kRebuild,        // the database is wrong, the folders are intact: repair() recreates the database
  kMoveToDamaged,  // a checkpoint is damaged, an older one is intact: repair() moves the damaged one away
  kPerson,         // a user must decide: a result, or the only state of a run, could be lost
};

struct Difference {
  std::string subject;  // "database", "run 0123…", "sweep norm-89ab…"
  std::string what;     // one phrase
  std::string todo;     // the command to type, or other advice
  Remedy remedy = Remedy::kPerson;
  bool result_at_stake = false;  // the database may hold the only good copy of a result, so it must not be recreated
  std::string checkpoint = {};   // kMoveToDamaged: the folder to move
};

struct VerifyReport {
  int64_t runs = 0, sweeps = 0;  // checked
  std::vector<Difference> differences;
  std::vector<std::string> notes;     // what is no difference, and may be none of the run's doing; one sentence each
  std::vector<std::string> repaired;  // what repair() did, one sentence each
};

/// Finds all differences; changes nothing. Skips runs that a process is working on.
VerifyReport verify(const Workspace& workspace);

/// Moves damaged checkpoints to runs/<id>/damaged, and recreates the database if it is wrong and no result is at
/// stake. Deletes nothing. Returns the remaining differences. UserError while a `tearless run` is active.
VerifyReport repair(const Workspace& workspace);

}  // namespace tearless::harness
