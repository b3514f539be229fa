// The interface through which the scheduler starts and stops attempts, and the question whether an attempt is alive. A
// launcher owns its capacity: the scheduler knows runs and their order, the launcher knows what may run now, and where.
// One implementation runs attempts as processes of this machine (launch/local_launcher.h), one grants them to workers
// (grants/worker_launcher.h).
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/run_directory.h"
#include "harness/runs/devices.h"
#include "harness/runs/environment.h"
#include "harness/runs/needs.h"
#include "harness/runs/progress.h"

namespace tearless::harness {

/// The program that trains the runs of a sweep.
struct TrainingProgram {
  std::filesystem::path path;
  nlohmann::json stamp;    // recorded in every attempt's start.json: program, version, numerics
  int grace_seconds = 30;  // between SIGTERM and SIGKILL
  std::optional<SubmittedEnvironment> environment = {};  // unset: it has the service's
  Variables secrets = {};                                // those that the starting process has not itself
};

struct Launch {
  std::string id;                // of the run
  std::filesystem::path folder;  // the run directory, with run.toml and local.toml written
  Needs needs;
  TrainingProgram program;
  int64_t attempt = 0;  // its number, whose folder is made; 0: it takes the next one
};

enum class Stop {
  kOnRequest,  // it is asked to write a checkpoint and exit, for a user
  kStalled,    // it is asked to write a checkpoint and exit, because its program gives no sign of life
  kAtOnce,     // it is killed
};

/// True while a process of this machine works on the run: it holds the lock, or supervises the newest attempt although
/// the lock file was removed.
bool has_process(const RunDirectory& run);

/// True if the newest attempt was granted to a machine (grants/grant.h), and the service has not finished with
/// it. Whether that machine is alive only the service can tell.
bool is_granted(const RunDirectory& run);

/// True while an attempt of the run may be alive, on any machine. Needs no launcher, so that commands can ask without a
/// service.
inline bool is_alive(const RunDirectory& run) { return has_process(run) || is_granted(run); }

class Launcher {
 public:
  virtual ~Launcher() = default;

  /// Why a run cannot be started.
  struct Refusal {
    std::string why;               // one phrase
    bool for_good = false;         // it lacks what this launcher never has; else the run may be asked about again
    bool others_may_pass = false;  // nothing that others leave would make it fit: it never blocks them
  };
  /// Nullopt if a run with these needs can be started now. Asked often: must not be slow.
  virtual std::optional<Refusal> refusal_of(const Needs& needs) const = 0;

  /// Starts an attempt of a run, which outlives this process. UserError if that fails.
  /// REQUIRES: refusal_of(launch.needs) has just been empty, and no attempt of the run is alive.
  virtual void start(const Launch& launch) = 0;

  /// Takes over an attempt that an earlier process or a user started, if it is alive or about to begin. Else
  /// returns false: how the last attempt ended is then in the run's folder.
  virtual bool adopt(const std::string& id, const std::filesystem::path& folder, const Needs& needs) = 0;

  /// Ends an attempt that was started or adopted. `grace_seconds`: as in TrainingProgram; what has not ended long after
  /// that is killed. May be repeated.
  virtual void stop(const std::string& id, Stop how, int grace_seconds) = 0;

  /// The workspace is gone, or another service's: ends what runs on this machine at once, and touches nothing else.
  virtual void abandon() {}

  /// Where the attempt runs and why there, one phrase.
  virtual std::string where(const std::string& id) const = 0;

  struct Standing {
    Phase phase = Phase::kRunning;
    std::string waits_for = {};  // what keeps it from getting on, or from ending, one sentence; "": nothing
    std::string executor = {};   // whose machines it was granted to; "": it is an attempt of this machine
  };
  /// Asked often, as refusal_of().
  virtual Standing standing_of(const std::string& /*id*/) const { return {}; }

  /// The GPUs that it shares out by itself; none if something else does, such as a cluster's queue.
  virtual std::vector<DeviceFacts> devices() const { return {}; }

  /// Seconds between two looks at the files of an attempt: more where each look is a request to another machine.
  virtual double look_every(const std::string& /*id*/) const { return 0; }

  /// What waits to be started, by needs; also when nothing does. Called before poll(), for a launcher that has to ask
  /// for machines first. MachineError if the disk is full.
  virtual void expect(const std::map<Needs, int64_t>& /*waiting*/) {}

  /// What users should know of its machines, one sentence each: which of them it leaves out, and why.
  virtual std::vector<std::string> notes() const { return {}; }

  /// Called every second or two. May call on_end.
  virtual void poll() = 0;

  /// What the files in the run's folder do not say of an attempt's end.
  struct End {
    std::string fault = {};    // why no attempt began, or why its end is not in its folder, one sentence; or ""
    bool never_began = false;  // it was taken back before anybody had begun it: that is no end
  };
  /// Set by the scheduler. Called once for each attempt that was started or adopted, when nothing of it runs any more
  /// and what it had reserved is free.
  std::function<void(const std::string& id, const End& end)> on_end;
};

}  // namespace tearless::harness
