// The interface through which the scheduler starts and stops attempts. The one implementation runs them as processes of
// this machine (local_launcher.h); another one could submit them to a cluster's queue.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

namespace tearless::harness {

/// The program that trains the runs of a sweep.
struct TrainingProgram {
  std::filesystem::path path;
  nlohmann::json stamp;    // recorded in every attempt's start.json: program, version, numerics
  int grace_seconds = 30;  // between SIGTERM and SIGKILL
};

struct Launch {
  std::string id;                // of the run
  std::filesystem::path folder;  // the run directory, with run.toml and local.toml written
  std::string cuda_device;       // UUID; "" on the CPU
  std::vector<int> cores;        // that the program is bound to; empty: it is not
  TrainingProgram program;
  bool ends_with_launcher = false;  // the attempt is killed when this process ends, however it ends
};

enum class StopReason {
  kRequest,  // of a user
  kStall,    // no sign of life from the program
};

/// What the launcher knows about the end of an attempt beyond the files in its run directory.
enum class LaunchEnd {
  kUnknown,  // nothing
  kRefused,  // another process works on the run: no attempt was made
  kMachine,  // the start or end of the attempt could not be recorded: a full disk, a read-only folder
};

class Launcher {
 public:
  virtual ~Launcher() = default;

  /// Starts an attempt of a run. It outlives this process, unless Launch::ends_with_launcher. UserError if it cannot be
  /// started.
  virtual void start(const Launch& launch) = 0;

  /// Takes over an attempt that an earlier process started, if one is alive. Returns false if none is.
  virtual bool adopt(const std::string& id, const std::filesystem::path& folder) = 0;

  /// Asks an attempt to write a checkpoint and exit. Its supervisor kills the program after the grace time.
  virtual void stop(const std::string& id, StopReason why) = 0;

  /// Kills an attempt with its supervisor. For a supervisor that does not react to stop().
  virtual void kill(const std::string& id) = 0;

  /// The processes of each attempt that was started or adopted and has not ended: run → pids.
  virtual std::map<std::string, std::set<int64_t>> processes() const = 0;

  /// Set by the scheduler. Called once for each attempt that was started or adopted, when all its processes have ended.
  std::function<void(const std::string& id, LaunchEnd end)> on_end;
};

}  // namespace tearless::harness
