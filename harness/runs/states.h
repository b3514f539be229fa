// The states of a run, why an attempt failed, and the moves that are legal. Pure.
#pragma once

#include <optional>
#include <string_view>

namespace tearless::harness {

enum class RunState { kQueued, kRunning, kDone, kDiverged, kFailed, kHeld, kWaitingData, kCancelled };

/// Why an attempt ended without a result. Of a run: the class of its last such attempt.
enum class FailureClass {
  kNone,
  kSettings,  // the program refused the settings, or the run's folder was changed by hand
  kOutOfMemory,
  kCrashed,
  kStalled,  // no sign of life for longer than the stall timeout
  kLost,     // machine or supervisor gone
  kStopped,  // on request or preempted
  kTimeout,
  kKilled,   // by a signal from outside that nobody here asked for
  kMachine,  // a full disk, an I/O error: not the run's fault, and no other run would fare better
};

/// As the store, JSON and people write them: "waiting_data", "out_of_memory"; kNone is "".
std::string_view name_of(RunState state);
/// "" for a run that is not known.
std::string_view name_of(const std::optional<RunState>& state);
std::string_view name_of(FailureClass failure);
/// Of names that the store holds; anything else is a logic error.
RunState state_named(std::string_view name);
FailureClass failure_named(std::string_view name);

struct Move {
  RunState from, to;
};

// clang-format off
inline constexpr Move kLegalMoves[] = {
    {RunState::kQueued,      RunState::kRunning},
    {RunState::kQueued,      RunState::kDone},         // its DONE was there already: recorded without training
    {RunState::kQueued,      RunState::kDiverged},     // likewise
    {RunState::kQueued,      RunState::kFailed},       // its folder was changed by hand
    {RunState::kQueued,      RunState::kHeld},
    {RunState::kQueued,      RunState::kCancelled},
    {RunState::kRunning,     RunState::kQueued},       // to be tried again
    {RunState::kRunning,     RunState::kDone},
    {RunState::kRunning,     RunState::kDiverged},
    {RunState::kRunning,     RunState::kFailed},
    {RunState::kRunning,     RunState::kCancelled},
    {RunState::kHeld,        RunState::kQueued},
    {RunState::kHeld,        RunState::kCancelled},
    {RunState::kWaitingData, RunState::kQueued},
    {RunState::kWaitingData, RunState::kCancelled},    // its corpus came: the run has its true id now
    {RunState::kFailed,      RunState::kQueued},       // on request
    {RunState::kCancelled,   RunState::kQueued},
    {RunState::kCancelled,   RunState::kWaitingData},
    {RunState::kDone,        RunState::kQueued},       // its folder was deleted: results live there first
    {RunState::kDiverged,    RunState::kQueued},       // likewise
};
// clang-format on

bool is_legal(RunState from, RunState to);

/// Nothing more happens to the run unless someone asks for it.
bool is_settled(RunState state);

}  // namespace tearless::harness
