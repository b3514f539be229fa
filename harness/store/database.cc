#include "harness/store/database.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/ranges.h>
#include <sqlite3.h>

#include <algorithm>
#include <map>
#include <new>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/network_disk.h"
#include "base/words.h"
#include "harness/store/checksums.h"
#include "harness/store/schema_sql.h"
#include "harness/store/store.h"
#include "harness/store/vfs.h"
#include "harness/store/views_sql.h"
#include "harness/store/workspace_format.h"

namespace tearless::harness {
namespace fs = std::filesystem;
namespace {

/// The root of the workspace whose database this is.
fs::path root_of(const fs::path& database) { return root_of_index(database.parent_path()); }

// WAL needs memory shared between processes, and flock is unreliable on network file systems: concurrent access could
// corrupt the database.
void refuse_network(const fs::path& folder) {
  if (!is_on_network(folder)) return;
  fail(
      "{} lies on a network file system, where SQLite's locks are not reliable; set XDG_STATE_HOME to a folder on a "
      "local disk, or choose a workspace there (--workspace)",
      folder.string());
}

// Of a workspace of this format (require_usable()).
void require_version(const fs::path& file, int version) {
  if (version == kDatabaseFormat) return;
  fail(
      "{} is of another build of tearless, or damaged (user_version {} in place of {}); rebuild it from the run "
      "folders: {}",
      file.string(), version, kDatabaseFormat, rebuild_command(root_of(file)));
}

struct Schema {
  std::set<std::string> columns;             // of every table: "runs.id" and so on
  std::map<std::string, std::string> views;  // name → CREATE VIEW …
};

Schema schema_of(SQLite::Database& database) {
  Schema schema;
  SQLite::Statement column(database,
                           "SELECT m.name || '.' || c.name FROM sqlite_schema m, pragma_table_info(m.name) c "
                           "WHERE m.type = 'table'");
  while (column.executeStep()) schema.columns.insert(column.getColumn(0).getString());
  SQLite::Statement view(database, "SELECT name, sql FROM sqlite_schema WHERE type = 'view' ORDER BY rowid");
  while (view.executeStep()) schema.views[view.getColumn(0).getString()] = view.getColumn(1).getString();
  return schema;
}

const Schema& schema_of_this_build() {
  static const Schema ours = [] {
    SQLite::Database model(":memory:", SQLite::OPEN_READWRITE);
    model.exec(kSchema);
    model.exec(kViews);
    return schema_of(model);
  }();
  return ours;
}

// user_version alone does not identify the schema: a draft of it, or another program's file, may have the same number.
void refuse_foreign(const fs::path& file, SQLite::Database& database) {
  const std::set<std::string> present = schema_of(database).columns;
  for (const std::string& column : schema_of_this_build().columns) {
    if (present.contains(column)) continue;
    fail("{} is not a database of this tearless (it lacks {}); rebuild it from the run folders: {}", file.string(),
         column, rebuild_command(root_of(file)));
  }
}

// A database of an earlier build of this format has other views.
void replace_views(SQLite::Database& database) {
  const std::map<std::string, std::string>& ours = schema_of_this_build().views;
  const std::map<std::string, std::string> present = schema_of(database).views;
  if (std::includes(present.begin(), present.end(), ours.begin(), ours.end())) return;
  SQLite::Transaction replacement(database);
  for (const auto& [name, text] : ours) database.exec("DROP VIEW IF EXISTS " + name);
  database.exec(kViews);
  replacement.commit();
}

// A reader cannot replace views: it hides them.
void hide_views(SQLite::Database& database) {
  constexpr std::string_view kCreate = "CREATE VIEW";
  for (const auto& [name, text] : schema_of_this_build().views) {
    database.exec("CREATE TEMP VIEW" + text.substr(kCreate.size()));
  }
}

// A process that was killed while it left WAL mode leaves a journal. No connection can read before one that may write
// has rolled it back. Does nothing while the journal belongs to a living process.
void roll_back_what_was_interrupted(const fs::path& file) {
  std::error_code unreachable;
  if (!fs::exists(file.string() + "-journal", unreachable)) return;
  install_fault_vfs();
  try {
    SQLite::Database database(file.string(), SQLite::OPEN_READWRITE, kBusyMilliseconds);
    database.execAndGet("PRAGMA user_version");
  } catch (const SQLite::Exception&) {  // the reader that follows says what is wrong
  }
}

}  // namespace

void refuse_unusable(const fs::path& file, const SQLite::Exception& error) {
  const std::string_view said = error.what();
  switch (error.getErrorCode() & 0xFF) {  // the primary code; higher bits are SQLite's extended code
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      fail("cannot read the database {}: {}; if it is damaged, rebuild it from the run folders: {}", file.string(),
           said, rebuild_command(root_of(file)));
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      fail("the database {} is in use by another program ({}); wait until that has ended, and try again", file.string(),
           said);
    case SQLITE_FULL:
      throw MachineError(
          fmt::format("the disk of the database {} is full; free some space and try again", file.string()));
    case SQLITE_IOERR:
      throw MachineError(
          fmt::format("the disk of the database {} fails ({}); check the kernel's log (dmesg), or copy the workspace "
                      "to another disk",
                      file.string(), said));
    case SQLITE_CANTOPEN:
      fail("cannot open the database {} ({}); check that path, and the permissions of its folder", file.string(), said);
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      fail("the database {} cannot be written ({}); check its permissions, or choose another --workspace",
           file.string(), said);
    case SQLITE_NOMEM:
      throw std::bad_alloc();
    default:  // the statements in this program are correct, so the schema must be damaged
      fail("cannot use the database {}: {}; if it is damaged, rebuild it from the run folders: {}", file.string(), said,
           rebuild_command(root_of(file)));
  }
}

std::unique_ptr<SQLite::Database> open_for_writing(const fs::path& file) {
  refuse_network(file.parent_path());
  install_fault_vfs();
  try {
    auto database = std::make_unique<SQLite::Database>(file.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE,
                                                       kBusyMilliseconds);
    const int version = database->execAndGet("PRAGMA user_version").getInt();
    if (version != 0) require_version(file, version);
    database->exec("PRAGMA journal_mode = WAL");
    database->exec("PRAGMA synchronous = FULL");
    if (version == 0) {
      SQLite::Transaction creation(*database);
      database->exec(kSchema);
      database->exec(fmt::format("PRAGMA user_version = {}", kDatabaseFormat));
      creation.commit();
    }
    database->exec("PRAGMA foreign_keys = ON");
    refuse_foreign(file, *database);
    replace_views(*database);
    keep_checksums(*database);
    return database;
  } catch (const SQLite::Exception& error) {
    refuse_unusable(file, error);
  }
}

std::unique_ptr<SQLite::Database> open_for_reading(const fs::path& file, int busy_milliseconds) {
  // SQLite accepts an empty file as a new database. Here it means that the database was lost.
  std::error_code unknown;
  if (fs::file_size(file, unknown) == 0) {
    fail("the database {} is empty; if anything was run here, rebuild it from the run folders: {}", file.string(),
         rebuild_command(root_of(file)));
  }
  roll_back_what_was_interrupted(file);
  try {
    auto database = std::make_unique<SQLite::Database>(file.string(), SQLite::OPEN_READONLY, busy_milliseconds);
    const int version = database->execAndGet("PRAGMA user_version").getInt();
    if (version == 0) {  // another program's file, or a damaged one
      fail("{} has no tearless schema; rebuild it from the run folders: {}", file.string(),
           rebuild_command(root_of(file)));
    }
    require_version(file, version);
    refuse_foreign(file, *database);
    hide_views(*database);
    return database;
  } catch (const SQLite::Exception& error) {
    refuse_unusable(file, error);
  }
}

std::vector<std::string> damage_in(const fs::path& file) {
  std::vector<std::string> damage;
  roll_back_what_was_interrupted(file);
  try {
    SQLite::Database database(file.string(), SQLite::OPEN_READONLY, kBusyMilliseconds);
    SQLite::Statement row(database, "PRAGMA integrity_check(10)");
    while (row.executeStep()) damage.push_back(row.getColumn(0).getString());
    if (damage == std::vector<std::string>{"ok"}) damage.clear();
  } catch (const SQLite::Exception& error) {
    damage.emplace_back(error.what());
  }
  return damage;
}

std::unique_ptr<SQLite::Database> refuse_changed(std::unique_ptr<SQLite::Database> database) {
  const std::vector<std::string> changed = changed_tables(*database);
  if (changed.empty()) return database;
  fail_changed(*database, fmt::format("{}", fmt::join(changed, ", ")));
}

void fail_changed(const SQLite::Database& database, const std::string& what) {
  const fs::path file = database.getFilename();
  fail("{} no longer holds what was recorded ({}); to see what is wrong and what to do: tearless verify --workspace {}",
       file.string(), what, root_of(file).string());
}

void leave_wal_mode(SQLite::Database& database) {
  database.setBusyTimeout(100);
  try {
    database.exec("PRAGMA journal_mode = DELETE");
  } catch (const SQLite::Exception&) {  // the write-ahead log stays; the next writer reads it
  }
}

}  // namespace tearless::harness
