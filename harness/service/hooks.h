// The command of `--on-end`: it is started by /bin/sh whenever a run or a sweep ends, a few at a time, and never waited
// for while the service works. Its output is appended to a file.
#pragma once

#include <sys/types.h>

#include <deque>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace tearless::harness {

/// What the command finds in its environment: TEARLESS_EVENT, TEARLESS_ID, TEARLESS_SWEEP, TEARLESS_STATE and
/// TEARLESS_REASON.
struct EndEvent {
  std::string event;   // "run" or "sweep"
  std::string id;      // of the run or the sweep
  std::string sweep;   // the sweep; of a run that several have, the first; may be ""
  std::string state;   // of a run "done", "diverged", "failed" or "cancelled"; of a sweep "done" or "incomplete"
  std::string reason;  // one phrase, may be ""
};

class Hooks {
 public:
  /// Called with a command that could not be started or that failed: its event, and what happened.
  using Failure = std::function<void(const EndEvent& event, const std::string& what)>;

  /// `command`: "" for none. `output`: the file that gets what the commands print.
  Hooks(std::string command, std::filesystem::path output, Failure failure);

  /// Has the command started for this event, by the next tick() at the latest.
  void add(EndEvent event);
  /// Starts what waits while fewer than a few run; notices what has ended. Call every second or two.
  void tick();
  /// True while a command runs or waits.
  bool is_busy() const { return !waiting_.empty() || !running_.empty(); }
  /// At the end of the service: starts what waits, and waits a few seconds for all to end. What has not ended then
  /// continues by itself; what could not be started is given to Failure.
  void finish();

 private:
  struct Started {
    pid_t pid;
    EndEvent event;
  };
  void start(EndEvent event);
  void notice_ends();

  std::string command_;
  std::filesystem::path output_;
  Failure failure_;
  std::deque<EndEvent> waiting_;
  std::vector<Started> running_;
};

}  // namespace tearless::harness
