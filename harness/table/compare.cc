#include "harness/table/compare.h"

#include <algorithm>
#include <cmath>

#include "base/words.h"
#include "harness/statistics/data_sets.h"
#include "harness/statistics/difference.h"
#include "harness/statistics/holm.h"
#include "harness/statistics/sentence_pairs.h"
#include "harness/statistics/sign_flip.h"

namespace tearless::harness {
namespace {

using Method = SignificanceTest::Method;

/// Of one cell against another.
struct Outcome {
  std::optional<double> p = {};
  double difference = 0;
  std::string why = {};  // there is no p, or why it cannot be small enough; "": neither, or a cell has no value
};

/// Whether runs failed as often in one as in the other, so that their means are of the same part of the runs.
bool fail_alike(const Cell& a, const Cell& b) {
  return a.failures() * (b.n() + b.failures()) == b.failures() * (a.n() + a.failures());
}

Outcome over_seeds(const SignificanceTest& test, const Cell& a, const Cell& b) {
  const std::vector<double> first = numbers_of(a.values), second = numbers_of(b.values);
  const SeedPairs pairs = pairs_of(a.values, b.values);
  Outcome outcome{.difference = *a.mean() - *b.mean()};
  if (test.method == Method::kSignFlip) {
    outcome.p = sign_flip_p(a.values, b.values, test.sampling);
    const double least = least_sign_flip_p(pairs.size(), test.sampling);
    if (pairs.size() == 0) {
      outcome.why = "no seed in common";
    } else if (least > test.levels.front()) {
      outcome.why =
          fmt::format("{} cannot decide (the least p is {:.3g})", counted(std::ssize(pairs.first), "seed"), least);
    }
    return outcome;
  }
  const auto difference = test.is_paired ? paired_difference(a.values, b.values) : welch_difference(first, second);
  if (difference) {
    outcome.p = difference->p();
  } else {
    outcome.why = test.is_paired ? "fewer than two seeds in common" : "fewer than two seeds";
  }
  return outcome;
}

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
    runs.push_back({*first->second, *second->second});
    for (const SentenceStats* other : {second->second.get(), &runs.front().a}) {
      why = why_incomparable(*first->second, *other);
      if (!why.empty()) return {};
    }
  }
  if (runs.empty()) why = "no seed in common";
  return runs;
}

std::optional<SentencePairs> pairs_of_sentences(const Cell& a, const Cell& b, const Table::Column& column,
                                                std::string& why) {
  const std::vector<SentencePairs::Runs> runs = sentences_of(a, b, why);
  if (runs.empty()) return std::nullopt;
  const ScoreOfSums score = score_of_sums(column.score, runs.front().a.columns, column.score);
  return SentencePairs(runs,
                       [score, factor = column.factor](std::span<const int64_t> sums) { return factor * score(sums); });
}

Outcome over_sentences(const SignificanceTest& test, const Cell& a, const Cell& b, const Table::Column& column) {
  Outcome outcome;
  const std::optional<SentencePairs> pairs = pairs_of_sentences(a, b, column, outcome.why);
  if (!pairs) return outcome;
  outcome.difference = pairs->difference();
  outcome.p = test.method == Method::kRandomisation ? randomisation_p(*pairs, test.sampling)
              : test.method == Method::kBootstrap   ? bootstrap_p(*pairs, test.sampling)
                                                    : sacrebleu_bootstrap_p(*pairs, test.sampling);
  return outcome;
}

Outcome compare(const SignificanceTest& test, const Cell& a, const Cell& b, const Table::Column& column) {
  if (a.n() == 0 || b.n() == 0) return {};
  if (!fail_alike(a, b)) return {.why = "other shares of runs failed"};
  return test.is_over_sentences() ? over_sentences(test, a, b, column) : over_seeds(test, a, b);
}

/// The outcomes with a p, corrected where the test says so.
std::vector<double> corrected(const SignificanceTest& test, const std::vector<double>& p) {
  return test.is_corrected ? holm(p) : p;
}

Table::Row* find_row(Table& table, const std::vector<std::string>& labels) {
  const auto found =
      std::ranges::find_if(table.rows, [&](const Table::Row& row) { return !row.is_added && row.labels == labels; });
  return found == table.rows.end() ? nullptr : &*found;
}

