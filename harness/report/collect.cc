#include "harness/report/collect.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <variant>

#include "base/files.h"
#include "base/pattern.h"
#include "base/words.h"
#include "harness/archive/published.h"
#include "harness/folders/sweep_directory.h"
#include "harness/grid/expand.h"
#include "harness/results/curves.h"
#include "harness/results/states_text.h"
#include "harness/runs/attempt_files.h"
#include "harness/selection/selectors.h"
#include "harness/table/latex.h"

namespace tearless::harness {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// --- what was asked --------------------------------------------------------------------------------------------------

std::string in_print(const Names& names, const std::string& axis, const std::string& label) {
  const std::string name = name_of(names, axis, label).text;
  return name == label ? label : fmt::format("{} ({})", name, label);
}

Facts asked_of(const Grid& grid, const std::vector<Row>& rows) {
  Facts facts;
  for (const Axis& axis : grid.axes) {
    std::vector<std::string> labels;
    for (const AxisPoint& point : axis.points) labels.push_back(in_print(grid.names, axis.name, point.label));
    const std::string name = name_of(grid.names, axis.name).text;
    facts.emplace_back(name.empty() || name == axis.name ? axis.name : fmt::format("{} ({})", name, axis.name),
                       fmt::format("{}", fmt::join(labels, ", ")));
  }
  facts.emplace_back("seeds", fmt::format("{}", fmt::join(grid.seeds, ", ")));
  if (!grid.claims.looks.empty())
    facts.emplace_back("looks at claims", fmt::format("with {} seeds", fmt::join(grid.claims.looks, ", ")));
  std::map<std::string, int64_t> excluded;  // why → combinations
  for_each_cell(grid, [&](const Combination&, const Exclusion* exclusion) {
    if (exclusion) ++excluded[exclusion->why];
  });
  for (const auto& [why, cells] : excluded)
    facts.emplace_back("left out", fmt::format("{}: {}", counted(cells, "combination"), why));
  std::vector<std::string> derivations;
  for (const Derivation& derivation : grid.derivations) derivations.push_back(derivation.name);
  if (!derivations.empty()) facts.emplace_back("derived runs", fmt::format("{}", fmt::join(derivations, ", ")));
  RunCounts counts;
  for (const Row& row : rows) ++counts[row.result.state];
  facts.emplace_back("runs", fmt::format("{}: {}", rows.size(), text_of(counts)));
  return facts;
}

// --- sweeps ----------------------------------------------------------------------------------------------------------

/// "0123456789abcdef…, clean"; "not known".
std::string commit_text(const json& commit) {
  if (commit.is_null()) return "not known: the grid file was in no git repository, or not tracked";
  std::string text = commit.value("id", "");
  if (!commit.contains("clean")) {
    text += ", and git did not say whether its tree was clean";
  } else {
    text += commit["clean"] == true ? ", clean" : ", with changes that were not committed";
  }
  if (commit.contains("diff")) text += fmt::format(" ({} of diff)", counted(commit["diff"].value("lines", 0), "line"));
  return text + (commit.value("tracked", true) ? "" : "; the grid file is untracked");
}

ReportSweep sweep_of(const Workspace& workspace, const std::string& id) {
  const Sweep sweep = read_sweep_head(workspace, id);
  const std::string file = fs::path(sweep.grid_file).filename();
  const std::vector<std::string> set = frozen_grid(workspace, id).set_options;
  ReportSweep about{
      .id = id,
      .command = without_folders(fmt::format("tearless run {}{}", shell_word(file), option_words("--set", set)))};
  about.facts = {{"sweep", id}, {"grid file", file}, {"last submitted", sweep.submitted_at}};
  if (sweep.name != sweep.title) about.facts.emplace_back("name", sweep.name);
  if (!sweep.tags.empty()) about.facts.emplace_back("tags", fmt::format("{}", fmt::join(sweep.tags, ", ")));
  about.note = without_folders(sweep.note);
  about.facts.emplace_back("commit", commit_text(commit_of(workspace, id)));
  std::string program = sweep.stamp.value("program", "");
  if (const std::string version = sweep.stamp.value("version", ""); !version.empty()) program += ", version " + version;
  if (const std::string runtime = sweep.stamp.value("runtime", ""); !runtime.empty()) program += ", " + runtime;
  if (sweep.stamp.contains("numerics")) program += fmt::format(", numerics {}", sweep.stamp["numerics"].dump());
  about.facts.emplace_back("program", without_folders(program));
  if (const auto& environment = sweep.policy.environment) {
    std::vector<std::string> names = environment->names;
    for (const std::string& secret : environment->secrets) names.push_back(secret + " (secret)");
    if (!names.empty()) about.facts.emplace_back("variables", fmt::format("{}", fmt::join(names, ", ")));
  }
  return about;
}

/// The newest sweep of the grid file that has the run, or of any; "": none has it.
std::string sweep_with(const std::string& run, const Grid& grid, const Store& store) {
  std::string newest;
  for (const std::string& id : store.sweeps_of(run)) {  // the newest comes last
    if (newest.empty() || is_of_grid(*store.sweep(id), grid.file)) newest = id;
  }
  return newest;
}

// --- runs ------------------------------------------------------------------------------------------------------------

std::map<std::string, std::string> settings_of(const std::string& text) {
  std::map<std::string, std::string> settings;
  for (const std::string_view line : split_lines(text)) {
    if (const size_t equals = line.find(" = "); equals != std::string_view::npos)
      settings.emplace(line.substr(0, equals), line.substr(equals + 3));
  }
  return settings;
}

/// Of the metrics that the run has no curve of yet.
void add_curves(const ResultSet& results, std::vector<std::string> metrics, ReportRun& run, bool& is_thin) {
  std::erase_if(metrics, [&](const std::string& metric) { return run.curves.contains(metric); });
  if (metrics.empty()) return;
  std::vector<ThinCurve> curves(metrics.size(), ThinCurve(kCurvePoints));
  read_curves(results, run.row, metrics, [&](size_t metric, int64_t update, double value) {
    curves[metric].add(static_cast<double>(update), value);
  });
  for (size_t i = 0; i < metrics.size(); ++i) {
    Curve curve = curves[i].curve();
    is_thin |= curve.size() < curves[i].added();
    if (!curve.empty()) run.curves.emplace(metrics[i], std::move(curve));
  }
}

/// "LayerNorm, layers = 4".
std::string in_print(const Names& names, const Row& row) {
  std::vector<std::string> axes, labels;
  for (const auto& [axis, label] : row.run.coordinates) {
    axes.push_back(axis);
    labels.push_back(label);
  }
  return labels_in_print(names, axes, labels).text;
}

ReportRun run_of(const Row& row, const Grid& grid, size_t number, const Workspace& workspace) {
  ReportRun run{
      .row = row, .grid = number, .label = in_print(grid.names, row), .settings = settings_of(row.run.settings)};
  RunResult& result = run.row.result;
  const RunDirectory folder = workspace.run(row.run.id);
  result.reason = published_reason(folder, result.reason);
  for (AttemptRecord& attempt : result.attempts) attempt.reason = published_reason(folder, attempt.reason);
  return run;
}

}  // namespace

