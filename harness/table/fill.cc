#include <string.h>  // strverscmp

#include <algorithm>
#include <map>
#include <set>

#include <fmt/ranges.h>

#include "base/error.h"
#include "harness/grid/layout.h"
#include "harness/runs/attempt_files.h"
#include "harness/runs/measured.h"
#include "harness/statistics/stats.h"
#include "harness/table/by_score.h"
#include "harness/table/compare.h"
#include "harness/table/lines.h"
#include "harness/table/notes.h"
#include "harness/table/table.h"
#include "harness/table/table_digits.h"
#include "harness/table/weighted_sum.h"

namespace tearless::harness {
namespace {

using Replicates = std::vector<Replicate>;

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

/// The names of the scores that the runs have.
std::set<std::string> scores_there(const std::vector<Row>& rows) {
  std::set<std::string> there;
  for (const Row& row : rows) {
    for (const auto* numbers : {&row.result.scores, &row.result.measured}) {
      for (const auto& [name, value] : *numbers) there.insert(name);
    }
  }
  return there;
}

/// The scores of a column of the layout, with patterns replaced by the names that match.
std::vector<std::string> scores_of(const Grid& grid, const TableSpec& spec, const Coordinates& column,
                                   const std::set<std::string>& there) {
  const std::vector<std::string>& scores = spec.scores_of_column(grid, column);
  return names_matching(scores.empty() ? std::vector<std::string>{"test.*"} : scores, there);
}

double factor_of(const TableSpec& spec, const std::string& score) {
  const double* factor = entry_of(spec.factors, score);
  return factor ? *factor : 1;
}

/// Of a mean of scores, as it is for all of them.
bool highest_is_best(const Grid& grid, const TableSpec& spec, const std::string& score) {
  if (const bool* highest = entry_of(spec.highest_is_best, score)) return *highest;
  const auto own = std::ranges::find(grid.defined_scores, score, &DefinedScore::name);
  if (own == grid.defined_scores.end()) return true;
  if (own->is_of_curve()) return !(own->measure->keys & CurveMeasure::kLowestIsBest);
  const auto is_highest = [&](const std::string& part) { return highest_is_best(grid, spec, part); };
  const auto count = static_cast<size_t>(std::ranges::count_if(own->mean_of, is_highest));
  if (count > 0 && count < own->mean_of.size()) {
    fail(
        "{}: of some scores of {} the table \"best\" has the highest, of others the lowest; add best.{} = \"highest\" "
        "or \"lowest\"",
        own->location, score, score);
  }
  return count > 0;
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

/// What may stand in one place of the table: the runs, by their coordinates on the axes select.over, or on the axes of
/// which the cell is the average. One entry without these.
using Candidates = std::map<Coordinates, Replicates>;
/// The places of the table, by row and column.
struct Places {
  std::map<std::pair<Coordinates, Coordinates>, Candidates> candidates;  // including those without any run
  std::set<std::pair<Coordinates, Coordinates>> left_out;                // with combinations that are excluded
};

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
  for (const Replicate& replicate : replicates) {
    const Row& row = replicate.row_of(score);  // of a derived run's score that run, which may be missing
    const RunResult &result = row.result, &trained = replicate.trained->result;
    if (!result.id.empty()) cell.runs.push_back(result.id);
    cell.diverged += result.state == RunState::kDiverged;
    cell.failed += result.state == RunState::kFailed;
    const auto end_as = [&](Cell::End end) { cell.ends.emplace(row.run.seed, end); };
    if (result.state == RunState::kFailed) end_as(Cell::End::kFailed);
    if (!row.counts(spec.count_diverged)) {
      if (result.state == RunState::kDiverged) end_as(Cell::End::kDiverged);
      continue;
    }
    const bool diverged = result.state == RunState::kDiverged;
    const std::optional<double> compared = replicate.row_of(fail_score).number(fail_score), value = row.number(score);
    if (spec.fail_below && compared && *compared < *spec.fail_below) {
      cell.below += !diverged;  // one that diverged is not counted twice
      end_as(diverged ? Cell::End::kDiverged : Cell::End::kBelow);
    } else if (!value || kinds_in(cell.measured_on) > 1) {
      end_as(diverged ? Cell::End::kDiverged : Cell::End::kScoreless);
      if (diverged) continue;
      ++cell.scoreless;
      const auto instead = result.no_numbers.find(score);
      cell.without_score[result.id] = value                                ? "measured on one of several machines"
                                      : instead != result.no_numbers.end() ? instead->second
                                      : is_measured(score)                 ? kNotMeasured
                                                                           : kNotInScores;
    } else {
      cell.values.push_back({row.run.seed, *value * factor});
      if (const auto found = row.sentences.find(score); found != row.sentences.end())
        cell.sentences.emplace(row.run.seed, found->second);
      cell.diverged_scored += diverged;
      cell.stale += !result.stale.empty() || !trained.stale.empty();
      for (const std::string& why : {trained.stale, result.stale}) {
        if (!why.empty()) cell.stale_because.insert(why);
      }
      cell.trained_by.insert(trained.trained_by.begin(), trained.trained_by.end());
      cell.trained_on.insert(trained.trained_on.begin(), trained.trained_on.end());
      if (!row.is_trained()) cell.derived_on[row.derivation].insert(result.trained_on.begin(), result.trained_on.end());
    }
  }
  return cell;
}

/// Cells of one score with the same runs: an axis has no effect there.
void mark_repeated_cells(Table& table) {
  std::set<std::pair<std::string, std::vector<std::string>>> seen;
  for (Table::Row& row : table.rows) {
    for (size_t i = 0; i < row.cells.size(); ++i) {
      Cell& cell = row.cells[i];
      cell.repeats = !cell.is_sum && !cell.runs.empty() && !seen.emplace(table.columns[i].score, cell.runs).second;
    }
  }
}

/// Of each seed, of cells of one place.
Cell mean_of(const std::vector<Cell>& cells) {
  Terms terms;
  for (const Cell& cell : cells) terms.emplace_back(&cell, 1 / static_cast<double>(cells.size()));
  Cell mean = weighted_sum(terms);
  mean.is_sum = false;
  return mean;
}

/// One place of the table.
Cell fill_place(const Grid& grid, const TableSpec& spec, const Candidates& candidates, const std::string& score,
                const std::string& fail_score) {
  const size_t seeds = grid.seeds.size();
  const auto filled = [&](const Replicates& replicates) {
    std::vector<Cell> cells;
    for (const std::string& part : parts_of(grid.defined_scores, score))
      cells.push_back(fill_cell(seeds, replicates, part, fail_score, factor_of(spec, score), spec));
    return cells.size() == 1 ? cells.front() : mean_of(cells);
  };
  if (!spec.average.empty()) {
    std::vector<Cell> cells;
    for (const auto& [point, replicates] : candidates) cells.push_back(filled(replicates));
    return mean_of(cells);
  }
  const Choice choice = choose(candidates, spec, seeds);
  const auto& [point, replicates] = choice.best ? *choice.best : *candidates.begin();
  Cell cell = filled(replicates);
  if (choice.best) {
    const std::vector<size_t> over = spec.select ? spec.select->over : std::vector<size_t>{};
    const std::vector<std::string> labels = labels_at(grid, over, point);
    std::vector<std::string> names;
    for (size_t i = 0; i < over.size(); ++i)
      names.push_back(name_of(grid.names, grid.axes[over[i]].name, labels[i]).text);
    cell.chosen = fmt::format("{}", fmt::join(labels, ", "));
    cell.chosen_in_print = fmt::format("{}", fmt::join(names, ", "));
  } else if (cell.n() > 0) {  // the numbers of any of them would be read as those of a choice
    const int expected = cell.expected;
    cell = Cell();
    cell.expected = expected;
  }
  cell.tied = choice.is_tied;
  cell.chosen_of_all = choice.is_complete;
  return cell;
}

/// `cells`: by their labels on `axes`, those of the rows, of the columns and of `over`.
Places places_of(const Grid& grid, const TableSpec& spec, const std::vector<size_t>& axes,
                 const std::vector<size_t>& over, std::map<RowKey, Replicates>& cells) {
  Places places;
  for_each_cell(grid, [&](const Combination& combination, const Exclusion* excluded) {
    if (!spec.admits(combination.index)) return;
    const std::pair place(project(combination, spec.rows), project(combination, spec.columns));
    if (excluded) {
      places.left_out.insert(place);
      return;
    }
    const RowKey labels = labels_at(grid, axes, project(combination, axes));
    // Each combination of labels occurs once.
    places.candidates[place][project(combination, over)] = std::move(cells[labels]);
  });
  return places;
}

/// The cells of the layout. `scores` and `first_scores` are of its columns.
Base base_of(const Grid& grid, const TableSpec& spec, const Layout& layout, const Places& places,
             const std::vector<std::set<std::string>>& scores, const std::vector<std::string>& first_scores) {
  Base base;
  for (size_t r = 0; r < layout.rows.size(); ++r) {
    for (size_t c = 0; c < layout.columns.size(); ++c) {
      const std::pair at(layout.rows[r], layout.columns[c]);
      const auto place = places.candidates.find(at);
      for (const std::string& score : scores[c]) {
        Cell& cell = base[{r, c, score}];
        if (place != places.candidates.end()) {
          cell = fill_place(grid, spec, place->second, score, first_scores[c]);
        } else {
          cell.excluded = places.left_out.contains(at);
        }
        for (const Published& published : spec.published) {
          const PublishedNumber& number = published.values[r][c];
          if (score != (published.score.empty() ? first_scores[c] : published.score) || number.value.is_null())
            continue;
          cell.published.push_back(number);
          if (const double* tolerance = entry_of(published.tolerances, score))
            cell.published.back().tolerance = *tolerance;
        }
      }
    }
  }
  return base;
}

/// Over which points of the axes the means of the cells are.
Averages averages_of(const Places& places) {
  std::set<std::vector<Coordinates>> points;
  for (const auto& [place, candidates] : places.candidates) {
    std::vector<Coordinates> own;
    for (const auto& [point, replicates] : candidates) own.push_back(point);
    points.insert(std::move(own));
  }
  if (std::ranges::none_of(points, [](const auto& own) { return own.size() > 1; })) return Averages::kOfOne;
  return points.size() > 1 ? Averages::kOfOthers : Averages::kOfTheSame;
}

/// Of each row, the last of the baselines above it, or the first of all. `labels`: theirs, in the order of the rows.
void set_baselines(const std::vector<std::vector<std::string>>& labels, Table& table) {
  std::vector<size_t> places;
  for (size_t i = 0; i < table.rows.size() && places.size() < labels.size(); ++i) {
    if (!table.rows[i].is_added && table.rows[i].labels == labels[places.size()]) places.push_back(i);
  }
  size_t next = 0;
  for (size_t i = 0; i < table.rows.size(); ++i) {
    if (next + 1 < places.size() && i == places[next + 1]) ++next;
    table.rows[i].baseline = places[next];
  }
}

/// Of each cell, the values of its baseline's in the same column, and how it compares with them.
void compare_with_baselines(Table& table) {
  for (Table::Row& row : table.rows) {
    const Table::Row& baseline = table.rows[*row.baseline];
    for (size_t i = 0; i < row.cells.size(); ++i) {
      Cell& cell = row.cells[i];
      if (cell.is_difference) continue;
      cell.is_baseline = &row == &baseline;
      if (!cell.is_baseline) cell.baseline = baseline.cells[i].values;
      const CellValues values = {.values = cell.values,
                                 .baseline = cell.baseline,
                                 .is_baseline = cell.is_baseline,
                                 .is_paired = table.is_paired,
                                 .highest_is_best = table.columns[i].highest_is_best};
      cell.delta = find_statistic("delta")->of(values);
      cell.ratio = find_statistic("ratio")->of(values);
    }
  }
}

/// Of each column that is a mean of others: these. They have no sentences together, but a p that is the largest of
/// theirs.
std::vector<std::vector<size_t>> columns_of_means(const std::vector<Line>& columns) {
  std::vector<std::vector<size_t>> parts(columns.size());
  for (size_t i = 0; i < columns.size(); ++i) {
    if (!columns[i].added || columns[i].added->is_difference) continue;
    for (size_t j = 0; j < columns.size(); ++j) {
      const bool is_part = !columns[j].added && columns[j].score == columns[i].score &&
                           std::ranges::any_of(columns[i].sum, [&](const auto& term) {
                             return term.first == columns[j].sum.front().first;
                           });
      if (is_part) parts[i].push_back(j);
    }
    // Where columns have scores of their own, the mean may be of some that the table does not show.
    if (parts[i].size() != columns[i].sum.size()) parts[i].clear();
  }
  return parts;
}

/// What is chosen in every one of several cells; "" if it is not the same, or others are as good somewhere.
std::string chosen_everywhere(const Table& table) {
  std::set<std::string> chosen;
  size_t cells = 0;
  for (const Table::Row& row : table.rows) {
    for (const Cell& cell : row.cells) {
      if (cell.expected == 0 || cell.is_sum) continue;
      ++cells;
      chosen.insert(cell.tied ? "" : cell.chosen_in_print);
    }
  }
  return cells > 1 && chosen.size() == 1 ? *chosen.begin() : "";
}

/// Whether some of the means are of fewer seeds than others.
bool counts_differ(const Table& table) {
  return std::ranges::any_of(table.rows, [](const Table::Row& row) {
    return std::ranges::any_of(row.cells, [](const Cell& cell) { return cell.n() > 0 && cell.n() != cell.expected; });
  });
}

/// The rows of results that `where` admits.
std::vector<Row> admitted(const Grid& grid, const TableSpec& spec, const std::vector<Row>& rows) {
  std::vector<Row> admitted;
  std::ranges::copy_if(rows, std::back_inserter(admitted), [&](const Row& row) {
    return std::ranges::all_of(spec.where, [&](const auto& entry) {
      const Axis& axis = grid.axes[entry.first];
      const auto point = std::ranges::find(axis.points, label_on(row.run.coordinates, axis.name), &AxisPoint::label);
      return point != axis.points.end() && entry.second[static_cast<size_t>(point - axis.points.begin())];
    });
  });
  return admitted;
}

/// The sources of single published numbers, each once.
void collect_sources(Table& table) {
  for (const Table::Row& row : table.rows) {
    for (const Cell& cell : row.cells) {
      for (const PublishedNumber& number : cell.published) {
        if (!number.source.empty() && std::ranges::find(table.sources, number.source) == table.sources.end())
          table.sources.push_back(number.source);
      }
    }
  }
  constexpr size_t kMaxSources = 26;  // letters
  if (table.sources.size() > kMaxSources)
    fail("the table \"{}\" has more than {} sources of single published numbers", table.title, kMaxSources);
}

void add_header_line(const TableSpec& spec, const TableSpec::HeaderLine& line, Table& table) {
  const auto place = static_cast<size_t>(std::ranges::find(spec.columns, line.axis) - spec.columns.begin());
  Table::HeaderLine& added = table.header.emplace_back(Table::HeaderLine{.name = line.name, .texts = {}});
  for (const Table::Column& column : table.columns) {
    const auto found = line.texts.find(column.labels[place]);
    added.texts.push_back(found == line.texts.end() ? Name() : found->second);
  }
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

Table fill(const Grid& grid, const std::string& title, const TableSpec& given, const std::vector<Row>& all_rows,
           const std::string& options, ResumeNote resume, Notes which) {
  TableSpec spec = given;
  const std::vector<std::string> other_settings = settings_of_another_experiment(grid, all_rows);
  if (!other_settings.empty()) {
    spec.published.clear();
    std::erase_if(spec.added_rows, [](const TableSpec::AddedLine& row) { return row.sum.empty(); });
  }
  const std::vector<Row> rows = spec.where.empty() ? all_rows : admitted(grid, spec, all_rows);
  const Layout layout = layout_of(grid, spec);
  const std::vector<size_t> over = spec.select ? spec.select->over : spec.average;
  std::vector<size_t> axes = spec.rows;
  axes.insert(axes.end(), spec.columns.begin(), spec.columns.end());
  axes.insert(axes.end(), over.begin(), over.end());
  std::map<RowKey, Replicates> cells;
  Replicates all;
  for (const Group& cell : group(rows, names_of(grid, axes))) {
    const Replicates& replicates = cells[cell.key] = cell.replicates();
    all.insert(all.end(), replicates.begin(), replicates.end());
  }
  const Places places = places_of(grid, spec, axes, over, cells);

  Table table;
  table.title = title;
  table.row_axes = names_of(grid, spec.rows);
  table.column_axes = names_of(grid, spec.columns);
  table.names = grid.names;
  table.label = spec.label;
  table.width = spec.width;
  const std::set<std::string> there = scores_there(rows);
  std::vector<std::vector<Line>> row_lines, column_lines;
  for (size_t r = 0; r < layout.rows.size(); ++r) {
    row_lines.push_back({{.labels = labels_at(grid, spec.rows, layout.rows[r]), .sum = {{r, 1}}}});
  }
  for (size_t c = 0; c < layout.columns.size(); ++c) {
    std::vector<Line>& lines = column_lines.emplace_back();
    for (const std::string& score : scores_of(grid, spec, layout.columns[c], there)) {
      lines.push_back({labels_at(grid, spec.columns, layout.columns[c]), {{c, 1}}, nullptr, score});
    }
  }
  std::vector<std::string> first_scores;
  for (const std::vector<Line>& lines : column_lines) first_scores.push_back(lines.front().score);
  const std::vector<Line> columns =
      with_added(column_lines, spec.added_columns, first_scores.front(), table.column_axes, table.names);
  std::vector<std::set<std::string>> scores_of_column(layout.columns.size());
  std::set<std::string> scores;
  for (const Line& column : columns) {
    scores.insert(column.score);
    for (const auto& [c, weight] : column.sum) scores_of_column[c].insert(column.score);
  }
  table.several_scores = scores.size() > 1;

  const Base base = base_of(grid, spec, layout, places, scores_of_column, first_scores);
  const std::vector<Line> lines = with_added(row_lines, spec.added_rows, "", table.row_axes, table.names);
  for (const Line& column : columns) {
    table.columns.push_back({.labels = column.labels, .score = column.score, .is_added = column.added != nullptr});
  }
  for (const Line& line : lines) {
    Table::Row& row =
        table.rows.emplace_back(Table::Row{.labels = line.labels, .cells = {}, .is_added = line.added != nullptr});
    for (const Line& column : columns) {
      row.cells.push_back(line.sum.empty() ? published_cell(line, column, first_scores, base)
                                           : cell_of(line, column, base));
    }
  }
  mark_repeated_cells(table);
  table.is_paired = !spec.test || spec.test->is_paired;
  for (const TableSpec::HeaderLine& line : spec.header) add_header_line(spec, line, table);
  for (size_t i = 0; i < table.columns.size(); ++i) {
    Table::Column& column = table.columns[i];
    column.factor = factor_of(spec, column.score);
    column.digits = digits_of(spec, table, column.score);
    column.published_decimals = published_decimals(table, i);
    column.highest_is_best = highest_is_best(grid, spec, column.score);
    if (const Show* show = entry_of(spec.shows, column.score)) column.show = *show;
  }
  if (!spec.baselines.empty()) {
    std::vector<std::vector<std::string>> labels;
    for (const size_t row : spec.baselines) labels.push_back(row_lines[row].front().labels);
    set_baselines(labels, table);
    compare_with_baselines(table);
  }
  const Compared compared = spec.test ? compare_cells(*spec.test, columns_of_means(columns), table) : Compared();
  table.chosen = spec.select ? chosen_everywhere(table) : "";
  table.shows_counts = counts_differ(table);
  collect_sources(table);
  add_notes({grid, spec, all, options, resume, which, averages_of(places), compared}, table);
  const auto is_published = [](const TableSpec::AddedLine& row) { return row.sum.empty(); };
  if (!other_settings.empty() && (!given.published.empty() || std::ranges::any_of(given.added_rows, is_published))) {
    table.notes.push_back(fmt::format("without the published numbers, which are not of runs with --set {}",
                                      fmt::join(other_settings, ", ")));
  }
  return table;
}

}  // namespace tearless::harness
