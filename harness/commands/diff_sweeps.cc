#include "harness/commands/diff_sweeps.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "base/print.h"
#include "base/settings.h"
#include "base/words.h"
#include "harness/results/result_set.h"
#include "harness/statistics/stats.h"
#include "harness/table/columns.h"

namespace tearless::harness {
namespace {

using nlohmann::json;
using Values = std::map<std::string, json>;  // of a run's settings

struct ComparedSweep {
  std::string id;
  std::vector<Row> rows;
};

// How many pairs of runs differ in a setting in one way.
using Changes = std::map<std::tuple<std::string, std::string, std::string>, int64_t>;  // key, left, right

struct CellChange {
  Labels labels;
  std::string score;
  std::optional<double> left, right;  // means over the seeds
};

struct Differences {
  int64_t pairs = 0, only_left = 0, only_right = 0;  // runs
  Changes settings;
  std::vector<CellChange> cells;
};

std::vector<std::string> axes_of(const std::vector<Row>& rows) {
  std::vector<std::string> axes;
  for (const Row& row : rows) {
    for (const auto& [axis, label] : row.run.coordinates) {
      if (std::ranges::find(axes, axis) == axes.end()) axes.push_back(axis);
    }
  }
  return axes;
}

std::vector<std::string> common(const std::vector<std::string>& left, const std::vector<std::string>& right) {
  std::vector<std::string> both;
  std::ranges::copy_if(left, std::back_inserter(both),
                       [&](const std::string& one) { return std::ranges::find(right, one) != right.end(); });
  return both;
}

Labels labels_on(const Row& row, const std::vector<std::string>& axes) {
  Labels labels;
  for (const std::string& axis : axes) labels.emplace_back(axis, label_on(row.run.coordinates, axis));
  return labels;
}

std::string text_of(const Values& values, const std::string& key) {
  const auto value = values.find(key);
  return value == values.end() ? "–" : toml_value(value->second);
}

Values settings_of(const Row& row) { return parse_toml_settings(row.run.settings, "run " + row.run.id).values; }

void count_changes(const Row& left, const Row& right, Changes& changes) {
  if (left.run.settings == right.run.settings) return;
  const Values before = settings_of(left), after = settings_of(right);
  std::set<std::string> keys;
  for (const Values* values : {&before, &after}) {
    for (const auto& [key, value] : *values) keys.insert(key);
  }
  for (const std::string& key : keys) {
    const std::string l = text_of(before, key), r = text_of(after, key);
    if (l != r && key != "derived.of") ++changes[{key, l, r}];
  }
}

// Cell → score → values over the seeds.
std::map<Labels, std::map<std::string, std::vector<double>>> cells_of(const std::vector<Row>& rows,
                                                                      const std::vector<std::string>& axes) {
  std::map<Labels, std::map<std::string, std::vector<double>>> cells;
  for (const Row& row : rows) {
    if (!row.counts(/*count_diverged=*/false)) continue;
    for (const auto& [score, value] : row.result.scores) cells[labels_on(row, axes)][score].push_back(value);
  }
  return cells;
}

Differences compare(const ComparedSweep& left, const ComparedSweep& right) {
  Differences found;
  const std::vector<std::string> axes = common(axes_of(left.rows), axes_of(right.rows));
  std::multimap<std::pair<Labels, int64_t>, const Row*> others;
  for (const Row& row : right.rows) others.emplace(std::pair(labels_on(row, axes), row.run.seed), &row);
  for (const Row& row : left.rows) {
    const auto other = others.find({labels_on(row, axes), row.run.seed});
    if (other == others.end()) {
      ++found.only_left;
      continue;
    }
    ++found.pairs;
    count_changes(row, *other->second, found.settings);
    others.erase(other);
  }
  found.only_right = std::ssize(others);

  const auto before = cells_of(left.rows, axes), after = cells_of(right.rows, axes);
  for (const auto& [labels, scores] : before) {
    const auto cell = after.find(labels);
    if (cell == after.end()) continue;
    for (const auto& [score, values] : scores) {
      const auto others_of = cell->second.find(score);
      if (others_of == cell->second.end()) continue;
      CellChange change{labels, score, mean(values), mean(others_of->second)};
      if (change.left != change.right) found.cells.push_back(std::move(change));
    }
  }
  return found;
}

std::string cell_text(const Labels& labels) {
  std::vector<std::string> parts;
  for (const auto& [axis, label] : labels) parts.push_back(label);
  return parts.empty() ? "all" : fmt::format("{}", fmt::join(parts, " · "));
}

void print_differences(const ComparedSweep& left, const ComparedSweep& right, const Differences& found) {
  print("{} of both, {} of {} alone, {} of {} alone\n", counted(found.pairs, "run"), found.only_left, left.id,
        found.only_right, right.id);
  std::vector<std::vector<std::string>> lines = {{"setting", left.id, right.id, "runs"}};
  for (const auto& [change, runs] : found.settings) {
    const auto& [key, before, after] = change;
    lines.push_back({key, before, after, std::to_string(runs)});
  }
  if (lines.size() == 1) lines.push_back({"settings", "the same", "the same", ""});
  print("\n");
  print_columns(std::move(lines));
  lines = {{"cell", "score", left.id, right.id, "difference"}};
  for (const CellChange& cell : found.cells) {
    lines.push_back({cell_text(cell.labels), cell.score, fmt::format("{:.6g}", *cell.left),
                     fmt::format("{:.6g}", *cell.right), fmt::format("{:+.4g}", *cell.right - *cell.left)});
  }
  print("\n");
  if (found.cells.empty()) return print("No mean of a cell differs.\n");
  print_columns(std::move(lines));
}

json differences_json(const ComparedSweep& left, const ComparedSweep& right, const Differences& found) {
  json settings = json::array(), cells = json::array();
  for (const auto& [change, runs] : found.settings) {
    const auto& [key, before, after] = change;
    settings.push_back({{"key", key}, {"values", {before, after}}, {"runs", runs}});
  }
  for (const CellChange& cell : found.cells) {
    cells.push_back({{"labels", to_json(cell.labels)}, {"score", cell.score}, {"means", {*cell.left, *cell.right}}});
  }
  return {{"sweeps", {left.id, right.id}},
          {"runs", {{"both", found.pairs}, {"only", {found.only_left, found.only_right}}}},
          {"settings", settings},
          {"cells", cells}};
}

ComparedSweep compared_sweep(const Store& store, const std::string& id) {
  ComparedSweep side{.id = id, .rows = rows_of(store, *store.sweep(id))};
  read_results(&store, side.rows);
  return side;
}

}  // namespace

int diff_sweeps(std::unique_ptr<const Store> store, const std::string& left, const std::string& right,
                const Globals& globals) {
  const ComparedSweep before = compared_sweep(*store, left), after = compared_sweep(*store, right);
  const Differences found = compare(before, after);
  if (globals.json) {
    print_json(differences_json(before, after, found));
  } else {
    print_differences(before, after, found);
  }
  return kOk;
}

}  // namespace tearless::harness
