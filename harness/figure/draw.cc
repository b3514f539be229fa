#include "harness/figure/draw.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/nearest.h"
#include "base/pattern.h"
#include "base/words.h"
#include "harness/cells/cells.h"
#include "harness/cells/scores.h"
#include "harness/figure/band.h"
#include "harness/results/curves.h"
#include "harness/table/latex.h"
#include "harness/views/layout.h"

namespace tearless::harness {
namespace {

using X = FigureSpec::X;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr size_t kMaxNames = 12;  // in one sentence

std::string label_at(const Grid& grid, size_t axis, uint32_t point) { return grid.axes[axis].points[point].label; }

// --- where a curve is drawn ------------------------------------------------------------------------------------------

/// Index into the figure's panels and lines.
using Place = std::pair<size_t, size_t>;

struct PanelKey {
  Coordinates at;           // on the axes spec.panels
  std::optional<size_t> y;  // with a panel for each y
};
struct LineKey {
  Coordinates at;               // on the axes spec.lines
  std::optional<size_t> y;      // without a panel for each y
  std::optional<int64_t> seed;  // with a line for each run
};

/// The panels and lines of a figure, in the order of the grid's axes.
class Places {
 public:
  Places(const Grid& grid, const FigureSpec& spec) : grid_(grid), spec_(spec) {
    const Layout layout = layout_of(grid, {.rows = spec.lines, .columns = spec.panels, .where = spec.where});
    const std::vector<std::optional<size_t>> every_y = all_y(), any_y = {std::nullopt};
    const std::vector<std::optional<int64_t>> every_seed(grid.seeds.begin(), grid.seeds.end()),
        any_seed = {std::nullopt};
    for (const auto& y : spec.panel_for_each_y ? every_y : any_y) {
      for (const Coordinates& at : layout.columns) panels.push_back({at, y});
    }
    for (const Coordinates& at : layout.rows) {
      for (const auto& y : spec.panel_for_each_y ? any_y : every_y) {
        for (const auto& seed : spec.line_for_each_run ? every_seed : any_seed) lines.push_back({at, y, seed});
      }
    }
  }

  std::vector<PanelKey> panels;
  std::vector<LineKey> lines;

  /// nullopt: `where` leaves the run out.
  std::optional<Place> place_of(const Row& row, size_t y) const {
    const std::optional<Coordinates> panel_at = coordinates_of(row, spec_.panels),
                                     line_at = coordinates_of(row, spec_.lines);
    if (!panel_at || !line_at || !spec_.where.has(row.run.coordinates)) return std::nullopt;
    const auto panel = std::ranges::find_if(
        panels, [&](const PanelKey& key) { return key.at == *panel_at && key.y.value_or(y) == y; });
    const auto line = std::ranges::find_if(lines, [&](const LineKey& key) {
      return key.at == *line_at && key.y.value_or(y) == y && key.seed.value_or(row.run.seed) == row.run.seed;
    });
    if (panel == panels.end() || line == lines.end()) return std::nullopt;
    return Place(panel - panels.begin(), line - lines.begin());
  }

 private:
  std::vector<std::optional<size_t>> all_y() const {
    std::vector<std::optional<size_t>> all;
    for (size_t y = 0; y < spec_.y.size(); ++y) all.emplace_back(y);
    return all;
  }

  std::optional<uint32_t> point_of(const Row& row, size_t axis) const {
    const Axis& own = grid_.axes[axis];
    const auto point = std::ranges::find(own.points, label_on(row.run.coordinates, own.name), &AxisPoint::label);
    if (point == own.points.end()) return std::nullopt;
    return static_cast<uint32_t>(point - own.points.begin());
  }
  std::optional<Coordinates> coordinates_of(const Row& row, const std::vector<size_t>& axes) const {
    Coordinates coordinates;
    for (const size_t axis : axes) {
      const auto point = point_of(row, axis);
      if (!point) return std::nullopt;
      coordinates.push_back(*point);
    }
    return coordinates;
  }

