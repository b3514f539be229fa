#include "engine/train/phase.h"

#include <array>
#include <string_view>

#include "base/error.h"
#include "base/fault.h"
#include "base/files.h"

namespace tearless::engine {

void write_phase(const RunDirectory& run, int64_t attempt, Phase phase) {
  constexpr auto kWords = std::to_array<std::string_view>({"preparing", "training", "evaluating", "publishing"});
  const std::string_view word = kWords.at(static_cast<size_t>(phase));
  fault::point(fault::kPhase, word.data());
  try {
    replace_unsynced(run.attempt(attempt) / "phase", word);
  } catch (const UserError&) {
  }
}

}  // namespace tearless::engine
