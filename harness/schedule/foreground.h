// Runs a sweep in the foreground until it is finished, paused or interrupted (`tearless run`): a single-threaded event
// loop around the scheduler.
#pragma once

#include <string>
#include <vector>

#include "harness/runs/workspace.h"
#include "harness/schedule/program.h"
#include "harness/schedule/scheduler.h"
#include "harness/store/store.h"

namespace tearless::harness {

struct Foreground {
  Workspace workspace;
  Program program;
  std::string sweep;       // id of the sweep whose folder receives the log of events
  int jobs = 0;            // concurrent runs on the CPU; 0: as many as their threads fit the cores
  int runs_per_gpu = 1;    // concurrent runs on each GPU
  int grace_seconds = 30;  // time between SIGTERM and SIGKILL when a program is stopped
  SchedulerOptions options;
};

struct Ending {
  bool interrupted = false;  // by Ctrl-C: all attempts have stopped or, after a second Ctrl-C, are still stopping
  std::string paused;        // why the sweep ended early, one sentence; "" if it did not
};

/// Runs `jobs` and returns when none of them is running any more, or immediately after a second Ctrl-C. REQUIRES: the
/// jobs' runs are in the store.
Ending run_in_foreground(const Foreground& foreground, Store& store, std::vector<Job> jobs);

}  // namespace tearless::harness
