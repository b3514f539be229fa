#include "harness/table/weighted_sum.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "harness/runs/attempt_files.h"
#include "harness/statistics/rounding.h"

namespace tearless::harness {
namespace {

/// A sum that is 0 but for rounding errors is 0.
class Total {
 public:
  void add(double value) {
    sum_ += value;
    sizes_ += std::abs(value);
  }
  double sum() const { return std::abs(sum_) <= kRounding * sizes_ ? 0 : sum_; }

 private:
  double sum_ = 0, sizes_ = 0;
};

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
    const Cell::End gravest = *std::ranges::min_element(reasons);
    sum.ends.emplace(seed, gravest);
    sum.diverged += gravest == Cell::End::kDiverged;
    sum.failed += gravest == Cell::End::kFailed;
    sum.below += gravest == Cell::End::kBelow;
    sum.scoreless += gravest == Cell::End::kScoreless;
  }
}

void add_published(const Terms& terms, Cell& sum) {
  Total total;
  for (const auto& [cell, weight] : terms) {
    const nlohmann::json value = cell->published_value();
    if (!value.is_number()) return;
    total.add(weight * value.get<double>());
  }
  sum.published.push_back({total.sum()});
}

}  // namespace

Cell weighted_sum(const Terms& terms) {
  Cell sum;
  sum.is_sum = true;
  add_published(terms, sum);
  if (std::ranges::any_of(terms, [](const auto& term) { return term.first->expected == 0; })) return sum;
  for (const auto& [cell, weight] : terms) {
    sum.expected = std::max(sum.expected, cell->expected);
    sum.stale += cell->stale;
    sum.trained_on.insert(cell->trained_on.begin(), cell->trained_on.end());
    for (const auto& [derivation, machines] : cell->derived_on)
      sum.derived_on[derivation].insert(machines.begin(), machines.end());
    sum.stale_because.insert(cell->stale_because.begin(), cell->stale_because.end());
    sum.measured_on.insert(cell->measured_on.begin(), cell->measured_on.end());
    sum.trained_by.insert(cell->trained_by.begin(), cell->trained_by.end());
    sum.without_score.insert(cell->without_score.begin(), cell->without_score.end());
    for (const std::string& run : cell->runs) {
      if (std::ranges::find(sum.runs, run) == sum.runs.end()) sum.runs.push_back(run);
    }
  }
  if (kinds_in(sum.measured_on) <= 1) {
    add_values(terms, sum);
    add_ends(terms, sum);
  } else {
    sum.scoreless = sum.expected;  // numbers of two machines have no sum
  }
  sum.stale = std::min(sum.stale, sum.n());
  return sum;
}

}  // namespace tearless::harness
