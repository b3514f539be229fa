// `tearless runs [SWEEP | RUN …]`: one line a run, for people and for programs. It reads the database alone.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "base/nearest.h"
#include "base/print.h"
#include "base/settings.h"
#include "harness/commands/commands.h"
#include "harness/plan/grid_state.h"
#include "harness/store/selected_runs.h"
#include "harness/table/columns.h"
#include "harness/table/table.h"

namespace tearless::harness {
namespace {

using nlohmann::json;

struct RunsOptions {
  std::vector<std::string> words;
  std::vector<std::string> where;
  std::string sort;                    // a column, after "-" descending; "": as the sweeps have the runs
  std::optional<std::string> columns;  // names or patterns, separated by commas; unset: see default_columns()
  std::optional<std::string> scores;   // likewise; unset: see chosen_scores()
  std::string by = "run";
  bool settings = false;
  bool csv = false;
};

struct RunOfList {
  SelectedRun at;
  int64_t step = 0;  // updates made
  std::map<std::string, double> scores;
  std::optional<ResumeCheck> resume;
  std::map<std::string, json> settings = {};  // read only where they are asked for

  // Without a sweep there are neither labels nor a seed.
};
using Rows = std::vector<RunOfList>;

int64_t updates_made(const Store& store, const RunRecord& run) {
  if (run.step) return *run.step;
  int64_t step = 0;
  if (run.state == RunState::kRunning) {
    for (const auto& [name, line] : store.newest_metrics(run.id)) step = std::max(step, line.step);
  } else if (const std::vector<AttemptRecord> attempts = store.attempts_of(run.id); !attempts.empty()) {
    const AttemptRecord& last = attempts.back();
    step = last.checkpoint + last.lost.value_or(LostWork()).updates;
  }
  return step;
}

Rows rows_of(const Store& store, const RunsOptions& options) {
  if (options.by != "run" && options.by != "sweep") {
    fail("--by {} is not known; it must be run (a line for each run) or sweep (a line for each sweep and run)",
         options.by);
  }
  const EachRun each = options.by == "run" ? EachRun::kOnce : EachRun::kInEverySweep;
  Rows rows;
  for (SelectedRun& at : selected_runs(store, select_or_last(store, options.words), each)) {
    const int64_t step = updates_made(store, at.run);
    RunResult result = store.result_of(at.run.id);
    rows.push_back({std::move(at), step, std::move(result.scores), std::move(result.resume)});
  }
  return rows;
}

// --- columns -------------------------------------------------------------------------------------------------------

enum class ColumnKind { kField, kLabel, kScore, kSetting };

// What can be printed of a run, and what it can be chosen and sorted by.
struct ColumnOfRuns {
  ColumnKind kind;
  std::string key;                              // of the field, axis, score or setting
  std::string name;                             // the same, made unique
  std::function<json(const RunOfList&)> value;  // null: the run has none
};
using Columns = std::vector<ColumnOfRuns>;

// The fields that people see, and those of CSV.
constexpr std::string_view kFieldsForPeople[] = {"run", "place", "seed", "state", "progress"};
constexpr std::string_view kFieldsOfCsv[] = {"run",   "sweep",  "place", "seed",    "state",
                                             "class", "reason", "step",  "updates", "resume"};

Columns fields() {
  const auto field = [](const char* name, std::function<json(const RunOfList&)> value) {
    return ColumnOfRuns{ColumnKind::kField, name, "", std::move(value)};
  };
  using Row = RunOfList;
  return {field("run", [](const Row& row) { return json(row.at.run.id); }),
          field("sweep", [](const Row& row) { return json(row.at.sweep_id()); }),
          field("name", [](const Row& row) { return json(row.at.sweep ? row.at.sweep->name : ""); }),
          field("place", [](const Row& row) { return row.at.sweep ? json(row.at.place()) : json(); }),
          field("seed", [](const Row& row) { return row.at.sweep ? json(row.at.run.seed) : json(); }),
          field("state", [](const Row& row) { return json(name_of(row.at.run.state)); }),
          field("class", [](const Row& row) { return json(name_of(row.at.run.failure)); }),
          field("reason", [](const Row& row) { return json(row.at.run.reason); }),
          field("step", [](const Row& row) { return json(row.step); }),
          field("updates", [](const Row& row) { return json(row.at.run.updates); }),
          field("resume", [](const Row& row) { return row.resume ? json(row.resume->outcome) : json(); }),
          field("progress", [](const Row& row) { return json(fmt::format("{}/{}", row.step, row.at.run.updates)); })};
}

template <class Value>
json value_in(const std::map<std::string, Value>& values, const std::string& key) {
  const auto value = values.find(key);
  return value == values.end() ? json() : json(value->second);
}

ColumnOfRuns score_column(const std::string& score) {
  return {ColumnKind::kScore, score, score, [score](const RunOfList& row) { return value_in(row.scores, score); }};
}

std::string text_in(const ColumnOfRuns& column, const RunOfList& row) { return value_text(column.value(row)); }

bool differs(const ColumnOfRuns& column, const Rows& rows) {
  return std::any_of(rows.begin(), rows.end(),
                     [&](const RunOfList& row) { return column.value(row) != column.value(rows.front()); });
}

// All columns that these runs have. A setting is left out where the labels of an axis of its name say the same.
Columns columns_of(const Rows& rows) {
  std::set<std::string> axes, scores, settings;
  for (const RunOfList& row : rows) {
    for (const auto& [axis, label] : row.at.run.coordinates) axes.insert(axis);
    for (const auto& [name, value] : row.scores) scores.insert(name);
    for (const auto& [key, value] : row.settings) settings.insert(key);
  }
  Columns columns = fields();
  for (const std::string& axis : axes) {
    columns.push_back({ColumnKind::kLabel, axis, "", [axis](const RunOfList& row) {
                         const std::string& label = label_on(row.at.run.coordinates, axis);
                         return label.empty() ? json() : json(label);
                       }});
  }
  for (const std::string& score : scores) columns.push_back(score_column(score));
  for (const std::string& key : settings) {
    const ColumnOfRuns setting = {ColumnKind::kSetting, key, "",
                                  [key](const RunOfList& row) { return value_in(row.settings, key); }};
    const bool is_axis = axes.contains(key) && std::all_of(rows.begin(), rows.end(), [&](const RunOfList& row) {
                           return text_in(setting, row) == label_on(row.at.run.coordinates, key);
                         });
    if (!is_axis) columns.push_back(setting);
  }
  std::vector<std::string> names;
  for (const ColumnOfRuns& column : columns) names.push_back(column.key);
  names = distinct_names(std::move(names));
  for (size_t i = 0; i < columns.size(); ++i) columns[i].name = names[i];
  return columns;
}

std::vector<std::string> names_in_list(const std::string& text) {
  std::vector<std::string> names;
  std::istringstream list(text);
  for (std::string name; std::getline(list, name, ',');) {
    if (!name.empty()) names.push_back(name);
  }
  return names;
}

// The runs of a list with all columns that they have.
class RunList {
 public:
  RunList(Rows rows, bool with_settings) : rows_(std::move(rows)), columns_(columns_of(rows_)) {
    if (with_settings) read_settings();
  }

