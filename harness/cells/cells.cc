#include "harness/cells/cells.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "harness/cells/scores.h"
#include "harness/cells/weighted_sum.h"
#include "harness/runs/attempt_files.h"
#include "harness/runs/measured.h"
#include "harness/statistics/looks.h"
#include "harness/statistics/stats.h"

namespace tearless::harness {
namespace {

using Replicates = std::vector<Replicate>;

/// Where the runs of a cell have measured that number; none for a score. Numbers of two machines have no mean.
std::set<std::string> machines_that_measured(const std::string& score, const Replicates& replicates,
                                             const CellRules& rules) {
  std::set<std::string> machines;
  if (!is_measured(score)) return machines;
  for (const Replicate& replicate : replicates) {
    const Row& row = replicate.row_of(score);
    if (!row.counts(rules.count_diverged) || !row.number(score)) continue;
    machines.insert(row.result.measured_on.begin(), row.result.measured_on.end());
  }
  return machines;
}

/// Of each seed, of cells of one place.
Cell mean_of(const std::vector<Cell>& cells) {
  Terms terms;
  for (const Cell& cell : cells) terms.emplace_back(&cell, 1 / static_cast<double>(cells.size()));
  return weighted_sum(terms);
}

/// The numbers of any of the candidates would be read as those of a choice.
Cell emptied(const Cell& cell, const std::string& by) {
  Cell empty{.expected = cell.expected, .ends = cell.ends, .chosen = cell.chosen};
  for (const SeedValue& one : cell.values) empty.ends[one.seed] = Cell::End::kNotChosen;
  empty.chosen.reason = "not chosen: no run has " + by;
  return empty;
}

void add_origins(const Row& row, const RunResult& trained, Origins& origins) {
  const RunResult& result = row.result;
  origins.stale += !result.stale.empty() || !trained.stale.empty();
  for (const std::string& why : {trained.stale, result.stale}) {
    if (!why.empty()) origins.stale_because.insert(why);
  }
  origins.trained_by.insert(trained.trained_by.begin(), trained.trained_by.end());
  origins.trained_on.insert(trained.trained_on.begin(), trained.trained_on.end());
  if (row.is_trained()) return;
  origins.derived_on[row.derivation].insert(result.trained_on.begin(), result.trained_on.end());
}

/// What a run that is done has in place of a score. `value`: what it has measured, on one of several machines.
std::string instead_of(const std::string& score, const std::optional<double>& value, const RunResult& result) {
  if (value) return "measured on one of several machines";
  const auto instead = result.no_numbers.find(score);
  if (instead != result.no_numbers.end()) return instead->second;
  return is_measured(score) ? kNotMeasured : kNotInScores;
}

}  // namespace

std::map<int64_t, std::string> seeds_added_later(const std::vector<Replicate>& runs) {
  std::map<Labels, std::vector<const Row*>> cells;
  for (const Replicate& run : runs) cells[run.trained->run.coordinates].push_back(run.trained);
  std::map<int64_t, std::string> later;
  for (const auto& [labels, rows] : cells) {
    for (const Row* row : rows) {
      const bool is_later = std::ranges::any_of(rows, [&](const Row* other) {
        if (other->result.attempts.empty() || !other->result.state || !has_result(*other->result.state)) return false;
        const std::string& end = other->result.attempts.back().ended_at;
        if (end.empty() || end >= row->known_since || other->known_since >= row->known_since) return false;
        // A sweep that lacks the seed: runs of one sweep that were made again are not added.
        return !std::ranges::includes(row->sweeps, other->sweeps);
      });
      if (is_later) later.emplace(row->run.seed, row->known_since);
    }
  }
  return later;
}

std::string peeking_text(const std::map<int64_t, std::string>& added, size_t seeds) {
  if (added.empty() || added.size() > seeds) return "";
  std::map<std::string, size_t> batches;  // time → seeds
  for (const auto& [seed, time] : added) ++batches[time];
  size_t there = seeds - added.size();
  std::vector<size_t> looks;
  const auto look = [&] {
    if (there >= 2) looks.push_back(there);
  };
  look();
  for (const auto& [time, count] : batches) {
    there += count;
    look();
  }
  constexpr double kUsualLevel = 0.05;
  const bool is_known = !looks.empty() && looks.size() <= kMaxLooks && looks.back() <= kMaxLookSeeds;
  std::vector<int64_t> names;
  for (const auto& [seed, time] : added) names.push_back(seed);
  return fmt::format("{} {} {} added on {}, after results with {} existed: the true level of a comparison at 5 % is {}",
                     names.size() == 1 ? "seed" : "seeds", fmt::join(names, ", "), names.size() == 1 ? "was" : "were",
                     batches.begin()->first.substr(0, std::string_view("2026-01-31").size()), seeds - added.size(),
                     is_known ? fmt::format("up to {:.1f} %", 100 * level_of_all(looks, kUsualLevel)) : "higher");
}

/// What `select` says of the candidates of one place.
struct Cells::Choice {
  const Candidates::value_type* best = nullptr;  // null: none of them has a mean of select.by
  bool is_tied = false;                          // others have the same mean; `best` is the first in the grid's order
  bool is_complete = true;                       // all of them have select.by of every seed
};

Cells::Cells(const Grid& grid, const Arrangement& arrangement, const CellRules& rules, const std::vector<Row>& rows)
    : grid_(grid),
      arrangement_(arrangement),
      rules_(rules),
      over_(arrangement.select ? arrangement.select->over : arrangement.average),
      layout_(layout_of(grid, arrangement)) {
  std::vector<size_t> axes = arrangement.rows;
  axes.insert(axes.end(), arrangement.columns.begin(), arrangement.columns.end());
  axes.insert(axes.end(), over_.begin(), over_.end());
  std::map<RowKey, Replicates> groups;
  for (const Group& one : group(rows, names_of_axes(grid, axes))) {
    Replicates& replicates = groups[one.key] = one.replicates();
    std::erase_if(replicates,
                  [&](const Replicate& one_run) { return !arrangement.where.has(one_run.trained->run.coordinates); });
    runs_.insert(runs_.end(), replicates.begin(), replicates.end());
  }
  for_each_cell(grid, [&](const Combination& combination, const Exclusion* excluded) {
    if (!arrangement.where.has_point(grid, combination.index)) return;
    const Place place(project(combination, arrangement.rows), project(combination, arrangement.columns));
    if (excluded) {
      left_out_.insert(place);
      return;
    }
    // Each combination of labels occurs once.
    places_[place][project(combination, over_)] = std::move(groups[labels_at(grid, axes, project(combination, axes))]);
  });
}

Averages Cells::averages() const {
  std::set<std::vector<Coordinates>> points;
  for (const auto& [place, candidates] : places_) {
    std::vector<Coordinates> own;
    for (const auto& [point, replicates] : candidates) own.push_back(point);
    points.insert(std::move(own));
  }
  if (std::ranges::none_of(points, [](const auto& own) { return own.size() > 1; })) return Averages::kOfOne;
  return points.size() > 1 ? Averages::kOfOthers : Averages::kOfTheSame;
}

Cell Cells::at(size_t row, size_t column, const std::string& score, const std::string& fail_score) const {
  const Place place(layout_.rows[row], layout_.columns[column]);
  const auto there = places_.find(place);
  if (there == places_.end()) return {.is_excluded = left_out_.contains(place)};
  const Candidates& candidates = there->second;
  if (!arrangement_.average.empty()) {
    std::vector<Cell> cells;
    for (const auto& [point, replicates] : candidates) {
      cells.push_back(filled(replicates, score, fail_score));
      cells.back().averaged = {point};
    }
    return mean_of(cells);
  }
  if (!arrangement_.select) return filled(candidates.begin()->second, score, fail_score);

  const Choice choice = choose(candidates);
  const auto& [point, replicates] = choice.best ? *choice.best : *candidates.begin();
  Cell cell = filled(replicates, score, fail_score);
  cell.chosen = {.is_tied = choice.is_tied, .is_of_all = choice.is_complete};
  if (!choice.best) return cell.n() > 0 ? emptied(cell, arrangement_.select->by) : cell;
  const std::vector<std::string> labels = labels_at(grid_, over_, point);
  std::vector<std::string> names;
  for (size_t i = 0; i < over_.size(); ++i)
    names.push_back(name_of(grid_.names, grid_.axes[over_[i]].name, labels[i]).text);
  cell.chosen.labels = fmt::format("{}", fmt::join(labels, ", "));
  cell.chosen.in_print = fmt::format("{}", fmt::join(names, ", "));
  return cell;
}

Cells::Choice Cells::choose(const Candidates& candidates) const {
  const Arrangement::Select& select = *arrangement_.select;
  Choice choice;
  std::optional<double> best_mean;
  for (const auto& candidate : candidates) {
    const auto values = values_of(candidate.second, select.by, rules_.count_diverged);
    choice.is_complete &= values.size() == expected(candidate.second);
    std::optional<double> value = mean(numbers_of(values));
    if (!value) continue;
    if (!select.highest) *value = -*value;
    choice.is_tied |= value == best_mean;
    if (best_mean && *value <= *best_mean) continue;
    choice.is_tied = false;
    best_mean = value;
    choice.best = &candidate;
  }
  return choice;
}

Cell Cells::filled(const Replicates& replicates, const std::string& score, const std::string& fail_score) const {
  std::vector<Cell> cells;
  for (const std::string& part : parts_of(grid_.defined_scores, score))
    cells.push_back(of_one_score(replicates, part, rules_.factor_of(score), fail_score));
  return cells.size() == 1 ? cells.front() : mean_of(cells);
}

/// Of the seeds that a later look may ask for, those that have a run are wanted.
size_t Cells::expected(const Replicates& replicates) const {
  const std::vector<size_t>& looks = grid_.claims.looks;
  return looks.empty() ? grid_.seeds.size() : std::max(looks.front(), replicates.size());
}

Cell Cells::of_one_score(const Replicates& replicates, const std::string& score, double factor,
                         const std::string& fail_score) const {
  Cell cell{.expected = static_cast<int>(expected(replicates)), .added_seeds = seeds_added_later(replicates)};
  cell.origins.measured_on = machines_that_measured(score, replicates, rules_);
  for (const Replicate& replicate : replicates) {
    const Row& row = replicate.row_of(score);  // of a derived run's score that run, which may be missing
    const RunResult& result = row.result;
    if (!result.id.empty()) cell.runs.push_back(result.id);
    const bool has_diverged = result.state == RunState::kDiverged;
    const auto end_as = [&](Cell::End end) {
      cell.ends.emplace(row.run.seed, has_diverged ? Cell::End::kDiverged : end);
    };
    if (!row.counts(rules_.count_diverged)) {
      if (has_diverged || result.state == RunState::kFailed) end_as(Cell::End::kFailed);
      continue;
    }
    const std::optional<double> value = row.number(score);
    if (is_below(replicate, rules_, fail_score)) {
      end_as(Cell::End::kBelow);
    } else if (!value || kinds_in(cell.origins.measured_on) > 1) {
      end_as(Cell::End::kScoreless);
      if (!has_diverged) cell.without_score[result.id] = instead_of(score, value, result);
    } else {
      cell.values.push_back({row.run.seed, *value * factor});
      if (const auto found = row.sentences.find(score); found != row.sentences.end())
        cell.sentences.emplace(row.run.seed, found->second);
      cell.diverged_scored += has_diverged;
      add_origins(row, replicate.trained->result, cell.origins);
    }
  }
  return cell;
}

}  // namespace tearless::harness
