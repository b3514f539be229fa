#include "harness/table/compare.h"

#include <algorithm>
#include <cmath>

#include "base/words.h"
#include "harness/runs/measured.h"
#include "harness/statistics/data_sets.h"
#include "harness/statistics/difference.h"
#include "harness/statistics/holm.h"
#include "harness/statistics/rounding.h"
#include "harness/statistics/sentence_pairs.h"
#include "harness/statistics/sign_flip.h"
#include "harness/views/by_score.h"

namespace tearless::harness {
namespace {

using Method = SignificanceTest::Method;

/// Of one cell against another.
struct Outcome {
  std::optional<double> p = {};
  std::optional<double> least_p = {};      // that the test could have given
  bool is_equivalent = false;              // within the test's limit
  double difference = 0;                   // of the test over sentences
  std::optional<TwoSources> sources = {};  // where they are asked for
  std::string why = {};  // there is no p, or why it cannot be small enough; "": neither, or a cell has no value
};

/// Whether runs failed as often in one as in the other, so that their means are of the same part of the runs.
bool fail_alike(const Cell& a, const Cell& b) {
  return a.failures() * (b.n() + b.failures()) == b.failures() * (a.n() + a.failures());
}

/// Where the axis that tells them apart has no effect.
bool are_the_same_runs(const Cell& a, const Cell& b) { return !a.runs.empty() && a.runs == b.runs; }

/// The sentences of the seeds that both cells have. `why`: they cannot be compared.
std::vector<SentencePairs::Runs> sentences_of(const Cell& a, const Cell& b, std::string& why) {
  std::vector<SentencePairs::Runs> runs;
  for (const SeedValue& value : a.values) {
    const auto in = [&](const Cell& cell) { return std::ranges::find(cell.values, value.seed, &SeedValue::seed); };
    if (in(b) == b.values.end()) continue;
    const auto first = a.sentences.find(value.seed), second = b.sentences.find(value.seed);
    if (first == a.sentences.end() || second == b.sentences.end()) {
      why = "no statistics of sentences";
      return {};
    }
    if (!first->second || !second->second) {
      why = "no statistics of sentences: this is a copy of results alone";
      return {};
    }
    runs.push_back({*first->second, *second->second});
    for (const SentenceStats* other : {second->second.get(), &runs.front().a}) {
      why = why_incomparable(*first->second, *other);
      if (!why.empty()) return {};
    }
  }
  if (runs.empty()) why = "no seed in common";
  return runs;
}

/// Compares two cells of a column, and columns of cells.
class Comparer {
 public:
  Comparer(const SignificanceTest& test, const std::vector<std::vector<size_t>>& means, Table& table)
      : test_(test), means_(means), table_(table) {
    const auto is_source = [](const ShownPart& part) { return part.statistic->needs == Statistic::Needs::kSentences; };
    shows_sources_ = std::ranges::any_of(
        table.columns, [&](const Table::Column& column) { return std::ranges::any_of(column.show.parts, is_source); });
    has_baseline_ = std::ranges::any_of(table.rows, [](const Table::Row& row) { return row.baseline.has_value(); });
  }

  Compared compared(bool has_bold) && {
    mark_differences_from_baseline();
    for (size_t i = 0; has_bold && i < table_.columns.size(); ++i) embolden(i);
    return std::move(compared_);
  }

 private:
  Outcome over_seeds(const Cell& a, const Cell& b, const std::string& score) const {
    Outcome outcome;
    if (test_.method == Method::kSignFlip) {
      outcome.p = sign_flip_p(a.values, b.values, test_.sampling);
      if (!outcome.p) return {.why = "no seed in common"};
      const size_t seeds = pairs_of(a.values, b.values).size();
      outcome.least_p = least_sign_flip_p(seeds, test_.sampling);
      if (*outcome.least_p > test_.levels.front()) {
        outcome.why = fmt::format("{} cannot decide (the least p is {:.3g})",
                                  counted(static_cast<int64_t>(seeds), "seed"), *outcome.least_p);
      }
      return outcome;
    }
    const auto difference = difference_of(a.values, b.values, test_.is_paired);
    if (!difference) return {.why = test_.is_paired ? "fewer than two seeds in common" : "fewer than two seeds"};
    if (difference->is_constant() && !is_known_before_training(score))
      return {.why = "the seeds differ by the same amount"};
    outcome.p = difference->p();
    if (const Within* within = entry_of(test_.within, score))
      outcome.is_equivalent = lies_within(*difference, within->beside(*b.mean()));
    return outcome;
  }

