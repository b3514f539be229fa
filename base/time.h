// Wall-clock time for timestamps. No result depends on it.
#pragma once

#include <string>

namespace tearless {

/// The current time in UTC, "2026-01-31T12:00:00Z".
std::string utc_now();

}  // namespace tearless
