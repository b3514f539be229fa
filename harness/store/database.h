// Opens and checks the SQLite file: format and error messages. Internal to harness/store.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace SQLite {
class Database;
class Exception;
}  // namespace SQLite

namespace tearless::harness {

/// Throws a UserError for an SQLite error on `file`: SQLite's message, and advice for the cause (damage, a lock of
/// another program, a full or failing disk, missing permissions). A MachineError for a full or failing disk.
[[noreturn]] void refuse_unusable(const std::filesystem::path& file, const SQLite::Exception& error);

/// Opens the database in WAL mode; creates it if needed. REQUIRES: the caller holds the writer lock. UserError on a
/// network file system, and for a file that is not a database of tearless.
std::unique_ptr<SQLite::Database> open_for_writing(const std::filesystem::path& file);

/// Time to wait for a lock that another process holds, such as a reader's shared lock while the journal mode changes.
inline constexpr int kBusyMilliseconds = 10'000;

/// Opens an existing database read-only and changes nothing. UserError for a file that is not a database of tearless.
std::unique_ptr<SQLite::Database> open_for_reading(const std::filesystem::path& file,
                                                   int busy_milliseconds = kBusyMilliseconds);

/// Runs SQLite's integrity_check on the file. Returns one message for each problem, at most ten; empty if it is intact.
/// Reads the whole file.
std::vector<std::string> damage_in(const std::filesystem::path& file);

/// The same database. UserError if the rows of runs, attempts, results and sweeps are not those that were recorded
/// (checksums.h).
std::unique_ptr<SQLite::Database> refuse_changed(std::unique_ptr<SQLite::Database> database);

/// Throws the UserError for `what` of the database that is not as it was recorded.
[[noreturn]] void fail_changed(const SQLite::Database& database, const std::string& what);

/// Leaves WAL mode, so that the closed database is one file without side files. Does nothing if a reader prevents it.
void leave_wal_mode(SQLite::Database& database);

}  // namespace tearless::harness
