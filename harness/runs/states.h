// The states of a run, the legal moves between them, and the classes of failure. Pure.
//
//   waiting_data ⇄ queued ⇄ running ──→ done | diverged | failed      (kLegalMoves has every move)
//                      ⇅
//                held, cancelled
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace tearless::harness {

enum class RunState {
  kQueued,
  kRunning,
  kDone,
  kDiverged,     // ended because a loss or gradient was not finite: a result, not a failure
  kFailed,       // ended without a result, and is not tried again
  kHeld,         // on request, or because it needs a device that this machine does not have
  kWaitingData,  // an input file is missing or was changed; where it was missing at planning, the id is provisional
  kCancelled
};

/// The state of a sweep. It says whether a daemon works on it, not how far it is.
enum class SweepState {
  kActive,
  kPaused,    // on request, by Ctrl-C, or because the same failure ended several of its runs
  kCancelled  // submitting its grid again makes it active
};

/// Why an attempt ended without a result. A run has the class of its last such attempt.
enum class FailureClass {
  kNone,
  kSettings,  // the program refused the settings, the run's folder was changed by hand, or no checkpoint was written in
              // all the time that a worker had, twice in a row
  kOutOfMemory,  // exit code 4, or the kernel's OOM killer
  kCrashed,      // any other end by the program's own fault
  kStalled,      // no sign of life for longer than the stall timeout
  kLost,         // the machine or the supervisor went away
  kStopped,      // stopped on request, or preempted
  kKilled,       // by a signal from outside that the harness did not send
  kMachine,      // a full disk or an I/O error: not the run's fault, and other runs would fail as well
  kData,         // an input file is missing, or is not the one that the run was planned with
};

/// The name in the database, in JSON and in messages: "waiting_data", "out_of_memory"; "" for kNone.
std::string_view name_of(RunState state);
/// "" for a run that is not known.
std::string_view name_of(const std::optional<RunState>& state);
std::string_view name_of(FailureClass failure);

std::string_view name_of(SweepState state);

/// The inverse of name_of(). std::logic_error for any other text.
RunState state_named(std::string_view name);
SweepState sweep_state_named(std::string_view name);
FailureClass failure_named(std::string_view name);

/// How many runs are in each state. States that none is in are left out.
using StateCounts = std::map<RunState, int64_t>;
/// "2 queued, 1 done".
std::string text_of(const StateCounts& counts);

/// Why a run is put aside with the one from which it derives, which is in that state; begins with kOrigin. Without the
/// other's id: reports count runs by their reasons.
inline constexpr std::string_view kOrigin = "the run from which it derives ";
std::string origin_reason(RunState state);

struct Move {
  RunState from, to;
};

// clang-format off
inline constexpr Move kLegalMoves[] = {
    {RunState::kQueued,      RunState::kRunning},
    {RunState::kQueued,      RunState::kDone},         // it has a DONE already: recorded without training
    {RunState::kQueued,      RunState::kDiverged},     // it has a DONE already
    {RunState::kQueued,      RunState::kFailed},       // its folder was changed by hand
    {RunState::kQueued,      RunState::kWaitingData},  // another run has found its data missing or changed
    {RunState::kQueued,      RunState::kHeld},
    {RunState::kQueued,      RunState::kCancelled},
    {RunState::kRunning,     RunState::kQueued},       // will be tried again
    {RunState::kRunning,     RunState::kWaitingData},
    {RunState::kRunning,     RunState::kDone},
    {RunState::kRunning,     RunState::kDiverged},
    {RunState::kRunning,     RunState::kFailed},
    {RunState::kRunning,     RunState::kCancelled},
    {RunState::kHeld,        RunState::kQueued},
    {RunState::kHeld,        RunState::kCancelled},
    {RunState::kWaitingData, RunState::kQueued},
    {RunState::kWaitingData, RunState::kCancelled},
    {RunState::kFailed,      RunState::kQueued},       // on request
    {RunState::kCancelled,   RunState::kQueued},
    {RunState::kCancelled,   RunState::kWaitingData},
    {RunState::kDone,        RunState::kQueued},       // its folder was deleted, and with it the result
    {RunState::kDiverged,    RunState::kQueued},       // its folder was deleted
};
// clang-format on

bool is_legal(RunState from, RunState to);

/// True if the run has a DONE: it is done or diverged.
bool has_result(RunState state);

/// True if the run stays in this state until a user requests something: neither queued, running nor waiting for data.
bool is_inactive(RunState state);

}  // namespace tearless::harness