  const Grid& grid_;
  const FigureSpec& spec_;
};

// --- curves ----------------------------------------------------------------------------------------------------------

struct SeedCurve {
  int64_t seed = 0;
  DrawnRun run;
  int64_t each = 1;  // of how many values a point is the mean
};
using Curves = std::map<Place, std::vector<SeedCurve>>;

/// What the notes say of the reading. Runs are ids.
struct Reading {
  std::map<Place, std::set<std::string>> expected, drawn;
  std::map<Place, std::string> without;  // a run that is done without this curve
  std::set<size_t> waited_for;           // lines with a run that has not ended
  std::set<std::string> diverged;
  std::set<std::string> below;   // by the table's fail_below
  std::set<std::string> limits;  // "dev BLEU below 1"
  int64_t each = 1;              // the greatest of SeedCurve
  std::set<std::string> stale;   // RunResult::stale
  bool has_done = false;         // some run is
  bool lacks_metric = false;     // lacks() of some run
};

bool is_diverged(const Row& row) { return row.result.state == RunState::kDiverged; }
bool is_done(const Row& row) { return row.result.state == RunState::kDone; }
bool has_ended(const Row& row) {
  return is_done(row) || is_diverged(row) || row.result.state == RunState::kFailed ||
         row.result.state == RunState::kCancelled;
}

/// The y of another metric at the updates of `curve`, in place of these. Where it has none before and after, the point
/// is left out.
Curve over_metric(const Curve& curve, const Curve& metric) {
  Curve over;
  auto next = metric.begin();
  for (const CurvePoint& point : curve) {
    while (next != metric.end() && next->x < point.x) ++next;
    if (next == metric.end()) break;
    if (next->x == point.x) {
      over.push_back({next->y, point.y});
    } else if (next != metric.begin()) {
      const CurvePoint& before = *std::prev(next);
      const double part = (point.x - before.x) / (next->x - before.x);
      over.push_back({before.y * (1 - part) + next->y * part, point.y});
    }
  }
  std::erase_if(over, [](const CurvePoint& point) { return !std::isfinite(point.x); });
  put_in_order(over);
  return over;
}

class Reader {
 public:
  Reader(const Grid& grid, const std::vector<View>& views, const FigureSpec& spec, const ResultSet& results)
      : grid_(grid), views_(views), spec_(spec), results_(results), places_(grid, spec) {
    for (const Row& row : results.rows) {
      for (size_t y = 0; row.is_trained() && y < spec.y.size(); ++y) {
        const auto place = places_.place_of(row, y);
        if (!place) continue;
        reading.expected[*place].insert(row.run.id.empty() ? label_text(row) : row.run.id);
        reading.has_done = reading.has_done || is_done(row);
        if (is_diverged(row)) reading.diverged.insert(row.run.id);
        if (!has_ended(row)) reading.waited_for.insert(place->second);
        if (!row.result.stale.empty()) reading.stale.insert(row.result.stale);
      }
    }
    is_of_metrics(spec.x) ? read_metrics() : read_scores();
  }

  const Places& places() const { return places_; }

  Curves curves;
  Reading reading;

 private:
  /// Of a run without an id, whose data are missing.
  static std::string label_text(const Row& row) {
    std::string text = std::to_string(row.run.seed);
    for (const auto& [axis, label] : row.run.coordinates) text += " " + label;
    return text;
  }

  void add(const Row& row, size_t y, Curve curve, int64_t each) {
    const Place place = *places_.place_of(row, y);
    if (curve.empty()) {
      if (is_done(row)) reading.without.emplace(place, row.run.id);
      return;
    }
    reading.drawn[place].insert(row.run.id);
    reading.each = std::max(reading.each, each);
    const CurvePoint end = curve.back();
    curves[place].push_back({row.run.seed, {std::move(curve), is_diverged(row), end}, each});
  }

