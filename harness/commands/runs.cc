// `tearless runs [SWEEP | RUN …]`: one line a run, for people and for programs. It reads the database alone.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/print.h"
#include "harness/commands/commands.h"
#include "harness/plan/grid_state.h"
#include "harness/store/selectors.h"
#include "harness/table/columns.h"
#include "harness/table/table.h"

namespace tearless::harness {
namespace {

using nlohmann::json;

struct RunsOptions {
  std::vector<std::string> words;
  std::optional<std::string> scores;  // names or patterns, separated by commas; unset: see chosen_scores()
  bool csv = false;
};

// A run as a sweep has it.
struct RunOfSweep {
  std::string sweep, name;  // "": no sweep has it any more
  int64_t place = 0;        // in the sweep, from 1; 0 without a sweep
  RunRecord run;
  int64_t step = 0;  // updates made
  std::map<std::string, double> scores;
  std::optional<ResumeCheck> resume;
};

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

std::vector<RunOfSweep> rows_of(const Store& store, const Selection& chosen) {
  std::vector<RunOfSweep> rows;
  for (SelectedRun& selected : selected_runs(store, chosen)) {
    RunRecord& run = selected.run;
    RunOfSweep& row = rows.emplace_back();
    if (selected.sweep) {
      row.sweep = selected.sweep->id;
      row.name = selected.sweep->name;
      row.place = run.place + 1;
    }
    row.step = updates_made(store, run);
    RunResult result = store.result_of(run.id);
    row.scores = std::move(result.scores);
    row.resume = std::move(result.resume);
    row.run = std::move(run);
  }
  return rows;
}

std::set<std::string> axes_in(const std::vector<RunOfSweep>& rows) {
  std::set<std::string> axes;
  for (const RunOfSweep& row : rows) {
    for (const auto& [axis, label] : row.run.coordinates) axes.insert(axis);
  }
  return axes;
}

std::vector<std::string> names_in_list(const std::string& text) {
  std::vector<std::string> names;
  std::istringstream list(text);
  for (std::string name; std::getline(list, name, ',');) {
    if (!name.empty()) names.push_back(name);
  }
  return names;
}

// People see the scores of the test set unless they ask for others, programs all of them.
std::vector<std::string> chosen_scores(const std::vector<RunOfSweep>& rows, const RunsOptions& options, bool all) {
  std::set<std::string> present;
  for (const RunOfSweep& row : rows) {
    for (const auto& [name, value] : row.scores) present.insert(name);
  }
  if (!options.scores && present.empty()) return {};
  return names_matching(names_in_list(options.scores.value_or(all ? "*" : "test.*")), present);
}

using RunLine = std::vector<std::string>;

void print_runs(const std::vector<RunOfSweep>& rows, const RunsOptions& options) {
  if (rows.empty()) return;
  const std::set<std::string> axes = axes_in(rows);
  const std::vector<std::string> scores = chosen_scores(rows, options, /*all=*/false);
  const bool several =
      std::any_of(rows.begin(), rows.end(), [&](const auto& row) { return row.sweep != rows[0].sweep; });
  RunLine header = {"run", "place"};
  if (several) header.insert(header.begin(), "sweep");
  header.insert(header.end(), axes.begin(), axes.end());
  header.insert(header.end(), {"seed", "state", "updates"});
  header.insert(header.end(), scores.begin(), scores.end());
  std::vector<RunLine> lines = {header};
  for (const RunOfSweep& row : rows) {
    RunLine line = {row.run.id, row.place > 0 ? std::to_string(row.place) : ""};
    if (several) line.insert(line.begin(), row.sweep);
    for (const std::string& axis : axes) line.push_back(label_on(row.run.coordinates, axis));
    line.push_back(row.place > 0 ? std::to_string(row.run.seed) : "");
    line.emplace_back(name_of(row.run.state));
    line.push_back(fmt::format("{}/{}", row.step, row.run.updates));
    for (const std::string& score : scores) {
      const auto value = row.scores.find(score);
      line.push_back(value == row.scores.end() ? "" : fmt::format("{:.6g}", value->second));
    }
    lines.push_back(std::move(line));
  }
  print_columns(lines);
}

void print_runs_as_csv(const std::vector<RunOfSweep>& rows, const RunsOptions& options) {
  const std::set<std::string> axes = axes_in(rows);
  const std::vector<std::string> scores = chosen_scores(rows, options, /*all=*/true);
  RunLine header = {"run", "sweep", "place", "seed", "state", "class", "reason", "step", "updates", "resume"};
  header.insert(header.end(), axes.begin(), axes.end());
  header.insert(header.end(), scores.begin(), scores.end());
  std::vector<RunLine> lines = {header};
  for (const RunOfSweep& row : rows) {
    const RunRecord& run = row.run;
    RunLine line = {run.id, row.sweep};
    if (row.place > 0) {
      line.insert(line.end(), {std::to_string(row.place), std::to_string(run.seed)});
    } else {
      line.insert(line.end(), {"", ""});
    }
    line.insert(line.end(),
                {std::string(name_of(run.state)), std::string(name_of(run.failure)), run.reason,
                 std::to_string(row.step), std::to_string(run.updates), row.resume ? row.resume->outcome : ""});
    for (const std::string& axis : axes) line.push_back(label_on(run.coordinates, axis));
    for (const std::string& score : scores) {
      const auto value = row.scores.find(score);
      line.push_back(value == row.scores.end() ? "" : fmt::format("{}", value->second));
    }
    lines.push_back(std::move(line));
  }
  print_csv(std::move(lines));
}

void print_runs_as_json(const std::vector<RunOfSweep>& rows, const RunsOptions& options) {
  const std::vector<std::string> scores = chosen_scores(rows, options, /*all=*/true);
  json list = json::array();
  for (const RunOfSweep& row : rows) {
    json shown = json::object();
    for (const std::string& score : scores) {
      if (const auto value = row.scores.find(score); value != row.scores.end()) shown[score] = value->second;
    }
    list.push_back({{"run", row.run.id},
                    {"sweep", row.sweep},
                    {"name", row.name},
                    {"place", row.place > 0 ? json(row.place) : json()},
                    {"coordinates", to_json(row.run.coordinates)},
                    {"seed", row.place > 0 ? json(row.run.seed) : json()},
                    {"state", name_of(row.run.state)},
                    {"class", name_of(row.run.failure)},
                    {"reason", row.run.reason},
                    {"step", row.step},
                    {"updates", row.run.updates},
                    {"resume", row.resume ? json(*row.resume) : json()},
                    {"scores", std::move(shown)}});
  }
  print_json(list);
}

int list_runs(const RunsOptions& options, const Globals& globals) {
  if (options.csv && globals.json) fail("--json and --csv contradict each other; omit one of them");
  const std::unique_ptr<const Store> store = require_store(globals);
  const std::vector<RunOfSweep> rows = rows_of(*store, select_or_last(*store, options.words));
  if (globals.json) {
    print_runs_as_json(rows, options);
  } else if (options.csv) {
    print_runs_as_csv(rows, options);
  } else {
    print_runs(rows, options);
  }
  return kOk;
}

}  // namespace

Action command_runs(CLI::App& app, const Globals& globals) {
  const auto options = std::make_shared<RunsOptions>();
  app.add_option("what", options->words,
                 "sweeps (ids, names, grid files, last, all) or runs (ids, places, states, axis=label); default: last");
  app.add_option(
      "--scores", options->scores,
      "names, separated by commas, in which * stands for any text (default: test.*; with --csv and --json all)");
  app.add_flag("--csv", options->csv, "print CSV with one line for each run");
  return [options, &globals] { return list_runs(*options, globals); };
}

}  // namespace tearless::harness
