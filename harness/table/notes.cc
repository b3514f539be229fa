#include "harness/table/notes.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <set>

#include <fmt/ranges.h>

#include "base/pattern.h"
#include "base/words.h"
#include "harness/grid/expand.h"
#include "harness/results/curves.h"
#include "harness/statistics/power.h"
#include "harness/statistics/proportion.h"
#include "harness/statistics/sign_flip.h"
#include "harness/table/latex.h"
#include "harness/table/sheet.h"
#include "harness/views/by_score.h"

namespace tearless::harness {
namespace {

using Replicates = std::vector<Replicate>;

constexpr size_t kMaxShown = 4;  // texts of one kind in a note

std::string capitalised(std::string text) {
  text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
  return text;
}

// Scores that print has no name for are called by their own.
std::string score_in_print(const Table& table, const std::string& score) {
  const Name name = name_of(table.names, score);
  return name.text.empty() ? score : name.text;
}

void add_state_notes(const Grid& grid, const Replicates& runs, const std::string& options, std::vector<Name>& notes) {
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
    notes.push_back({fmt::format("{} of {} have no result yet ({}). To continue: tearless run {}{}", unfinished,
                                 counted(static_cast<int64_t>(runs.size()), "run"), fmt::join(parts, ", "),
                                 grid.words(), options)});
  }
  if (!failed.empty()) {
    notes.push_back({fmt::format("{} failed. To see why: tearless explain {}{}",
                                 counted(static_cast<int64_t>(failed.size()), "run"), failed.front(), options)});
  }
}

// The table shows scores of derived runs, some of which are not made yet.
void add_derived_notes(const Grid& grid, const Table& table, const Replicates& runs, const std::string& options,
                       std::vector<Name>& notes) {
  std::map<std::string, int64_t> missing;
  std::set<std::string> failed;
  for (const Replicate& run : runs) {
    std::set<const Row*> shown;
    for (const Table::Column& column : table.columns) {
      for (const std::string& score : parts_of(grid.defined_scores, column.score)) shown.insert(&run.row_of(score));
    }
    for (const Row* row : shown) {
      if (row->is_trained()) continue;
      const std::optional<RunState>& state = row->result.state;
      if (state == RunState::kFailed) failed.insert(row->run.id);
      missing[row->derivation] += !state || !(has_result(*state) || state == RunState::kFailed);
    }
  }
  for (const auto& [derivation, count] : missing) {
    if (count == 0) continue;
    notes.push_back(
        {fmt::format("{}: {} no result yet. To make them: tearless run {}{}", derivation,
                     count == 1 ? "1 run has" : fmt::format("{} runs have", count), grid.words(), options)});
  }
  if (!failed.empty()) {
    notes.push_back({fmt::format("{} failed. To see why: tearless explain {}{}",
                                 counted(std::ssize(failed), "derived run"), *failed.begin(), options)});
  }
}

// The scores of the table that are shown multiplied.
void add_factor_notes(const Table& table, const TableSpec& spec, std::vector<Name>& notes) {
  std::map<double, std::vector<std::string>> scores;
  for (const Table::Column& column : table.columns) {
    std::vector<std::string>& same = scores[column.factor];
    const std::string name = score_in_print(table, column.score);
    if (std::ranges::find(same, name) == same.end()) same.push_back(name);
  }
  scores.erase(1);
  for (const auto& [factor, names] : scores) {
    notes.push_back(
        {fmt::format("{}: {} times what the runs report{}", fmt::join(names, ", "), factor,
                     !spec.published.empty() ? "; the published numbers are as their source has them" : "")});
  }
}

// What the training program says of the input of these runs.
void add_warning_notes(const Replicates& runs, std::vector<Name>& notes) {
  std::set<std::string> all;
  for (const Replicate& run : runs) all.insert(run.trained->run.warnings.begin(), run.trained->run.warnings.end());
  for (const std::string& warning : all) notes.push_back({"Warning: " + warning});
}

// Runs that are done without a score that others of their cell have, or with something else in its place. That no run
// of a cell has it is usual: a norm that has no g.
void add_scoreless_notes(const Table& table, const std::string& options, Notes which, std::vector<Name>& notes) {
  std::map<std::string, std::map<std::string, std::string>> runs;  // score → id → what is there instead
  for (const Table::Row& row : table.rows) {
    for (size_t i = 0; i < row.cells.size(); ++i) {
      const Cell& cell = row.cells[i].cell;
      for (const auto& [id, instead] : cell.without_score) {
        if (which == Notes::kFinal && instead != kNotInCopy) continue;
        if (cell.n() > 0 || (instead != kNotInScores && instead != kNotMeasured))
          runs[table.columns[i].score][id] = instead;
      }
    }
  }
  for (const auto& [score, without] : runs) {
    std::map<std::string, int64_t> counts;
    for (const auto& [id, instead] : without) ++counts[instead];
    std::vector<std::string> parts;
    for (const auto& [instead, count] : counts) parts.push_back(fmt::format("{} {}", count, instead));
    notes.push_back({fmt::format("no score: {} done without {} ({})",
                                 without.size() == 1 ? "1 run is" : fmt::format("{} runs are", without.size()), score,
                                 fmt::join(parts, ", "))});
    if (which == Notes::kFinal) continue;
    notes.back().text += fmt::format(". To see what is there: tearless explain {}{}", without.begin()->first, options);
  }
}

// A run whose result depends on whether it was stopped is named, whichever notes the table has.
void add_different_notes(const NoteContext& context, std::vector<Name>& notes) {
  std::set<std::string> different;
  for (const Replicate& run : context.runs) {
    const std::optional<ResumeCheck>& check = run.trained->result.resume;
    if (check && check->outcome != "equal") different.insert(run.trained->run.id);
  }
  if (different.empty()) return;
  const std::string advice = context.which == Notes::kFinal ? ""
                                                            : fmt::format(". To see how: tearless explain {}{}",
                                                                          *different.begin(), context.options);
  notes.push_back({fmt::format("NOT the same result after stops: {} {}{}", different.size() == 1 ? "run" : "runs",
                               fmt::join(different, ", "), advice)});
}

void add_resume_notes(const NoteContext& context, std::vector<Name>& notes) {
  if (context.resume != ResumeNote::kAlways) return;
  int64_t equal = 0;
  std::set<size_t> stops;
  for (const Replicate& run : context.runs) {
    const std::optional<ResumeCheck>& check = run.trained->result.resume;
    if (!check || check->outcome != "equal") continue;
    ++equal;
    if (check->attempt == 0) stops.insert(check->stops.size());
  }
  std::string text = fmt::format("Resume verified: {} of {}", equal, counted(std::ssize(context.runs), "run"));
  if (!stops.empty()) {
    const std::string least = *stops.begin() == *stops.rbegin() ? "" : fmt::format("{} to ", *stops.begin());
    text += fmt::format(" (byte-equal after {}{} each)", least, counted(static_cast<int64_t>(*stops.rbegin()), "stop"));
  }
  notes.push_back({text});
}

void add_exclusion_notes(const Grid& grid, const TableSpec& spec, std::vector<Name>& notes) {
  std::map<const Exclusion*, int64_t> counts;
  for_each_combination(grid, [&](const Combination& combination, const Exclusion* excluded) {
    if (excluded && spec.arrangement.where.has_point(grid, combination.index)) ++counts[excluded];
  });
  for (const Exclusion& exclusion : grid.excludes) {
    if (counts[&exclusion] > 0)
      notes.push_back({fmt::format("{} left out: {}", counted(counts[&exclusion], "run"), exclusion.why)});
  }
}

// What the cells say, each once.
std::string all_of(const Table& table, std::set<std::string> Origins::*texts) {
  std::set<std::string> all;
  for (const Table::Row& row : table.rows) {
    for (const TableCell& one : row.cells) {
      const std::set<std::string>& own = one.cell.origins.*texts;
      all.insert(own.begin(), own.end());
    }
  }
  return some_of({all.begin(), all.end()}, kMaxShown, "; ");
}

std::string names_in_print(const Grid& grid, const std::vector<size_t>& axes) {
  std::vector<std::string> names;
  for (const size_t axis : axes) {
    const std::string name = name_of(grid.names, grid.axes[axis].name).text;
    names.push_back(name.empty() ? grid.axes[axis].name : name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

// Whether it can have a value in a cell of one seed.
bool is_of_one_seed(const Statistic& statistic) {
  const SeedValue one = {1, 1};
  return statistic.of({.values = {&one, 1}, .baseline = {&one, 1}, .p = 1, .sources = TwoSources()}).has_value();
}

// "mean ± sample standard deviation", as `show` composes it.
std::string meaning_of(const Show& show, size_t seeds) {
  std::string text;
  for (const ShownPart& part : show.parts) {
    const bool is_apart = part.before.find_first_not_of(' ') != std::string::npos;
    const bool is_whole = part.after.empty() && part.before.find_first_of("([") == std::string::npos;
    if (seeds == 1 && !text.empty() && is_whole && !is_of_one_seed(*part.statistic)) continue;
    text += !text.empty() && !is_apart ? ", " : part.before;
    text.append(part.statistic->meaning).append(part.after);
  }
  return text;
}

/// `what` is of a TableCell.
template <class F>
bool any_table_cell(const Table& table, const F& what) {
  return std::ranges::any_of(table.rows, [&](const Table::Row& row) { return std::ranges::any_of(row.cells, what); });
}

/// `what` is of a Cell.
template <class F>
bool any_cell(const Table& table, const F& what) {
  return any_table_cell(table, [&](const TableCell& one) { return what(one.cell); });
}

std::string row_in_print(const Table& table, const Table::Row& row) {
  return labels_in_print(table.names, table.row_axes, row.labels).text;
}

// "the baseline is (1) base", or which of several is that of a row.
std::string baselines_in_print(const Table& table) {
  std::vector<std::string> rows;
  for (size_t i = 0; i < table.rows.size(); ++i) {
    if (table.rows[i].baseline == i) rows.push_back(row_in_print(table, table.rows[i]));
  }
  if (rows.size() == 1) return fmt::format("The baseline is {}", rows.front());
  constexpr size_t kMaxRows = 8;
  return fmt::format("The baseline of a row is the last above it of: {}", some_of(rows, kMaxRows, "; "));
}

// "RT, test: ", or "" for the only column.
std::string column_in_print(const Table& table, size_t index) {
  const Table::Column& column = table.columns[index];
  std::string text = labels_in_print(table.names, table.column_axes, column.labels).text;
  if (table.several_scores) text += (text.empty() ? "" : ", ") + score_in_print(table, column.score);
  return table.columns.size() == 1 || text.empty() ? "" : text + " ";
}

// "the first 3 to 5 of ", where looks decided how many seeds each cell has.
std::string seeds_of_cells(const Table& table) {
  std::set<int> counts;
  any_table_cell(table, [&](const TableCell& one) {
    if (one.cell.expected > 0) counts.insert(one.cell.expected);
    return false;
  });
  if (counts.empty()) return "";
  return counts.size() == 1 ? fmt::format("the first {} of ", *counts.begin())
                            : fmt::format("the first {} to {} of ", *counts.begin(), *counts.rbegin());
}

// What the numbers of a cell are: one sentence, or one for each `show` with its scores.
void add_meanings(const NoteContext& context, Table& table) {
  const std::vector<int64_t>& seeds = context.grid.seeds;
  std::vector<std::pair<std::string, std::vector<std::string>>> meanings;  // with the scores
  for (const Table::Column& column : table.columns) {
    const std::string meaning = meaning_of(column.show, seeds.size());
    auto same = std::ranges::find(meanings, meaning, [](const auto& one) { return one.first; });
    if (same == meanings.end()) same = meanings.insert(same, {meaning, {}});
    const std::string score = score_in_print(table, column.score);
    if (std::ranges::find(same->second, score) == same->second.end()) same->second.push_back(score);
  }
  for (const auto& [meaning, scores] : meanings) {
    const bool is_of_all = table.several_scores && meanings.size() == 1;
    table.notes.push_back(
        {fmt::format("{}{} over {}{} ({})", is_of_all ? "" : fmt::format("{}: ", fmt::join(scores, "; ")),
                     is_of_all ? capitalised(meaning) : meaning, context.is_without_tests ? seeds_of_cells(table) : "",
                     counted(std::ssize(seeds), "seed"), fmt::join(seeds, ", "))});
  }
}

void add_show_notes(const NoteContext& context, Table& table) {
  const auto& [grid, spec, runs, options, resume, which, averages, compared, other_settings, is_without_tests] =
      context;
  add_meanings(context, table);
  for (size_t i = 0; i < grid.axes.size(); ++i) {
    const Axis& axis = grid.axes[i];
    const bool is_seen = std::ranges::find(spec.arrangement.rows, i) != spec.arrangement.rows.end() ||
                         std::ranges::find(spec.arrangement.columns, i) != spec.arrangement.columns.end();
    if (is_seen || !spec.arrangement.where.labels.contains(axis.name)) continue;
    std::vector<std::string> labels;
    for (const AxisPoint& point : axis.points) {
      if (spec.arrangement.where.has(axis.name, point.label))
        labels.push_back(name_of(grid.names, axis.name, point.label).text);
    }
    table.notes.push_back({fmt::format("{}: {}", names_in_print(grid, {i}), fmt::join(labels, ", "))});
  }
  if (!spec.arrangement.average.empty() && averages != Averages::kOfOne) {
    table.notes.push_back({fmt::format(
        "Of each seed the mean over the values of {}{}", names_in_print(grid, spec.arrangement.average),
        averages == Averages::kOfOthers ? " that the cell has, which are not the same in every cell" : "")});
  }
  const auto compares = [](const ShownPart& part) { return part.statistic->needs != Statistic::Needs::kNothing; };
  const auto has = [&](const auto& is_wanted) {
    return std::ranges::any_of(
        table.columns, [&](const Table::Column& column) { return std::ranges::any_of(column.show.parts, is_wanted); });
  };
  if (spec.baselines.empty() || !(has(compares) || spec.test)) return;
  const auto is_by_seed = [&](const ShownPart& part) {
    return compares(part) && part.statistic->kind != Statistic::Kind::kRatio;
  };
  table.notes.push_back(
      {baselines_in_print(table) + (has(is_by_seed) && table.is_paired ? "; differences are of the same seed" : "")});
}

const char* method_in_words(const SignificanceTest& test) {
  switch (test.method) {
    case SignificanceTest::Method::kRandomisation:
      return "approximate randomisation over sentences";
    case SignificanceTest::Method::kBootstrap:
      return "paired bootstrap over sentences";
    case SignificanceTest::Method::kSacrebleu:
      return "paired bootstrap over sentences as sacreBLEU does it, which rejects equal systems about twice too often";
    case SignificanceTest::Method::kSignFlip:
      return "sign-flip test over seeds";
    default:
      return test.is_paired ? "paired t test over seeds" : "Welch's t test over seeds";
  }
}

void add_seed_notes(const NoteContext& context, std::vector<Name>& notes) {
  const std::map<int64_t, std::string> later = seeds_added_later(context.runs);
  if (later.empty() || !context.grid.claims.looks.empty()) return;
  notes.push_back({capitalised(peeking_text(later, context.grid.seeds.size()))});
}

// Which cells are equivalent to their baselines, and of which scores each limit is, if not of all.
void add_equivalence_note(const SignificanceTest& test, const std::string& how, Table& table) {
  std::vector<std::pair<std::string, std::set<std::string>>> limits;  // with the scores
  std::set<std::string> all;
  for (const Table::Column& column : table.columns) {
    const std::string score = score_in_print(table, column.score);
    all.insert(score);
    const Within* within = entry_of(test.within, column.score);
    if (!within) continue;
    const std::string limit =
        fmt::format("{} {}{}", within->limit, within->unit, within->is_percent() ? " of its mean" : "");
    auto same = std::ranges::find(limits, limit, [](const auto& one) { return one.first; });
    if (same == limits.end()) same = limits.insert(same, {limit, {}});
    same->second.insert(score);
  }
  if (limits.empty()) return;
  std::vector<std::string> parts;
  for (const auto& [limit, scores] : limits)
    parts.push_back(limit + (scores == all ? "" : fmt::format(" ({})", fmt::join(scores, ", "))));
  const bool has_mark = any_table_cell(table, [](const TableCell& one) { return one.comparison.is_equivalent; });
  table.notes.push_back(
      {fmt::format("{} to the baseline within {}: two one-sided tests at 5 %, by the 90 % interval, {}, not corrected",
                   has_mark ? "≈: equivalent" : "No cell is equivalent", fmt::join(parts, ", "), how)});
}

// Which test the marks and bold numbers are of.
void add_test_notes(const NoteContext& context, Table& table) {
  if (context.spec.bold == TableSpec::Bold::kBest) table.notes.push_back({"Bold: the best mean of the column"});
  if (context.is_without_tests) {
    table.notes.push_back(
        {"Looks decided how many seeds cells have: marks, bold by a test, intervals and p would be wrong and are left "
         "out; tearless check-table has the verdicts"});
  }
  if (!context.spec.test) return;
  const SignificanceTest& test = *context.spec.test;
  std::string how = method_in_words(test);
  const bool is_exact =
      test.method == SignificanceTest::Method::kSignFlip && context.grid.seeds.size() <= kMaxExactSignFlips;
  if (test.draws_samples() && !is_exact)
    how += fmt::format(" ({} samples, seed {})", test.sampling.samples, test.sampling.seed);
  const bool has_family = context.compared.family > 0;
  if (has_family) {
    const auto& levels = test.levels;
    std::vector<std::string> marks;
    for (size_t i = 0; i < levels.size(); ++i) {
      const auto has_mark = [&](const TableCell& one) { return one.comparison.level == static_cast<int>(i) + 1; };
      if (any_table_cell(table, has_mark)) marks.push_back(fmt::format("{} p ≤ {}", i == 0 ? "†" : "‡", levels[i]));
    }
    table.notes.push_back({fmt::format(
        "{}, {}, {}corrected for {}{}{}",
        marks.empty() ? fmt::format("No cell is different from the baseline with p ≤ {}", levels[0])
                      : fmt::format("{}: different from the baseline", fmt::join(marks, ", ")),
        how, test.is_corrected ? "" : "not ", counted(static_cast<int64_t>(context.compared.family), "comparison"),
        test.is_corrected ? " (Holm)" : "",
        test.is_over_sentences() ? "; of these runs, whatever other seeds give" : "")});
    if (table.has_limits) add_equivalence_note(test, how, table);
  }
  if (context.spec.bold == TableSpec::Bold::kNotWorse && any_table_cell(table, &TableCell::is_bold)) {
    table.notes.push_back({fmt::format(
        "Bold: the best of the column, and what is not different from it with p ≤ {}{}{}{}", test.levels.front(),
        test.is_corrected ? " (Holm, over the column)" : "",
        context.compared.is_best_a_baseline ? "; where the best is the baseline, with the p of the marks" : "",
        has_family ? "" : ": " + how)});
  }
  std::vector<std::string> without;
  for (const auto& [why, count] : context.compared.without) without.push_back(fmt::format("{} ({})", why, count));
  if (!without.empty()) {
    table.notes.push_back({fmt::format("Comparisons that are not decided{}: {}",
                                       has_family ? "" : fmt::format(" ({})", how), fmt::join(without, "; "))});
  }
}

// The difference between two cells that these numbers of seeds could have found, of each column.
void add_power_notes(Table& table) {
  constexpr size_t kMaxColumns = 8;
  std::vector<std::string> parts;
  std::set<size_t> counts;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    if (table.columns[i].is_added) continue;
    std::vector<std::vector<double>> cells;
    std::set<size_t> seeds;
    for (const Table::Row& row : table.rows) {
      if (row.is_added || row.cells[i].cell.n() < 2 || row.cells[i].repeats) continue;
      cells.push_back(numbers_of(row.cells[i].cell.values));
      seeds.insert(cells.back().size());
    }
    const std::optional<double> deviation = pooled_deviation(cells);
    if (!deviation || cells.size() < 2) continue;
    const size_t n = *seeds.begin();
    const std::optional<double> found = detectable_difference(*deviation, n);
    if (!found || *found <= 0) continue;
    counts.insert(seeds.begin(), seeds.end());
    const Digits digits = table.columns[i].digits;
    parts.push_back(fmt::format("{}{}", column_in_print(table, i), number_text(*found, *found, digits)));
  }
  if (parts.empty()) return;
  const std::string seeds =
      counts.size() == 1 ? fmt::format("{} seeds", *counts.begin())
                         : fmt::format("{} to {} seeds (the fewest of a column)", *counts.begin(), *counts.rbegin());
  table.notes.push_back({fmt::format(
      "Power: a difference between two cells that {} would have shown four times out of five (two-sided, 5 %): {}",
      seeds, some_of(parts, kMaxColumns, "; "))});
}

// Failures of cells, with the interval of their share.
void add_failure_notes(const Table& table, std::vector<Name>& notes) {
  constexpr size_t kMaxParts = 6;
  std::set<std::pair<int, int>> shares;  // of ended runs
  for (const Table::Row& row : table.rows) {
    for (const TableCell& one : row.cells) {
      const Cell& cell = one.cell;
      const int ended = cell.failures() + cell.n();
      if (!one.is_sum && cell.failures() > 0 && ended > 1) shares.emplace(cell.failures(), ended);
    }
  }
  std::vector<std::string> parts;
  for (const auto& [failed, of] : shares) {
    const auto interval = wilson_interval(static_cast<size_t>(failed), static_cast<size_t>(of));
    parts.push_back(
        fmt::format("{}/{} is {:.0f} to {:.0f} %", failed, of, 100 * interval->first, 100 * interval->second));
  }
  if (!parts.empty())
    notes.push_back(
        {fmt::format("Share of runs that fail, with Wilson's 95 % interval: {}", some_of(parts, kMaxParts, "; "))});
}

// "two rows are called LayerNorm: a and b".
void add_namesakes(const Table& table, std::vector<Name>& notes) {
  const auto add = [&](const char* what, const auto& lines, const auto& in_print, const auto& labels_of) {
    std::map<std::string, std::set<std::string>> labels;  // of lines with a name
    for (size_t i = 0; i < lines.size(); ++i) labels[in_print(i)].insert(labels_of(i));
    for (const auto& [name, own] : labels) {
      if (own.size() > 1)
        notes.push_back({fmt::format("{} {} are called \"{}\": {}", own.size(), what, name, fmt::join(own, "; "))});
    }
  };
  add(
      "rows", table.rows, [&](size_t i) { return row_in_print(table, table.rows[i]); },
      [&](size_t i) { return labels_in_print({}, table.row_axes, table.rows[i].labels).text; });
  const auto column = [&](const Names& names, size_t i, const std::string& score) {
    const std::string labels = labels_in_print(names, table.column_axes, table.columns[i].labels).text;
    return labels + (labels.empty() || score.empty() ? "" : ", ") + score;
  };
  add(
      "columns", table.columns,
      [&](size_t i) {
        return column(table.names, i, table.several_scores ? score_in_print(table, table.columns[i].score) : "");
      },
      [&](size_t i) { return column({}, i, table.columns[i].score); });
}

void add_select_notes(const NoteContext& context, Table& table) {
  const auto& [grid, spec, runs, options, resume, which, averages, compared, other_settings, is_without_tests] =
      context;
  const bool final = std::ranges::all_of(runs, [](const Replicate& run) {
    const std::optional<RunState>& state = run.trained->result.state;
    return state && (has_result(*state) || state == RunState::kFailed);
  });
  const std::string axes = names_in_print(grid, spec.arrangement.select->over),
                    by = score_in_print(table, spec.arrangement.select->by);
  table.notes.push_back(
      {fmt::format("{} of {} with the {} mean {}{}{}", table.chosen.empty() ? "@: the value" : "The value", axes,
                   spec.arrangement.select->highest ? "highest" : "lowest", by,
                   table.chosen.empty() ? "" : ": " + table.chosen + " in every cell",
                   final ? "" : ", which may still change: runs are missing")});
  const auto is_by_it = [&](const Table::Column& column) {
    return is_chosen_by_what_is_reported(context.spec, column.score);
  };
  if (std::ranges::any_of(table.columns, is_by_it))
    table.notes.push_back({fmt::format("Chosen by the score that is reported ({}): what is shown is too good", by)});
  if (final && any_cell(table, [](const Cell& cell) { return !cell.chosen.is_of_all; })) {
    table.notes.push_back({fmt::format("@ compares what there is: some runs have no {}", by)});
  }
  if (any_cell(table, [](const Cell& cell) { return cell.chosen.is_tied; })) {
    table.notes.push_back(
        {fmt::format("tied: others have the same mean {}; the first in the grid's order is shown", by)});
  }
  if (any_cell(table, [](const Cell& cell) { return cell.count(Cell::End::kNotChosen) > 0; })) {
    table.notes.push_back({fmt::format("not chosen: no run has {}", by)});
  }
}

// Where the numbers in brackets are from.
void add_published_notes(const TableSpec& spec, Table& table) {
  std::vector<Name> sources;
  const auto add = [&](const Name& source) {
    if (!source.text.empty() && std::ranges::find(sources, source) == sources.end()) sources.push_back(source);
  };
  for (const Published& published : spec.published) add(published.source);  // "": with each number
  for (const TableSpec::AddedLine& row : spec.added_rows) add(row.source);
  if (!sources.empty()) {
    const bool has_ours = any_table_cell(table, [](const TableCell& one) { return one.difference().has_value(); }) ||
                          !spec.published.empty();
    table.notes.push_back(
        joined({{"[in brackets]: "}, joined(sources, "; "), {has_ours ? ", then ours minus that" : ""}}, ""));
  }
  for (size_t i = 0; i < table.sources.size(); ++i)
    table.notes.push_back(joined({{fmt::format("({})", static_cast<char>('a' + i))}, table.sources[i]}, ": "));
}

// Where the numbers of the table were measured.
void add_machine_notes(const Table& table, std::vector<Name>& notes) {
  std::map<std::string, std::set<std::string>> machines;  // of each score
  for (const Table::Row& row : table.rows) {
    for (size_t i = 0; i < row.cells.size(); ++i) {
      const std::set<std::string>& own = row.cells[i].cell.origins.measured_on;
      machines[table.columns[i].score].insert(own.begin(), own.end());
    }
  }
  std::map<std::set<std::string>, std::vector<std::string>> scores;  // of the same machines
  for (const auto& [score, names] : machines) {
    if (!names.empty()) scores[names].push_back(score_in_print(table, score));
  }
  for (const auto& [names, same] : scores) {
    const std::string which = scores.size() > 1 ? fmt::format("{}: ", fmt::join(same, ", ")) : "";
    const char* what = names.size() > 1 ? "measured on machines that cannot be compared" : "measured on";
    notes.push_back({fmt::format("{}: {}", which.empty() ? capitalised(what) : which + what,
                                 some_of({names.begin(), names.end()}, kMaxShown, "; "))});
  }
}

// What the marks and words in cells mean.
void add_mark_notes(const TableSpec& spec, Table& table) {
  if (any_cell(table, [](const Cell& cell) { return cell.diverged() > 0; })) {
    const bool counted = any_cell(table, [](const Cell& cell) { return cell.diverged_scored > 0; });
    table.notes.push_back(
        {fmt::format("div.: diverged, the loss or a gradient was no longer finite{}",
                     counted ? "; in the mean with the scores of the best checkpoint before that" : "")});
  }
  if (any_cell(table, [](const Cell& cell) { return cell.count(Cell::End::kBelow) > 0; })) {
    const auto first = std::ranges::find(table.columns, false, &Table::Column::is_added);
    table.notes.push_back({fmt::format("fail: trained to the end with {} below {}", score_in_print(table, first->score),
                                       *spec.rules.fail_below)});
  }
  if (any_cell(table, [](const Cell& cell) { return cell.origins.stale > 0; })) {
    table.notes.push_back({"*: stale: " + all_of(table, &Origins::stale_because)});
  }
  if (any_cell(table, [](const Cell& cell) { return cell.origins.mixed() > 0; })) {
    table.notes.push_back({fmt::format("°: mixed, {}", kMixed)});
  }
  if (any_table_cell(table, &TableCell::repeats)) {
    table.notes.push_back({"≡: the same runs as a cell above or before it: what the labels differ in has no effect"});
  }
  if (any_cell(table, [](const Cell& cell) { return cell.origins.trained_by.size() > 1; })) {
    table.notes.push_back({"Trained by: " + all_of(table, &Origins::trained_by)});
  }
}

void add_published_or_why_not(const NoteContext& context, Table& table) {
  add_published_notes(context.spec, table);
  if (context.other_settings.empty()) return;
  table.notes.push_back({fmt::format("Without the published numbers, which are not of runs with --set {}",
                                     fmt::join(context.other_settings, ", "))});
}

// What is missing and, in a table that is not final, how to get it.
void add_missing_notes(const NoteContext& context, Table& table) {
  if (context.which == Notes::kAll) {
    add_state_notes(context.grid, context.runs, context.options, table.notes);
    add_derived_notes(context.grid, table, context.runs, context.options, table.notes);
  }
  add_scoreless_notes(table, context.options, context.which, table.notes);
  if (context.which == Notes::kFinal && any_cell(table, [](const Cell& cell) { return cell.missing() > 0; }))
    table.notes.push_back({"(k/n): k of n seeds; the others have no result"});
}

using AddNotes = void (*)(const NoteContext&, Table&);
// In the order of TableSpec::kNotes.
constexpr std::array<AddNotes, std::size(TableSpec::kNotes)> kAdders = {
    add_show_notes,
    [](const NoteContext&, Table& table) { add_namesakes(table, table.notes); },
    [](const NoteContext& context, Table& table) {
      if (context.spec.arrangement.select) add_select_notes(context, table);
    },
    add_published_or_why_not,
    [](const NoteContext& context, Table& table) { add_seed_notes(context, table.notes); },
    add_test_notes,
    [](const NoteContext& context, Table& table) {
      if (!context.is_without_tests) add_power_notes(table);
    },
    [](const NoteContext& context, Table& table) { add_mark_notes(context.spec, table); },
    [](const NoteContext&, Table& table) { add_failure_notes(table, table.notes); },
    [](const NoteContext&, Table& table) { add_machine_notes(table, table.notes); },
    [](const NoteContext& context, Table& table) { add_factor_notes(table, context.spec, table.notes); },
    [](const NoteContext& context, Table& table) { add_resume_notes(context, table.notes); },
    [](const NoteContext& context, Table& table) { add_warning_notes(context.runs, table.notes); },
    [](const NoteContext& context, Table& table) {
      if (context.grid.sample) table.notes.push_back({drawn_text(*context.grid.sample)});
    },
    [](const NoteContext& context, Table& table) { add_exclusion_notes(context.grid, context.spec, table.notes); },
    add_missing_notes,
};

}  // namespace

bool is_chosen_by_what_is_reported(const TableSpec& spec, const std::string& shown) {
  const std::string& by = spec.arrangement.select->by;
  return shown == by || matches_pattern("test.*", by) || matches_pattern("*.test.*", by);
}

void add_notes(const NoteContext& context, Table& table) {
  const std::optional<std::set<std::string>>& chosen = context.spec.notes;
  for (size_t i = 0; i < std::size(kAdders); ++i) {
    if (!chosen || chosen->contains(TableSpec::kNotes.at(i))) kAdders.at(i)(context, table);
  }
  add_different_notes(context, table.notes);
  end_sentences(table.notes);
  table.notes.insert(table.notes.end(), context.spec.own_notes.begin(), context.spec.own_notes.end());
}

}  // namespace tearless::harness
