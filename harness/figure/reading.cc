#include "harness/figure/reading.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "base/error.h"
#include "base/nearest.h"
#include "base/pattern.h"
#include "base/words.h"
#include "harness/cells/cells.h"
#include "harness/cells/scores.h"
#include "harness/figure/band.h"
#include "harness/results/curves.h"
#include "harness/views/layout.h"

namespace tearless::harness {
namespace {

using X = FigureSpec::X;

constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();
constexpr size_t kMaxNames = 12;  // in one sentence

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
      : runs{.places = FigurePlaces(grid, spec)}, grid_(grid), views_(views), spec_(spec), results_(results) {
    for (const Row& row : results.rows) {
      for (size_t y = 0; row.is_trained() && y < spec.y.size(); ++y) {
        const auto place = runs.places.place_of(row, y);
        if (!place) continue;
        runs.reading.expected[*place].insert(row.run.id.empty() ? label_text(row) : row.run.id);
        runs.reading.has_done = runs.reading.has_done || is_done(row);
        if (is_diverged(row)) runs.reading.diverged.insert(row.run.id);
        if (!has_ended(row)) runs.reading.waited_for.insert(place->second);
        if (!row.result.stale.empty()) runs.reading.stale.insert(row.result.stale);
      }
    }
    is_of_metrics(spec.x) ? read_metrics() : read_scores();
  }

  FigureRuns runs;

 private:
  /// Of a run without an id, whose data are missing.
  static std::string label_text(const Row& row) {
    std::string text = std::to_string(row.run.seed);
    for (const auto& [axis, label] : row.run.coordinates) text += " " + label;
    return text;
  }

  void add(const Row& row, size_t y, Curve curve, int64_t each) {
    const FigurePlace place = *runs.places.place_of(row, y);
    if (curve.empty()) {
      if (is_done(row)) runs.reading.without.emplace(place, row.run.id);
      return;
    }
    runs.reading.drawn[place].insert(row.run.id);
    runs.reading.each = std::max(runs.reading.each, each);
    const CurvePoint end = curve.back();
    runs.curves[place].push_back({row.run.seed, {std::move(curve), is_diverged(row), end}, each});
  }

