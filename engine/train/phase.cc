#include "engine/train/phase.h"

#include <array>
#include <string_view>

#include "base/error.h"
#include "base/fault.h"
#include "base/files.h"

namespace tearless::engine {

namespace {

std::optional<Phase> newest;

}  // namespace

std::optional<Phase> phase_of_process() { return newest; }

std::string out_of_memory(std::optional<Phase> phase) {
  if (phase == Phase::kPreparing) return "out of memory while the corpus is prepared; use a smaller corpus or model";
  if (phase == Phase::kTraining) return "out of memory; use a smaller train.batch.tokens or model";
  if (phase == Phase::kEvaluating) {
    return "out of memory while dev or test is scored; split their longest lines, or use a smaller model or, of "
           "translation, a smaller decode.batch_tokens or decode.beam";
  }
  return "out of memory; end other programs, or use a machine with more of it";
}

void write_phase(const RunDirectory& run, int64_t attempt, Phase phase) {
  newest = phase;
  constexpr auto kWords = std::to_array<std::string_view>({"preparing", "training", "evaluating", "publishing"});
  const std::string_view word = kWords.at(static_cast<size_t>(phase));
  fault::point(fault::kPhase, word.data());
  try {
    replace_unsynced(run.attempt(attempt) / "phase", word);
  } catch (const UserError&) {
  }
}

}  // namespace tearless::engine
