#include "harness/cells/cell.h"

#include <algorithm>

#include "harness/runs/attempt_files.h"
#include "harness/statistics/stats.h"

namespace tearless::harness {

void Origins::add(const Origins& others) {
  stale += others.stale;
  stale_because.insert(others.stale_because.begin(), others.stale_because.end());
  trained_by.insert(others.trained_by.begin(), others.trained_by.end());
  trained_on.insert(others.trained_on.begin(), others.trained_on.end());
  measured_on.insert(others.measured_on.begin(), others.measured_on.end());
  for (const auto& [derivation, machines] : others.derived_on)
    derived_on[derivation].insert(machines.begin(), machines.end());
}

int Origins::mixed() const {
  size_t kinds = std::max({kinds_in(trained_on), trained_by.size(), kinds_in(measured_on)});
  for (const auto& [derivation, machines] : derived_on) kinds = std::max(kinds, kinds_in(machines));
  return kinds > 1 ? static_cast<int>(kinds) : 0;
}

int Cell::count(End end) const {
  return static_cast<int>(std::ranges::count_if(ends, [&](const auto& entry) { return entry.second == end; }));
}

std::optional<double> Cell::mean() const { return harness::mean(numbers_of(values)); }
std::optional<double> Cell::spread() const { return sample_deviation(numbers_of(values)); }

}  // namespace tearless::harness
