// `tearless plot [SWEEP | RUN …] METRIC …`: the curves of runs over updates, drawn on the terminal, or as CSV or JSON.
// It reads the database alone.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/nearest.h"
#include "base/print.h"
#include "harness/commands/commands.h"
#include "harness/console/columns.h"
#include "harness/console/csv_option.h"
#include "harness/console/screen.h"
#include "harness/figure/draw.h"
#include "harness/plan/grid_state.h"
#include "harness/results/curves.h"
#include "harness/results/result_set.h"

namespace tearless::harness {
namespace {

struct PlotOptions {
  std::vector<std::string> words;  // and metrics
  std::string by = "cell";
  bool csv = false;
  Formulas formulas = Formulas::kAsTheyAre;

  bool is_by_run() const { return by == "run"; }
};

// What a run of the workspace has reported is a metric; so is what has a dot, unless it is a grid file, a label or a
// sweep, so that one that is not there yet, or is mistyped, is not looked up as a run.
bool is_metric(const Store& store, const std::string& word) {
  if (word == kGradientNorms) return true;
  const std::vector<std::string> known = store.metric_names();
  if (std::find(known.begin(), known.end(), word) != known.end()) return true;
  if (word.find('.') == std::string::npos || is_label_word(word) || is_grid_word(word)) return false;
  const std::vector<Sweep> sweeps = store.sweeps();
  return std::none_of(sweeps.begin(), sweeps.end(),
                      [&](const Sweep& sweep) { return sweep.id.starts_with(word) || sweep.name == word; });
}

// Whole, in the order of the run's file.
std::vector<Curve> curves_of(const ResultSet& runs, const Row& row, const std::vector<std::string>& metrics) {
  std::vector<Curve> curves(metrics.size());
  read_curves(runs, row, metrics, [&](size_t metric, int64_t update, double value) {
    curves[metric].push_back({static_cast<double>(update), value});
  });
  return curves;
}

std::set<std::string> metrics_of(const ResultSet& runs) {
  std::set<std::string> names;
  for (const Row& row : runs.rows) {
    for (std::string& name : runs.store->metric_names_of(row.run.id)) names.insert(std::move(name));
  }
  return names;
}

[[noreturn]] void refuse_metric(const ResultSet& runs, const std::string& metric) {
  const std::set<std::string> there = metrics_of(runs);
  if (there.empty()) fail("no selected run has reported a metric");
  const std::vector<std::string> names(there.begin(), there.end());
  const std::string list = fmt::format("{}", fmt::join(names, ", "));
  if (metric.empty()) fail("name a metric to plot; the selected runs have {}", list);
  fail("no selected run has the metric \"{}\"{}; they have {}", metric, did_you_mean(metric, names), list);
}

void require_metrics(const ResultSet& runs, const std::vector<std::string>& metrics) {
  if (metrics.empty()) refuse_metric(runs, "");
  const std::set<std::string> there = metrics_of(runs);
  for (const std::string& metric : metrics) {
    const auto is_omitted = [&](const Row& row) { return lacks(runs, row, metric); };
    if (std::ranges::any_of(runs.rows, is_omitted))
      fail("{} is not here: this is a copy of results alone; use the workspace that was copied", metric);
    const auto has_norms = [&](const Row& row) { return !curve_of(runs, row, metric).empty(); };
    if (metric == kGradientNorms ? std::ranges::none_of(runs.rows, has_norms) : !there.contains(metric))
      refuse_metric(runs, metric);
  }
}

// --- as a drawing --------------------------------------------------------------------------------------------------

// The figure of a grid without a file, of which these are the runs: what tells its lines apart are its axes.
Figure figure_of(ResultSet& runs, const std::vector<std::string>& metrics, bool by_run) {
  Grid grid;
  std::set<int64_t> seeds;
  std::set<std::string> sweeps;
  for (const Row& row : runs.rows) sweeps.insert(row.sweep_id());
  for (Row& row : runs.rows) {
    Labels& labels = row.run.coordinates;
    if (by_run && row.sweep) labels.emplace_back("seed", std::to_string(row.run.seed));
    if (by_run || !row.sweep) labels.emplace_back("run", row.run.id.substr(0, 8));
    if (sweeps.size() > 1) labels.insert(labels.begin(), {"sweep", row.sweep_id()});
    for (const auto& [name, label] : labels) {
      if (std::ranges::find(grid.axes, name, &Axis::name) == grid.axes.end()) grid.axes.emplace_back().name = name;
    }
    seeds.insert(row.run.seed);
    if (row.result.state == RunState::kFailed) row.result.state = RunState::kRunning;  // drawn as far as it came
  }
  std::set<std::vector<uint32_t>> lines;
  for (const Row& row : runs.rows) {
    std::vector<uint32_t> line;
    for (Axis& axis : grid.axes) {
      const std::string label = label_on(row.run.coordinates, axis.name);
      const auto point = std::ranges::find(axis.points, label, &AxisPoint::label);
      line.push_back(static_cast<uint32_t>(point - axis.points.begin()));
      if (point == axis.points.end()) axis.points.emplace_back().label = label;
    }
    lines.insert(line);
  }
  grid.seeds.assign(seeds.begin(), seeds.end());
  grid.sample = Sample{.drawn = {lines.begin(), lines.end()}};  // of the product of the axes these are there
  FigureSpec spec;
  spec.y = metrics;
  spec.panel_for_each_y = true;
  spec.band = FigureSpec::Band::kRange;
  spec.ends_at_fewer = false;
  for (size_t axis = 0; axis < grid.axes.size(); ++axis) spec.lines.push_back(axis);
  return draw(grid, {}, {}, spec, runs);
}

// --- as CSV and JSON ------------------------------------------------------------------------------------------------

struct PlottedRun {
  const Row* row;
  std::vector<Curve> curves;  // one for each metric
};
// What one line stands for: a run, or those that differ in their seed alone.
using PlottedCell = std::vector<PlottedRun>;

// A cell for each line. The cells borrow the rows.
std::vector<PlottedCell> read_cells(const ResultSet& runs, const std::vector<std::string>& metrics, bool by_run) {
  const auto line_of = [by_run](const Row& row) {
    RowKey key = {row.sweep_id(), by_run || !row.sweep ? row.run.id : ""};
    for (const auto& [axis, label] : row.run.coordinates) key.push_back(axis + "=" + label);
    return key;
  };
  std::vector<PlottedCell> cells;
  for (const Group& line : group(runs.rows, line_of)) {
    PlottedCell& cell = cells.emplace_back();
    for (const Row* row : line.rows) cell.push_back({row, curves_of(runs, *row, metrics)});
  }
  return cells;
}

Figure::Line line_of(const PlottedCell& cell, size_t metric) {
  std::vector<DrawnRun> runs;
  for (const PlottedRun& run : cell) {
    DrawnRun& one = runs.emplace_back(DrawnRun{run.curves[metric], run.row->result.state == RunState::kDiverged});
    put_in_order(one.curve);
    if (!one.curve.empty()) one.end = one.curve.back();
  }
  return line_of(runs, FigureSpec::Band::kRange, /*joins=*/true);
}

std::vector<std::string> axes_of(const std::vector<PlottedCell>& cells) {
  std::vector<std::string> axes;
  for (const PlottedCell& cell : cells) {
    for (const auto& [axis, label] : cell.front().row->run.coordinates) {
      if (std::find(axes.begin(), axes.end(), axis) == axes.end()) axes.push_back(axis);
    }
  }
  return axes;
}

// Line by line: there may be millions.
void print_points(const std::vector<PlottedCell>& cells, const std::vector<std::string>& metrics,
                  const PlotOptions& options) {
  const bool by_run = options.is_by_run();
  const std::vector<std::string> axes = axes_of(cells);
  std::vector<std::string> header = {"metric", "sweep"};
  if (by_run) header.insert(header.end(), {"run", "seed"});
  header.insert(header.end(), axes.begin(), axes.end());
  for (const char* name : by_run ? std::vector{"step", "value"} : std::vector{"step", "mean", "min", "max", "runs"}) {
    header.emplace_back(name);
  }
  fmt::print("{}", csv_header(header, options.formulas));
  for (size_t i = 0; i < metrics.size(); ++i) {
    for (const PlottedCell& cell : cells) {
      const Row& row = *cell.front().row;
      std::vector<std::string> texts = {metrics[i], row.sweep_id()};
      if (by_run) texts.insert(texts.end(), {row.run.id, row.sweep ? std::to_string(row.run.seed) : ""});
      for (const std::string& axis : axes) texts.push_back(label_on(row.run.coordinates, axis));
      std::string begin = csv_line(texts, options.formulas);
      begin.back() = ',';  // the numbers follow
      if (by_run) {
        for (const CurvePoint& point : cell.front().curves[i]) fmt::print("{}{:.0f},{}\n", begin, point.x, point.y);
        continue;
      }
      for (const BandPoint& point : line_of(cell, i).points) {
        fmt::print("{}{:.0f},{},{},{},{}\n", begin, point.x, point.mean, point.low, point.high, point.runs);
      }
    }
  }
}

nlohmann::json json_of(const PlottedCell& cell, const std::vector<std::string>& metrics, size_t metric, bool by_run) {
  using nlohmann::json;
  const Row& row = *cell.front().row;
  json line = {{"metric", metrics[metric]}, {"sweep", row.sweep_id()}, {"labels", json::object()}};
  for (const auto& [axis, label] : row.run.coordinates) line["labels"][axis] = label;
  json& points = line["points"] = json::array();
  if (by_run) {
    line["run"] = row.run.id;
    line["seed"] = row.sweep ? json(row.run.seed) : json();
    for (const CurvePoint& point : cell.front().curves[metric])
      points.push_back({{"step", static_cast<int64_t>(point.x)}, {"value", point.y}});
    return line;
  }
  for (const BandPoint& point : line_of(cell, metric).points) {
    points.push_back({{"step", static_cast<int64_t>(point.x)},
                      {"mean", point.mean},
                      {"min", point.low},
                      {"max", point.high},
                      {"runs", point.runs}});
  }
  return line;
}

nlohmann::json json_of(const std::vector<PlottedCell>& cells, const std::vector<std::string>& metrics, bool by_run) {
  nlohmann::json lines = nlohmann::json::array();
  for (size_t metric = 0; metric < metrics.size(); ++metric) {
    for (const PlottedCell& cell : cells) lines.push_back(json_of(cell, metrics, metric, by_run));
  }
  return lines;
}

int plot(const PlotOptions& options, const Globals& globals) {
  if (options.by != "cell" && options.by != "run") {
    fail("--by {} is not known; it must be cell (a line for the seeds of a cell together) or run (a line for each run)",
         options.by);
  }
  require_csv(options.formulas, options.csv, "--csv");
  if (options.csv && globals.json) fail("--json and --csv contradict each other; omit one of them");
  std::unique_ptr<const Store> store = require_store(globals);
  std::vector<std::string> words, metrics;
  for (const std::string& word : options.words) {
    std::vector<std::string>& list = is_metric(*store, word) ? metrics : words;
    if (std::find(list.begin(), list.end(), word) == list.end()) list.push_back(word);
  }
  ResultSet runs;
  std::vector<PlottedCell> cells;  // borrow the rows of `runs`
  std::optional<Figure> figure;
  const Store& of_one_moment = *store;
  of_one_moment.in_snapshot([&] {
    const Selection selection = select_or_last(of_one_moment, words);
    runs = selected_rows(std::move(store), selection, Duplicates::kNewest, Read::kStates);
    leave_out_derived(runs.rows);  // they make no update
    if (runs.rows.empty()) return;
    require_metrics(runs, metrics);
    if (options.csv || globals.json) {
      cells = read_cells(runs, metrics, options.is_by_run());
    } else {
      figure = figure_of(runs, metrics, options.is_by_run());
    }
  });
  if (globals.json) {
    print_json(json_of(cells, metrics, options.is_by_run()));
  } else if (options.csv) {
    print_points(cells, metrics, options);
  } else if (figure) {
    fmt::print("{}", render_text(*figure, terminal_size(stdout).columns, has_colour(stdout)));
  }
  return kOk;
}

}  // namespace

Action command_plot(CLI::App& app, const Globals& globals) {
  const auto options = std::make_shared<PlotOptions>();
  app.add_option(
      "what", options->words,
      "sweeps (ids, names, grid files, last, all) or runs (ids, places, states, axis=label); default: last. And the "
      "metrics to plot, such as train.loss");
  app.add_option(
      "--by", options->by,
      "cell: a line for each cell, the mean of its seeds in a band of their values (default); run: a line for "
      "each run");
  app.add_flag("--csv", options->csv,
               "print the points as CSV: of cells mean, min, max and number of runs at each step, of runs the values");
  add_formulas_option(app, options->formulas);
  return [options, &globals] { return plot(*options, globals); };
}

}  // namespace tearless::harness