  void read_metrics() {
    std::vector<std::string> metrics = spec_.y;
    if (spec_.x == X::kMetric) metrics.push_back(spec_.metric);
    for (const Row& row : results_.rows) {
      if (!row.is_trained() || row.result.state == RunState::kFailed || !places_.place_of(row, 0)) continue;
      reading.lacks_metric |= std::ranges::any_of(metrics, [&](const auto& y) { return lacks(results_, row, y); });
      std::vector<CurveCollector> collectors(metrics.size());
      read_curves(results_, row, metrics, [&](size_t metric, int64_t update, double value) {
        collectors[metric].add(static_cast<double>(update), value);
      });
      std::vector<Curve> own;
      for (CurveCollector& collector : collectors) own.push_back(collector.take());
      for (size_t y = 0; y < spec_.y.size(); ++y) add(row, y, placed(row, own[y], own.back()), collectors[y].each());
    }
  }

  /// A curve over updates, at its values of x.
  Curve placed(const Row& row, Curve curve, const Curve& metric) const {
    if (spec_.x == X::kMetric) return over_metric(curve, metric);
    if (spec_.x == X::kHours) {
      constexpr double kSecondsAnHour = 3600;
      const auto seconds = row.number("measured.seconds_per_update");
      if (!seconds) return {};
      for (CurvePoint& point : curve) point.x *= *seconds / kSecondsAnHour;
    }
    return curve;
  }

  /// The label of the run on the axis of x as a number, or its place; 0 where x is the layer.
  double x_of(const Row& row) const {
    if (spec_.x != X::kAxis) return 0;
    const std::string label = label_on(row.run.coordinates, grid_.axes[spec_.axis].name);
    if (!kind_of(spec_.kind).is_over_labels) return number_of_label(label).value_or(kNaN);
    for (size_t i = 0; i < spec_.labels.size(); ++i) {
      if (label_at(grid_, spec_.axis, spec_.labels[i]) == label) return static_cast<double>(i + 1);
    }
    return kNaN;
  }

  /// The points of a run: over layers several, over an axis one. `is_behind`: of a score without a layer.
  Curve points_of(const Row& row, const std::string& y, double x, bool& is_behind) const {
    if (is_pattern(y)) return layers_of(row, y);
    const std::optional<double> value = row.number(y);
    is_behind = value && spec_.x == X::kLayer;
    return value ? Curve{{x, *value}} : Curve();
  }

  /// Of each y, the rules of the table that shows it: over an axis a point is the number of a cell there.
  std::vector<TableRules> rules_of(const std::vector<Replicate>& runs) const {
    std::vector<TableRules> rules(spec_.y.size());
    const std::set<std::string> there = scores_there(runs);
    for (size_t y = 0; spec_.x == X::kAxis && y < rules.size(); ++y)
      rules[y] = rules_of_table(views_, there, spec_.y[y]);
    return rules;
  }

  void add_below(const Replicate& run, const TableRules& table) {
    const std::string name = name_of(grid_.names, table.fail_score).text;
    reading.below.insert(run.trained->run.id);
    reading.limits.insert(fmt::format("{} below {}", name.empty() ? table.fail_score : name, *table.rules.fail_below));
  }

