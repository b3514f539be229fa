// `tearless sql QUERY`: runs a read-only query on the database's views (docs/sql.md).
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "harness/commands.h"
#include "harness/output.h"
#include "harness/store/store.h"
#include "harness/table/table.h"

namespace tearless::harness {
namespace {

using nlohmann::json;

constexpr const char* kListViews =
    "SELECT m.name AS view, group_concat(c.name, ', ') AS columns FROM sqlite_schema m, pragma_table_info(m.name) c "
    "WHERE m.type = 'view' GROUP BY m.name";

std::string cell_text(const json& value) {
  if (value.is_null()) return "";
  if (value.is_number_float()) return fmt::format("{}", value.get<double>());  // dump() prints inf as null
  return value.is_string() ? printable(value.get<std::string>()) : value.dump();
}

void print_table(const QueryResult& result) {
  std::vector<std::vector<std::string>> lines(1);
  for (const std::string& column : result.columns) lines[0].push_back(printable(column));
  for (const auto& row : result.rows) {
    std::vector<std::string>& line = lines.emplace_back();
    for (const json& value : row) line.push_back(cell_text(value));
  }
  std::vector<size_t> widths(result.columns.size());
  for (const auto& line : lines) {
    for (size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], display_width(line[i]));
  }
  for (const auto& line : lines) {
    std::string text;
    for (size_t i = 0; i < line.size(); ++i) text += fmt::format("{:<{}}  ", line[i], widths[i]);
    print("{}\n", text.substr(0, text.find_last_not_of(' ') + 1));
  }
}

/// Makes column names unique, because a JSON object holds each key once: the second column `run` becomes `run:2`.
std::vector<std::string> distinct(std::vector<std::string> columns) {
  std::set<std::string> taken(columns.begin(), columns.end());
  std::set<std::string> seen;
  for (std::string& column : columns) {
    if (seen.insert(column).second) continue;
    int number = 2;
    while (taken.contains(fmt::format("{}:{}", column, number))) ++number;
    column = *taken.insert(fmt::format("{}:{}", column, number)).first;
  }
  return columns;
}

void print_as_json(const QueryResult& result) {
  const std::vector<std::string> names = distinct(result.columns);
  json rows = json::array();
  for (const auto& row : result.rows) {
    json object = json::object();
    for (size_t i = 0; i < row.size(); ++i) object[names[i]] = row[i];
    rows.push_back(std::move(object));
  }
  print_json(rows);
}

}  // namespace

Action command_sql(CLI::App& app, const Globals& globals) {
  const auto query = std::make_shared<std::string>();
  app.add_option("query", *query, "a SELECT; without one the views and their columns are listed");
  return [query, &globals]() -> int {
    const auto store = Store::open_reader(Workspace(globals.workspace));
    if (!store) fail("there is no database in {}; `tearless run` creates it", globals.workspace.string());
    const QueryResult result = store->query(query->empty() ? kListViews : *query);
    globals.json ? print_as_json(result) : print_table(result);
    return kOk;
  };
}

}  // namespace tearless::harness