  const Rows& rows() const { return rows_; }
  const Columns& columns() const { return columns_; }

  // The columns that a name or a pattern means. UserError, naming the option, if no run has one.
  Columns named(const std::string& pattern, std::string_view option) {
    Columns found = matching(pattern);
    if (found.empty() && !has_settings_) {
      read_settings();
      found = matching(pattern);
    }
    if (!found.empty() || rows_.empty()) return found;
    std::vector<std::string> names, listed;
    for (const ColumnOfRuns& column : columns_) {
      names.push_back(column.name);
      if (column.kind != ColumnKind::kSetting) listed.push_back(column.name);
    }
    fail("{}: no selected run has \"{}\"{}; they have {}, and their settings (tearless diff RUN RUN)", option, pattern,
         did_you_mean(pattern, names), fmt::join(listed, ", "));
  }
  // The only one; null for every run of an empty list.
  std::function<json(const RunOfList&)> value_named(const std::string& name, std::string_view option) {
    const Columns found = named(name, option);
    if (found.size() > 1) fail("{}: \"{}\" means {} columns; name one of them", option, name, found.size());
    return found.empty() ? [](const RunOfList&) { return json(); } : found.front().value;
  }

  void keep(const std::function<bool(const RunOfList&)>& wanted) {
    std::erase_if(rows_, [&](const RunOfList& row) { return !wanted(row); });
  }
  // As std::stable_sort().
  void sort(const std::function<bool(const RunOfList&, const RunOfList&)>& before) {
    std::stable_sort(rows_.begin(), rows_.end(), before);
  }

