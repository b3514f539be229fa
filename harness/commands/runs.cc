// `tearless runs [SWEEP | RUN …]`: one line a run, for people and for programs. Results are compared with the run
// folders.
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/print.h"
#include "base/utf8.h"
#include "base/words.h"
#include "harness/cells/scores.h"
#include "harness/commands/commands.h"
#include "harness/commands/run_conditions.h"
#include "harness/commands/run_list.h"
#include "harness/console/columns.h"
#include "harness/console/csv_option.h"
#include "harness/console/screen.h"
#include "harness/plan/grid_state.h"
#include "harness/results/result_set.h"
#include "harness/table/table.h"

namespace tearless::harness {
namespace {

using nlohmann::json;

// The fields that people see, and those of CSV.
constexpr std::string_view kFieldsForPeople[] = {"run", "place", "seed", "state", "progress"};
constexpr std::string_view kFieldsOfCsv[] = {"run",    "sweep", "place",   "seed",   "state", "class",
                                             "reason", "step",  "updates", "resume", "stale", "mixed"};

struct RunsOptions {
  std::vector<std::string> words;
  std::vector<std::string> where;
  std::string sort;                    // a column, after "-" descending; "": as the sweeps have the runs
  std::optional<std::string> columns;  // names or patterns, separated by commas; unset: see default_columns()
  std::optional<std::string> scores;   // names or patterns, separated by commas; unset: see chosen_scores()
  std::string by = "run";
  bool settings = false;
  bool derived = false;
  bool csv = false;
  Formulas formulas = Formulas::kAsTheyAre;
};

Duplicates duplicates_of(const RunsOptions& options) {
  if (options.by == "run") return Duplicates::kNewest;
  if (options.by == "sweep") return Duplicates::kAll;
  fail("--by {} is not known; it must be run (a line for each run) or sweep (a line for each sweep and run)",
       options.by);
}

std::vector<std::string> names_in_list(const std::string& text) {
  std::vector<std::string> names;
  std::istringstream list(text);
  for (std::string name; std::getline(list, name, ',');) {
    if (!name.empty()) names.push_back(name);
  }
  return names;
}

bool differs(const ColumnOfRuns& column, const Rows& rows) {
  return std::any_of(rows.begin(), rows.end(),
                     [&](const Row& row) { return column.value(row) != column.value(rows.front()); });
}

// People see the scores of the test set unless they ask for others, programs all of them.
Columns chosen_scores(const RunList& list, const RunsOptions& options, bool all) {
  std::map<std::string, ColumnOfRuns> present;
  std::set<std::string> names;
  for (const ColumnOfRuns& column : list.columns()) {
    if (column.kind == ColumnKind::kScore) present.emplace(*names.insert(column.key).first, column);
  }
  Columns chosen;
  if (!options.scores && names.empty()) return chosen;
  const bool has_default =
      std::ranges::any_of(names, [](const std::string& name) { return name.starts_with("test."); });
  const std::string shown = options.scores.value_or(all || !has_default ? "*" : "test.*");
  for (const std::string& score : names_matching(names_in_list(shown), names)) {
    const auto known = present.find(score);
    chosen.push_back(known == present.end() ? score_column(score) : known->second);
  }
  return chosen;
}

Columns different_settings(const RunList& list) {
  Columns chosen;
  std::copy_if(list.columns().begin(), list.columns().end(), std::back_inserter(chosen),
               [&](const auto& column) { return column.kind == ColumnKind::kSetting && differs(column, list.rows()); });
  return chosen;
}

Columns default_columns(const RunList& list, const RunsOptions& options) {
  Columns columns, labels;
  std::copy_if(list.columns().begin(), list.columns().end(), std::back_inserter(labels),
               [](const auto& column) { return column.kind == ColumnKind::kLabel; });
  const auto append = [&](const Columns& more) { columns.insert(columns.end(), more.begin(), more.end()); };
  const auto append_field = [&](std::string_view name) {
    append({*std::find_if(list.columns().begin(), list.columns().end(),
                          [&](const ColumnOfRuns& column) { return column.key == name; })});
  };
  if (options.csv) {
    for (const std::string_view name : kFieldsOfCsv) append_field(name);
    append(labels);
  } else {
    const auto sweep_of = [](const Row& row) { return row.sweep_id(); };
    const Rows& rows = list.rows();
    if (std::any_of(rows.begin(), rows.end(), [&](const auto& row) { return sweep_of(row) != sweep_of(rows[0]); })) {
      append_field("sweep");
    }
    for (const std::string_view name : kFieldsForPeople) {
      if (name == "seed") append(labels);
      append_field(name);
    }
  }
  append(chosen_scores(list, options, /*all=*/options.csv));
  append(different_settings(list));
  return columns;
}

// Where the lines are wider than the terminal, removes the columns in which all runs are alike. Returns what these say.
std::string leave_out_constant_columns(std::vector<std::vector<std::string>>& lines, size_t width) {
  if (lines.size() < 3 || width_of(lines) <= width) return "";
  std::vector<std::string> same;
  for (size_t i = lines[0].size(); i-- > 1;) {
    const std::string name = lines[0][i], value = lines[1][i];
    const auto is_alike = [&](const auto& line) { return line[i] == value; };
    if (!std::all_of(lines.begin() + 1, lines.end(), is_alike)) continue;
    for (auto& line : lines) line.erase(line.begin() + static_cast<ptrdiff_t>(i));
    if (!value.empty()) same.insert(same.begin(), name + " " + value);
  }
  return fmt::format("{}", fmt::join(same, ", "));
}

// "norm.kind", of which no other name ends so, is "kind".
void shorten_names(std::vector<std::string>& names) {
  std::map<std::string, int> counts;
  for (const std::string& name : names) ++counts[last_word(name)];
  for (std::string& name : names) {
    if (counts[last_word(name)] == 1) name = last_word(name);
  }
}

void print_lines(const RunList& list, const Columns& columns, const RunsOptions& options) {
  const bool csv = options.csv;
  if (list.rows().empty() && !csv) return;
  constexpr int kDigitsForPeople = 6;
  std::vector<std::vector<std::string>> lines(1);
  for (const ColumnOfRuns& column : columns) lines[0].push_back(column.name);
  for (const Row& row : list.rows()) {
    std::vector<std::string>& line = lines.emplace_back();
    for (const ColumnOfRuns& column : columns) {
      line.push_back(value_text(column.value(row), csv ? 0 : kDigitsForPeople));
    }
  }
  if (csv) return print_csv(lines, options.formulas);
  const bool fits_itself = !options.columns && ::isatty(STDOUT_FILENO) == 1;  // a pipe has no width
  const size_t width = fits_itself ? terminal_size(stdout).columns : 0;
  const std::string same = fits_itself ? leave_out_constant_columns(lines, width) : "";
  if (fits_itself && width_of(lines) > width) shorten_names(lines.front());
  print_columns(std::move(lines), width);
  if (same.empty()) return;
  for (const std::string& line : wrapped(printable("all runs: " + same), width)) print("{}\n", line);
}

json object_of(const Row& row, const Columns& columns, bool with_nulls) {
  json object = json::object();
  for (const ColumnOfRuns& column : columns) {
    if (json value = column.value(row); with_nulls || !value.is_null()) object[column.name] = std::move(value);
  }
  return object;
}

json run_as_json(const RunList& list, const Row& row, const Columns& scores) {
  json shown = json::object();
  for (const ColumnOfRuns& score : scores) {
    if (json value = score.value(row); !value.is_null()) shown[score.key] = std::move(value);
  }
  const RunResult& result = row.result;
  return {{"run", row.run.id},
          {"sweep", row.sweep_id()},
          {"name", row.sweep ? row.sweep->name : ""},
          {"place", row.sweep ? json(row.place) : json()},
          {"coordinates", to_json(row.run.coordinates)},
          {"seed", row.sweep ? json(row.run.seed) : json()},
          {"state", name_of(result.state)},
          {"class", name_of(result.failure)},
          {"reason", result.reason},
          {"step", list.step(row)},
          {"updates", row.run.updates},
          {"resume", result.resume ? json(*result.resume) : json()},
          {"stale", result.stale},
          {"mixed", result.is_mixed()},
          {"scores", std::move(shown)}};
}

void print_as_json(const RunList& list, const std::optional<Columns>& columns, const RunsOptions& options) {
  const Columns scores = chosen_scores(list, options, /*all=*/true), settings = different_settings(list);
  json runs = json::array();
  for (const Row& row : list.rows()) {
    json& run = runs.emplace_back(columns ? object_of(row, *columns, true) : run_as_json(list, row, scores));
    if (options.settings) run["settings"] = object_of(row, settings, false);
  }
  print_json(runs);
}

int list_runs(const RunsOptions& options, const Globals& globals) {
  if (options.csv && globals.json) fail("--json and --csv contradict each other; omit one of them");
  require_csv(options.formulas, options.csv, "--csv");
  if (options.columns && (options.scores || options.settings)) {
    fail("--columns names every column, scores and settings too; omit --{}", options.scores ? "scores" : "settings");
  }
  std::unique_ptr<const Store> store = require_store(globals);
  const Duplicates duplicates = duplicates_of(options);
  const Selection selection = select_or_last(*store, options.words);
  RunList list(selected_rows(std::move(store), selection, duplicates, Read::kResults), options.settings);
  filter(list, options.where);
  if (!options.derived) list.leave_out_derived();
  if (!options.sort.empty()) sort(list, options.sort);
  std::optional<Columns> columns;
  if (options.columns) {
    columns.emplace();
    for (const std::string& pattern : names_in_list(*options.columns)) {
      const Columns found = list.named(pattern, "--columns");
      columns->insert(columns->end(), found.begin(), found.end());
    }
  }
  if (globals.json) {
    print_as_json(list, columns, options);
  } else {
    print_lines(list, columns ? *columns : default_columns(list, options), options);
  }
  return kOk;
}

}  // namespace

Action command_runs(CLI::App& app, const Globals& globals) {
  const auto options = std::make_shared<RunsOptions>();
  app.add_option("what", options->words,
                 "sweeps (ids, names, grid files, last, all) or runs (ids, places, states, axis=label); default: last");
  app.add_option("--where", options->where,
                 "a condition, such as 'test.bleu_13a > 20' or 'state = done': = != < <= > >= on a score, a setting, a "
                 "label or another column (repeat for more, which must all hold)")
      ->allow_extra_args(false);
  app.add_option("--sort", options->sort, "sort by this score, setting, label or other column; -NAME: descending");
  app.add_option("--columns", options->columns,
                 "print these scores, settings, labels and other columns, separated by commas; * stands for any text");
  app.add_option("--scores", options->scores,
                 "names, separated by commas, in which * stands for any text (default: test.*, or all where there is "
                 "none; with --csv and --json all)");
  app.add_flag("--settings", options->settings, "print each setting in which the runs differ, too");
  app.add_flag("--derived", options->derived,
               "list derived runs beside their trained runs, too; their scores are shown with those anyway");
  app.add_option("--by", options->by,
                 "run: each run once, as the newest of these sweeps has it (default); sweep: as each of them has it");
  app.add_flag("--csv", options->csv, "print CSV");
  add_formulas_option(app, options->formulas);
  return [options, &globals] { return list_runs(*options, globals); };
}

}  // namespace tearless::harness