std::vector<std::string> metrics_of(const Grid& grid, const std::vector<View>& views) {
  std::vector<std::string> metrics;
  for (const View& view : views) {
    if (const auto* figure = std::get_if<FigureSpec>(&view.spec); figure && is_of_metrics(figure->x)) {
      metrics.insert(metrics.end(), figure->y.begin(), figure->y.end());
      metrics.push_back(figure->metric);
    } else if (const auto* claim = std::get_if<ClaimSpec>(&view.spec)) {
      metrics.push_back(claim->curve);
    }
  }
  for (const DefinedScore& score : grid.defined_scores) {
    if (score.is_over_updates()) metrics.push_back(score.of);
  }
  metrics.insert(metrics.end(), {"train.loss", "dev.*"});
  return metrics;
}

void add_grid(PrintedGrid printed, const Workspace& workspace, bool all_curves, Report& report) {
  const auto& [grid, views, results, tables, figures, checks] = printed;
  const size_t number = report.grids.size();
  report.grids.push_back({.title = grid.title,
                          .names = grid.names,
                          .asked = asked_of(grid, results.rows),
                          .tables = std::move(printed.tables),
                          .figures = std::move(printed.figures),
                          .checks = std::move(printed.checks)});
  report.cost.add(results.rows, grid.seeds.size());
  std::vector<std::string> metrics;
  if (results.store) {
    std::vector<std::string> used = metrics_of(grid, views), names = results.store->metric_names();
    if (all_curves) used.emplace_back("*");
    names.emplace_back(kGradientNorms);
    const auto add = [](const std::string& name, std::vector<std::string>& all) {
      if (std::ranges::find(all, name) == all.end()) all.push_back(name);
    };
    for (const std::string& pattern : used) {
      for (const std::string& name : names) {
        if (!matches_pattern(pattern, name) || (pattern == "*" && name == kGradientNorms)) continue;
        add(name, metrics);
        add(name, report.metrics);
      }
    }
  }
  std::map<std::string, size_t> known;  // id → run of the report
  for (size_t i = 0; i < report.runs.size(); ++i) known.emplace(report.runs[i].row.run.id, i);
  std::set<std::string> sweeps;
  for (const ReportSweep& sweep : report.sweeps) sweeps.insert(sweep.id);
  const size_t first = report.runs.size();
  for (const Row& row : results.rows) {
    const auto [place, is_new] = known.emplace(row.run.id, report.runs.size());
    if (is_new) report.runs.push_back(run_of(row, grid, number, workspace));
    if (!row.result.state) continue;
    add_curves(results, metrics, report.runs[place->second], report.has_thin_curves);
    const std::string sweep = row.sweep ? row.sweep->id : sweep_with(row.run.id, grid, *results.store);
    if (!sweep.empty() && sweeps.insert(sweep).second) report.sweeps.push_back(sweep_of(workspace, sweep));
  }
  for (size_t i = first; i < report.runs.size(); ++i) {
    ReportRun& run = report.runs[i];
    const auto trained = known.find(run.row.trained);
    if (!run.row.is_trained() && trained != known.end()) run.trained = trained->second;
  }
  if (!results.rows.empty() && results.rows.front().sweep) {
    const fs::path file = workspace.sweep(results.rows.front().sweep->id) / "grid.toml";
    report.grids.back().text = read_if_there(file).value_or("");
  } else {
    report.grids.back().text = read_if_there(grid.file).value_or("");
  }
  report.has_all_curves = all_curves;
}

}  // namespace tearless::harness
