// The statistics that a table's `show` composes, by name: "{mean:.2f} ± {std:.2f} ({n})". A new one is a function in
// stats.h and a row of kStatistics.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace tearless::harness {

/// What the statistics of a cell are computed from.
struct CellValues {
  std::span<const double> values;            // of a score, one for each seed
  std::span<const double> differences = {};  // to the baseline, one for each seed that both have
  bool highest_is_best = true;
};

struct Statistic {
  enum class Kind {
    kValue,       // of the score
    kSpread,      // the width of something
    kDifference,  // of two values: printed with its sign
    kCount        // a whole number
  };

  std::string_view name;
  std::string_view meaning;  // as a note names it: "sample standard deviation"
  Kind kind;
  std::optional<double> (*of)(const CellValues& sample);  // nullopt: there are too few values
};

std::span<const Statistic> statistics();

/// The statistic with this name; null if there is none.
const Statistic* find_statistic(std::string_view name);

}  // namespace tearless::harness
