// `tearless plot [SWEEP | RUN …] METRIC …`: the curves of runs over updates, drawn on the terminal or as CSV. It reads
// the database alone.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/nearest.h"
#include "base/print.h"
#include "base/utf8.h"
#include "harness/commands/commands.h"
#include "harness/commands/csv_option.h"
#include "harness/figure/draw.h"
#include "harness/plan/grid_state.h"
#include "harness/results/curves.h"
#include "harness/results/result_set.h"
#include "harness/screen/screen.h"
#include "harness/table/columns.h"
#include "harness/table/table.h"

namespace tearless::harness {
namespace {

struct PlotOptions {
  std::vector<std::string> words;  // and metrics
  std::string by = "cell";
  bool csv = false;
  Formulas formulas = Formulas::kAsTheyAre;

  bool is_by_run() const { return by == "run"; }
};

struct PlottedRun {
  const Row* row;
  std::vector<Curve> curves;  // one for each metric

  bool has_diverged() const { return row->result.state == RunState::kDiverged; }
};
// What one line stands for: a run, or those that differ in their seed alone.
using PlottedCell = std::vector<PlottedRun>;

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

// For a drawing of bounded size; otherwise whole, in the order of the run's file.
std::vector<Curve> curves_of(const ResultSet& runs, const Row& row, const std::vector<std::string>& metrics,
                             bool is_drawn) {
  std::vector<Curve> curves(metrics.size());
  std::vector<CurveCollector> collectors(metrics.size());
  read_curves(runs, row, metrics, [&](size_t metric, int64_t update, double value) {
    const auto x = static_cast<double>(update);
    is_drawn ? collectors[metric].add(x, value) : curves[metric].push_back({x, value});
  });
  for (size_t i = 0; i < metrics.size() && is_drawn; ++i) curves[i] = collectors[i].take();
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
  if (there.empty()) fail("no selected run has reported a metric yet");
  const std::vector<std::string> names(there.begin(), there.end());
  const std::string list = fmt::format("{}", fmt::join(names, ", "));
  if (metric.empty()) fail("name a metric to plot; the selected runs have {}", list);
  fail("no selected run has the metric \"{}\"{}; they have {}", metric, did_you_mean(metric, names), list);
}

// A cell for each line. The cells borrow the rows.
std::vector<PlottedCell> read_cells(const ResultSet& runs, const std::vector<std::string>& metrics,
                                    const PlotOptions& options) {
  if (runs.rows.empty()) return {};
  if (metrics.empty()) refuse_metric(runs, "");
  const auto line_of = [by_run = options.is_by_run()](const Row& row) {
    RowKey key = {row.sweep_id(), by_run || !row.sweep ? row.run.id : ""};
    for (const auto& [axis, label] : row.run.coordinates) key.push_back(axis + "=" + label);
    return key;
  };
  std::vector<PlottedCell> cells;
  std::vector<bool> has_values(metrics.size());
  for (const Group& line : group(runs.rows, line_of)) {
    PlottedCell& cell = cells.emplace_back();
    for (const Row* row : line.rows) {
      cell.push_back({row, curves_of(runs, *row, metrics, !options.csv)});
      for (size_t i = 0; i < metrics.size(); ++i) has_values[i] = has_values[i] || !cell.back().curves[i].empty();
    }
  }
  const auto missing = std::find(has_values.begin(), has_values.end(), false);
  if (missing != has_values.end()) refuse_metric(runs, metrics[static_cast<size_t>(missing - has_values.begin())]);
  return cells;
}

Figure::Line line_of(const PlottedCell& cell, size_t metric) {
  std::vector<DrawnRun> runs;
  for (const PlottedRun& run : cell) {
    DrawnRun& one = runs.emplace_back(DrawnRun{run.curves[metric], run.has_diverged()});
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

// --- as a drawing --------------------------------------------------------------------------------------------------

// "3", "2 of 3", "3, 1 diverged".
std::string seeds_text(const PlottedCell& cell) {
  const auto has_curve = [](const PlottedRun& run) {
    return std::any_of(run.curves.begin(), run.curves.end(), [](const Curve& curve) { return !curve.empty(); });
  };
  const auto reporting = std::count_if(cell.begin(), cell.end(), has_curve);
  const auto diverged = std::count_if(cell.begin(), cell.end(), [](const auto& run) { return run.has_diverged(); });
  std::string text = std::to_string(reporting);
  if (reporting != static_cast<ptrdiff_t>(cell.size())) text += fmt::format(" of {}", cell.size());
  return diverged == 0 ? text : text + fmt::format(", {} diverged", diverged);
}

struct LegendColumn {
  std::string name;
  std::function<std::string(const PlottedCell&)> text;
  bool always = false;  // else only where the lines differ in it
};

void add_legend(Figure& figure, const std::vector<PlottedCell>& cells, bool by_run) {
  std::vector<LegendColumn> columns = {{"sweep", [](const PlottedCell& cell) { return cell.front().row->sweep_id(); }}};
  for (const std::string& axis : axes_of(cells)) {
    columns.push_back({axis,
                       [axis](const PlottedCell& cell) { return label_on(cell.front().row->run.coordinates, axis); },
                       /*always=*/cells.size() == 1});
  }
  if (by_run) {
    columns.push_back(
        {"seed", [](const PlottedCell& cell) { return std::to_string(cell.front().row->run.seed); }, true});
    columns.push_back({"run", [](const PlottedCell& cell) { return cell.front().row->run.id.substr(0, 8); }, true});
    columns.push_back(
        {"state", [](const PlottedCell& cell) { return std::string(name_of(cell.front().row->result.state)); }, true});
  } else {
    columns.push_back({"seeds", seeds_text, true});
  }
  std::erase_if(columns, [&](const LegendColumn& column) {
    return !column.always && std::all_of(cells.begin(), cells.end(), [&](const PlottedCell& cell) {
      return column.text(cell) == column.text(cells.front());
    });
  });
  for (const LegendColumn& column : columns) figure.heading.push_back({column.name});
  for (const PlottedCell& cell : cells) {
    std::vector<Name>& row = figure.legend.emplace_back();
    for (const LegendColumn& column : columns) row.push_back({column.text(cell)});
  }
}

Figure figure_of(const std::vector<PlottedCell>& cells, const std::vector<std::string>& metrics, bool by_run) {
  Figure figure;
  bool has_band = false, has_diverged = false;
  for (size_t i = 0; i < metrics.size(); ++i) {
    Figure::Panel& panel = figure.panels.emplace_back();
    panel.y = {metrics[i]};
    for (const PlottedCell& cell : cells) {
      const Figure::Line& line = panel.lines.emplace_back(line_of(cell, i));
      has_diverged = has_diverged || !line.diverged.empty();
      has_band =
          has_band || std::ranges::any_of(line.points, [](const BandPoint& point) { return point.low < point.high; });
    }
  }
  add_legend(figure, cells, by_run);
  std::vector<std::string> notes;
  if (has_band) notes.emplace_back("line: mean of the seeds; dots: their min–max");
  if (has_diverged) notes.emplace_back(by_run ? "×: diverged" : "×: diverged, not in the mean");
  if (!notes.empty()) figure.notes.push_back(fmt::format("{}", fmt::join(notes, "; ")));
  return figure;
}

// --- as CSV ----------------------------------------------------------------------------------------------------------

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

int plot(const PlotOptions& options, const Globals& globals) {
  if (options.by != "cell" && options.by != "run") {
    fail("--by {} is not known; it must be cell (a line for the seeds of a cell together) or run (a line for each run)",
         options.by);
  }
  require_csv(options.formulas, options.csv, "--csv");
  std::unique_ptr<const Store> store = require_store(globals);
  std::vector<std::string> words, metrics;
  for (const std::string& word : options.words) {
    std::vector<std::string>& list = is_metric(*store, word) ? metrics : words;
    if (std::find(list.begin(), list.end(), word) == list.end()) list.push_back(word);
  }
  ResultSet runs;
  std::vector<PlottedCell> cells;  // borrow the rows of `runs`
  const Store& of_one_moment = *store;
  of_one_moment.in_snapshot([&] {
    const Selection selection = select_or_last(of_one_moment, words);
    runs = selected_rows(std::move(store), selection, Duplicates::kNewest, Read::kStates);
    leave_out_derived(runs.rows);  // they make no update
    cells = read_cells(runs, metrics, options);
  });
  if (options.csv) {
    print_points(cells, metrics, options);
  } else if (!cells.empty()) {
    fmt::print("{}", render_text(figure_of(cells, metrics, options.is_by_run()), terminal_size(stdout).columns,
                                 has_colour(stdout)));
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
