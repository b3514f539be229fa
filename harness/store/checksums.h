// Checksums over the rows of the database, so that a value that was changed, or a row that is gone, is noticed before
// anything is printed of it. Internal to harness/store.
//
// The table `checksums` has one number for each table whose rows users see: the exclusive or of the hashes of its rows.
// Triggers keep it in the transaction of each write. They belong to the connection of open_for_writing(), not to the
// schema: what another program or the disk changes is not accounted for. Metrics are too many to be looked at before
// each command: each run has a seal of its own metrics, and who reads them compares.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/runs/attempt_files.h"

namespace SQLite {
class Database;
}

namespace tearless::harness {

/// From now on, what this connection writes is accounted for.
void keep_checksums(SQLite::Database& database);

/// The tables whose rows or indices are not as they were recorded. UserError if the database cannot be read.
std::vector<std::string> changed_tables(SQLite::Database& database);

/// The seal of a run's metrics with one more line, in the order of the file. That of none is 0.
int64_t sealed_with(int64_t seal, const MetricLine& line);

}  // namespace tearless::harness