  void read_metrics() {
    std::vector<std::string> metrics = spec_.y;
    if (spec_.x == X::kMetric) metrics.push_back(spec_.metric);
    for (const Row& row : results_.rows) {
      if (!row.is_trained() || row.result.state == RunState::kFailed || !runs.places.place_of(row, 0)) continue;
      runs.reading.lacks_metric |= std::ranges::any_of(metrics, [&](const auto& y) { return lacks(results_, row, y); });
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
    if (!kind_of(spec_.kind).is_over_labels) return number_of_label(label).value_or(kNoValue);
    for (size_t i = 0; i < spec_.labels.size(); ++i) {
      if (label_at(grid_, spec_.axis, spec_.labels[i]) == label) return static_cast<double>(i + 1);
    }
    return kNoValue;
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
    runs.reading.below.insert(run.trained->run.id);
    runs.reading.limits.insert(
        fmt::format("{} below {}", name.empty() ? table.fail_score : name, *table.rules.fail_below));
  }

  void read_scores() {
    std::map<std::pair<FigurePlace, int64_t>, Curve> found;
    std::vector<std::pair<std::pair<FigurePlace, int64_t>, double>> behind;  // the value stands behind the last layer
    double last_layer = 0;
    std::map<FigurePlace, std::set<double>> asked;  // of an axis: a line is interrupted where no run has a value
    std::vector<Replicate> replicates;
    for (const Group& one : group(results_.rows, [](const Row& row) {
           return RowKey{row.sweep_id(), row.trained, std::to_string(row.run.seed)};
         }))
      std::ranges::move(one.replicates(), std::back_inserter(replicates));
    const std::vector<TableRules> rules = rules_of(replicates);
    for (const Replicate& replicate : replicates) {
      const Row& trained = *replicate.trained;
      const double x = x_of(trained);
      for (size_t y = 0; y < spec_.y.size(); ++y) {
        const auto place = runs.places.place_of(trained, y);
        if (!place || std::isnan(x)) continue;
        if (spec_.x == X::kAxis) asked[*place].insert(x);
        const Row& row = replicate.row_of(spec_.y[y]);
        if (!has_ended(row)) runs.reading.waited_for.insert(place->second);
        if (is_diverged(trained) && spec_.x == X::kAxis) runs.diverged_at[*place].push_back({x, kNoValue});
        if (!row.counts(/*count_diverged=*/false)) continue;
        if (is_below(replicate, rules[y].rules, rules[y].fail_score)) {
          add_below(replicate, rules[y]);
          runs.reading.drawn[*place].insert(trained.run.id);  // a note says so
          continue;
        }
        bool is_behind = false;
        const Curve points = points_of(row, spec_.y[y], x, is_behind);
        const std::pair key(*place, trained.run.seed);
        if (points.empty()) {
          runs.reading.without.emplace(*place, row.run.id);
          continue;
        }
        runs.reading.drawn[*place].insert(trained.run.id);
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
        if (std::ranges::find(curve, x, &CurvePoint::x) == curve.end()) curve.push_back({x, kNoValue});
      }
      put_in_order(curve);
      runs.curves[key.first].push_back({key.second, {std::move(curve), /*has_diverged=*/false, {}}});
    }
  }

  const Grid& grid_;
  const std::vector<View>& views_;
  const FigureSpec& spec_;
  const ResultSet& results_;
};

/// The smallest and the greatest x, with a logarithmic axis of those above 0.
std::pair<double, double> ends_of(const FigureCurves& curves, bool is_log) {
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

void smooth_and_bin(const FigureSpec& spec, FigureCurves& curves) {
  const auto [low, high] = ends_of(curves, spec.log_x);
  for (auto& [place, runs] : curves) {
    for (SeedCurve& one : runs) {
      one.run.curve = smoothed(one.run.curve, static_cast<int>(std::max<int64_t>(1, spec.smooth / one.each)));
      if (spec.bins && low < high) one.run.curve = binned(one.run.curve, *spec.bins, low, high, spec.log_x);
    }
  }
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
void require_there(const FigureSpec& spec, const std::string& title, const FigureRuns& runs, const ResultSet& results) {
  if (!runs.reading.has_done || !results.store) return;
  std::optional<std::vector<std::string>> known;
  for (size_t y = 0; y < spec.y.size(); ++y) {
    const auto is_of_y = [&](const auto& entry) {
      const auto& [panel, line] = entry.first;
      return runs.places.panels[panel].y.value_or(y) == y && runs.places.lines[line].y.value_or(y) == y;
    };
    if (std::ranges::any_of(runs.curves, is_of_y)) continue;
    if (!known) known = known_names(spec, results);
    const auto has = [&](const std::string& pattern) {
      return std::ranges::any_of(*known, [&](const std::string& name) { return patterns_meet(pattern, name); });
    };
    const auto refuse = [&](const char* key, const std::string& name, const char* what) {
      fail("{}: the figure \"{}\": {} = \"{}\": no run has {}{}; they have: {}", spec.location, title, key, name, what,
           did_you_mean(name, *known), some_of(*known, kMaxNames));
    };
    if (spec.y[y] == kGradientNorms) {
      if (runs.reading.lacks_metric) continue;  // a note says so
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

FigurePlaces::FigurePlaces(const Grid& grid, const FigureSpec& spec) : grid_(grid), spec_(spec) {
  const Layout layout = layout_of(grid, {.rows = spec.lines, .columns = spec.panels, .where = spec.where});
  std::vector<std::optional<size_t>> every_y;
  for (size_t y = 0; y < spec.y.size(); ++y) every_y.emplace_back(y);
  const std::vector<std::optional<size_t>> any_y = {std::nullopt};
  const std::vector<std::optional<int64_t>> every_seed(grid.seeds.begin(), grid.seeds.end()), any_seed = {std::nullopt};
  for (const auto& y : spec.panel_for_each_y ? every_y : any_y) {
    for (const Coordinates& at : layout.columns) panels.push_back({at, y});
  }
  for (const Coordinates& at : layout.rows) {
    for (const auto& y : spec.panel_for_each_y ? any_y : every_y) {
      for (const auto& seed : spec.line_for_each_run ? every_seed : any_seed) lines.push_back({at, y, seed});
    }
  }
}

std::optional<FigurePlace> FigurePlaces::place_of(const Row& row, size_t y) const {
  const std::optional<Coordinates> panel_at = coordinates_of(row, spec_.panels),
                                   line_at = coordinates_of(row, spec_.lines);
  if (!panel_at || !line_at || !spec_.where.has(row.run.coordinates)) return std::nullopt;
  const auto panel =
      std::ranges::find_if(panels, [&](const PanelKey& key) { return key.at == *panel_at && key.y.value_or(y) == y; });
  const auto line = std::ranges::find_if(lines, [&](const LineKey& key) {
    return key.at == *line_at && key.y.value_or(y) == y && key.seed.value_or(row.run.seed) == row.run.seed;
  });
  if (panel == panels.end() || line == lines.end()) return std::nullopt;
  return FigurePlace(panel - panels.begin(), line - lines.begin());
}

std::optional<Coordinates> FigurePlaces::coordinates_of(const Row& row, const std::vector<size_t>& axes) const {
  Coordinates coordinates;
  for (const size_t axis : axes) {
    const Axis& own = grid_.axes[axis];
    const auto point = std::ranges::find(own.points, label_on(row.run.coordinates, own.name), &AxisPoint::label);
    if (point == own.points.end()) return std::nullopt;
    coordinates.push_back(static_cast<uint32_t>(point - own.points.begin()));
  }
  return coordinates;
}

FigureRuns read_runs(const Grid& grid, const std::vector<View>& views, const std::string& title, const FigureSpec& spec,
                     const ResultSet& results) {
  Reader reader(grid, views, spec, results);
  require_there(spec, title, reader.runs, results);
  smooth_and_bin(spec, reader.runs.curves);
  return std::move(reader.runs);
}

std::string label_at(const Grid& grid, size_t axis, uint32_t point) { return grid.axes[axis].points[point].label; }

}  // namespace tearless::harness
