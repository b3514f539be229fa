#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include <fmt/ranges.h>

#include "base/error.h"
#include "harness/cells/cells.h"
#include "harness/cells/scores.h"
#include "harness/table/compare.h"
#include "harness/table/lines.h"
#include "harness/table/notes.h"
#include "harness/table/table.h"
#include "harness/table/table_digits.h"
#include "harness/views/by_score.h"

namespace tearless::harness {
namespace {

// --- scores --------------------------------------------------------------------------------------------------------

/// The scores of a column of the layout, with patterns replaced by the names that match.
std::vector<std::string> scores_of(const Grid& grid, const TableSpec& spec, const Coordinates& column,
                                   const std::set<std::string>& there) {
  return names_matching(or_default(spec.scores_of_column(grid, column)), there);
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

/// Cells of one score with the same runs: an axis has no effect there.
void mark_repeated_cells(Table& table) {
  std::set<std::pair<std::string, std::vector<std::string>>> seen;
  for (Table::Row& row : table.rows) {
    for (size_t i = 0; i < row.cells.size(); ++i) {
      TableCell& one = row.cells[i];
      const std::vector<std::string>& runs = one.cell.runs;
      one.repeats = !one.is_sum && !runs.empty() && !seen.emplace(table.columns[i].score, runs).second;
    }
  }
}

/// The cells of the layout. `scores` and `first_scores` are of its columns.
Base base_of(const TableSpec& spec, const Cells& cells, const std::vector<std::set<std::string>>& scores,
             const std::vector<std::string>& first_scores) {
  Base base;
  for (size_t r = 0; r < cells.layout().rows.size(); ++r) {
    for (size_t c = 0; c < cells.layout().columns.size(); ++c) {
      for (const std::string& score : scores[c]) {
        TableCell& cell = base[{r, c, score}];
        cell.cell = cells.at(r, c, score, first_scores[c]);
        for (const Published& published : spec.published) {
          const PublishedNumber& number = published.values[r][c];
          if (score != (published.score.empty() ? first_scores[c] : published.score) || number.value.is_null())
            continue;
          cell.published.push_back(number);
          if (const Tolerance* tolerance = entry_of(published.tolerances, score))
            cell.published.back().tolerance = *tolerance;
        }
      }
    }
  }
  return base;
}

/// Of each row, the last of the baselines above it, or the first of all.
void set_baselines(const Grid& grid, const TableSpec& spec, const Layout& layout, Table& table) {
  std::vector<size_t> places;
  for (size_t i = 0; i < table.rows.size() && places.size() < spec.baselines.size(); ++i) {
    const Coordinates& next = layout.rows[spec.baselines[places.size()]];
    const bool is_next = table.rows[i].labels == labels_at(grid, spec.arrangement.rows, next);
    if (!table.rows[i].is_added && is_next) places.push_back(i);
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
      TableCell& one = row.cells[i];
      if (one.is_difference) continue;
      BaselineComparison& with = one.comparison;
      with.is_baseline = &row == &baseline;
      if (!with.is_baseline) with.baseline = baseline.cells[i].cell.values;
      const CellValues values = {.values = one.cell.values,
                                 .baseline = with.baseline,
                                 .is_baseline = with.is_baseline,

                                 .is_paired = table.is_paired,
                                 .highest_is_best = table.columns[i].highest_is_best};
      with.delta = find_statistic("delta")->of(values);
      with.ratio = find_statistic("ratio")->of(values);
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
    for (const TableCell& one : row.cells) {
      if (one.cell.expected == 0 || one.is_sum) continue;
      ++cells;
      chosen.insert(one.cell.chosen.is_tied ? "" : one.cell.chosen.in_print);
    }
  }
  return cells > 1 && chosen.size() == 1 ? *chosen.begin() : "";
}

/// The sources of single published numbers, each once.
void collect_sources(Table& table) {
  for (const Table::Row& row : table.rows) {
    for (const TableCell& one : row.cells) {
      for (const PublishedNumber& number : one.published) {
        if (!number.source.text.empty() && std::ranges::find(table.sources, number.source) == table.sources.end())
          table.sources.push_back(number.source);
      }
    }
  }
  constexpr size_t kMaxSources = 26;  // letters
  if (table.sources.size() > kMaxSources)
    fail("the table \"{}\" has more than {} sources of single published numbers", table.title.text, kMaxSources);
}

void add_header_line(const TableSpec& spec, const TableSpec::HeaderLine& line, Table& table) {
  const std::vector<size_t>& axes = spec.arrangement.columns;
  const auto place = static_cast<size_t>(std::ranges::find(axes, line.axis) - axes.begin());
  Table::HeaderLine& added = table.header.emplace_back(Table::HeaderLine{.name = line.name, .texts = {}});
  for (const Table::Column& column : table.columns) {
    const auto found = line.texts.find(column.labels[place]);
    added.texts.push_back(found == line.texts.end() ? Name() : found->second);
  }
}

/// False: the table has none.
bool remove_published_numbers(TableSpec& spec) {
  const bool has_published = !std::exchange(spec.published, {}).empty();
  const auto rows = std::erase_if(spec.added_rows, [](const TableSpec::AddedLine& row) { return row.sum.empty(); });
  return has_published || rows > 0;
}

// What a test says after seeds were added until it said something.
constexpr std::array kInferences = {"ci95", "delta_ci95", "better_low", "better_high", "p"};

bool is_inference(const ShownPart& part) {
  return std::ranges::find(kInferences, part.statistic->name) != kInferences.end();
}

/// Of a sweep whose looks decided how many seeds a cell has. False: no cell has fewer than the grid.
bool leave_out_tests(const Grid& grid, const Cells& cells, TableSpec& spec) {
  if (grid.claims.looks.empty()) return false;
  std::map<Labels, size_t> seeds;  // of each point
  for (const Replicate& run : cells.runs()) ++seeds[run.trained->run.coordinates];
  if (std::ranges::none_of(seeds, [&](const auto& entry) { return entry.second < grid.seeds.size(); })) return false;
  spec.test.reset();
  for (auto& [score, show] : spec.shows) {
    if (std::ranges::any_of(show.parts, is_inference)) show = default_show();
  }
  return true;
}

// --- steps of fill() -------------------------------------------------------------------------------------------------

struct Lines {
  std::vector<Line> rows, columns;
  std::vector<std::string> first_scores;  // of each column of the layout
};

Lines lines_of(const Grid& grid, const TableSpec& spec, const Cells& cells, Table& table) {
  const Arrangement& arrangement = spec.arrangement;
  std::vector<std::vector<Line>> rows, columns;
  for (const Coordinates& row : cells.layout().rows)
    rows.push_back({{.labels = labels_at(grid, arrangement.rows, row), .sum = {{rows.size(), 1}}}});
  const std::set<std::string> there = scores_there(cells.runs());
  Lines lines;
  for (const Coordinates& column : cells.layout().columns) {
    std::vector<Line> of_column;
    for (const std::string& score : scores_of(grid, spec, column, there))
      of_column.push_back({labels_at(grid, arrangement.columns, column), {{columns.size(), 1}}, nullptr, score});
    lines.first_scores.push_back(of_column.front().score);
    columns.push_back(std::move(of_column));
  }
  lines.columns = with_added(columns, spec.added_columns, lines.first_scores.front(), table.column_axes, table.names);
  lines.rows = with_added(rows, spec.added_rows, "", table.row_axes, table.names);
  return lines;
}

void add_cells(const TableSpec& spec, const Cells& cells, const Lines& lines, Table& table) {
  std::vector<std::set<std::string>> scores_of_column(cells.layout().columns.size());
  std::set<std::string> scores;
  for (const Line& column : lines.columns) {
    table.columns.push_back({.labels = column.labels, .score = column.score, .is_added = column.added != nullptr});
    scores.insert(column.score);
    for (const auto& [c, weight] : column.sum) scores_of_column[c].insert(column.score);
  }
  table.several_scores = scores.size() > 1;
  const Base base = base_of(spec, cells, scores_of_column, lines.first_scores);
  for (const Line& line : lines.rows) {
    Table::Row& row =
        table.rows.emplace_back(Table::Row{.labels = line.labels, .cells = {}, .is_added = line.added != nullptr});
    for (const Line& column : lines.columns) {
      row.cells.push_back(line.sum.empty() ? published_cell(line, column, lines.first_scores, base)
                                           : cell_of(line, column, base));
    }
  }
}

void describe_column(const Grid& grid, const TableSpec& spec, size_t index, Table& table) {
  Table::Column& column = table.columns[index];
  column.factor = spec.rules.factor_of(column.score);
  column.digits = digits_of(spec, table, column.score);
  column.published_decimals = published_decimals(table, index);
  column.highest_is_best = highest_is_best(grid, spec, column.score);
  if (const Show* show = entry_of(spec.shows, column.score)) column.show = *show;
}

}  // namespace

Table fill(const Grid& grid, const Name& title, const TableSpec& given, const std::vector<Row>& rows,
           const std::string& options, ResumeNote resume, Notes which) {
  TableSpec spec = given;
  std::vector<std::string> other_settings = settings_of_another_experiment(grid, rows);
  if (!other_settings.empty() && !remove_published_numbers(spec)) other_settings.clear();
  const Cells cells(grid, spec.arrangement, spec.rules, rows);
  const bool is_without_tests = leave_out_tests(grid, cells, spec);

  Table table = {.title = title,
                 .row_axes = names_of_axes(grid, spec.arrangement.rows),
                 .column_axes = names_of_axes(grid, spec.arrangement.columns),
                 .has_choices = spec.arrangement.select.has_value(),
                 .is_paired = !spec.test || spec.test->is_paired,
                 .has_limits = spec.test && !spec.test->within.empty(),
                 .names = grid.names,
                 .label = spec.label,
                 .width = spec.width};
  const Lines lines = lines_of(grid, spec, cells, table);
  add_cells(spec, cells, lines, table);
  mark_repeated_cells(table);
  for (const TableSpec::HeaderLine& line : spec.header) add_header_line(spec, line, table);
  for (size_t i = 0; i < table.columns.size(); ++i) describe_column(grid, spec, i, table);
  if (!spec.baselines.empty()) {
    set_baselines(grid, spec, cells.layout(), table);
    compare_with_baselines(table);
  }
  using Bold = TableSpec::Bold;
  const Compared compared =
      spec.test ? compare_cells(*spec.test, spec.bold == Bold::kNotWorse, columns_of_means(lines.columns), table)
                : Compared();
  if (spec.bold == Bold::kBest) embolden_best(table);
  table.chosen = table.has_choices ? chosen_everywhere(table) : "";
  collect_sources(table);
  add_notes(
      {grid, spec, cells.runs(), options, resume, which, cells.averages(), compared, other_settings, is_without_tests},
      table);
  return table;
}

}  // namespace tearless::harness