  void read_scores() {
    std::map<std::pair<Place, int64_t>, Curve> found;
    std::vector<std::pair<std::pair<Place, int64_t>, double>> behind;  // the value stands behind the last layer
    double last_layer = 0;
    std::map<Place, std::set<double>> asked;  // of an axis: a line is interrupted where no run has a value
    std::vector<Replicate> runs;
    for (const Group& one : group(results_.rows, [](const Row& row) {
           return RowKey{row.sweep_id(), row.trained, std::to_string(row.run.seed)};
         }))
      std::ranges::move(one.replicates(), std::back_inserter(runs));
    const std::vector<TableRules> rules = rules_of(runs);
    for (const Replicate& replicate : runs) {
      const Row& trained = *replicate.trained;
      const double x = x_of(trained);
      for (size_t y = 0; y < spec_.y.size(); ++y) {
        const auto place = places_.place_of(trained, y);
        if (!place || std::isnan(x)) continue;
        if (spec_.x == X::kAxis) asked[*place].insert(x);
        const Row& row = replicate.row_of(spec_.y[y]);
        if (!has_ended(row)) reading.waited_for.insert(place->second);
        if (is_diverged(trained) && spec_.x == X::kAxis) diverged_at[*place].push_back({x, kNaN});
        if (!row.counts(/*count_diverged=*/false)) continue;
        if (is_below(replicate, rules[y].rules, rules[y].fail_score)) {
          add_below(replicate, rules[y]);
          reading.drawn[*place].insert(trained.run.id);  // a note says so
          continue;
        }
        bool is_behind = false;
        const Curve points = points_of(row, spec_.y[y], x, is_behind);
        const std::pair key(*place, trained.run.seed);
        if (points.empty()) {
          reading.without.emplace(*place, row.run.id);
          continue;
        }
        reading.drawn[*place].insert(trained.run.id);
        if (is_behind) {
          behind.emplace_back(key, points.front().y);
        } else {
          found[key].insert(found[key].end(), points.begin(), points.end());
          last_layer = std::max(last_layer, points.back().x);
        }
      }
    }
    for (const auto& [key, value] : behind) found[key].push_back({last_layer + 1, value});
    for (auto& [key, curve] : found) {
      for (const double x : asked[key.first]) {
        if (std::ranges::find(curve, x, &CurvePoint::x) == curve.end()) curve.push_back({x, kNaN});
      }
      put_in_order(curve);
      curves[key.first].push_back({key.second, {std::move(curve), /*has_diverged=*/false, {}}});
    }
  }

  const Grid& grid_;
  const std::vector<View>& views_;
  const FigureSpec& spec_;
  const ResultSet& results_;
  Places places_;

 public:
  std::map<Place, Curve> diverged_at;  // of an axis: runs without a score
};

/// The smallest and the greatest x, with a logarithmic axis of those above 0.
std::pair<double, double> ends_of(const Curves& curves, bool is_log) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const auto& [place, runs] : curves) {
    for (const SeedCurve& one : runs) {
      for (const CurvePoint& point : one.run.curve) {
        if (is_log && point.x <= 0) continue;
        low = std::min(low, point.x);
        high = std::max(high, point.x);
      }
    }
  }
  return {low, high};
}

