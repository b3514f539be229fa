// How many runs are in each state, for people.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "harness/runs/states.h"

namespace tearless::harness {

/// State → runs; unset: not started.
using RunCounts = std::map<std::optional<RunState>, int64_t>;

/// "12 done, 2 diverged, 3 not started": results first.
std::string text_of(const RunCounts& counts);

}  // namespace tearless::harness
