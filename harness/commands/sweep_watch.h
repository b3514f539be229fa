// Shows on the terminal what becomes of a sweep, until nothing of it runs or will be started: for `run` and `watch`.
// Its frame is the running runs and a summary; its events are lines that stay.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/time.h"
#include "harness/console/screen.h"
#include "harness/results/result_set.h"
#include "harness/runs/workspace.h"
#include "harness/service/start.h"
#include "harness/store/store.h"

namespace tearless::harness {

/// How the watching ended.
struct WatchEnd {
  bool interrupted = false;  // by Ctrl-C
  int64_t left_to = 0;       // pid of the service that continues the sweep; 0: none does
  std::string paused = {};   // why nothing more will be started although runs are left, one sentence; else ""
};

class SweepWatch {
 public:
  /// Shows events from now on, and Ctrl-C ends no process from now on. With `start`: Ctrl-C pauses the sweep and those
  /// that were submitted `together` with it, unless the service is a daemon, and a service that was killed is replaced
  /// by another one, which continues. Without it: nothing is changed. Borrows `workspace`.
  SweepWatch(const Workspace& workspace, const std::string& sweep, const std::vector<std::string>& together,
             const SweepPolicy& policy, const std::vector<Run>& runs, std::optional<ServiceStart> start);

  /// Prints a line that stays.
  void say(const std::string& line) { screen_.print(line); }
  WatchEnd follow();

 private:
  bool has_ended();
  bool has_ended_without_service();
  bool is_silent();
  void say_new_events();
  void show(const SweepFacts& facts, const std::vector<SweepFacts>& all);
  void pause(int64_t running);

  const Workspace& workspace_;
  std::string sweep_;
  std::set<std::string> together_;  // sweeps that one Ctrl-C pauses
  int grace_seconds_;
  std::optional<ServiceStart> start_;
  std::map<std::string, std::string> labels_;  // run → label
  Screen screen_{stdout};
  double began_ = steady_seconds();
  std::filesystem::path events_;
  uint64_t events_seen_;                // bytes
  std::optional<double> silent_since_;  // the service does not answer
  std::string told_;                    // the line of its log that was shown
  WatchEnd end_;
};

/// One line for each state and reason of the rows, because a mistake in the grid or a fault of the machine usually
/// affects many: "failed: 0c95df280f397769 and 4 more: exit code 2". Not more than ten of them.
std::vector<std::string> reason_lines(const std::vector<Row>& rows);

/// The rows of a sweep that have failed, or wait for a user or their data.
std::vector<Row> stuck_rows_of(const Store& store, const Sweep& sweep);

/// Prints how many runs of the sweep are in which state, and why runs have failed, or wait for a user or their
/// data. Returns the counts.
StateCounts print_outcome(const Store& store, const std::string& sweep);

}  // namespace tearless::harness
