// The clock on the wall, as records write it. No result depends on it.
#pragma once

#include <string>

namespace tearless {

/// UTC, as in "2026-01-31T12:00:00Z".
std::string utc_now();

}  // namespace tearless
