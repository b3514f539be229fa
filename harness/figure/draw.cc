#include "harness/figure/draw.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/words.h"
#include "harness/cells/scores.h"
#include "harness/figure/band.h"
#include "harness/figure/figure_notes.h"
#include "harness/figure/reading.h"
#include "harness/table/latex.h"

namespace tearless::harness {
namespace {

using X = FigureSpec::X;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// --- words -----------------------------------------------------------------------------------------------------------

/// Of a word that is neither an axis nor a label.
Name name_of_word(const Grid& grid, const std::string& word) {
  for (const Axis& axis : grid.axes) {
    if (std::ranges::find(axis.points, word, &AxisPoint::label) != axis.points.end()) return {word};
  }
  return name_of(grid.names, word);
}

Name x_name(const Grid& grid, const FigureSpec& spec) {
  switch (spec.x) {
    case X::kUpdates:
      return name_of_word(grid, "updates");
    case X::kHours:
      return name_of_word(grid, "hours");
    case X::kLayer:
      return name_of_word(grid, "layer");
    case X::kAxis:
      return name_of(grid.names, grid.axes[spec.axis].name);
    case X::kMetric:
      return name_of_word(grid, spec.metric);
  }
  return {};
}

std::vector<Name> names_at(const Grid& grid, const std::vector<size_t>& axes, const Coordinates& at) {
  std::vector<Name> names;
  for (size_t i = 0; i < axes.size(); ++i)
    names.push_back(name_of(grid.names, grid.axes[axes[i]].name, label_at(grid, axes[i], at[i])));
  return names;
}

std::vector<Name> names_of(const Grid& grid, const std::vector<size_t>& axes) {
  std::vector<Name> names;
  for (const size_t axis : axes) names.push_back(name_of(grid.names, grid.axes[axis].name));
  return names;
}

/// A column for each axis of the lines, and for y and the seed where lines differ in these.
void add_legend(const Grid& grid, const FigureSpec& spec, const FigurePlaces& places, Figure& figure) {
  const bool has_y = !spec.panel_for_each_y && spec.y.size() > 1;
  figure.heading = names_of(grid, spec.lines);
  if (has_y) figure.heading.push_back({""});
  if (spec.line_for_each_run) figure.heading.push_back({"seed"});
  for (const LineKey& line : places.lines) {
    std::vector<Name> row = names_at(grid, spec.lines, line.at);
    if (has_y) row.push_back(name_of(grid.names, spec.y[*line.y]));
    if (line.seed) row.push_back({std::to_string(*line.seed)});
    figure.legend.push_back(std::move(row));
  }
}

/// For CSV: the labels on the axes of the panels and of the lines.
std::vector<std::string> labels_of(const Grid& grid, const FigureSpec& spec, const PanelKey& panel,
                                   const LineKey& line) {
  std::vector<std::string> labels;
  for (size_t i = 0; i < spec.panels.size(); ++i) labels.push_back(label_at(grid, spec.panels[i], panel.at[i]));
  for (size_t i = 0; i < spec.lines.size(); ++i) labels.push_back(label_at(grid, spec.lines[i], line.at[i]));
  if (line.seed) labels.push_back(std::to_string(*line.seed));
  return labels;
}
/// A line of its own has its label on the first axis of the lines.
std::vector<std::string> labels_of(const Grid& grid, const FigureSpec& spec, const PanelKey& panel,
                                   const FigureSpec::PublishedLine& published) {
  std::vector<std::string> labels;
  for (size_t i = 0; i < spec.panels.size(); ++i) labels.push_back(label_at(grid, spec.panels[i], panel.at[i]));
  for (size_t i = 0; i < published.line_at.size(); ++i)
    labels.push_back(label_at(grid, spec.lines[i], published.line_at[i]));
  if (!published.label.empty()) labels.push_back(published.label);
  labels.resize(spec.panels.size() + spec.lines.size() + (spec.line_for_each_run ? 1 : 0));
  return labels;
}

// --- published lines, and limits -------------------------------------------------------------------------------------

/// "PreNorm (published)", or with the source where the figure has several; the other columns of the legend are empty.
std::vector<Name> published_legend(const Grid& grid, const FigureSpec& spec, const FigureSpec::PublishedLine& published,
                                   size_t columns) {
  std::vector<Name> headings, names = {{published.label}};
  if (published.label.empty()) {
    headings = names_of(grid, spec.lines);
    names = names_at(grid, spec.lines, published.line_at);
    if (!spec.panel_for_each_y && spec.y.size() > 1) names.push_back(name_of(grid.names, published.y));
  }
  Name name = joined_labels(headings, names);
  const bool has_other = std::ranges::any_of(
      spec.published, [&](const FigureSpec::PublishedLine& one) { return one.source != published.source; });
  const Name whose = has_other ? published.source : Name{"published"};
  name = name.text.empty() ? whose : joined({name, {" ("}, whose, {")"}}, "");
  std::vector<Name> row(columns);
  row.front() = name;
  return row;
}

void add_published(const Grid& grid, const FigureSpec& spec, const FigurePlaces& places, Figure& figure) {
  if (spec.published.empty()) return;
  if (figure.heading.empty()) {
    figure.heading.push_back({""});
    for (std::vector<Name>& row : figure.legend) row.push_back({"measured"});
  }
  for (const FigureSpec::PublishedLine& published : spec.published) {
    const auto y = static_cast<size_t>(std::ranges::find(spec.y, published.y) - spec.y.begin());
    const auto measured = std::ranges::find_if(places.lines, [&](const LineKey& line) {
      return published.label.empty() && line.at == published.line_at && line.y.value_or(y) == y;
    });
    if (measured != places.lines.end())
      figure.measured[figure.legend.size()] = static_cast<size_t>(measured - places.lines.begin());
    figure.legend.push_back(published_legend(grid, spec, published, figure.heading.size()));
    for (size_t i = 0; i < figure.panels.size(); ++i) {
      Figure::Line& line = figure.panels[i].lines.emplace_back();
      const PanelKey& panel = places.panels[i];
      if (panel.at != published.panel_at || panel.y.value_or(y) != y) continue;
      line.y = published.y;
      line.source = published.source.text;
      if (spec.lines.empty() && !published.label.empty()) line.source += ", " + published.label;
      for (const CurvePoint& point : published.points) line.points.push_back({point.x, 1, point.y, point.y, point.y});
      line.labels = labels_of(grid, spec, panel, published);
    }
  }
}

void add_once(double value, std::vector<double>& values) {
  if (std::ranges::find(values, value) == values.end()) values.push_back(value);
}

/// The panels that have a y; none if the figure does not.
std::vector<Figure::Panel*> panels_of(const std::string& y, const FigureSpec& spec, const FigurePlaces& places,
                                      Figure& figure) {
  const auto index = static_cast<size_t>(std::ranges::find(spec.y, y) - spec.y.begin());
  std::vector<Figure::Panel*> panels;
  for (size_t i = 0; index < spec.y.size() && i < figure.panels.size(); ++i) {
    if (places.panels[i].y.value_or(index) == index) panels.push_back(&figure.panels[i]);
  }
  return panels;
}

/// Marks the limits of the scores that the grid takes from these curves, and of the claims about them.
void add_limits(const Grid& grid, const std::vector<View>& views, const FigureSpec& spec, const FigurePlaces& places,
                Figure& figure) {
  std::vector<std::string> names;
  for (const DefinedScore& score : grid.defined_scores) {
    if (!score.is_of_curve() || spec.x != (score.is_over_layers() ? X::kLayer : X::kUpdates)) continue;
    std::vector<double> at_x, at_y;
    for (const double end : {score.limits.from, score.limits.to}) {
      if (std::isfinite(end)) at_x.push_back(end);
    }
    if (score.measure->keys & CurveMeasure::kValue) at_y.push_back(score.limits.value);
    const std::vector<Figure::Panel*> panels = panels_of(score.of, spec, places, figure);
    if (panels.empty() || (at_x.empty() && at_y.empty())) continue;
    for (Figure::Panel* panel : panels) {
      for (const double x : at_x) add_once(x, panel->at_x);
      for (const double y : at_y) add_once(y, panel->at_y);
    }
    names.push_back(name_of(grid.names, score.name).text);
  }
  for (const View& view : views) {
    const auto* claim = std::get_if<ClaimSpec>(&view.spec);
    if (!claim || claim->curve.empty() || spec.x != X::kUpdates) continue;
    const std::vector<Figure::Panel*> panels = panels_of(claim->curve, spec, places, figure);
    for (Figure::Panel* panel : panels) add_once(claim->limits.from, panel->at_x);
    if (!panels.empty()) names.push_back(fmt::format("\"{}\"", view.title.text));
  }
  if (!names.empty()) figure.notes.push_back({fmt::format("Dashed lines: the limits of {}.", fmt::join(names, ", "))});
}

}  // namespace

Figure::Line line_of(const std::vector<DrawnRun>& runs, FigureSpec::Band band, bool joins) {
  const bool all_diverged = std::ranges::all_of(runs, &DrawnRun::has_diverged);
  Figure::Line line{.sets_scale = !all_diverged};
  std::vector<Curve> curves;
  for (const DrawnRun& run : runs) {
    if (all_diverged || !run.has_diverged) curves.push_back(run.curve);
    if (run.has_diverged && run.end) line.diverged.push_back(*run.end);
  }
  line.points = band_of(curves, band, joins);
  int most = 0;
  for (const BandPoint& point : line.points) most = std::max(most, point.runs);
  for (BandPoint& point : line.points) point.is_of_fewer = joins && 0 < point.runs && point.runs < most;
  return line;
}

Figure draw(const Grid& grid, const std::vector<View>& views, const Name& title, const FigureSpec& spec,
            const ResultSet& results) {
  const FigureRuns runs = read_runs(grid, views, title.text, spec, results);
  Figure figure{.kind = spec.kind,
                .title = title,
                .name = spec.name,
                .x = x_name(grid, spec),
                .log_x = spec.log_x,
                .log_y = spec.log_y};
  for (const uint32_t point : spec.labels) {
    const std::string label = label_at(grid, spec.axis, point);
    figure.labels.push_back({label, name_of(grid.names, grid.axes[spec.axis].name, label)});
  }
  figure.from_zero = is_of_metrics(spec.x) && !spec.log_x;
  figure.width = spec.width;
  figure.own_width = spec.own_width;
  figure.font_size = spec.font_size;
  figure.caption_in_picture = spec.caption_in_picture;
  figure.legend_inside = spec.legend_inside;
  for (const auto* axes : {&spec.panels, &spec.lines}) {
    for (const size_t axis : *axes) figure.axes.push_back(grid.axes[axis].name);
  }
  if (spec.line_for_each_run) figure.axes.emplace_back("seed");
  const FigurePlaces& places = runs.places;
  add_legend(grid, spec, places, figure);
  for (size_t p = 0; p < places.panels.size(); ++p) {
    const PanelKey& key = places.panels[p];
    Figure::Panel& panel = figure.panels.emplace_back();
    panel.scale = spec.share_y ? key.y.value_or(0) : p;
    const bool one_y = spec.y.size() == 1;
    if (one_y || key.y) panel.y = name_of(grid.names, spec.y[key.y.value_or(0)]);
    std::vector<Name> names = names_at(grid, spec.panels, key.at);
    if (key.y && !one_y) names.push_back(panel.y);
    if (places.panels.size() > 1) panel.title = joined_labels(names_of(grid, spec.panels), names);
    if (panel.title.text == panel.y.text) panel.y = {};
    for (size_t l = 0; l < places.lines.size(); ++l) {
      std::vector<DrawnRun> together;
      const auto drawn = runs.curves.find({p, l});
      if (drawn != runs.curves.end()) {
        for (const SeedCurve& one : drawn->second) together.push_back(one.run);
      }
      Figure::Line line = line_of(together, spec.band, is_of_metrics(spec.x));
      if (const auto lost = runs.diverged_at.find({p, l}); lost != runs.diverged_at.end()) line.diverged = lost->second;
      line.labels = labels_of(grid, spec, key, places.lines[l]);
      line.y = spec.y[key.y.value_or(places.lines[l].y.value_or(0))];
      panel.lines.push_back(std::move(line));
    }
  }
  add_published(grid, spec, places, figure);
  add_notes(grid, spec, runs, figure);
  for (Figure::Panel& panel : figure.panels) {
    for (size_t i = 0; i < panel.lines.size(); ++i) {
      const bool ends = i < places.lines.size() && ends_at_fewer(spec, runs.reading, i);
      for (BandPoint& point : panel.lines[i].points) {
        if (!ends || !point.is_of_fewer) continue;
        panel.lines[i].not_drawn.push_back(point);
        point = {point.x, 0, kNaN, kNaN, kNaN};
      }
    }
  }
  add_limits(grid, views, spec, places, figure);
  return figure;
}

}  // namespace tearless::harness
