// The work that an attempt lost when it ended without a result: the updates since its last checkpoint, which the next
// attempt makes again. It is known as far as the program had reported it in metrics.jsonl.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "base/run_directory.h"

namespace tearless::harness {

struct LostWork {
  int64_t updates = 0;
  double seconds = 0;  // that the attempt had needed for them, by its mean speed
};

/// `before` and `after`: how far the run was when the attempt began, and when it had ended. `started`: when it began,
/// seconds since 1970. Pure.
LostWork lost_work(const WorkDone& before, const WorkDone& after, double started);

/// Of an attempt that ended without a result, from the run's folder. The same before and after the next attempt, which
/// cuts metrics.jsonl, has begun. Unset if it is not known, as in a copy of results alone.
std::optional<LostWork> lost_work_of(const RunDirectory& run, int64_t attempt);

/// "120 updates, 0:35".
std::string text_of(const LostWork& lost);
nlohmann::json to_json(const LostWork& lost);

}  // namespace tearless::harness
