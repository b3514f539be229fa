// One attempt's guardian: a small process that outlives the harness, starts the training program, and writes down how
// it ended.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>

namespace tearless::harness {

/// What `tearless supervise` exits with where the program's own code does not say it.
enum SupervisorExit : int {
  kNoAttempt = 69,   // someone else works on this run
  kNotStarted = 70,  // the attempt could not be written down: a full disk, a read-only folder
};

struct Supervision {
  std::filesystem::path run;      // the run directory
  std::filesystem::path program;  // the training program
  nlohmann::json stamp;           // fields for start.json: device, program, version, numerics
  int grace_seconds = 30;         // between SIGTERM and SIGKILL
};

/// Takes the lock, makes the attempt, runs the program to its end (which may be days) and returns its exit code.
/// SIGTERM is passed on; the program dies with this process.
int supervise(const Supervision& supervision);

}  // namespace tearless::harness
