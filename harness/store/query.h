// SQL of people. For this room only.
#pragma once

#include <string>

#include "harness/store/store.h"

namespace tearless::harness {

/// The answer to one statement that reads. A blob comes as SQLite writes one (x'00ff'). UserError for several
/// statements, for none, and for all that could change the database or make a file (ATTACH, VACUUM INTO, most PRAGMAs).
QueryResult ask(const SQLite::Database& database, const std::string& sql);

}  // namespace tearless::harness
