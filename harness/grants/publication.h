// The end of a granted attempt: its result becomes that of its run, and what it leaves is cleared. The service alone
// does this. Each step may be repeated after a kill:
//   1. publish(): all that the attempt left is linked into runs/<id>/, DONE last. Links, not renames: until DONE is
//      there, the source is whole. If an older attempt has left a result too, they are compared.
//   2. end_grant(): ended.json says that the service has finished with the attempt. It is then no longer alive.
//   3. clear_old_work(): the work folders that nothing needs any more go.
#pragma once

#include <cstdint>
#include <string>

#include "base/run_directory.h"
#include "harness/runs/states.h"

namespace tearless::harness {

/// True if the attempt has left a sound result, and that is published now. False if it has none, if the bytes are not
/// those that its DONE names, or if a newer attempt was granted: only the newest one's result counts. UserError if a
/// file cannot be read or written.
bool publish(const RunDirectory& run, int64_t attempt);

/// `failure` and `reason`: why the attempt ended, if its supervisor could not record it; else kNone and "".
void end_grant(const RunDirectory& run, int64_t attempt, FailureClass failure = FailureClass::kNone,
               const std::string& reason = "");

/// Removes the work folders of attempts that have ended, of a run that has its result; of any other those before
/// attempt `from`, which has newer state.
void clear_old_work(const RunDirectory& run, int64_t from);

}  // namespace tearless::harness
