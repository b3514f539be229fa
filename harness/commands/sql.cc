// `tearless sql QUERY`: runs a read-only query on the database's views (docs/sql.md).
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/print.h"
#include "harness/commands/commands.h"
#include "harness/console/columns.h"
#include "harness/console/csv_option.h"
#include "harness/store/store.h"

namespace tearless::harness {
namespace {

using nlohmann::json;

struct SqlOptions {
  std::string query;
  bool csv = false;
  Formulas formulas = Formulas::kAsTheyAre;
};

constexpr const char* kListViews =
    "SELECT m.name AS view, group_concat(c.name, ', ') AS columns FROM sqlite_schema m, pragma_table_info(m.name) c "
    "WHERE m.type = 'view' GROUP BY m.name";

std::vector<std::vector<std::string>> lines_of(const QueryResult& result) {
  std::vector<std::vector<std::string>> lines = {result.columns};
  for (const auto& row : result.rows) {
    std::vector<std::string>& line = lines.emplace_back();
    for (const json& value : row) line.push_back(value_text(value));
  }
  return lines;
}

void print_as_json(const QueryResult& result) {
  const std::vector<std::string> names = distinct_names(result.columns);
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
  const auto options = std::make_shared<SqlOptions>();
  app.add_option("query", options->query, "a SELECT; without one the views and their columns are listed");
  app.add_flag("--csv", options->csv, "print CSV with a line of names");
  add_formulas_option(app, options->formulas);
  return [options, &globals]() -> int {
    if (options->csv && globals.json) fail("--json and --csv contradict each other; omit one of them");
    require_csv(options->formulas, options->csv, "--csv");
    const auto store = Store::open_reader(Workspace(globals.workspace));
    if (!store) fail("there is no database in {}; `tearless run` creates it", globals.workspace.string());
    const QueryResult result = store->query(options->query.empty() ? kListViews : options->query);
    if (globals.json) {
      print_as_json(result);
    } else {
      options->csv ? print_csv(lines_of(result), options->formulas) : print_columns(lines_of(result));
    }
    return kOk;
  };
}

}  // namespace tearless::harness