  Outcome over_sentences(const Cell& a, const Cell& b, const Table::Column& column) const {
    Outcome outcome;
    const std::vector<SentencePairs::Runs> runs = sentences_of(a, b, outcome.why);
    if (runs.empty()) return outcome;
    const ScoreOfSums score = score_of_sums(column.score, runs.front().a.columns, column.score);
    const SentencePairs pairs(
        runs, [score, factor = column.factor](std::span<const int64_t> sums) { return factor * score(sums); });
    const Sampling& sampling = test_.sampling;
    outcome.difference = pairs.difference();
    outcome.least_p = 1 / static_cast<double>(sampling.samples + 1);
    outcome.p = test_.method == Method::kRandomisation ? randomisation_p(pairs, sampling)
                : test_.method == Method::kBootstrap   ? bootstrap_p(pairs, sampling)
                                                       : sacrebleu_bootstrap_p(pairs, sampling);
    constexpr int64_t kSamples = 1000;  // enough for a variance
    if (shows_sources_) outcome.sources = two_sources(pairs, {.samples = kSamples, .seed = sampling.seed});
    return outcome;
  }

  Outcome compare(const Cell& a, const Cell& b, const Table::Column& column) const {
    if (a.n() == 0 || b.n() == 0) return {};
    if (!fail_alike(a, b)) return {.why = "other shares of runs failed"};
    return test_.is_over_sentences() ? over_sentences(a, b, column) : over_seeds(a, b, column.score);
  }

  void note(const Outcome& outcome) {
    if (!outcome.why.empty()) ++compared_.without[outcome.why];
  }

  /// Sums of cells have values of each seed, and no sentences.
  bool has_no_test(size_t column) const { return table_.columns[column].is_added && test_.is_over_sentences(); }

  /// Of the columns of a mean. Differences in both directions are no statement about all.
  static std::optional<double> p_on_all_columns(const std::vector<Outcome>& outcomes,
                                                const std::vector<size_t>& columns) {
    std::vector<double> p;
    size_t positive = 0;
    for (const size_t column : columns) {
      if (!outcomes[column].p) return std::nullopt;
      p.push_back(*outcomes[column].p);
      positive += outcomes[column].difference > 0;
    }
    const bool agree = positive == 0 || positive == columns.size();
    return agree ? p_on_all(p) : std::optional(1.0);
  }

  /// Those of a row with the baseline's, one for each column.
  std::vector<Outcome> outcomes_of(Table::Row& row, const Table::Row& baseline) {
    std::vector<Outcome> outcomes(row.cells.size());
    for (size_t i = 0; i < row.cells.size(); ++i) {
      TableCell& one = row.cells[i];
      const Cell& of_baseline = baseline.cells[i].cell;
      if (has_no_test(i) || one.is_difference || are_the_same_runs(one.cell, of_baseline)) continue;
      outcomes[i] = compare(one.cell, of_baseline, table_.columns[i]);
      one.comparison.sources = outcomes[i].sources;
      one.comparison.is_equivalent = outcomes[i].is_equivalent;
      note(outcomes[i]);
    }
    for (size_t i = 0; i < row.cells.size(); ++i) {
      if (has_no_test(i) && !row.cells[i].is_difference) outcomes[i].p = p_on_all_columns(outcomes, means_[i]);
    }
    return outcomes;
  }

