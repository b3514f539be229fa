#include "harness/results/states_text.h"

#include <fmt/format.h>

#include <initializer_list>

namespace tearless::harness {

std::string text_of(const RunCounts& counts) {
  using enum RunState;
  std::string text;
  for (const std::optional<RunState> state : std::initializer_list<std::optional<RunState>>{
           kDone, kDiverged, kFailed, kRunning, kQueued, kHeld, kWaitingData, kCancelled, std::nullopt}) {
    const auto found = counts.find(state);
    if (found == counts.end()) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", found->second, state ? name_of(*state) : "not started");
  }
  return text;
}

}  // namespace tearless::harness
