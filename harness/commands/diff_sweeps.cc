#include "harness/commands/diff_sweeps.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "base/error.h"
#include "base/print.h"
#include "base/settings.h"
#include "base/words.h"
#include "harness/cells/cells.h"
#include "harness/cells/scores.h"
#include "harness/console/columns.h"
#include "harness/folders/sweep_directory.h"
#include "harness/grid/expand.h"
#include "harness/results/result_set.h"
#include "harness/statistics/stats.h"

namespace tearless::harness {
namespace {

using nlohmann::json;
using Values = std::map<std::string, json>;  // of a run's settings

struct ComparedSweep {
  std::string id;
  Grid grid;
  std::vector<Row> rows;
};

// How many pairs of runs differ in a setting in one way.
using Changes = std::map<std::tuple<std::string, std::string, std::string>, int64_t>;  // key, left, right

// A cell that both sweeps have, and a score that some run of each has there.
struct ComparedCell {
  Labels labels = {};
  std::string score;
  std::array<Cell, 2> cells;  // of the left sweep and of the right one
  std::vector<int64_t> seeds = {};
  std::array<std::optional<double>, 2> means = {};  // over these seeds, which have a value on both sides

  // And of the same seeds: one that has a value on one side alone is said.
  bool is_equal() const {
    return means[0] == means[1] &&
           std::ranges::all_of(cells, [&](const Cell& one) { return one.n() == std::ssize(seeds); });
  }
};

struct Differences {
  int64_t pairs = 0, only_left = 0, only_right = 0;  // runs
  Changes settings;
  std::vector<ComparedCell> cells;
  std::vector<std::string> notes;
};

// --- axes ------------------------------------------------------------------------------------------------------------

const Axis* axis_called(const Grid& grid, const std::string& name) {
  const auto axis = std::ranges::find(grid.axes, name, &Axis::name);
  return axis == grid.axes.end() ? nullptr : &*axis;
}

std::set<std::string> labels_of_rows(const ComparedSweep& sweep, const std::string& axis) {
  std::set<std::string> labels;
  for (const Row& row : sweep.rows) labels.insert(label_on(row.run.coordinates, axis));
  return labels;
}

// Keeps the rows that `where` admits, of the axes that the sweep has.
void narrow(ComparedSweep& sweep, const ComparedSweep& other, const std::vector<std::string>& where) {
  std::vector<std::string> own;
  for (const std::string& text : where) {
    const std::string axis = text.substr(0, text.find('='));
    if (axis == "seed" || axis_called(sweep.grid, axis) || !axis_called(other.grid, axis)) own.push_back(text);
  }
  std::erase_if(sweep.rows, [&, only = Only(sweep.grid, own, "--where")](const Row& row) {
    return !only.admits(row.run.coordinates, row.run.seed);
  });
  if (sweep.rows.empty()) fail("--where leaves no run of sweep {}", sweep.id);
  std::erase_if(sweep.grid.seeds, [&](int64_t seed) {
    return std::ranges::none_of(sweep.rows, [&](const Row& row) { return row.run.seed == seed; });
  });
}

// A mean over the points of an axis that the other sweep lacks would be compared with something else.
void require_same_axes(const ComparedSweep& sweep, const ComparedSweep& other) {
  for (const Axis& axis : sweep.grid.axes) {
    if (axis_called(other.grid, axis.name)) continue;
    const std::set<std::string> labels = labels_of_rows(sweep, axis.name);
    if (labels.size() <= 1) continue;
    fail("sweep {} has the axis {}, which {} has not; compare one of its values, as in --where \"{}={}\"; it has: {}",
         sweep.id, axis.name, other.id, axis.name, *labels.begin(), fmt::join(labels, ", "));
  }
}

std::vector<std::string> common_axes(const ComparedSweep& left, const ComparedSweep& right) {
  std::vector<std::string> axes;
  for (const Axis& axis : left.grid.axes) {
    if (axis_called(right.grid, axis.name)) axes.push_back(axis.name);
  }
  return axes;
}

// --- settings --------------------------------------------------------------------------------------------------------

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

void compare_runs(const ComparedSweep& left, const ComparedSweep& right, const std::vector<std::string>& axes,
                  Differences& found) {
  const auto key_of = [&](const Row& row) {
    RowKey key = {row.derivation, std::to_string(row.run.seed)};
    for (const std::string& axis : axes) key.push_back(label_on(row.run.coordinates, axis));
    return key;
  };
  std::multimap<RowKey, const Row*> others;
  for (const Row& row : right.rows) others.emplace(key_of(row), &row);
  for (const Row& row : left.rows) {
    const auto other = others.find(key_of(row));
    if (other == others.end()) {
      ++found.only_left;
      continue;
    }
    ++found.pairs;
    count_changes(row, *other->second, found.settings);
    others.erase(other);
  }
  found.only_right = std::ssize(others);
}

// --- cells -----------------------------------------------------------------------------------------------------------

// By which the cells of both sweeps are made.
struct Rules : TableRules {
  std::vector<std::string> over = {};  // names of the axes of `select`
};

std::set<std::string> scores_of(const ComparedSweep& sweep) {
  std::set<std::string> scores;
  for (const Row& row : sweep.rows) {
    if (!row.counts(/*count_diverged=*/true)) continue;
    for (const auto& [score, value] : row.result.scores) scores.insert(score);
  }
  return scores;
}

Rules rules_of(const ComparedSweep& left) {
  Rules rules = {rules_of_table(views_of(left.grid), scores_of(left))};
  if (rules.select) rules.over = names_of_axes(left.grid, rules.select->over);
  return rules;
}

// A cell for each combination of labels of `axes`, chosen by the rules. Of the axes that are left one label is there.
Arrangement arrangement_of(const ComparedSweep& sweep, const std::vector<std::string>& axes, const Rules& rules) {
  const auto indices_of = [&](const std::vector<std::string>& names) {
    std::vector<size_t> indices;
    for (const std::string& name : names) {
      if (const Axis* axis = axis_called(sweep.grid, name))
        indices.push_back(static_cast<size_t>(axis - sweep.grid.axes.data()));
    }
    return indices;
  };
  Arrangement arrangement{.rows = indices_of(axes), .select = rules.select};
  if (rules.select) arrangement.select->over = indices_of(rules.over);
  for (const Axis& axis : sweep.grid.axes) {
    const auto is_in = [&](const std::vector<std::string>& names) {
      return std::ranges::find(names, axis.name) != names.end();
    };
    if (is_in(axes) || is_in(rules.over)) continue;
    arrangement.where.labels[axis.name] = labels_of_rows(sweep, axis.name);
  }
  return arrangement;
}

std::vector<double> values_at(const std::vector<int64_t>& seeds, const Cell& cell) {
  std::vector<double> values;
  for (const SeedValue& one : cell.values) {
    if (std::ranges::find(seeds, one.seed) != seeds.end()) values.push_back(one.value);
  }
  return values;
}

void compare_cells(const ComparedSweep& left, const ComparedSweep& right, std::vector<std::string> axes,
                   Differences& found) {
  const Rules rules = rules_of(left);
  std::erase_if(axes, [&](const std::string& axis) { return std::ranges::find(rules.over, axis) != rules.over.end(); });
  const Arrangement of_left = arrangement_of(left, axes, rules), of_right = arrangement_of(right, axes, rules);
  const Cells before(left.grid, of_left, rules.rules, left.rows), after(right.grid, of_right, rules.rules, right.rows);
  std::map<std::vector<std::string>, size_t> places;  // of the right sweep
  for (size_t i = 0; i < after.layout().rows.size(); ++i)
    places.emplace(labels_at(right.grid, of_right.rows, after.layout().rows[i]), i);

  const std::set<std::string> ours = scores_of(left), theirs = scores_of(right);
  std::vector<std::string> scores;
  std::ranges::set_intersection(ours, theirs, std::back_inserter(scores));
  int64_t compared = 0;
  for (size_t i = 0; i < before.layout().rows.size(); ++i) {
    const std::vector<std::string> labels = labels_at(left.grid, of_left.rows, before.layout().rows[i]);
    const auto place = places.find(labels);
    if (place == places.end()) continue;
    for (const std::string& score : scores) {
      ComparedCell cell{
          .score = score,
          .cells = {before.at(i, 0, score, rules.fail_score), after.at(place->second, 0, score, rules.fail_score)}};
      const bool has_runs = !cell.cells[0].runs.empty() && !cell.cells[1].runs.empty();
      if (!has_runs || cell.cells[0].n() + cell.cells[1].n() == 0) continue;
      for (size_t k = 0; k < labels.size(); ++k) cell.labels.emplace_back(axes[k], labels[k]);
      for (const SeedValue& one : cell.cells[0].values) {
        const std::vector<SeedValue>& others = cell.cells[1].values;
        if (std::ranges::find(others, one.seed, &SeedValue::seed) != others.end()) cell.seeds.push_back(one.seed);
      }
      for (size_t side = 0; side < 2; ++side) cell.means[side] = mean(values_at(cell.seeds, cell.cells[side]));
      compared += !cell.seeds.empty();
      if (!cell.is_equal()) found.cells.push_back(std::move(cell));
    }
  }
  for (const auto& [sweep, own] : {std::pair(&left, &ours), std::pair(&right, &theirs)}) {
    if (own->empty()) found.notes.push_back(fmt::format("No run of {} has a result: nothing was compared", sweep->id));
  }
  if (!found.notes.empty()) return found.cells.clear();
  constexpr size_t kMaxScores = 8;
  if (scores.empty()) {
    found.notes.push_back(fmt::format("No score in common: {} has {}; {} has {}", left.id,
                                      some_of({ours.begin(), ours.end()}, kMaxScores), right.id,
                                      some_of({theirs.begin(), theirs.end()}, kMaxScores)));
  } else if (compared == 0) {
    found.notes.push_back({"No cell has a seed with a value in both: nothing was compared"});
  }
}

Differences compare(const ComparedSweep& left, const ComparedSweep& right) {
  require_same_axes(left, right);
  require_same_axes(right, left);
  Differences found;
  const std::vector<std::string> axes = common_axes(left, right);
  compare_runs(left, right, axes, found);
  compare_cells(left, right, axes, found);
  return found;
}

// --- what is printed -------------------------------------------------------------------------------------------------

const char* word_for(Cell::End end) {
  constexpr const char* kWords[] = {"diverged", "failed", "below", "without the score", "not chosen"};
  return kWords[static_cast<size_t>(end)];
}

// The mean over the seeds of both, and of how many seeds the cell has a value, if it is not of all: "27.5 (2/3)".
std::string side_text(const ComparedCell& compared, size_t side) {
  const Cell& cell = compared.cells[side];
  const std::string mean = compared.means[side] ? fmt::format("{:.6g}", *compared.means[side]) : "–";
  const std::string chosen = cell.chosen.labels.empty() ? "" : " @" + cell.chosen.labels;
  return mean + (cell.n() == cell.expected ? "" : fmt::format(" ({}/{})", cell.n(), cell.expected)) + chosen;
}

// "b-5678: 1 failed; 2, 3 diverged", of seeds.
std::string ends_text(const std::string& sweep, const Cell& cell) {
  std::map<Cell::End, std::vector<int64_t>> seeds;
  for (const auto& [seed, end] : cell.ends) seeds[end].push_back(seed);
  std::vector<std::string> parts;
  for (const auto& [end, own] : seeds) parts.push_back(fmt::format("{} {}", fmt::join(own, ", "), word_for(end)));
  return parts.empty() ? "" : fmt::format("{}: {}", sweep, fmt::join(parts, "; "));
}

std::string text_of_cells(const ComparedSweep& left, const ComparedSweep& right, const Differences& found) {
  std::vector<std::vector<std::string>> lines = {
      {"cell", "score", left.id, right.id, "difference", "seeds", "seeds without a value"}};
  bool has_ends = false;
  for (const ComparedCell& cell : found.cells) {
    std::vector<std::string> ends = {ends_text(left.id, cell.cells[0]), ends_text(right.id, cell.cells[1])};
    std::erase(ends, "");
    has_ends |= !ends.empty();
    lines.push_back({cell.labels.empty() ? "all" : label_of(cell.labels), cell.score, side_text(cell, 0),
                     side_text(cell, 1),
                     cell.seeds.empty() ? "–" : fmt::format("{:+.4g}", *cell.means[1] - *cell.means[0]),
                     cell.seeds.empty() ? "none in common" : fmt::format("{}", fmt::join(cell.seeds, ", ")),
                     fmt::format("{}", fmt::join(ends, "; "))});
  }
  for (std::vector<std::string>& line : lines) line.resize(line.size() - !has_ends);
  return text_of_columns(std::move(lines));
}

std::string text_of(const ComparedSweep& left, const ComparedSweep& right, const Differences& found) {
  std::string text;
  print_into(text, "{} of both, {} of {} alone, {} of {} alone\n", counted(found.pairs, "run"), found.only_left,
             left.id, found.only_right, right.id);
  std::vector<std::vector<std::string>> lines = {{"setting", left.id, right.id, "runs"}};
  for (const auto& [change, runs] : found.settings) {
    const auto& [key, before, after] = change;
    lines.push_back({key, before, after, std::to_string(runs)});
  }
  if (lines.size() == 1) lines.push_back({"settings", "the same", "the same", ""});
  text += "\n" + text_of_columns(std::move(lines)) + "\n";
  if (!found.cells.empty()) text += text_of_cells(left, right, found);
  if (found.cells.empty() && found.notes.empty()) text += "No mean of a cell differs.\n";
  for (const std::string& note : found.notes) print_into(text, "{}.\n", note);
  return text;
}

json differences_json(const ComparedSweep& left, const ComparedSweep& right, const Differences& found) {
  json settings = json::array(), cells = json::array();
  for (const auto& [change, runs] : found.settings) {
    const auto& [key, before, after] = change;
    settings.push_back({{"key", key}, {"values", {before, after}}, {"runs", runs}});
  }
  for (const ComparedCell& cell : found.cells) {
    json n = json::array(), means = json::array(), ends = json::array();
    for (size_t side = 0; side < 2; ++side) {
      n.push_back(cell.cells[side].n());
      means.push_back(cell.means[side] ? json(*cell.means[side]) : json());
      json& own = ends.emplace_back(json::object());
      for (const auto& [seed, end] : cell.cells[side].ends) own[std::to_string(seed)] = word_for(end);
    }
    cells.push_back({{"labels", to_json(cell.labels)},
                     {"score", cell.score},
                     {"means", means},
                     {"n", n},
                     {"seeds", cell.seeds},
                     {"without_value", ends}});
  }
  return {{"sweeps", {left.id, right.id}},
          {"runs", {{"both", found.pairs}, {"only", {found.only_left, found.only_right}}}},
          {"settings", settings},
          {"cells", cells},
          {"notes", found.notes}};
}

ComparedSweep compared_sweep(const Store& store, const std::string& id, const Globals& globals) {
  ComparedSweep side{.id = id, .grid = frozen_grid(Workspace(globals.workspace), id), .rows = {}};
  side.rows = rows_of(store, *store.sweep(id));
  set_trained(side.rows);
  read_results(&store, side.rows);
  return side;
}

}  // namespace

std::string differences_of_sweeps(std::unique_ptr<const Store> store, const std::string& left, const std::string& right,
                                  const std::vector<std::string>& where, const Globals& globals) {
  ComparedSweep before = compared_sweep(*store, left, globals), after = compared_sweep(*store, right, globals);
  narrow(before, after, where);
  narrow(after, before, where);
  const Differences found = compare(before, after);
  return globals.json ? json_text(differences_json(before, after, found)) : text_of(before, after, found);
}

}  // namespace tearless::harness
