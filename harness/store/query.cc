#include "harness/store/query.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/error.h"
#include "harness/store/database.h"

namespace tearless::harness {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 10> kReadingPragmas = {
    "table_info",  "table_xinfo",      "table_list",    "index_list",    "index_info",
    "index_xinfo", "foreign_key_list", "database_list", "function_list", "compile_options"};

/// The authorizer callback: SQLite calls it for each action of a statement it compiles. A read-only connection is not
/// enough, because ATTACH and VACUUM INTO create other files. Tells `reads_metrics`, a bool.
int allow_reading(void* reads_metrics, int action, const char* name, const char*, const char*, const char*) {
  switch (action) {
    case SQLITE_READ:
      if (std::string_view(name).starts_with("metric")) *static_cast<bool*>(reads_metrics) = true;
      return SQLITE_OK;
    case SQLITE_SELECT:
    case SQLITE_RECURSIVE:
    case SQLITE_FUNCTION:
      return SQLITE_OK;
    case SQLITE_PRAGMA: {
      const bool reads = std::find(kReadingPragmas.begin(), kReadingPragmas.end(), name) != kReadingPragmas.end();
      return reads ? SQLITE_OK : SQLITE_DENY;
    }
    default:
      return SQLITE_DENY;
  }
}

using Prepared = std::unique_ptr<sqlite3_stmt, decltype(&sqlite3_finalize)>;

[[noreturn]] void refuse_writing() { fail("`tearless sql` only reads; write the query as a SELECT"); }

[[noreturn]] void refuse(const SQLite::Database& database) {
  const SQLite::Exception error(database.getHandle());
  switch (error.getErrorCode()) {
    case SQLITE_ERROR:
    case SQLITE_RANGE:
    case SQLITE_TOOBIG:
    case SQLITE_MISMATCH:
      fail("SQLite refuses the query: {}; `tearless sql` without a query lists the views and their columns",
           error.what());
    case SQLITE_AUTH:
    case SQLITE_READONLY:
      refuse_writing();
    default:
      refuse_unusable(database.getFilename(), error);
  }
}

/// Compiles the first statement of `sql` and removes it from `sql`; null if only white space and comments are left.
Prepared prepare(const SQLite::Database& database, std::string_view& sql) {
  sqlite3_stmt* statement = nullptr;
  const char* rest = nullptr;
  const int code =
      sqlite3_prepare_v2(database.getHandle(), sql.data(), static_cast<int>(sql.size()), &statement, &rest);
  if (code != SQLITE_OK) refuse(database);
  sql.remove_prefix(static_cast<size_t>(rest - sql.data()));
  return {statement, sqlite3_finalize};
}

json value_of(sqlite3_stmt* row, int column) {
  const auto bytes = [&](const void* begin) {
    return std::string_view(static_cast<const char*>(begin), static_cast<size_t>(sqlite3_column_bytes(row, column)));
  };
  switch (sqlite3_column_type(row, column)) {
    case SQLITE_NULL:
      return nullptr;
    case SQLITE_INTEGER:
      return sqlite3_column_int64(row, column);
    case SQLITE_FLOAT:
      return sqlite3_column_double(row, column);
    case SQLITE_BLOB: {
      std::string hex = "x'";
      for (const char byte : bytes(sqlite3_column_blob(row, column))) {
        hex += fmt::format("{:02x}", static_cast<unsigned char>(byte));
      }
      return hex + "'";
    }
    default:
      return bytes(sqlite3_column_text(row, column));
  }
}

}  // namespace

QueryResult ask(const SQLite::Database& database, const std::string& sql, const std::function<void()>& before_metrics) {
  bool reads_metrics = false;
  sqlite3_set_authorizer(database.getHandle(), allow_reading, &reads_metrics);
  const std::unique_ptr<sqlite3, void (*)(sqlite3*)> until_the_end(
      database.getHandle(), [](sqlite3* handle) { sqlite3_set_authorizer(handle, nullptr, nullptr); });
  std::string_view rest = sql;
  const Prepared statement = prepare(database, rest);
  if (!statement) fail("the query is empty; `tearless sql` without a query lists the views and their columns");
  while (!rest.empty()) {
    const size_t before = rest.size();
    if (prepare(database, rest)) fail("the query is several statements; send them one at a time");
    if (rest.size() == before) break;
  }
  if (sqlite3_stmt_readonly(statement.get()) == 0) refuse_writing();  // VACUUM, of which no authorizer is asked
  if (reads_metrics) before_metrics();
  QueryResult result;
  const int columns = sqlite3_column_count(statement.get());
  for (int i = 0; i < columns; ++i) result.columns.emplace_back(sqlite3_column_name(statement.get(), i));
  int code;
  while ((code = sqlite3_step(statement.get())) == SQLITE_ROW) {
    std::vector<json>& values = result.rows.emplace_back();
    for (int i = 0; i < columns; ++i) values.push_back(value_of(statement.get(), i));
  }
  if (code != SQLITE_DONE) refuse(database);
  return result;
}

}  // namespace tearless::harness