void smooth_and_bin(const FigureSpec& spec, Curves& curves) {
  const auto [low, high] = ends_of(curves, spec.log_x);
  for (auto& [place, runs] : curves) {
    for (SeedCurve& one : runs) {
      one.run.curve = smoothed(one.run.curve, static_cast<int>(std::max<int64_t>(1, spec.smooth / one.each)));
      if (spec.bins && low < high) one.run.curve = binned(one.run.curve, *spec.bins, low, high, spec.log_x);
    }
  }
}

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
void add_legend(const Grid& grid, const FigureSpec& spec, const Places& places, Figure& figure) {
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

void add_published(const Grid& grid, const FigureSpec& spec, const Places& places, Figure& figure) {
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
std::vector<Figure::Panel*> panels_of(const std::string& y, const FigureSpec& spec, const Places& places,
                                      Figure& figure) {
  const auto index = static_cast<size_t>(std::ranges::find(spec.y, y) - spec.y.begin());
  std::vector<Figure::Panel*> panels;
  for (size_t i = 0; index < spec.y.size() && i < figure.panels.size(); ++i) {
    if (places.panels[i].y.value_or(index) == index) panels.push_back(&figure.panels[i]);
  }
  return panels;
}

/// Marks the limits of the scores that the grid takes from these curves, and of the claims about them.
void add_limits(const Grid& grid, const std::vector<View>& views, const FigureSpec& spec, const Places& places,
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
  if (!names.empty()) figure.notes.emplace_back(fmt::format("Dashed lines: the limits of {}.", fmt::join(names, ", ")));
}

// --- notes -----------------------------------------------------------------------------------------------------------

/// A sentence for each line that some runs lack, and one for those that all lack. With panels it is that with the
/// fewest runs.
void add_incomplete(const Grid& grid, const FigureSpec& spec, const Reader& reader, Figure& figure) {
  struct Count {
    size_t least = 0, most = 0, of = 0;
    std::string done;  // a run that is done without its curve
  };
  std::map<size_t, Count> lines;
  for (const auto& [place, expected] : reader.reading.expected) {
    std::set<std::string> there = expected;
    const auto drawn = reader.reading.drawn.find(place);
    std::erase_if(there, [&](const std::string& run) {
      const bool is_drawn = drawn != reader.reading.drawn.end() && drawn->second.contains(run);
      return !is_drawn && !reader.reading.diverged.contains(run);  // of those that diverged a note says so
    });
    const auto [entry, is_new] = lines.emplace(place.second, Count{there.size(), there.size(), expected.size(), ""});
    Count& count = entry->second;
    count.least = std::min(count.least, there.size());
    count.most = std::max(count.most, there.size());
    const auto without = reader.reading.without.find(place);
    if (without == reader.reading.without.end()) continue;
    const size_t y = reader.places().panels[place.first].y.value_or(reader.places().lines[place.second].y.value_or(0));
    count.done = fmt::format("; {} is done without {}", without->second, name_of(grid.names, spec.y[y]).text);
  }
  std::vector<std::string> empty, ended;  // all of whose runs have ended
  for (const auto& [line, count] : lines) {
    const std::string text = joined_labels(figure.heading, figure.legend[line]).text;
    if (count.most == 0 && count.done.empty()) {
      (reader.reading.waited_for.contains(line) ? empty : ended).push_back(text.empty() ? "all" : text);
    } else if (count.least < count.of) {
      figure.notes.emplace_back(fmt::format("{}{} of {} drawn{}.", text.empty() ? "" : text + ": ", count.least,
                                            counted(static_cast<int64_t>(count.of), "run"),
                                            count.done.empty() ? ", the others have nothing to draw" : count.done));
    }
  }
  if (!empty.empty()) figure.notes.emplace_back(fmt::format("No run to draw yet: {}.", fmt::join(empty, "; ")));
  if (!ended.empty()) {
    figure.notes.emplace_back(
        fmt::format("No run to draw, as all have failed or were cancelled: {}.", fmt::join(ended, "; ")));
  }
}

/// "update 12", "epoch = 3"
std::string place_text(const FigureSpec& spec, const Figure& figure, double x) {
  return spec.x == X::kUpdates ? fmt::format("update {:.0f}", x) : fmt::format("{} = {:.4g}", figure.x.text, x);
}

/// A line of which a run is still under way does not end where that run is now.
bool ends_at_fewer(const FigureSpec& spec, const Reading& reading, size_t line) {
  return spec.ends_at_fewer && !reading.waited_for.contains(line);
}

/// "the mean of 3 seeds to update 12, then of 2 (not drawn)", "the mean of 2 seeds, of 1 at 4 points from update 3 to
/// update 6 (dashed)"; "" if it is of all of them everywhere.
std::string text_of_fewer(const FigureSpec& spec, const Figure& figure, const Figure::Line& line, bool ends) {
  std::vector<BandPoint> whole, fewer;
  for (const BandPoint& point : line.points) {
    if (point.runs > 0) (point.is_of_fewer ? fewer : whole).push_back(point);
  }
  if (whole.empty() || fewer.empty()) return "";
  const auto [least, most] = std::ranges::minmax(fewer, {}, &BandPoint::runs);
  const double first = whole.front().x, last = whole.back().x;
  const bool has_before = fewer.front().x < first;
  const bool has_after = fewer.back().x > last;
  const bool is_within =
      std::ranges::any_of(fewer, [&](const auto& point) { return first < point.x && point.x < last; });
  constexpr double kSaid = 0.95;  // the hours and epochs of seeds differ a little in any case
  const double length = line.points.back().x - line.points.front().x;
  if (spec.x != X::kUpdates && !is_within && last - first > kSaid * length) return "";
  const auto place = [&](const BandPoint& point) { return place_text(spec, figure, point.x); };
  const std::string of_fewer = fmt::format("of {}{}", most.runs, least.runs < most.runs ? " or fewer" : "");
  std::string where;
  if (fewer.size() == 1 && is_within) {
    where = fmt::format(", {} at {}", of_fewer, place(fewer.front()));
  } else if (is_within) {
    where = fmt::format(", {} at {} from {} to {}", of_fewer, counted(std::ssize(fewer), "point"), place(fewer.front()),
                        place(fewer.back()));
  } else {
    where = fmt::format("{}{}, {} {}", has_before ? " from " + place(whole.front()) : "",
                        has_after ? " to " + place(whole.back()) : "", has_before ? "elsewhere" : "then", of_fewer);
  }
  return fmt::format("the mean of {}{} ({})", counted(whole.front().runs, "seed"), where,
                     ends ? "not drawn" : "dashed");
}

/// A sentence for all lines, of which it is as true.
void add_fewer(const FigureSpec& spec, const Reading& reading, Figure& figure) {
  std::map<std::string, std::vector<std::string>> lines;
  for (const Figure::Panel& panel : figure.panels) {
    for (size_t i = 0; i < panel.lines.size(); ++i) {
      const std::string text = text_of_fewer(spec, figure, panel.lines[i], ends_at_fewer(spec, reading, i));
      if (!text.empty())
        lines[text].push_back(joined_labels({}, {panel.title, joined_labels(figure.heading, figure.legend[i])}).text);
    }
  }
  for (auto& [text, names] : lines) {
    if (names.front().empty()) names.front() = kind_of(spec.kind).lines;
    figure.notes.emplace_back(fmt::format("{}: {}.", fmt::join(names, "; "), text));
  }
}

/// Of measured lines.
size_t most_runs_of_a_point(const Figure& figure) {
  size_t most = 0;
  for (const Figure::Panel& panel : figure.panels) {
    for (const Figure::Line& line : panel.lines) {
      for (const BandPoint& point : line.points) {
        if (line.source.empty()) most = std::max(most, static_cast<size_t>(point.runs));
      }
    }
  }
  return most;
}

void add_notes(const Grid& grid, const FigureSpec& spec, const Reader& reader, Figure& figure) {
  std::vector<Name>& notes = figure.notes;
  const Reading& reading = reader.reading;
  const FigureKind& kind = kind_of(spec.kind);
  const size_t seeds = std::min(grid.seeds.size(), most_runs_of_a_point(figure));
  const bool has_band = std::ranges::any_of(figure.panels, [](const Figure::Panel& panel) {
    return std::ranges::any_of(panel.lines, [](const Figure::Line& line) {
      return std::ranges::any_of(line.points, [](const BandPoint& point) { return point.low < point.high; });
    });
  });
  if (!spec.line_for_each_run && seeds > 1) {
    notes.emplace_back(fmt::format("{}: the mean of {}{}.", kind.lines, counted(static_cast<int64_t>(seeds), "seed"),
                                   has_band ? fmt::format("; {}: {}", kind.bands, text_of(spec.band)) : ""));
  } else if (!spec.line_for_each_run && seeds == 1) {
    notes.emplace_back(fmt::format("{}: one seed.", kind.lines));
  }
  if (spec.smooth > 1)
    notes.emplace_back(fmt::format("Of each run, a point is the mean of {} reported values about it.", spec.smooth));
  if (spec.bins)
    notes.emplace_back(fmt::format("Of each run, a point is the mean in one of {} equal parts of x.", *spec.bins));
  if (!spec.bins && reading.each > 1) {
    notes.emplace_back(fmt::format("Of runs with more than {} values, a point is the mean of up to {}.",
                                   CurveCollector::kMaxPoints, reading.each));
  }
  if (!reading.diverged.empty()) {
    notes.emplace_back(fmt::format("×: {} diverged, in no mean unless all of a line have.",
                                   counted(static_cast<int64_t>(reading.diverged.size()), "run")));
  }
  if (!reading.below.empty()) {
    notes.emplace_back(fmt::format("{} with {}, which fail by the table, in no mean.",
                                   counted(static_cast<int64_t>(reading.below.size()), "run"),
                                   fmt::join(reading.limits, " or ")));
  }
  std::vector<Name> sources;
  for (const FigureSpec::PublishedLine& published : spec.published) {
    if (std::ranges::find(sources, published.source) == sources.end()) sources.push_back(published.source);
  }
  if (!sources.empty()) notes.push_back(joined({{"Published: "}, joined(sources, "; "), {"."}}, ""));
  if (reading.lacks_metric) notes.emplace_back("Gradient norms are not here: this is a copy of results alone.");
  for (const std::string& why : reading.stale) notes.emplace_back(fmt::format("Some runs are stale: {}.", why));
  add_fewer(spec, reading, figure);
  add_incomplete(grid, spec, reader, figure);
}

/// The names that runs which are done could have given as y or x.
std::vector<std::string> known_names(const FigureSpec& spec, const ResultSet& results) {
  std::set<std::string> known;
  for (const Row& row : results.rows) {
    if (!is_of_metrics(spec.x)) {
      for (const auto& [name, value] : row.result.scores) known.insert(name);
    } else if (row.is_trained() && !row.run.id.empty()) {
      for (std::string& name : results.store->metric_names_of(row.run.id)) known.insert(std::move(name));
    }
  }
  if (is_of_metrics(spec.x)) known.insert(kGradientNorms);
  return {known.begin(), known.end()};
}

/// UserError if no run has what the figure names although one is done.
void require_there(const FigureSpec& spec, const std::string& title, const Reader& reader, const ResultSet& results) {
  if (!reader.reading.has_done || !results.store) return;
  std::optional<std::vector<std::string>> known;
  for (size_t y = 0; y < spec.y.size(); ++y) {
    const auto is_of_y = [&](const auto& entry) {
      const auto& [panel, line] = entry.first;
      return reader.places().panels[panel].y.value_or(y) == y && reader.places().lines[line].y.value_or(y) == y;
    };
    if (std::ranges::any_of(reader.curves, is_of_y)) continue;
    if (!known) known = known_names(spec, results);
    const auto has = [&](const std::string& pattern) {
      return std::ranges::any_of(*known, [&](const std::string& name) { return patterns_meet(pattern, name); });
    };
    const auto refuse = [&](const char* key, const std::string& name, const char* what) {
      fail("{}: the figure \"{}\": {} = \"{}\": no run has {}{}; they have: {}", spec.location, title, key, name, what,
           did_you_mean(name, *known), some_of(*known, kMaxNames));
    };
    if (spec.y[y] == kGradientNorms) {
      if (reader.reading.lacks_metric) continue;  // a note says so
      fail(
          "{}: the figure \"{}\": y = \"gradient_norms\": no run has its file gradient_norms.f32; results that were "
          "copied alone by an older version lack it",
          spec.location, title);
    }
    if (!has(spec.y[y])) refuse("y", spec.y[y], "it");
    if (spec.x == X::kMetric && !has(spec.metric)) refuse("x", spec.metric, "this metric");
    if (spec.x == X::kHours)
      fail("{}: the figure \"{}\": x = \"hours\": no run has measured its seconds an update", spec.location, title);
  }
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
  Reader reader(grid, views, spec, results);
  require_there(spec, title.text, reader, results);
  smooth_and_bin(spec, reader.curves);
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
  const Places& places = reader.places();
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
      std::vector<DrawnRun> runs;
      const auto drawn = reader.curves.find({p, l});
      if (drawn != reader.curves.end()) {
        for (const SeedCurve& one : drawn->second) runs.push_back(one.run);
      }
      Figure::Line line = line_of(runs, spec.band, is_of_metrics(spec.x));
      if (const auto lost = reader.diverged_at.find({p, l}); lost != reader.diverged_at.end())
        line.diverged = lost->second;
      line.labels = labels_of(grid, spec, key, places.lines[l]);
      line.y = spec.y[key.y.value_or(places.lines[l].y.value_or(0))];
      panel.lines.push_back(std::move(line));
    }
  }
  add_published(grid, spec, places, figure);
  add_notes(grid, spec, reader, figure);
  for (Figure::Panel& panel : figure.panels) {
    for (size_t i = 0; i < panel.lines.size(); ++i) {
      const bool ends = i < places.lines.size() && ends_at_fewer(spec, reader.reading, i);
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
