// Where attempts run: processes of this machine now (local_launcher.h), a cluster's queue later.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace tearless::harness {

struct Launch {
  std::string id;
  std::filesystem::path folder;  // the run directory, ready to be trained in
  std::string cuda_device;       // UUID; "" on the CPU
};

enum class StopReason {
  kRequest,
  kStall,  // it has given no sign of life
};

/// How what was launched ended, where the run directory does not say it.
enum class LaunchEnd {
  kUnknown,     // judged by the run directory alone
  kTurnedAway,  // somebody else works on the run: no attempt was made
  kMachine,     // the attempt's beginning or end could not be written down: a full disk, a read-only folder
};

class Launcher {
 public:
  virtual ~Launcher() = default;

  /// Starts one attempt, which outlives this process. UserError where nothing can be started.
  virtual void start(const Launch& launch) = 0;

  /// Watches the attempt of an earlier process. False where none is alive: what it left behind can be judged at once.
  virtual bool adopt(const std::string& id, const std::filesystem::path& folder) = 0;

  /// Asks an attempt to write a checkpoint and go; it is killed if it does not within its grace time.
  virtual void stop(const std::string& id, StopReason why) = 0;

  /// Kills an attempt whose supervisor does not answer. What it leaves is judged as usual.
  virtual void kill(const std::string& id) = 0;

  /// Called once for each attempt that was started or adopted, when nothing of it is alive any more.
  std::function<void(const std::string& id, LaunchEnd end)> on_end;
};

}  // namespace tearless::harness
