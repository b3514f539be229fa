#include "harness/results/curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/numbers.h"
#include "base/omitted.h"
#include "base/pattern.h"
#include "base/run_directory.h"
#include "harness/runs/gradient_norms.h"
#include "harness/runs/workspace.h"
#include "harness/statistics/stats.h"

namespace tearless::harness {
namespace {

/// Their number if it is none of them.
size_t index_in(const std::vector<std::string>& metrics, const std::string& metric) {
  return static_cast<size_t>(std::ranges::find(metrics, metric) - metrics.begin());
}

/// Whole, since the measure of one is exact.
std::vector<Curve> whole_curves(const ResultSet& results, const Row& row, const std::vector<std::string>& metrics) {
  std::vector<Curve> curves(metrics.size());
  read_curves(results, row, metrics, [&](size_t metric, int64_t update, double value) {
    curves[metric].push_back({static_cast<double>(update), value});
  });
  for (Curve& curve : curves) put_in_order(curve);
  return curves;
}

/// Of the scores over updates.
std::vector<std::string> metrics_of(const std::vector<DefinedScore>& scores) {
  std::vector<std::string> metrics;
  for (const DefinedScore& score : scores) {
    const bool is_known = std::ranges::find(metrics, score.of) != metrics.end();
    if (score.is_over_updates() && !is_known) metrics.push_back(score.of);
  }
  return metrics;
}

/// Of several scores; nullopt if one of them has no number.
std::optional<double> mean_of(const Replicate& replicate, const std::vector<std::string>& scores) {
  std::vector<double> numbers;
  for (const std::string& score : scores) {
    const std::optional<double> number = replicate.row_of(score).number(score);
    if (!number) return std::nullopt;
    numbers.push_back(*number);
  }
  return mean(numbers);
}

/// Why a run has not this score.
const char* reason_of(const DefinedScore& score, const Curve& curve, const CurveExtent& extent,
                      const ResultSet& results, const Row& row) {
  if (!score.is_of_curve()) return "not all of its scores";
  if (lacks(results, row, score.of)) return kNotInCopy;
  if (curve.empty()) return "no curve";
  if (const auto [first, end] = part_of(curve, score.limits, extent); first == end) return "no value in its part";
  return score.measure->keys & CurveMeasure::kValue ? "not reached" : "too few points";
}

std::string name_of_no_number(double value) { return std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity"; }

/// UserError if the norms of a run that has ended are not those that it ended with.
void require_as_done(const RunDirectory& run) {
  const std::filesystem::path file = run.gradient_norms();
  const std::optional<Done> done = read_done(run);
  if (!done || !std::filesystem::exists(file)) return;  // results alone that an older version copied lack it
  const auto known = done->files.find(file.filename().string());
  if (known == done->files.end()) return;
  if (sha256_of_file(file) != known->second) {
    fail("{}: it is not the file that the run ended with; to see what else is changed: tearless verify", file.string());
  }
}

}  // namespace

void put_in_order(Curve& curve) {
  const auto is_late = [](const CurvePoint& a, const CurvePoint& b) { return a.x >= b.x; };
  if (std::adjacent_find(curve.begin(), curve.end(), is_late) == curve.end()) return;  // nearly all are in order
  std::ranges::stable_sort(curve, {}, &CurvePoint::x);
  const auto is_same = [](const CurvePoint& a, const CurvePoint& b) { return a.x == b.x; };
  curve.erase(curve.begin(), std::unique(curve.rbegin(), curve.rend(), is_same).base());
}

void CurveCollector::add(double x, double y) {
  last_ = {x, y};
  if (sums_.empty()) first_ = last_;
  if (sums_.empty() || sums_.back().points == each_) {
    if (sums_.size() == kMaxPoints) halve();
    if (sums_.empty() || sums_.back().points == each_) sums_.emplace_back();
  }
  Sum& last = sums_.back();
  ++last.points;
  last.x += (x - last.x) / static_cast<double>(last.points);
  if (!std::isfinite(y)) return;
  ++last.finite;
  last.y += (y - last.y) / static_cast<double>(last.finite);
}

void CurveCollector::halve() {
  for (size_t i = 0; i + 1 < sums_.size(); i += 2) {
    const Sum &a = sums_[i], &b = sums_[i + 1];
    const int64_t finite = a.finite + b.finite;
    const double part = finite == 0 ? 0 : static_cast<double>(b.finite) / static_cast<double>(finite);
    sums_[i / 2] = {a.points + b.points, finite, (a.x + b.x) / 2, a.y * (1 - part) + b.y * part};
  }
  sums_.resize(sums_.size() / 2);
  each_ *= 2;
}

Curve CurveCollector::take() {
  Curve curve;
  curve.reserve(sums_.size() + 2);
  if (each_ > 1) curve.push_back(first_);
  for (const Sum& sum : sums_)
    curve.push_back({sum.x, sum.finite == sum.points ? sum.y : std::numeric_limits<double>::quiet_NaN()});
  if (each_ > 1 && last_.x > curve.back().x) curve.push_back(last_);
  put_in_order(curve);
  return curve;
}

void read_curves(const ResultSet& results, const Row& row, const std::vector<std::string>& metrics,
                 const std::function<void(size_t, int64_t, double)>& read) {
  if (!results.store || row.run.id.empty()) return;
  const size_t norms = index_in(metrics, kGradientNorms), reported = metrics.size() - (norms < metrics.size() ? 1 : 0);
  if (reported > 0) {
    results.store->read_metrics(row.run.id, [&](const MetricLine& line) {
      const size_t metric = index_in(metrics, line.name);
      if (metric < metrics.size() && metric != norms) read(metric, line.step, line.value);
    });
  }
  if (norms < metrics.size()) {
    const RunDirectory run = Workspace(results.store->root()).run(row.run.id);
    require_as_done(run);
    read_gradient_norms(run, [&](int64_t update, double norm) { read(norms, update, norm); });
  }
}

bool lacks(const ResultSet& results, const Row& row, const std::string& metric) {
  if (metric != kGradientNorms || !results.store || row.run.id.empty()) return false;
  const RunDirectory run = Workspace(results.store->root()).run(row.run.id);
  return is_omitted(run, run.gradient_norms().filename());
}

CurveExtent extent_of(const ResultSet& results, const Row& row, const std::string& metric) {
  const auto is_of = [&](const auto& pattern) { return matches_pattern(pattern, metric); };
  CurveExtent extent{.end = static_cast<double>(row.result.step.value_or(0))};
  if (results.windows) {
    extent.windows = std::ranges::any_of(*results.windows, is_of);
  } else if (!names_program(row.run.settings)) {  // of a build of tearless-engine that does not answer them
    extent.windows = std::ranges::any_of(kEngineWindows, is_of);
  }
  return extent;
}

Curve curve_of(const ResultSet& results, const Row& row, const std::string& metric) {
  return whole_curves(results, row, {metric}).front();
}

Curve layers_of(const Row& row, const std::string& pattern) {
  const size_t star = pattern.find('*');
  const std::string before = pattern.substr(0, star), after = pattern.substr(star + 1);
  Curve curve;
  for (auto score = row.result.scores.lower_bound(before);
       score != row.result.scores.end() && score->first.starts_with(before); ++score) {
    const std::string& name = score->first;
    if (name.size() <= before.size() + after.size() || !name.ends_with(after)) continue;
    const std::string_view between = std::string_view(name).substr(before.size());
    const int layer = number_of<int>(between.substr(0, between.size() - after.size())).value_or(-1);
    if (layer >= 0) curve.push_back({static_cast<double>(layer), score->second});
  }
  put_in_order(curve);
  return curve;
}

void add_defined_scores(const Grid& grid, ResultSet& results) {
  if (grid.defined_scores.empty()) return;
  const std::vector<std::string> metrics = metrics_of(grid.defined_scores);
  Group all;
  for (const Row& row : results.rows) all.rows.push_back(&row);
  std::map<const Row*, Replicate> replicates;
  for (Replicate& replicate : all.replicates()) replicates.emplace(replicate.trained, std::move(replicate));
  for (Row& row : results.rows) {
    if (row.result.scores.empty() || !row.is_trained()) continue;
    const std::vector<Curve> curves = whole_curves(results, row, metrics);
    std::map<std::string, double> found;
    for (const DefinedScore& score : grid.defined_scores) {
      if (row.result.scores.contains(score.name)) {
        fail("{}: run {} has a score {} itself; give this one another name", score.location, row.run.id, score.name);
      }
      const Replicate& replicate = replicates.at(&row);
      Curve curve;
      CurveExtent extent;
      if (score.is_over_layers()) curve = layers_of(replicate.row_of(score.of), score.of);
      if (score.is_over_updates()) {
        curve = curves[index_in(metrics, score.of)];
        extent = extent_of(results, row, score.of);
      }
      const Measured measured = score.is_of_curve() ? measure(*score.measure, curve, score.limits, extent)
                                                    : Measured{mean_of(replicate, score.mean_of), {}};
      if (measured.number) {
        found.emplace(score.name, *measured.number);
      } else if (const auto& at = measured.not_finite) {
        row.result.no_numbers[score.name] = fmt::format("{} at update {:.0f}", name_of_no_number(at->y), at->x);
      } else {
        row.result.no_numbers[score.name] = reason_of(score, curve, extent, results, row);
      }
    }
    row.result.scores.merge(found);
  }
}

}  // namespace tearless::harness
