#include "harness/table/weighted_sum.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

namespace tearless::harness {
namespace {

constexpr double kRounding = 1e-14;  // relative to what is added: a smaller sum is 0

std::optional<double> value_of(const Cell& cell, int64_t seed) {
  const auto found = std::ranges::find(cell.values, seed, &SeedValue::seed);
  return found == cell.values.end() ? std::nullopt : std::optional(found->value);
}

void add_values(const Terms& terms, Cell& sum) {
  for (const SeedValue& first : terms.front().first->values) {
    double total = 0, sizes = 0;
    bool has_all = true;
    for (const auto& [cell, weight] : terms) {
      const std::optional<double> value = value_of(*cell, first.seed);
      has_all &= value.has_value();
      total += weight * value.value_or(0);
      sizes += std::abs(weight * value.value_or(0));
    }
    if (has_all) sum.values.push_back({first.seed, std::abs(total) <= kRounding * sizes ? 0 : total});
  }
}

void add_reason(const Terms& terms, Cell& sum) {
  const int lacking = sum.expected - sum.n();
  const auto any = [&](auto&& has) { return std::ranges::any_of(terms, [&](const auto& t) { return has(*t.first); }); };
  if (lacking == 0 || any([](const Cell& c) { return c.missing() > 0; })) return;
  if (any([](const Cell& c) { return c.diverged > c.diverged_scored; })) {
    sum.diverged = lacking;
  } else if (any([](const Cell& c) { return c.failed > 0; })) {
    sum.failed = lacking;
  } else if (any([](const Cell& c) { return c.below > 0; })) {
    sum.below = lacking;
  } else {
    sum.scoreless = lacking;
  }
}

void add_published(const Terms& terms, Cell& sum) {
  double total = 0, sizes = 0;
  for (const auto& [cell, weight] : terms) {
    const nlohmann::json value = cell->published_value();
    if (!value.is_number()) return;
    total += weight * value.get<double>();
    sizes += std::abs(weight * value.get<double>());
  }
  sum.published.push_back({std::abs(total) <= kRounding * sizes ? 0 : total});
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
    sum.mixed = std::max(sum.mixed, cell->mixed);
    sum.stale_because.insert(cell->stale_because.begin(), cell->stale_because.end());
    sum.measured_on.insert(cell->measured_on.begin(), cell->measured_on.end());
    sum.trained_by.insert(cell->trained_by.begin(), cell->trained_by.end());
    for (const std::string& run : cell->runs) {
      if (std::ranges::find(sum.runs, run) == sum.runs.end()) sum.runs.push_back(run);
    }
  }
  add_values(terms, sum);
  add_reason(terms, sum);
  return sum;
}

}  // namespace tearless::harness
