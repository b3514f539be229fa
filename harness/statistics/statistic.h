// The statistics that a table's `show` composes, by name: "{mean:.2f} ± {std:.2f} ({n})". A new one is a function and a
// row of kStatistics.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "harness/statistics/seed_value.h"
#include "harness/statistics/sentence_test.h"

namespace tearless::harness {

/// What the statistics of a cell are computed from.
struct CellValues {
  std::span<const SeedValue> values;         // of a score
  std::span<const SeedValue> baseline = {};  // of the cell with which it is compared
  bool is_baseline = false;                  // it is one itself, and compared with none
  bool is_paired = true;                     // the two, by seed
  bool highest_is_best = true;
  bool is_exact = false;                   // known before a run is trained: that all seeds agree is no chance
  std::optional<double> p = {};            // of the table's test, corrected
  std::optional<TwoSources> sources = {};  // of the difference from the baseline
};

struct Statistic {
  enum class Kind {
    kValue,       // of the score
    kSpread,      // the width of something
    kDifference,  // of two values: printed with its sign
    kCount,       // a whole number
    kShare,       // or a correlation: with digits of its own
    kRatio,       // likewise
    kP,           // likewise; one below the last digit is "<0.001"
  };
  enum class Needs {
    kNothing,    // beside the values
    kBaseline,   // a row to compare with
    kTest,       // and the section [table.test]
    kSentences,  // and that of a test over sentences
  };

  std::string_view name;
  std::string_view meaning;  // as a note names it: "sample standard deviation"
  Kind kind;
  Needs needs;
  std::optional<double> (*of)(const CellValues& sample);  // nullopt: there are too few values
};

std::span<const Statistic> statistics();

/// The statistic with this name; null if there is none.
const Statistic* find_statistic(std::string_view name);

}  // namespace tearless::harness
