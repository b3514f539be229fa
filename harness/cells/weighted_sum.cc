#include "harness/cells/weighted_sum.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "harness/runs/attempt_files.h"
#include "harness/statistics/rounding.h"

namespace tearless::harness {
namespace {

void add_values(const Terms& terms, Cell& sum) {
  std::vector<std::map<int64_t, double>> values;  // of each term
  for (const auto& [cell, weight] : terms) {
    for (std::map<int64_t, double>& own = values.emplace_back(); const SeedValue& one : cell->values)
      own[one.seed] = weight * one.value;
  }
  for (const SeedValue& first : terms.front().first->values) {
    Total total;
    size_t there = 0;
    for (const std::map<int64_t, double>& own : values) {
      const auto found = own.find(first.seed);
      if (found == own.end()) break;
      total.add(found->second);
      ++there;
    }
    if (there == terms.size()) sum.values.push_back({first.seed, total.sum()});
  }
}

/// Of each seed without a value that all of the cells have, or have lost, the gravest reason. A seed that one of them
/// still waits for is missing.
void add_ends(const Terms& terms, Cell& sum) {
  std::map<int64_t, std::vector<Cell::End>> ends;
  std::map<int64_t, size_t> there;  // in how many cells a seed has ended, with or without a value
  for (const auto& [cell, weight] : terms) {
    for (const auto& [seed, end] : cell->ends) {
      ends[seed].push_back(end);
      ++there[seed];
    }
    for (const SeedValue& one : cell->values) ++there[one.seed];
  }
  for (const auto& [seed, reasons] : ends) {
    if (there[seed] < terms.size()) continue;
    sum.ends.emplace(seed, *std::ranges::min_element(reasons));
  }
}

/// Numbers of two machines have no sum.
void end_all(const Terms& terms, Cell& sum) {
  for (const auto& [cell, weight] : terms) {
    for (const SeedValue& one : cell->values) sum.ends[one.seed] = Cell::End::kScoreless;
    for (const auto& [seed, end] : cell->ends) sum.ends[seed] = Cell::End::kScoreless;
  }
}

}  // namespace

void Total::add(double value) {
  sum_ += value;
  sizes_ += std::abs(value);
}

double Total::sum() const { return std::abs(sum_) <= kRounding * sizes_ ? 0 : sum_; }

Cell weighted_sum(const Terms& terms) {
  Cell sum;
  if (std::ranges::any_of(terms, [](const auto& term) { return term.first->expected == 0; })) return sum;
  for (const auto& [cell, weight] : terms) {
    sum.expected = std::max(sum.expected, cell->expected);
    sum.origins.add(cell->origins);
    sum.averaged.insert(cell->averaged.begin(), cell->averaged.end());
    sum.added_seeds.insert(cell->added_seeds.begin(), cell->added_seeds.end());
    sum.without_score.insert(cell->without_score.begin(), cell->without_score.end());
    for (const std::string& run : cell->runs) {
      if (std::ranges::find(sum.runs, run) == sum.runs.end()) sum.runs.push_back(run);
    }
  }
  if (kinds_in(sum.origins.measured_on) <= 1) {
    add_values(terms, sum);
    add_ends(terms, sum);
  } else {
    end_all(terms, sum);
  }
  sum.origins.stale = std::min(sum.origins.stale, sum.n());
  return sum;
}

}  // namespace tearless::harness
