// `tearless sql QUERY`: the store's views for people and scripts; reading only (docs/sql.md).
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "harness/commands.h"
#include "harness/store/store.h"

namespace tearless::harness {
namespace {

using nlohmann::json;

constexpr const char* kListViews =
    "SELECT m.name AS view, group_concat(c.name, ', ') AS columns FROM sqlite_schema m, pragma_table_info(m.name) c "
    "WHERE m.type = 'view' GROUP BY m.name";

std::string cell_text(const json& value) {
  if (value.is_null()) return "";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

void print_table(const QueryResult& result) {
  std::vector<size_t> widths;
  for (const std::string& column : result.columns) widths.push_back(column.size());
  for (const auto& row : result.rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], cell_text(row[i]).size());
  }
  const auto print = [&](const std::vector<std::string>& cells) {
    std::string line;
    for (size_t i = 0; i < cells.size(); ++i) line += fmt::format("{:<{}}  ", cells[i], widths[i]);
    fmt::print("{}\n", line.substr(0, line.find_last_not_of(' ') + 1));
  };
  print(result.columns);
  for (const auto& row : result.rows) {
    std::vector<std::string> cells;
    for (const json& value : row) cells.push_back(cell_text(value));
    print(cells);
  }
}

void print_json(const QueryResult& result) {
  json rows = json::array();
  for (const auto& row : result.rows) {
    json object = json::object();
    for (size_t i = 0; i < row.size(); ++i) object[result.columns[i]] = row[i];
    rows.push_back(std::move(object));
  }
  fmt::print("{}\n", rows.dump(2, ' ', false, json::error_handler_t::replace));
}

}  // namespace

Action command_sql(CLI::App& app, const Globals& globals) {
  const auto query = std::make_shared<std::string>();
  app.add_option("query", *query, "a SELECT; without one the views and their columns are listed");
  return [query, &globals]() -> int {
    const auto store = Store::open_reader(Workspace(globals.workspace));
    if (!store) fail("there is no database in {}; `tearless run` makes it", globals.workspace.string());
    const QueryResult result = store->query(query->empty() ? kListViews : *query);
    globals.json ? print_json(result) : print_table(result);
    return kOk;
  };
}

}  // namespace tearless::harness
