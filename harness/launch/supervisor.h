// The supervisor of one attempt (`tearless supervise`): a small process that outlives the harness, starts the training
// program, and records how it ended.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <filesystem>
#include <nlohmann/json.hpp>

namespace tearless::harness {

/// Exit codes of `tearless supervise`. The training program's exit code is in exit.json.
enum SupervisorExit : int {
  kSupervised = 0,    // the attempt has ended and exit.json is written
  kNoAttempt = 69,    // another process works on this run, or the launcher has ended
  kNotRecorded = 70,  // start.json or exit.json could not be written: a full disk, a read-only folder
};

/// Stops the program as SIGTERM does, but exit.json then says that the program was stalled.
inline constexpr int kStallSignal = SIGUSR1;

struct Supervision {
  std::filesystem::path run;      // the run directory
  std::filesystem::path program;  // the training program
  nlohmann::json stamp;           // fields for start.json: device, program, version, numerics, cores …
  int grace_seconds = 30;         // between SIGTERM and SIGKILL
  pid_t launcher = 0;             // our parent; 0: started by hand
  bool ends_with_launcher = false;
  int64_t attempt = 0;  // its number, whose folder is there; 0: the next one
};

/// Runs one attempt:
///   1. takes the run's lock (if it is held, or the launcher ended before it was taken, returns kNoAttempt);
///   2. makes attempts/<n>, unless that is there, removes temporary files of those before it, and writes start.json;
///   3. runs `PROGRAM train DIR` to its end, with its output in log.txt. The program inherits the lock;
///   4. ends what the program has left running, by SIGTERM and then SIGKILL, and names it in log.txt;
///   5. writes exit.json, whose code is the program's.
/// On SIGTERM, SIGINT or kStallSignal it sends the program SIGTERM, and SIGKILL after the grace time. If the supervisor
/// itself dies, the kernel kills the program. Throws MachineError or UserError if step 2 or 5 fails.
int supervise(const Supervision& supervision);

}  // namespace tearless::harness
