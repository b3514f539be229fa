#include "harness/runs/states.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <stdexcept>
#include <vector>

namespace tearless::harness {
namespace {

// In the order of the enumerators.
constexpr auto kStateNames = std::to_array<std::string_view>(
    {"queued", "running", "done", "diverged", "failed", "held", "waiting_data", "cancelled"});
constexpr auto kFailureNames = std::to_array<std::string_view>(
    {"", "settings", "out_of_memory", "crashed", "stalled", "lost", "stopped", "killed", "machine", "data"});

constexpr auto kSweepStateNames = std::to_array<std::string_view>({"active", "paused", "cancelled"});

template <class Enum, class Names>
Enum named(std::string_view name, const Names& names) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) throw std::logic_error(fmt::format("no state or class is called '{}'", name));
  return static_cast<Enum>(found - names.begin());
}

}  // namespace

std::string_view name_of(RunState state) { return kStateNames.at(static_cast<size_t>(state)); }
std::string_view name_of(const std::optional<RunState>& state) { return state ? name_of(*state) : ""; }
std::string_view name_of(SweepState state) { return kSweepStateNames.at(static_cast<size_t>(state)); }
std::string_view name_of(FailureClass failure) { return kFailureNames.at(static_cast<size_t>(failure)); }
RunState state_named(std::string_view name) { return named<RunState>(name, kStateNames); }
SweepState sweep_state_named(std::string_view name) { return named<SweepState>(name, kSweepStateNames); }
FailureClass failure_named(std::string_view name) { return named<FailureClass>(name, kFailureNames); }

std::string text_of(const StateCounts& counts) {
  std::vector<std::string> parts;
  for (const auto& [state, runs] : counts) parts.push_back(fmt::format("{} {}", runs, name_of(state)));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string origin_reason(RunState state) {
  const char* what = state == RunState::kFailed      ? "has failed"
                     : state == RunState::kHeld      ? "is held"
                     : state == RunState::kCancelled ? "was cancelled"
                                                     : "waits for its data";
  return std::string(kOrigin) + what;
}

bool is_legal(RunState from, RunState to) {
  return std::any_of(std::begin(kLegalMoves), std::end(kLegalMoves),
                     [&](const Move& move) { return move.from == from && move.to == to; });
}

bool has_result(RunState state) { return state == RunState::kDone || state == RunState::kDiverged; }

bool is_inactive(RunState state) {
  return state != RunState::kQueued && state != RunState::kRunning && state != RunState::kWaitingData;
}

}  // namespace tearless::harness
