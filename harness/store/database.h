// Opening the SQLite file: who may, how, and which schema it holds. For this room only.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/lock_file.h"
#include "harness/runs/workspace.h"

namespace SQLite {
class Database;
class Exception;
}  // namespace SQLite

namespace tearless::harness {

/// The lock of the one writer. UserError where another process has it, naming its pid.
LockFile lock_for_writing(const Workspace& workspace);

/// What to type where the database `file` is lost or damaged.
std::string rebuild_command(const std::filesystem::path& file);

/// UserError: what SQLite says against using `file`, and what to do about that: damage, another program's lock, a full
/// or failing disk and missing permissions each want something else.
[[noreturn]] void refuse_unusable(const std::filesystem::path& file, const SQLite::Exception& error);

/// Makes the file where there is none and runs the migrations that it lacks, each in a transaction. The caller holds
/// the writer's lock. UserError on a network file system, for a newer schema, and for a file that is no database.
std::unique_ptr<SQLite::Database> open_for_writing(const std::filesystem::path& file);

/// UserError for another schema than this program's. The file must exist; nothing is made or changed. A lock that
/// others hold is waited for that long.
inline constexpr int kBusyMilliseconds = 10'000;  // a reader's shared lock while the journal mode changes
std::unique_ptr<SQLite::Database> open_for_reading(const std::filesystem::path& file,
                                                   int busy_milliseconds = kBusyMilliseconds);

/// What SQLite finds wrong with the file, a sentence each; empty where it is sound. Reads all of it, changes nothing.
std::vector<std::string> damage_in(const std::filesystem::path& file);

/// UserError where a look that takes no more than a tenth of a second finds the file damaged.
void refuse_damaged(SQLite::Database& database);

/// Ends WAL mode, so that the file at rest stands alone and readers need no side files. Silent where a reader is in the
/// way.
void settle(SQLite::Database& database);

}  // namespace tearless::harness
