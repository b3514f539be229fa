#include <string.h>  // strverscmp

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/ranges.h>

#include "base/pattern.h"
#include "base/settings.h"
#include "base/words.h"
#include "harness/grid/layout.h"
#include "harness/runs/measured.h"
#include "harness/table/stats.h"
#include "harness/table/table.h"

namespace tearless::harness {
namespace {

using Replicates = std::vector<Replicate>;

constexpr const char* kAbsent = "not in scores.json";
constexpr const char* kNotMeasured = "not measured";
constexpr size_t kMaxShown = 4;  // texts of one kind in a note

std::vector<std::string> labels_at(const Grid& grid, const std::vector<size_t>& axes, const Coordinates& coordinates) {
  std::vector<std::string> labels;
  for (size_t i = 0; i < axes.size(); ++i) labels.push_back(grid.axes[axes[i]].points[coordinates[i]].label);
  return labels;
}

std::vector<std::string> names_of(const Grid& grid, const std::vector<size_t>& axes) {
  std::vector<std::string> names;
  for (const size_t axis : axes) names.push_back(grid.axes[axis].name);
  return names;
}

// --- scores --------------------------------------------------------------------------------------------------------

/// The names of the requested scores, with patterns replaced by the names that match.
std::vector<std::string> scores_of(const TableSpec& spec, const std::vector<Row>& rows) {
  std::set<std::string> there;
  for (const Row& row : rows) {
    for (const auto* numbers : {&row.result.scores, &row.result.measured}) {
      for (const auto& [name, value] : *numbers) there.insert(name);
    }
  }
  return names_matching(spec.scores.empty() ? std::vector<std::string>{"test.*"} : spec.scores, there);
}

/// The entry of a score: by its name, else by the first pattern that it matches. Null: there is none.
template <class Value>
const Value* entry_of(const std::map<std::string, Value>& entries, const std::string& score) {
  if (const auto it = entries.find(score); it != entries.end()) return &it->second;
  for (const auto& [pattern, value] : entries) {
    if (matches_pattern(pattern, score)) return &value;
  }
  return nullptr;
}

double factor_of(const TableSpec& spec, const std::string& score) {
  const double* factor = entry_of(spec.factors, score);
  return factor ? *factor : 1;
}

/// The keys of --set that may change results: neither local settings of the runs nor the device, which changes the last
/// bits alone.
std::vector<std::string> settings_of_another_experiment(const Grid& grid, const std::vector<Row>& rows) {
  std::vector<std::string> keys;
  for (const std::string& option : grid.set_options) {
    const std::string key = option.substr(0, option.find('='));
    const bool is_local = std::ranges::all_of(rows, [&](const Row& row) {
      return row.run.local.starts_with(key + " = ") || row.run.local.find("\n" + key + " = ") != std::string::npos;
    });
    if (key != "run.device" && !is_local) keys.push_back(key);
  }
  return keys;
}

// --- cells ---------------------------------------------------------------------------------------------------------

/// What may stand in one place of the table: the runs, by their coordinates on the axes select.over. One entry without
/// `select`.
using Candidates = std::map<Coordinates, Replicates>;

/// What `select` says of the candidates of one place.
struct Choice {
  const Candidates::value_type* best = nullptr;  // null: none of them has a mean of select.by
  bool is_tied = false;                          // others have the same mean; `best` is the first in the grid's order
  bool is_complete = true;                       // all of them have select.by of every seed
};

Choice choose(const Candidates& candidates, const TableSpec& spec, size_t seeds) {
  if (!spec.select) return {.best = &*candidates.begin()};
  Choice choice;
  std::optional<double> best_mean;
  for (const auto& candidate : candidates) {
    const auto values = values_of(candidate.second, spec.select->by, spec.count_diverged);
    choice.is_complete &= values.size() == seeds;
    std::optional<double> value = mean(numbers_of(values));
    if (!value) continue;
    if (!spec.select->highest) *value = -*value;
    choice.is_tied |= value == best_mean;
    if (best_mean && *value <= *best_mean) continue;
    choice.is_tied = false;
    best_mean = value;
    choice.best = &candidate;
  }
  return choice;
}

/// Where the runs of a cell have measured that number; none for a score. Numbers of two machines have no mean.
std::set<std::string> machines_that_measured(const std::string& score, const Replicates& replicates,
                                             const TableSpec& spec) {
  std::set<std::string> machines;
  if (!is_measured(score)) return machines;
  for (const Replicate& replicate : replicates) {
    const Row& row = replicate.row_of(score);
    if (!row.counts(spec.count_diverged) || !row.number(score)) continue;
    machines.insert(row.result.measured_on.begin(), row.result.measured_on.end());
  }
  return machines;
}

/// `factor` is that of the score. `fail_score` is the score that is compared with fail_below: a run below it counts as
/// failed in every column.
Cell fill_cell(size_t seeds, const Replicates& replicates, const std::string& score, const std::string& fail_score,
               double factor, const TableSpec& spec) {
  Cell cell;
  cell.expected = static_cast<int>(seeds);
  cell.measured_on = machines_that_measured(score, replicates, spec);
  std::set<std::string> trained_on, derived_on;  // each by itself: a score of outputs is made without matmuls
  for (const Replicate& replicate : replicates) {
    const Row& row = replicate.row_of(score);  // of a derived run's score that run, which may be missing
    const RunResult &result = row.result, &trained = replicate.trained->result;
    if (!result.id.empty()) cell.runs.push_back(result.id);
    cell.diverged += result.state == RunState::kDiverged;
    cell.failed += result.state == RunState::kFailed;
    if (!row.counts(spec.count_diverged)) continue;
    const bool diverged = result.state == RunState::kDiverged;
    const std::optional<double> compared = replicate.row_of(fail_score).number(fail_score), value = row.number(score);
    if (spec.fail_below && compared && *compared < *spec.fail_below) {
      cell.below += !diverged;  // one that diverged is not counted twice
    } else if (!value || cell.measured_on.size() > 1) {
      if (diverged) continue;
      ++cell.scoreless;
      const auto instead = result.no_numbers.find(score);
      cell.without_score[result.id] = value                                ? "measured on one of several machines"
                                      : instead != result.no_numbers.end() ? instead->second
                                      : is_measured(score)                 ? kNotMeasured
                                                                           : kAbsent;
    } else {
      cell.values.push_back({row.run.seed, *value * factor});
      cell.diverged_scored += diverged;
      cell.stale += !result.stale.empty() || !trained.stale.empty();
      for (const std::string& why : {trained.stale, result.stale}) {
        if (!why.empty()) cell.stale_because.insert(why);
      }
      cell.trained_by.insert(trained.trained_by.begin(), trained.trained_by.end());
      trained_on.insert(trained.trained_on.begin(), trained.trained_on.end());
      derived_on.insert(result.trained_on.begin(), result.trained_on.end());
    }
  }
  const size_t kinds =
      std::max({trained_on.size(), derived_on.size(), cell.trained_by.size(), cell.measured_on.size()});
  cell.mixed = kinds > 1 ? static_cast<int>(kinds) : 0;
  cell.mean = mean(numbers_of(cell.values));
  cell.spread = sample_deviation(numbers_of(cell.values));
  return cell;
}

/// Cells of one score with the same runs: an axis has no effect there.
void mark_repeated_cells(Table& table) {
  std::set<std::pair<std::string, std::vector<std::string>>> seen;
  for (Table::Row& row : table.rows) {
    for (size_t i = 0; i < row.cells.size(); ++i) {
      Cell& cell = row.cells[i];
      cell.repeats = !cell.runs.empty() && !seen.emplace(table.columns[i].score, cell.runs).second;
    }
  }
}

// --- numbers of digits ---------------------------------------------------------------------------------------------

Digits digits_of(const TableSpec& spec, const Table& table, const std::string& score) {
  if (const int* given = entry_of(spec.decimals, score)) return {.decimals = *given, .is_given = true};
  std::vector<double> means, spreads;
  for (const Table::Row& row : table.rows) {
    for (size_t i = 0; i < row.cells.size(); ++i) {
      const Cell& cell = row.cells[i];
      if (table.columns[i].score != score) continue;
      if (cell.mean) means.push_back(*cell.mean);
      if (cell.spread) spreads.push_back(*cell.spread);
    }
  }
  return Digits::of(means, spreads);
}

/// The most digits after the point among the published numbers. TOML drops trailing zeros: a printed 29.50 is read as
/// 29.5.
int published_decimals(const TableSpec::Published& published) {
  size_t decimals = 0;
  for (const auto& row : published.values) {
    for (const auto& value : row) {
      const std::string text = value.is_number() ? toml_value(value) : "";
      const size_t point = text.find('.');
      const bool has_exponent = text.find('e') != std::string::npos;
      if (point != std::string::npos && !has_exponent && !text.ends_with(".0"))
        decimals = std::max(decimals, text.size() - point - 1);
    }
  }
  return static_cast<int>(decimals);
}

// --- notes ---------------------------------------------------------------------------------------------------------

void add_state_notes(const Grid& grid, const Replicates& runs, const std::string& options,
                     std::vector<std::string>& notes) {
  std::map<std::string, int> waiting;
  std::vector<std::string> failed;
  for (const Replicate& run : runs) {
    const std::optional<RunState>& state = run.trained->result.state;
    if (state == RunState::kFailed) {
      failed.push_back(run.trained->run.id);
    } else if (state != RunState::kDone && state != RunState::kDiverged) {
      ++waiting[std::string(!state                            ? "not started"
                            : state == RunState::kWaitingData ? "waiting for data"
                                                              : name_of(state))];
    }
  }
  int unfinished = 0;
  std::vector<std::string> parts;
  for (const auto& [state, count] : waiting) {
    unfinished += count;
    parts.push_back(fmt::format("{} {}", count, state));
  }
  if (unfinished > 0) {
    notes.push_back(fmt::format("{} of {} have no result yet ({}). To continue: tearless run {}{}", unfinished,
                                counted(static_cast<int64_t>(runs.size()), "run"), fmt::join(parts, ", "), grid.words(),
                                options));
  }
  if (!failed.empty()) {
    notes.push_back(fmt::format("{} failed. To see why: tearless explain {}{}",
                                counted(static_cast<int64_t>(failed.size()), "run"), failed.front(), options));
  }
}

// The table shows scores of derived runs, some of which are not made yet.
void add_derived_notes(const Grid& grid, const Table& table, const Replicates& runs, const std::string& options,
                       std::vector<std::string>& notes) {
  std::map<std::string, int64_t> missing;
  std::set<std::string> failed;
  for (const Replicate& run : runs) {
    std::set<const Row*> shown;
    for (const Table::Column& column : table.columns) shown.insert(&run.row_of(column.score));
    for (const Row* row : shown) {
      if (row->is_trained()) continue;
      const std::optional<RunState>& state = row->result.state;
      if (state == RunState::kFailed) failed.insert(row->run.id);
      missing[row->derivation] += !state || !(has_result(*state) || state == RunState::kFailed);
    }
  }
  for (const auto& [derivation, count] : missing) {
    if (count == 0) continue;
    notes.push_back(fmt::format("{}: {} no result yet. To make them: tearless run {}{}", derivation,
                                count == 1 ? "1 run has" : fmt::format("{} runs have", count), grid.words(), options));
  }
  if (!failed.empty()) {
    notes.push_back(fmt::format("{} failed. To see why: tearless explain {}{}",
                                counted(std::ssize(failed), "derived run"), *failed.begin(), options));
  }
}

// The scores of the table that are shown multiplied.
void add_factor_notes(const Table& table, const TableSpec& spec, std::vector<std::string>& notes) {
  std::map<double, std::vector<std::string>> scores;
  for (const Table::Column& column : table.columns) {
    std::vector<std::string>& same = scores[column.factor];
    if (std::ranges::find(same, column.score) == same.end()) same.push_back(column.score);
  }
  scores.erase(1);
  for (const auto& [factor, names] : scores) {
    notes.push_back(fmt::format("{}: {} times what the runs report{}", fmt::join(names, ", "), factor,
                                spec.published ? "; the published numbers are as their source has them" : ""));
  }
}

// Runs that are done without a score that others of their cell have, or with something else in its place. That no run
// of a cell has it is usual: a norm that has no g.
void add_scoreless_notes(const Table& table, const std::string& options, std::vector<std::string>& notes) {
  std::map<std::string, std::map<std::string, std::string>> runs;  // score → id → what is there instead
  for (const Table::Row& row : table.rows) {
    for (size_t i = 0; i < row.cells.size(); ++i) {
      const Cell& cell = row.cells[i];
      for (const auto& [id, instead] : cell.without_score) {
        if (cell.n() > 0 || (instead != kAbsent && instead != kNotMeasured)) runs[table.columns[i].score][id] = instead;
      }
    }
  }
  for (const auto& [score, without] : runs) {
    std::map<std::string, int64_t> counts;
    for (const auto& [id, instead] : without) ++counts[instead];
    std::vector<std::string> parts;
    for (const auto& [instead, count] : counts) parts.push_back(fmt::format("{} {}", count, instead));
    notes.push_back(fmt::format("no score: {} done without {} ({}). To see what is there: tearless explain {}{}",
                                without.size() == 1 ? "1 run is" : fmt::format("{} runs are", without.size()), score,
                                fmt::join(parts, ", "), without.begin()->first, options));
  }
}

// A run whose result depends on whether it was stopped is named, whoever asks.
void add_resume_notes(const Replicates& runs, const std::string& options, ResumeNote note,
                      std::vector<std::string>& notes) {
  std::set<std::string> different;
  int64_t equal = 0;
  std::set<size_t> stops;
  for (const Replicate& run : runs) {
    const std::optional<ResumeCheck>& check = run.trained->result.resume;
    if (!check) continue;
    if (check->outcome != "equal") {
      different.insert(run.trained->run.id);
    } else {
      ++equal;
      stops.insert(check->stops.size());
    }
  }
  if (note == ResumeNote::kAlways) {
    std::string text =
        fmt::format("Resume verified: {} of {}", equal, counted(static_cast<int64_t>(runs.size()), "run"));
    if (!stops.empty()) {
      const std::string least = *stops.begin() == *stops.rbegin() ? "" : fmt::format("{} to ", *stops.begin());
      text +=
          fmt::format(" (byte-equal after {}{} each)", least, counted(static_cast<int64_t>(*stops.rbegin()), "stop"));
    }
    notes.push_back(text);
  }
  if (!different.empty()) {
    notes.push_back(fmt::format("NOT the same result after stops: {} {}. To see how: tearless explain {}{}",
                                different.size() == 1 ? "run" : "runs", fmt::join(different, ", "), *different.begin(),
                                options));
  }
}

void add_exclusion_notes(const Grid& grid, std::vector<std::string>& notes) {
  std::map<const Exclusion*, int64_t> counts;
  for_each_combination(grid, [&](const Combination&, const Exclusion* excluded) {
    if (excluded) ++counts[excluded];
  });
  for (const Exclusion& exclusion : grid.excludes) {
    if (counts[&exclusion] > 0)
      notes.push_back(fmt::format("{} left out: {}", counted(counts[&exclusion], "run"), exclusion.why));
  }
}

// What the cells say, each once.
std::string all_of(const Table& table, std::set<std::string> Cell::*texts) {
  std::set<std::string> all;
  for (const Table::Row& row : table.rows) {
    for (const Cell& cell : row.cells) all.insert((cell.*texts).begin(), (cell.*texts).end());
  }
  return some_of({all.begin(), all.end()}, kMaxShown, "; ");
}

// Where the numbers of the table were measured.
void add_machine_notes(const Table& table, std::vector<std::string>& notes) {
  std::map<std::string, std::set<std::string>> machines;  // of each score
  for (const Table::Row& row : table.rows) {
    for (size_t i = 0; i < row.cells.size(); ++i) {
      machines[table.columns[i].score].insert(row.cells[i].measured_on.begin(), row.cells[i].measured_on.end());
    }
  }
  std::map<std::set<std::string>, std::vector<std::string>> scores;  // of the same machines
  for (const auto& [score, names] : machines) {
    if (!names.empty()) scores[names].push_back(score);
  }
  for (const auto& [names, same] : scores) {
    const std::string which = scores.size() > 1 ? fmt::format("{}: ", fmt::join(same, ", ")) : "";
    const char* what = names.size() > 1 ? "measured on machines that cannot be compared" : "measured on";
    notes.push_back(fmt::format("{}{}: {}", which, what, some_of({names.begin(), names.end()}, kMaxShown, "; ")));
  }
}

void add_notes(const Grid& grid, const TableSpec& spec, const Replicates& runs, const std::string& options,
               ResumeNote resume, Table& table) {
  const auto any = [&](auto&& what) {
    return std::any_of(table.rows.begin(), table.rows.end(),
                       [&](const Table::Row& row) { return std::any_of(row.cells.begin(), row.cells.end(), what); });
  };
  const std::string score = table.several_scores ? "" : table.columns.front().score + ": ";
  const char* spread = spec.show == TableSpec::Show::kMean ? "mean" : "mean ± sample standard deviation";
  table.notes.push_back(fmt::format("{}{} over {} ({})", score, spread,
                                    counted(static_cast<int64_t>(grid.seeds.size()), "seed"),
                                    fmt::join(grid.seeds, ", ")));
  if (spec.select) {
    const bool final = std::all_of(runs.begin(), runs.end(), [](const Replicate& run) {
      const std::optional<RunState>& state = run.trained->result.state;
      return state && (has_result(*state) || state == RunState::kFailed);
    });
    table.notes.push_back(fmt::format("@: the value of {} with the {} mean {}{}",
                                      fmt::join(names_of(grid, spec.select->over), ", "),
                                      spec.select->highest ? "highest" : "lowest", spec.select->by,
                                      final ? "" : ", which may still change: runs are missing"));
    if (final && any([](const Cell& cell) { return !cell.chosen_of_all; })) {
      table.notes.push_back(fmt::format("@ compares what there is: some runs have no {}", spec.select->by));
    }
    if (any([](const Cell& cell) { return cell.tied; })) {
      table.notes.push_back(
          fmt::format("tied: others have the same mean {}; the first in the grid's order is shown", spec.select->by));
    }
    if (any([](const Cell& cell) { return cell.expected > 0 && cell.chosen.empty(); })) {
      table.notes.push_back(fmt::format("nothing is chosen where no run has a {}", spec.select->by));
    }
  }
  if (spec.published) {
    table.notes.push_back(fmt::format("[in brackets]: {}, then ours minus that", spec.published->source));
  }
  if (any([](const Cell& cell) { return cell.diverged > 0; })) {
    const bool counted = any([](const Cell& cell) { return cell.diverged_scored > 0; });
    table.notes.push_back(
        fmt::format("div.: diverged, the loss or a gradient was no longer finite{}",
                    counted ? "; in the mean with the scores of the best checkpoint before that" : ""));
  }
  if (any([](const Cell& cell) { return cell.below > 0; })) {
    table.notes.push_back(
        fmt::format("fail: trained to the end with {} below {}", table.columns.front().score, *spec.fail_below));
  }
  if (any([](const Cell& cell) { return cell.stale > 0; })) {
    table.notes.push_back("*: stale: " + all_of(table, &Cell::stale_because));
  }
  if (any([](const Cell& cell) { return cell.mixed > 0; })) {
    table.notes.push_back(
        "°: mixed, trained on more than one kind of processor or device, or with more than one matmul library or file "
        "or version of the training program");
  }
  if (any([](const Cell& cell) { return cell.repeats; })) {
    table.notes.push_back("≡: the same runs as a cell above or before it: what the labels differ in has no effect");
  }
  if (any([](const Cell& cell) { return cell.trained_by.size() > 1; })) {
    table.notes.push_back("trained by: " + all_of(table, &Cell::trained_by));
  }
  add_machine_notes(table, table.notes);
  add_factor_notes(table, spec, table.notes);
  add_resume_notes(runs, options, resume, table.notes);
  if (grid.sample) table.notes.push_back(drawn_text(*grid.sample));
  add_exclusion_notes(grid, table.notes);
  add_state_notes(grid, runs, options, table.notes);
  add_derived_notes(grid, table, runs, options, table.notes);
  add_scoreless_notes(table, options, table.notes);
}

}  // namespace

std::vector<std::string> names_matching(const std::vector<std::string>& patterns, const std::set<std::string>& names) {
  std::vector<std::string> all;
  for (const std::string& pattern : patterns) {
    std::vector<std::string> found;
    std::copy_if(names.begin(), names.end(), std::back_inserter(found),
                 [&](const std::string& name) { return matches_score(pattern, name); });
    std::sort(found.begin(), found.end(),
              [](const std::string& a, const std::string& b) { return strverscmp(a.c_str(), b.c_str()) < 0; });
    if (found.empty()) found.push_back(pattern);
    for (std::string& name : found) {
      if (std::find(all.begin(), all.end(), name) == all.end()) all.push_back(std::move(name));
    }
  }
  return all;
}

Table fill(const Grid& grid, const std::string& title, const TableSpec& given, const std::vector<Row>& rows,
           const std::string& options, ResumeNote resume) {
  TableSpec spec = given;
  const std::vector<std::string> other_settings = settings_of_another_experiment(grid, rows);
  if (!other_settings.empty()) spec.published.reset();
  const Layout layout = layout_of(grid, spec);
  const std::vector<size_t> over = spec.select ? spec.select->over : std::vector<size_t>{};
  std::vector<size_t> axes = spec.rows;
  axes.insert(axes.end(), spec.columns.begin(), spec.columns.end());
  axes.insert(axes.end(), over.begin(), over.end());
  std::map<RowKey, Replicates> cells;
  Replicates all;
  for (const Group& cell : group(rows, names_of(grid, axes))) {
    const Replicates& replicates = cells[cell.key] = cell.replicates();
    all.insert(all.end(), replicates.begin(), replicates.end());
  }
  // (row, column) → candidates, including those without any run.
  std::map<std::pair<Coordinates, Coordinates>, Candidates> places;
  std::set<std::pair<Coordinates, Coordinates>> left_out;
  for_each_cell(grid, [&](const Combination& combination, const Exclusion* excluded) {
    if (excluded) {
      left_out.emplace(project(combination, spec.rows), project(combination, spec.columns));
      return;
    }
    const RowKey labels = labels_at(grid, axes, project(combination, axes));
    places[{project(combination, spec.rows), project(combination, spec.columns)}][project(combination, over)] =
        std::move(cells[labels]);  // each combination of labels occurs once
  });

  Table table;
  table.title = title;
  table.row_axes = names_of(grid, spec.rows);
  table.column_axes = names_of(grid, spec.columns);
  table.show = spec.show;
  const std::vector<std::string> scores = scores_of(spec, rows);
  table.several_scores = scores.size() > 1;
  for (const Coordinates& column : layout.columns) {
    for (const std::string& score : scores) table.columns.push_back({labels_at(grid, spec.columns, column), score});
  }
  const std::string published_score = !spec.published                 ? ""
                                      : spec.published->score.empty() ? scores.front()
                                                                      : spec.published->score;
  for (size_t r = 0; r < layout.rows.size(); ++r) {
    Table::Row& row = table.rows.emplace_back();
    row.labels = labels_at(grid, spec.rows, layout.rows[r]);
    for (size_t c = 0; c < layout.columns.size(); ++c) {
      const auto place = places.find({layout.rows[r], layout.columns[c]});
      for (const std::string& score : scores) {
        Cell& cell = row.cells.emplace_back();
        cell.excluded = place == places.end() && left_out.contains({layout.rows[r], layout.columns[c]});
        if (place == places.end()) continue;
        const Choice choice = choose(place->second, spec, grid.seeds.size());
        const auto& [point, replicates] = choice.best ? *choice.best : *place->second.begin();
        cell = fill_cell(grid.seeds.size(), replicates, score, scores.front(), factor_of(spec, score), spec);
        if (choice.best) {
          cell.chosen = fmt::format("{}", fmt::join(labels_at(grid, over, point), ", "));
        } else if (cell.n() > 0) {  // the numbers of any of them would be read as those of a choice
          const int expected = cell.expected;
          cell = Cell();
          cell.expected = expected;
        }
        cell.tied = choice.is_tied;
        cell.chosen_of_all = choice.is_complete;
        if (score == published_score) cell.published = spec.published->values[r][c];
      }
    }
  }
  mark_repeated_cells(table);
  for (Table::Column& column : table.columns) {
    column.factor = factor_of(spec, column.score);
    column.digits = digits_of(spec, table, column.score);
    if (spec.published) column.published_decimals = published_decimals(*spec.published);
  }
  add_notes(grid, spec, all, options, resume, table);
  if (given.published && !spec.published) {
    table.notes.push_back(fmt::format("without the published numbers, which are not of runs with --set {}",
                                      fmt::join(other_settings, ", ")));
  }
  return table;
}

}  // namespace tearless::harness