bool shows_sources(const Show& show) {
  return std::ranges::any_of(
      show.parts, [](const ShownPart& part) { return part.statistic->needs == Statistic::Needs::kSentences; });
}

/// Of the columns of a mean. Differences in both directions are no statement about all.
std::optional<double> p_on_all_columns(const std::vector<Outcome>& outcomes, const std::vector<size_t>& columns) {
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

void compare_with_baseline(const SignificanceTest& test, const std::vector<std::vector<size_t>>& means, Table& table,
                           Compared& compared) {
  const Table::Row* baseline = find_row(table, table.baseline);
  if (!baseline) return;
  std::vector<Cell*> cells;
  std::vector<double> p;
  const bool wants_sources = shows_sources(table.show);
  for (Table::Row& row : table.rows) {
    if (row.is_added || &row == baseline) continue;
    std::vector<Outcome> outcomes(row.cells.size());
    for (size_t i = 0; i < row.cells.size(); ++i) {
      const bool is_mean = !means[i].empty() && test.is_over_sentences();
      if (is_mean || row.cells[i].is_difference) continue;
      outcomes[i] = compare(test, row.cells[i], baseline->cells[i], table.columns[i]);
      if (!outcomes[i].why.empty()) ++compared.without[outcomes[i].why];
      std::string why;
      if (wants_sources && outcomes[i].p) {
        if (const auto pairs = pairs_of_sentences(row.cells[i], baseline->cells[i], table.columns[i], why))
          row.cells[i].sources = two_sources(*pairs);
      }
    }
    for (size_t i = 0; i < row.cells.size(); ++i) {
      if (!means[i].empty() && test.is_over_sentences()) outcomes[i].p = p_on_all_columns(outcomes, means[i]);
      if (!outcomes[i].p) continue;
      row.cells[i].p = outcomes[i].p;
      cells.push_back(&row.cells[i]);
      p.push_back(*outcomes[i].p);
    }
  }
  compared.family = p.size();
  const std::vector<double> all = corrected(test, p);
  for (size_t i = 0; i < cells.size(); ++i) {
    cells[i]->corrected_p = all[i];
    cells[i]->level =
        static_cast<int>(std::ranges::count_if(test.levels, [&](double level) { return all[i] <= level; }));
  }
}

/// The best cell of each column, and those that the test cannot tell from it. A column whose cells have no p is left
/// alone.
void embolden(const SignificanceTest& test, Table& table, Compared& compared) {
  for (size_t i = 0; i < table.columns.size(); ++i) {
    const Table::Column& column = table.columns[i];
    Cell* best = nullptr;
    for (Table::Row& row : table.rows) {
      Cell& cell = row.cells[i];
      if (row.is_added || cell.n() == 0 || cell.is_difference) continue;
      const bool is_better =
          !best || (column.highest_is_best ? *cell.mean() > *best->mean() : *cell.mean() < *best->mean());
      if (is_better) best = &cell;
    }
    std::vector<Cell*> cells;
    std::vector<double> p;
    for (Table::Row& row : table.rows) {
      Cell& cell = row.cells[i];
      if (row.is_added || &cell == best || cell.is_difference) continue;
      const Outcome outcome = best ? compare(test, cell, *best, column) : Outcome();
      if (!outcome.why.empty() && table.baseline.empty()) ++compared.without[outcome.why];
      if (!outcome.p) continue;
      cells.push_back(&cell);
      p.push_back(*outcome.p);
    }
    if (p.empty()) continue;
    best->is_bold = true;
    const std::vector<double> all = corrected(test, p);
    for (size_t k = 0; k < cells.size(); ++k) cells[k]->is_bold = all[k] > test.levels.front();
  }
}

}  // namespace

Compared compare_cells(const SignificanceTest& test, const std::vector<std::vector<size_t>>& means, Table& table) {
  Compared compared;
  compare_with_baseline(test, means, table, compared);
  if (test.is_bold) embolden(test, table, compared);
  return compared;
}

}  // namespace tearless::harness
