// Wall-clock time for timestamps, and a steady clock for durations. No result depends on them.
#pragma once

#include <string>

namespace tearless {

/// The current time in UTC, "2026-01-31T12:00:00Z".
std::string utc_now();

/// Seconds of a clock that is never set.
double steady_seconds();

}  // namespace tearless
