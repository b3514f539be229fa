#include "harness/store/checksums.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/format.h>
#include <sqlite3.h>

#include <bit>
#include <charconv>

#include "base/hash.h"
#include "harness/store/database.h"

namespace tearless::harness {
namespace {

constexpr const char* kTables[] = {"runs", "attempts", "results", "sweeps", "sweep_runs"};

// Appends type, size and bytes, so that no two rows have the same text.
void append(std::string& text, sqlite3_value* value) {
  const int type = sqlite3_value_type(value);
  const auto* bytes = static_cast<const char*>(sqlite3_value_blob(value));
  const std::string_view as_text(bytes, static_cast<size_t>(sqlite3_value_bytes(value)));
  // SQLite's text of a real number has 15 digits.
  const std::string all = type == SQLITE_FLOAT ? fmt::format("{}", sqlite3_value_double(value)) : std::string(as_text);
  text += fmt::format("{} {} {}", type, all.size(), all);
}

// xor_row(sum, column, …): the exclusive or of `sum` and the hash of the row. Adding a row twice removes it.
void xor_row(sqlite3_context* context, int count, sqlite3_value** values) {
  std::string row;
  for (int i = 1; i < count; ++i) append(row, values[i]);
  const std::string digits = sha256(row);
  uint64_t hash = 0;
  std::from_chars(digits.data(), digits.data() + 16, hash, 16);
  sqlite3_result_int64(context, sqlite3_value_int64(values[0]) ^ static_cast<int64_t>(hash));
}

void add_function(SQLite::Database& database) {
  database.createFunction("xor_row", /*any number of arguments*/ -1, /*deterministic*/ true, nullptr, xor_row);
}

// "NEW.number, NEW.id" and so on, with `prefix` "NEW.".
std::string columns_of(SQLite::Database& database, const std::string& table, const std::string& prefix) {
  SQLite::Statement column(database, "SELECT name FROM pragma_table_info(?)");
  column.bind(1, table);
  std::string columns;
  while (column.executeStep()) columns += (columns.empty() ? "" : ", ") + prefix + column.getColumn(0).getString();
  return columns;
}

bool is_changed(SQLite::Database& database, const std::string& table) {
  // Queries find rows by the indices, the sum below by the table.
  if (database.execAndGet(fmt::format("PRAGMA integrity_check({})", table)).getString() != "ok") return true;
  int64_t sum = 0;
  SQLite::Statement row(database, fmt::format("SELECT xor_row(0, {}) FROM {}", columns_of(database, table, ""), table));
  while (row.executeStep()) sum ^= row.getColumn(0).getInt64();
  SQLite::Statement recorded(database, "SELECT value FROM checksums WHERE name = ?");
  recorded.bind(1, table);
  return !recorded.executeStep() || recorded.getColumn(0).getInt64() != sum;
}

}  // namespace

void keep_checksums(SQLite::Database& database) {
  add_function(database);
  database.exec("PRAGMA recursive_triggers = ON");  // else a row that REPLACE deletes would stay in the sum
  for (const std::string table : kTables) {
    const std::string before = columns_of(database, table, "OLD."), after = columns_of(database, table, "NEW.");
    const auto on = [&](const char* event, const std::string& sum) {
      database.exec(
          fmt::format("CREATE TEMP TRIGGER {0}_{1} AFTER {1} ON main.{0} BEGIN "
                      "UPDATE checksums SET value = {2} WHERE name = '{0}'; END",
                      table, event, sum));
    };
    on("INSERT", fmt::format("xor_row(value, {})", after));
    on("DELETE", fmt::format("xor_row(value, {})", before));
    on("UPDATE", fmt::format("xor_row(xor_row(value, {}), {})", before, after));
  }
}

std::vector<std::string> changed_tables(SQLite::Database& database) {
  try {
    add_function(database);
    const SQLite::Transaction one_state(database, SQLite::TransactionBehavior::DEFERRED);
    std::vector<std::string> changed;
    for (const std::string table : kTables) {
      if (is_changed(database, table)) changed.push_back(table);
    }
    return changed;
  } catch (const SQLite::Exception& damage) {
    refuse_unusable(database.getFilename(), damage);
  }
}

int64_t sealed_with(int64_t seal, const MetricLine& line) {
  auto hash = static_cast<uint64_t>(seal);
  // Each step is a bijection of `hash`: one value that is another always gives another seal.
  const auto mix = [&hash](uint64_t bits) {
    hash = (hash ^ bits) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
  };
  mix(static_cast<uint64_t>(line.position));
  mix(static_cast<uint64_t>(line.step));
  mix(std::bit_cast<uint64_t>(line.value + 0.0));  // SQLite keeps no sign of a zero
  for (const char c : line.name) mix(static_cast<unsigned char>(c));
  return static_cast<int64_t>(hash);
}

}  // namespace tearless::harness
