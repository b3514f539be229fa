#include "harness/plan/score_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "base/nearest.h"
#include "base/pattern.h"
#include "base/words.h"
#include "harness/runs/measured.h"

namespace tearless::harness {
namespace {

constexpr size_t kMaxNames = 12;  // in one sentence

// "" for the trained run, else the derivation by whose name a score begins.
std::string derivation_of_score(const Grid& grid, const std::string& score) {
  for (const Derivation& derivation : grid.derivations) {
    if (score.starts_with(derivation.name + ".")) return derivation.name;
  }
  return "";
}

// Of the runs that are done, by the derivation that made them.
std::map<std::string, std::set<std::string>> scores_by_derivation(const std::vector<Row>& rows) {
  std::map<std::string, std::set<std::string>> scores;
  for (const Row& row : rows) {
    if (row.result.state != RunState::kDone) continue;
    for (const auto& [name, value] : row.result.scores) scores[row.derivation].insert(name);
    for (const auto& [name, instead] : row.result.no_numbers) scores[row.derivation].insert(name);
  }
  return scores;
}

// Of trained runs, and of those that the grid derives from them.
std::vector<std::string> measured_names_of(const Grid& grid) {
  std::vector<std::string> names = measured_names();
  for (const Derivation& derivation : grid.derivations) {
    for (const std::string& name : measured_names()) names.push_back(derivation.name + "." + name);
  }
  return names;
}

std::string sentence_about(const NamedScore& named, const char* what, const std::vector<std::string>& known,
                           const std::string& of = "of this grid") {
  std::string nearest = did_you_mean(named.name, known);
  if (nearest.empty()) nearest = did_you_mean(named.name, measured_names());
  if (nearest.empty()) {  // "dev.bleu" is far from "dev.bleu_13a"
    const auto longer =
        std::ranges::find_if(known, [&](const auto& name) { return name.starts_with(named.name + "_"); });
    if (longer != known.end()) nearest = fmt::format(" (did you mean \"{}\"?)", *longer);
  }
  std::vector<std::string> shown = known;
  std::ranges::sort(shown);
  return fmt::format("{}: {}: no run {} has a {} {}{}; they have: {}", named.location, named.key, of, what, named.name,
                     nearest, some_of(shown, kMaxNames));
}

// That figures, claims and scores of curves name.
std::vector<NamedScore> metrics_named(const Grid& grid, const std::vector<View>& views) {
  std::vector<NamedScore> all;
  for (const DefinedScore& score : grid.defined_scores) {
    if (score.is_over_updates()) all.push_back({score.of, "of", score.location});
  }
  for (const View& view : views) {
    if (const auto* figure = std::get_if<FigureSpec>(&view.spec))
      all.insert(all.end(), figure->metrics.begin(), figure->metrics.end());
    if (const auto* claim = std::get_if<ClaimSpec>(&view.spec); claim && !claim->curve.empty())
      all.push_back({claim->curve, "curve", claim->curve_location});
  }
  std::erase_if(all, [](const auto& named) { return named.name == kGradientNorms; });
  return all;
}

// Words of [names] that are neither of an axis nor a score: of the axes of figures.
bool is_of_figures(const Grid& grid, const std::vector<View>& views, const std::string& word) {
  if (word == kGradientNorms || word == "updates" || word == "hours" || word == "layer" || word == "epoch") return true;
  return std::ranges::any_of(metrics_named(grid, views), [&](const auto& named) { return named.name == word; });
}

// All that the answers of some runs have under one key; unset if one of them does not have it.
std::optional<std::vector<std::string>> names_in(
    const std::vector<PlannedRun>& plan, CheckAnswer::Names CheckAnswer::*known,
    const std::function<bool(const PlannedRun&)>& counts = [](const PlannedRun&) { return true; }) {
  std::set<std::string> all;
  const std::vector<std::string>* added = nullptr;
  for (const PlannedRun& planned : plan) {
    if (!planned.answer.error.empty() || !counts(planned)) continue;
    const auto* names = (planned.answer.*known).get();
    if (!names) return std::nullopt;
    if (names != added) all.insert(names->begin(), names->end());
    added = names;
  }
  if (!added) return std::nullopt;
  return std::vector(all.begin(), all.end());
}

std::vector<std::string> errors_of_metrics(const Grid& grid, const std::vector<View>& views,
                                           const std::optional<std::vector<std::string>>& known) {
  std::vector<std::string> errors;
  for (const NamedScore& named : known ? metrics_named(grid, views) : std::vector<NamedScore>()) {
    const auto meets = [&](const std::string& name) { return patterns_meet(named.name, name); };
    if (std::ranges::none_of(*known, meets)) errors.push_back(sentence_about(named, "metric", *known));
  }
  return errors;
}

}  // namespace

std::optional<std::vector<std::string>> scores_of(const std::vector<PlannedRun>& plan) {
  return names_in(plan, &CheckAnswer::scores);
}

std::optional<std::vector<std::string>> windows_of(const std::vector<PlannedRun>& plan) {
  return names_in(plan, &CheckAnswer::windows, [](const PlannedRun& run) { return run.derivation.empty(); });
}

void show_all_without_default(const Grid& grid, const std::optional<std::vector<std::string>>& known,
                              const std::vector<Row>& rows, std::vector<View>& views) {
  std::set<std::string> all;
  if (known) all.insert(known->begin(), known->end());
  for (const auto& [derivation, seen] : scores_by_derivation(rows)) all.insert(seen.begin(), seen.end());
  std::set<std::string> with_own = all;
  for (const DefinedScore& score : grid.defined_scores) with_own.insert(score.name);
  if (std::ranges::any_of(with_own, [](const auto& name) { return patterns_meet("test.*", name); })) return;
  for (View& view : views) {
    auto* table = std::get_if<TableSpec>(&view.spec);
    if (table && table->scores.empty()) table->scores.assign(all.begin(), all.end());
  }
}

std::vector<std::string> errors_of_scores_by_label(const Grid& grid, const std::vector<View>& views,
                                                   const std::vector<PlannedRun>& plan) {
  std::vector<std::string> errors;
  for (const View& view : views) {
    const auto* table = std::get_if<TableSpec>(&view.spec);
    for (const NamedScore& named : table ? table->named : std::vector<NamedScore>()) {
      const auto is_own = [&](const DefinedScore& score) { return patterns_meet(named.name, score.name); };
      if (!named.of_point || is_measured(named.name) || std::ranges::any_of(grid.defined_scores, is_own)) continue;
      const auto& [axis, point] = *named.of_point;
      const auto has_label = [axis = axis, point = point](const PlannedRun& run) {
        return run.combination.index[axis] == point;
      };
      const std::optional<std::vector<std::string>> known = names_in(plan, &CheckAnswer::scores, has_label);
      const auto meets = [&](const std::string& name) { return patterns_meet(named.name, name); };
      if (!known || std::ranges::any_of(*known, meets)) continue;
      errors.push_back(
          sentence_about(named, "score", *known,
                         fmt::format("with {} = {}", grid.axes[axis].name, grid.axes[axis].points[point].label)));
    }
  }
  return errors;
}

std::vector<std::string> errors_of_scores(const Grid& grid, const std::vector<View>& views,
                                          const std::optional<std::vector<std::string>>& known,
                                          const std::vector<Row>& rows) {
  std::vector<std::string> errors;
  const auto seen = known ? std::map<std::string, std::set<std::string>>() : scores_by_derivation(rows);
  std::vector<NamedScore> all = grid.named;
  for (const View& view : views) {
    std::visit([&](const auto& spec) { all.insert(all.end(), spec.named.begin(), spec.named.end()); }, view.spec);
  }
  std::vector<std::string> own;  // that the grid defines
  for (const DefinedScore& score : grid.defined_scores) {
    own.push_back(score.name);
    if (score.is_over_layers()) all.push_back({score.of, "of", score.location});
    for (const std::string& part : score.mean_of) all.push_back({part, "of", score.location});
  }
  for (const NamedScore& named : all) {
    const bool is_of_results = named.key == "select.by" || named.key == "of";
    if (is_of_results && is_measured(named.name)) {
      errors.push_back(fmt::format("{}: {}: {} says as much of the machine as of the run{}; name a score",
                                   named.location, named.key, named.name,
                                   named.key == "of" ? "" : ", and chooses none"));
      continue;
    }
    const auto meets = [&](const std::string& name) { return patterns_meet(named.name, name); };
    if (std::ranges::any_of(own, meets) || (named.key == "names" && is_of_figures(grid, views, named.name))) continue;
    std::vector<std::string> names = known.value_or(std::vector<std::string>());
    if (is_measured(named.name)) {  // of each run, whatever its program
      names = measured_names_of(grid);
    } else if (!known) {
      const auto of_derivation = seen.find(derivation_of_score(grid, named.name));
      if (of_derivation == seen.end()) continue;
      names.assign(of_derivation->second.begin(), of_derivation->second.end());
    }
    if (std::ranges::any_of(names, meets)) continue;
    names.insert(names.end(), own.begin(), own.end());
    errors.push_back(sentence_about(named, "score", names));
  }
  return errors;
}

std::vector<std::string> errors_of_parts(const Grid& grid, const std::vector<PlannedRun>& plan,
                                         const std::vector<Row>& rows) {
  if (!names_in(plan, &CheckAnswer::metrics) || !have_all_labels(grid, rows)) return {};
  int64_t updates = 0;  // of the longest run
  for (const Row& row : rows) {
    if (!row.is_trained()) continue;
    if (row.run.updates == 0) return {};
    updates = std::max(updates, row.run.updates);
  }
  if (updates == 0) return {};
  std::vector<std::string> errors;
  for (const DefinedScore& score : grid.defined_scores) {
    const auto& [from, to] = std::pair(score.limits.from, score.limits.to);
    if (!score.is_over_updates() || (from <= static_cast<double>(updates) && to >= 1)) continue;
    errors.push_back(fmt::format("{}: {} = {} leaves no update: the runs make 1 to {}", score.location,
                                 to < 1 ? "to" : "from", to < 1 ? to : from, updates));
  }
  return errors;
}

bool have_all_labels(const Grid& grid, const std::vector<Row>& rows) {
  std::set<std::pair<std::string, std::string>> labels;
  const Labels* last = nullptr;
  for (const Row& row : rows) {
    const Labels& own = row.run.coordinates;
    if (!last || own != *last) labels.insert(own.begin(), own.end());  // replicates stand together
    last = &own;
  }
  return std::ranges::all_of(grid.axes, [&](const Axis& axis) {
    return std::ranges::all_of(axis.points, [&](const AxisPoint& point) {
      return point.label == kAbsentLabel || labels.contains({axis.name, point.label});
    });
  });
}

std::vector<std::string> errors_of_names(const Grid& grid, const std::vector<View>& views,
                                         const std::vector<PlannedRun>& plan, const std::vector<Row>& rows) {
  const bool is_whole = have_all_labels(grid, rows);
  std::vector<std::string> errors;
  if (is_whole) errors = errors_of_scores(grid, views, scores_of(plan), rows);
  if (errors.empty()) errors = errors_of_scores_by_label(grid, views, plan);
  if (errors.empty() && is_whole) errors = errors_of_metrics(grid, views, names_in(plan, &CheckAnswer::metrics));
  return errors;
}

}  // namespace tearless::harness
