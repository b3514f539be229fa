// A sweep in the foreground: one thread, one loop, from the first attempt to the last, or to Ctrl-C.
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
  std::string sweep;       // events are logged to its folder
  int jobs = 0;            // runs at once on the CPU; 0: as many as their threads fit the cores
  int runs_per_gpu = 1;    // at once on each GPU
  int grace_seconds = 30;  // that a program has to stop before it is killed
  SchedulerOptions options;
};

struct Ending {
  bool interrupted = false;  // by a person: all attempts have stopped, or (a second Ctrl-C) are stopping by themselves
  std::string paused;        // one sentence where something ended the sweep early
};

Ending run_in_foreground(const Foreground& foreground, Store& store, std::vector<Job> jobs);

}  // namespace tearless::harness
