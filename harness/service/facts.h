// What a service knows and others show: plain structs, each with one JSON form, for the socket, `--json` and the
// screen.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/json_members.h"
#include "harness/runs/devices.h"
#include "harness/runs/progress.h"

namespace tearless::harness {

/// A sweep that the service works on.
struct SweepFacts {
  std::string id;
  std::string title;
  std::string state;   // name_of(SweepState)
  std::string reason;  // why it is paused, or, if it is active, why nothing of it runs; ""
  int64_t priority = 0;
  int64_t total = 0, waiting = 0, held = 0;      // runs, as SweepCounts
  int64_t running = 0, granted = 0, silent = 0;  // attempts, by their phases
  std::optional<double> seconds_left;
  int64_t untimed = 0;       // runs that seconds_left does not count
  bool look_is_due = false;  // a look may ask for more runs
  std::vector<Progress> attempts;

  int64_t ended() const { return total - waiting - std::ssize(attempts) - held; }
  /// Nothing of it runs, and nothing will be started without a request.
  bool idle() const { return attempts.empty() && ((waiting == 0 && !look_is_due) || state != "active"); }
};

/// What a submission did.
struct SubmissionFacts {
  std::string id = {};                               // of the sweep
  bool kept_place = false;                           // in the queue: it was not over
  bool resumed = false;                              // it was paused
  bool new_build = false;                            // another build trains what has not begun
  std::map<std::string, int64_t> queued_again = {};  // state that runs were in → their number
  std::map<std::string, int64_t> states = {};        // state → runs that are in it now
  std::vector<std::string> replaced = {};            // sweeps that were cancelled for it
  std::vector<std::string> beside = {};              // other sweeps of the grid file that are not over
};

struct ServiceFacts {
  bool stays = false;                  // it is a daemon; else a command has started it, and it leaves when it is idle
  std::string build;                   // build_stamp() of its program
  std::vector<std::string> arguments;  // of `tearless daemon`, that it was started with
  bool busy = false;                   // Service::is_busy()
  bool ends = false;                   // it was asked to
  int64_t pid = 0;
  std::string started_at;  // UTC
  std::vector<DeviceFacts> devices;
  std::vector<std::string> notes;  // Launcher::notes()
  std::vector<SweepFacts> sweeps;

  /// Null if the service does not work on the sweep.
  const SweepFacts* sweep(const std::string& id) const;
};

NLOHMANN_JSON_SERIALIZE_ENUM(Phase,
                             {{Phase::kRunning, "running"}, {Phase::kGranted, "granted"}, {Phase::kSilent, "silent"}})

// The JSON forms. Reading one is nlohmann::json::exception if a field is missing or is of another type.
void to_json(nlohmann::json& json, const Progress& progress);
void from_json(const nlohmann::json& json, Progress& progress);
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(DeviceFacts, index, uuid, name, memory_bytes, reserved_bytes, runs, closed)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SweepFacts, id, title, state, reason, priority, total, waiting, held, running,
                                   granted, silent, seconds_left, untimed, look_is_due, attempts)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SubmissionFacts, id, kept_place, resumed, new_build, queued_again, states, replaced,
                                   beside)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ServiceFacts, stays, build, arguments, busy, ends, pid, started_at, devices, notes,
                                   sweeps)

/// What the submission of a sweep changed, one phrase each: "keeps its place in the queue", "2 cancelled queued again".
std::vector<std::string> changes_of(const SubmissionFacts& facts);
/// "24 runs, 3 with results; keeps its place in the queue".
std::string summary_of(const SubmissionFacts& facts);
/// "3 of 24 ended, 2 running, 19 waiting · 5300 tokens/s · 1:02:03 left".
std::string summary_of(const SweepFacts& facts);
/// " · all 6 sweeps: at most 1:32:00 left": of those of `all` with these ids, which may share runs. "" for one sweep,
/// or where a time is not known.
std::string time_left_text(const std::vector<SweepFacts>& all, const std::set<std::string>& together);
/// "GPU 1  NVIDIA H200  2 runs, 17.6 of 139.0 GiB reserved"; and why it takes no run, if it does not.
std::string summary_of(const DeviceFacts& facts);

}  // namespace tearless::harness
