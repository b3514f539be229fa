// A size of differences, as in within = "0.3 BLEU": the limit of claims and of the tests of tables, or what matters.
#pragma once

#include <cmath>
#include <string>

#include "base/toml.h"
#include "harness/grid/names.h"

namespace tearless::harness {

struct Within {
  double limit = 0;  // above 0
  std::string unit;  // of the score, as it is written; "%": of the mean that one compares with

  bool is_percent() const { return unit == "%"; }
  /// In the unit of the score, beside this mean.
  double beside(double mean) const { return is_percent() ? limit / 100 * std::abs(mean) : limit; }
};

/// A text: a number above 0 and a unit. UserError, after "AT", for anything else; it names `unit` as an example, and
/// `of`, whose mean percentages are of ("the baseline").
Within read_within(const toml::node& node, const std::string& at, const std::string& unit, const char* of,
                   const char* key = "within");

/// Whether it is the score's name, the last part of that, or its name in print.
bool is_unit_of(const std::string& unit, const std::string& score, const Names& names);

}  // namespace tearless::harness
