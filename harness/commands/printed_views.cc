#include "harness/commands/printed_views.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "base/words.h"
#include "harness/check/recorded_looks.h"
#include "harness/figure/draw.h"
#include "harness/report/collect.h"
#include "harness/results/curves.h"
#include "harness/results/sentences.h"
#include "harness/runs/measured.h"

namespace tearless::harness {
namespace {

/// The scores that tables compare over sentences.
std::vector<std::string> scores_compared(const std::vector<View>& views) {
  std::vector<std::string> scores;
  for (const View& view : views) {
    const auto* table = std::get_if<TableSpec>(&view.spec);
    if (!table || !table->test || !table->test->is_over_sentences()) continue;
    const std::vector<std::string> shown = table->scores.empty() ? std::vector<std::string>{"test.*"} : table->scores;
    scores.insert(scores.end(), shown.begin(), shown.end());
  }
  return scores;
}

}  // namespace

void read_for_views(GridState& state) {
  add_defined_scores(state.grid, state.results);
  read_sentences(state.results, scores_compared(state.views));
  read_beginnings(state.results);
}

NeededStatistics statistics_of_views(const GridState& state) {
  // A score that is made of the norms needs them where it is shown.
  const auto is_of_norms = [&](const std::string& shown) {
    return shown == kGradientNorms || std::ranges::any_of(state.grid.defined_scores, [&](const DefinedScore& one) {
             return one.is_over_updates() && one.of == kGradientNorms && matches_score(shown, one.name);
           });
  };
  NeededStatistics needed;
  for (const View& view : state.views) {
    StatisticsFiles files;
    Where where;
    if (const auto* table = std::get_if<TableSpec>(&view.spec)) {
      files.gradient_norms = std::ranges::any_of(table->named, is_of_norms, &NamedScore::name) ||
                             (table->scores.empty() && is_of_norms("test.*"));
      files.sentences = table->test && table->test->is_over_sentences();
      where = table->arrangement.where;
    } else if (const auto* figure = std::get_if<FigureSpec>(&view.spec)) {
      files.gradient_norms = std::ranges::any_of(figure->y, is_of_norms) || is_of_norms(figure->metric);
      where = figure->where;
    } else if (const auto* claim = std::get_if<ClaimSpec>(&view.spec)) {
      files.gradient_norms = is_of_norms(claim->curve);
    }
    for (const Row& row : state.results.rows) {
      if (!where.has(row.run.coordinates)) continue;
      needed[row.run.id].gradient_norms |= files.gradient_norms;
      needed[row.run.id].sentences |= files.sentences;
    }
  }
  return needed;
}

std::vector<Table> tables_of(const GridState& state, const std::string& options, Notes notes, ResumeNote resume) {
  std::vector<Table> tables;
  for (const View& view : state.views) {
    if (const auto* spec = std::get_if<TableSpec>(&view.spec))
      tables.push_back(fill(state.grid, view.title, *spec, state.results.rows, options, resume, notes));
  }
  return tables;
}

GridChecks checks_of(const GridState& state) { return check_with_looks(state.grid, state.views, state.results); }

std::vector<std::string> names_of_figures(const GridState& state, size_t before) {
  std::vector<std::string> names;
  for (const View& view : state.views) {
    const auto* spec = std::get_if<FigureSpec>(&view.spec);
    if (!spec) continue;
    ++before;
    names.push_back(spec->name.empty() ? fmt::format("figure-{}", before) : spec->name);
  }
  return names;
}

std::vector<Figure> figures_of(GridState& state, const std::vector<std::string>& names, bool has_scores,
                               const std::function<bool(const std::string&)>& is_wanted) {
  std::vector<Figure> figures;
  auto name = names.begin();
  for (const View& view : state.views) {
    const auto* spec = std::get_if<FigureSpec>(&view.spec);
    if (!spec || !is_wanted(*name++)) continue;
    if (!is_of_metrics(spec->x) && !std::exchange(has_scores, true)) add_defined_scores(state.grid, state.results);
    figures.push_back(draw(state.grid, state.views, view.title, *spec, state.results));
    figures.back().name = *std::prev(name);
  }
  return figures;
}

Report report_of(std::vector<GridState>& states, const Globals& globals, bool all_curves) {
  Report report;
  for (GridState& state : states) {
    const std::vector<std::string> names = names_of_figures(state);
    add_grid({.grid = state.grid,
              .views = state.views,
              .results = state.results,
              .tables = tables_of(state, options_again(globals), Notes::kFinal),
              .figures = figures_of(state, names, /*has_scores=*/true, [](const std::string&) { return true; }),
              .checks = checks_of(state)},
             Workspace(globals.workspace), all_curves, report);
  }
  const auto others = std::ssize(states) - 1;
  report.title = states.front().grid.title + (others > 0 ? fmt::format(" and {}", counted(others, "other grid")) : "");
  return report;
}

}  // namespace tearless::harness
