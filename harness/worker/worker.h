// A worker (`tearless worker`): a launcher of this machine in a loop, which takes its runs from the board of a
// workspace instead of from a scheduler, and opens no database. It needs nothing but the workspace's folder.
//
// Each second, and whenever an attempt has ended:
//   1. It reads the board, and stops the attempts that are to be stopped.
//   2. While this machine has room, it claims granted runs in the board's order. It does so only while it finds its
//      name on the board: a worker whose files the service does not see would train for nobody.
//   3. It makes the attempt's work folder and starts a supervisor, which ends with the worker whatever ends that.
//   4. When the attempt has ended, it tells the service the checksums of the files that say how.
//
// It ends when its time is nearly over (it stops its attempts first, with checkpoints), when it is asked to (SIGTERM,
// SIGINT, SIGHUP, SIGUSR1 and SIGUSR2, the same), when it had nothing to do for a minute, or when no service answers.
#pragma once

#include <optional>
#include <string>

#include "harness/grants/worker_file.h"
#include "harness/launch/local_options.h"
#include "harness/runs/workspace.h"

namespace tearless::harness {

struct WorkerOptions {
  Workspace workspace;
  std::optional<double> until_seconds = {};  // after which the machine is taken from it; unset: never
  double idle_seconds = 60;                  // without a run after which it ends
  LocalLimits limits = {};
  std::string executor = kWorkers;  // whose runs it takes
  std::string job = {};             // of a cluster, that it is; see WorkerFacts
  bool is_shared = false;           // it trusts whoever may write the workspace (grants/trust.h)
};

/// Returns when it has ended as above. UserError if others may write the board; if it sees no board for two minutes, or
/// the service does not see its file for ten.
void work(const WorkerOptions& options);

}  // namespace tearless::harness
