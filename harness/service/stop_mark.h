// What tells a service that was stopped from one that was killed, for those who wait for what it had to do: only in the
// latter case do they start another one. The mark stands in place of the pid in Workspace::writer(), until the next
// process writes its own.
#pragma once

#include "harness/runs/workspace.h"

namespace tearless::harness {

void note_stop(const Workspace& workspace);
bool was_stopped(const Workspace& workspace);

}  // namespace tearless::harness