  void mark_differences_from_baseline() {
    if (!has_baseline_) return;
    std::vector<BaselineComparison*> comparisons;
    std::vector<double> p;
    std::optional<double> least;
    for (Table::Row& row : table_.rows) {
      const Table::Row& baseline = table_.rows[*row.baseline];
      if (row.is_added || &row == &baseline) continue;
      const std::vector<Outcome> outcomes = outcomes_of(row, baseline);
      for (size_t i = 0; i < row.cells.size(); ++i) {
        if (!outcomes[i].p) continue;
        comparisons.push_back(&row.cells[i].comparison);
        comparisons.back()->p = outcomes[i].p;
        p.push_back(*outcomes[i].p);
        if (outcomes[i].least_p) least = std::min(*outcomes[i].least_p, least.value_or(1));
      }
    }
    compared_.family = p.size();
    const std::vector<double> all = corrected(p);
    for (size_t i = 0; i < comparisons.size(); ++i) {
      comparisons[i]->corrected_p = all[i];
      comparisons[i]->level =
          static_cast<int>(std::ranges::count_if(test_.levels, [&](double level) { return all[i] <= level; }));
    }
    const double least_corrected = least.value_or(0) * (test_.is_corrected ? static_cast<double>(p.size()) : 1);
    if (least.value_or(1) <= test_.levels.front() && least_corrected > test_.levels.front()) {
      compared_.without[fmt::format("corrected for {}, the least p is {:.3g}", counted(std::ssize(p), "comparison"),
                                    least_corrected)] = static_cast<int>(p.size());
    }
  }

  /// The best cell of a column, and those that the test cannot tell from it. Where one cannot be compared with it, none
  /// is bold: that it is not would read as a difference.
  void embolden(size_t column) {
    const Table::Column& about = table_.columns[column];
    if (has_no_test(column)) return;
    std::vector<TableCell*> cells;  // with a value; the first is the best
    std::map<const TableCell*, const TableCell*> baselines;
    for (Table::Row& row : table_.rows) {
      TableCell& one = row.cells[column];
      if (row.is_added || one.cell.n() == 0 || one.is_difference) continue;
      cells.push_back(&one);
      if (row.baseline) baselines[&one] = &table_.rows[*row.baseline].cells[column];
      const double own = *one.cell.mean(), best = *cells.front()->cell.mean();
      if (about.highest_is_best ? own > best : own < best) std::swap(cells.front(), cells.back());
    }
    std::vector<TableCell*> others, bold, marked;
    std::vector<double> p;
    bool all_have_p = true;
    for (TableCell* one : cells) {
      if (one == cells.front() || are_the_same_runs(one->cell, cells.front()->cell)) {
        bold.push_back(one);
        continue;
      }
      if (baselines[one] == cells.front()) {  // one pair, one p: that of the marks
        all_have_p &= one->comparison.corrected_p.has_value();
        marked.push_back(one);
        continue;
      }
      const Outcome outcome = compare(one->cell, cells.front()->cell, about);
      if (!has_baseline_) note(outcome);  // otherwise the comparison with the baseline says it
      all_have_p &= outcome.p.has_value();
      others.push_back(one);
      p.push_back(outcome.p.value_or(1));
    }
    if ((others.empty() && marked.empty()) || !all_have_p) return;
    const std::vector<double> all = corrected(p);
    for (size_t i = 0; i < others.size(); ++i) {
      if (all[i] > test_.levels.front()) bold.push_back(others[i]);
    }
    for (TableCell* one : marked) {
      if (*one->comparison.corrected_p > test_.levels.front()) bold.push_back(one);
      compared_.is_best_a_baseline = true;
    }
    for (TableCell* one : bold) one->is_bold = true;
  }

  std::vector<double> corrected(const std::vector<double>& p) const { return test_.is_corrected ? holm(p) : p; }

  const SignificanceTest& test_;
  const std::vector<std::vector<size_t>>& means_;
  Table& table_;
  bool shows_sources_ = false, has_baseline_ = false;
  Compared compared_;
};

}  // namespace

Compared compare_cells(const SignificanceTest& test, bool has_bold, const std::vector<std::vector<size_t>>& means,
                       Table& table) {
  return Comparer(test, means, table).compared(has_bold);
}

void embolden_best(Table& table) {
  for (size_t i = 0; i < table.columns.size(); ++i) {
    const double sign = table.columns[i].highest_is_best ? 1 : -1;
    std::vector<std::pair<double, TableCell*>> cells;
    for (Table::Row& row : table.rows) {
      TableCell& one = row.cells[i];
      if (!row.is_added && !one.is_difference && one.cell.n() > 0) cells.emplace_back(sign * *one.cell.mean(), &one);
    }
    for (const auto& [mean, cell] : cells) cell->is_bold = !is_less(mean, std::ranges::max(cells).first);
  }
}

}  // namespace tearless::harness
