// What the file Workspace::writer() says: the pid of the process that writes the database, and whether it is a service;
// or that the service was stopped, until the next process writes its own pid. Those who wait for what a service had to
// do start another one only if it was killed.
#pragma once

#include "harness/runs/workspace.h"

namespace tearless::harness {

void note_stop(const Workspace& workspace);
bool was_stopped(const Workspace& workspace);
/// True for a service that holds the lock, also one that does not answer yet.
bool is_held_by_service(const Workspace& workspace);

}  // namespace tearless::harness
