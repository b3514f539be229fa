// Runs the user's queries of `tearless sql`. Internal to harness/store.
#pragma once

#include <functional>
#include <string>

#include "harness/store/store.h"

namespace tearless::harness {

/// Runs one read-only statement. Blobs are returned as SQL literals (x'00ff'). UserError for an empty text, for several
/// statements, and for anything that could change the database or create a file (ATTACH, VACUUM INTO, most PRAGMAs).
/// `before_metrics`: called first if the statement reads metrics.
QueryResult ask(const SQLite::Database& database, const std::string& sql, const std::function<void()>& before_metrics);

}  // namespace tearless::harness