 private:
  Columns matching(const std::string& pattern) const {
    Columns found;
    std::copy_if(columns_.begin(), columns_.end(), std::back_inserter(found),
                 [&](const ColumnOfRuns& column) { return matches_pattern(pattern, column.name); });
    return found;
  }

  void read_settings() {
    for (RunOfList& row : rows_) {
      row.settings = parse_toml_settings(row.at.run.settings, "run " + row.at.run.id).values;
    }
    has_settings_ = true;
    columns_ = columns_of(rows_);
  }

  Rows rows_;
  bool has_settings_ = false;
  Columns columns_;
};

// --- which runs, and in which order
// -------------------------------------------------------------------------------------

std::optional<double> number_in(const std::string& text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || std::isnan(number)) return std::nullopt;
  return number;
}

std::optional<double> number_in(const json& value) {
  if (value.is_string()) return number_in(value.get_ref<const std::string&>());  // labels are texts
  if (!value.is_number() || std::isnan(value.get<double>())) return std::nullopt;
  return value.get<double>();
}

struct Operator {
  std::string_view text;
  bool (*of_numbers)(double, double);
};
// Longer ones before those that they begin with.
constexpr Operator kOperators[] = {
    {"!=", [](double a, double b) { return a != b; }}, {"<=", [](double a, double b) { return a <= b; }},
    {">=", [](double a, double b) { return a >= b; }}, {"=", [](double a, double b) { return a == b; }},
    {"<", [](double a, double b) { return a < b; }},   {">", [](double a, double b) { return a > b; }}};

std::string trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(' ');
  if (begin == std::string_view::npos) return "";
  return std::string(text.substr(begin, text.find_last_not_of(' ') + 1 - begin));
}

std::string unquoted(const std::string& text) {
  const bool is_quoted =
      text.size() > 1 && text.front() == text.back() && (text.front() == '"' || text.front() == '\'');
  return is_quoted ? text.substr(1, text.size() - 2) : text;
}

// "test.bleu_13a > 20". It does not hold for a run that has no such value.
struct Condition {
  std::string name;
  Operator compare = {};
  std::string value;

  bool holds(const json& of_run) const {
    if (of_run.is_null()) return false;
    const std::optional<double> left = number_in(of_run), right = number_in(value);
    if (left && right) return compare.of_numbers(*left, *right);
    const bool is_equal = value_text(of_run) == value;
    return (compare.text == "=" && is_equal) || (compare.text == "!=" && !is_equal);
  }
};

Condition condition_in(const std::string& text) {
  const size_t at = text.find_first_of("!<>=");
  const auto compare = std::find_if(std::begin(kOperators), std::end(kOperators), [&](const Operator& known) {
    return at != std::string::npos && text.compare(at, known.text.size(), known.text) == 0;
  });
  const bool is_one = compare != std::end(kOperators);
  const Condition condition = is_one ? Condition{trimmed(text.substr(0, at)), *compare,
                                                 unquoted(trimmed(text.substr(at + compare->text.size())))}
                                     : Condition();
  if (condition.name.empty() || condition.value.find_first_of("!<>=") == 0) {
    fail("--where \"{}\" is no condition; write NAME = VALUE, with = != < <= > or >=", text);
  }
  if (compare->text.find_first_of("<>") != std::string_view::npos && !number_in(condition.value)) {
    fail("--where \"{}\": {} compares with a number, and \"{}\" is none; texts have = and !=", text, compare->text,
         condition.value);
  }
  return condition;
}

void filter(RunList& list, const std::vector<std::string>& where) {
  for (const std::string& text : where) {
    const Condition condition = condition_in(text);
    const auto value_of = list.value_named(condition.name, "--where");
    list.keep([&](const RunOfList& row) { return condition.holds(value_of(row)); });
  }
}

// Numbers, then texts, then runs without a value, whatever the direction.
void sort(RunList& list, const std::string& by) {
  const bool descending = by.starts_with('-');
  const auto value_of = list.value_named(by.substr(descending ? 1 : 0), "--sort");
  const auto key_of = [&](const RunOfList& row) {
    const json value = value_of(row);
    const std::optional<double> number = number_in(value);
    const std::string text = value_text(value);
    return std::tuple(number ? 0 : text.empty() ? 2 : 1, number.value_or(0), text);
  };
  list.sort([&](const RunOfList& a, const RunOfList& b) {
    const auto [rank_a, number_a, text_a] = key_of(a);
    const auto [rank_b, number_b, text_b] = key_of(b);
    if (rank_a != rank_b) return rank_a < rank_b;
    if (rank_a == 0) return descending ? number_a > number_b : number_a < number_b;
    return descending ? text_a > text_b : text_a < text_b;
  });
}

