#include "harness/grid/arrangement.h"

#include <algorithm>

#include "harness/grid/by_score.h"

namespace tearless::harness {

bool Arrangement::admits(const std::vector<uint32_t>& index) const {
  return std::ranges::all_of(where, [&](const auto& entry) { return entry.second[index[entry.first]]; });
}

double CellRules::factor_of(const std::string& score) const {
  const double* factor = entry_of(factors, score);
  return factor ? *factor : 1;
}

}  // namespace tearless::harness
