// Wall-clock time for timestamps, and a steady clock for durations. No result depends on them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tearless {

/// The current time in UTC, "2026-01-31T12:00:00Z".
std::string utc_now();

/// A text of utc_now() in local time, to the minute: "2026-01-31 13:00"; any other text as it is.
std::string local_time(const std::string& utc);

/// Seconds since 1970 of a text of utc_now(); nullopt for any other text.
std::optional<int64_t> seconds_of_utc(const std::string& text);

/// Seconds of a clock that is never set.
double steady_seconds();

}  // namespace tearless