// --- what is printed of them
// -------------------------------------------------------------------------------------------

// People see the scores of the test set unless they ask for others, programs all of them.
Columns chosen_scores(const RunList& list, const RunsOptions& options, bool all) {
  std::map<std::string, ColumnOfRuns> present;
  std::set<std::string> names;
  for (const ColumnOfRuns& column : list.columns()) {
    if (column.kind == ColumnKind::kScore) present.emplace(*names.insert(column.key).first, column);
  }
  Columns chosen;
  if (!options.scores && names.empty()) return chosen;
  for (const std::string& score : names_matching(names_in_list(options.scores.value_or(all ? "*" : "test.*")), names)) {
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
    const auto sweep_of = [](const RunOfList& row) { return row.at.sweep_id(); };
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

void print_lines(const RunList& list, const Columns& columns, bool csv) {
  if (list.rows().empty() && !csv) return;
  constexpr int kDigitsForPeople = 6;
  std::vector<std::vector<std::string>> lines(1);
  for (const ColumnOfRuns& column : columns) lines[0].push_back(column.name);
  for (const RunOfList& row : list.rows()) {
    std::vector<std::string>& line = lines.emplace_back();
    for (const ColumnOfRuns& column : columns) {
      line.push_back(value_text(column.value(row), csv ? 0 : kDigitsForPeople));
    }
  }
  csv ? print_csv(std::move(lines)) : print_columns(std::move(lines));
}

json object_of(const RunOfList& row, const Columns& columns, bool with_nulls) {
  json object = json::object();
  for (const ColumnOfRuns& column : columns) {
    if (json value = column.value(row); with_nulls || !value.is_null()) object[column.name] = std::move(value);
  }
  return object;
}

json run_as_json(const RunOfList& row, const Columns& scores) {
  json shown = json::object();
  for (const ColumnOfRuns& score : scores) {
    if (json value = score.value(row); !value.is_null()) shown[score.key] = std::move(value);
  }
  const RunRecord& run = row.at.run;
  return {{"run", run.id},
          {"sweep", row.at.sweep_id()},
          {"name", row.at.sweep ? row.at.sweep->name : ""},
          {"place", row.at.sweep ? json(row.at.place()) : json()},
          {"coordinates", to_json(run.coordinates)},
          {"seed", row.at.sweep ? json(run.seed) : json()},
          {"state", name_of(run.state)},
          {"class", name_of(run.failure)},
          {"reason", run.reason},
          {"step", row.step},
          {"updates", run.updates},
          {"resume", row.resume ? json(*row.resume) : json()},
          {"scores", std::move(shown)}};
}

void print_as_json(const RunList& list, const std::optional<Columns>& columns, const RunsOptions& options) {
  const Columns scores = chosen_scores(list, options, /*all=*/true), settings = different_settings(list);
  json runs = json::array();
  for (const RunOfList& row : list.rows()) {
    json& run = runs.emplace_back(columns ? object_of(row, *columns, true) : run_as_json(row, scores));
    if (options.settings) run["settings"] = object_of(row, settings, false);
  }
  print_json(runs);
}

int list_runs(const RunsOptions& options, const Globals& globals) {
  if (options.csv && globals.json) fail("--json and --csv contradict each other; omit one of them");
  if (options.columns && (options.scores || options.settings)) {
    fail("--columns names every column, scores and settings too; omit --{}", options.scores ? "scores" : "settings");
  }
  const std::unique_ptr<const Store> store = require_store(globals);
  RunList list(rows_of(*store, options), options.settings);
  filter(list, options.where);
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
    print_lines(list, columns ? *columns : default_columns(list, options), options.csv);
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
  app.add_option(
      "--scores", options->scores,
      "names, separated by commas, in which * stands for any text (default: test.*; with --csv and --json all)");
  app.add_flag("--settings", options->settings, "print each setting in which the runs differ, too");
  app.add_option("--by", options->by,
                 "run: each run once, as the newest of these sweeps has it (default); sweep: as each of them has it");
  app.add_flag("--csv", options->csv, "print CSV");
  return [options, &globals] { return list_runs(*options, globals); };
}

}  // namespace tearless::harness
