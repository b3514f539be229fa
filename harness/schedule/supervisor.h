// One attempt's guardian: a small process that outlives the harness, starts the training program, and writes down how
// it ended.
#pragma once

#include <signal.h>

#include <filesystem>
#include <nlohmann/json.hpp>

namespace tearless::harness {

/// What `tearless supervise` exits with. The program's own code is in exit.json.
enum SupervisorExit : int {
  kSupervised = 0,
  kNoAttempt = 69,    // someone else works on this run
  kNotRecorded = 70,  // the attempt's beginning or end could not be written down: a full disk, a read-only folder
};

/// Asks the program to stop like SIGTERM does; exit.json then says that it had given no sign of life.
inline constexpr int kStallSignal = SIGUSR1;

struct Supervision {
  std::filesystem::path run;      // the run directory
  std::filesystem::path program;  // the training program
  nlohmann::json stamp;           // fields for start.json: device, program, version, numerics
  int grace_seconds = 30;         // between SIGTERM and SIGKILL
};

/// Takes the lock, makes the attempt, runs the program to its end (which may be days) and writes exit.json.
/// SIGTERM is passed on; the program dies with this process. Throws MachineError where its
/// beginning or end cannot be written down.
int supervise(const Supervision& supervision);

}  // namespace tearless::harness
