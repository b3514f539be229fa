#include "harness/views/arrangement.h"

#include "harness/views/by_score.h"

namespace tearless::harness {

double CellRules::factor_of(const std::string& score) const {
  const double* factor = entry_of(factors, score);
  return factor ? *factor : 1;
}

}  // namespace tearless::harness
