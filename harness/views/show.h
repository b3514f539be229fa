// What a cell of a table shows: the key `show`, "{mean:.2f} ± {std:.2f} ({n})".
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/statistics/statistic.h"

namespace tearless::harness {

/// One statistic with the text around it. A part whose statistic has no value in a cell is left out with its text,
/// unless a bracket in it is closed in another part: then "–" stands for the value.
struct ShownPart {
  std::string before = {};  // " ± "
  const Statistic* statistic = nullptr;
  std::optional<int> decimals = {};  // of "{mean:.2f}"; nullopt: those of the score
  bool has_sign = false;             // "{mean:+.2f}": also of what is not negative
  std::string after = {};            // ")"
};

struct Show {
  std::vector<ShownPart> parts;
};

/// The default: "{mean} ± {std}".
Show default_show();

/// Reads a `show`. After a statistic, the text to the first blank that ends in ")", "]" or "%" belongs to it; the rest
/// to the next one. UserError, after "LOCATION: ", for a text without a statistic, an unknown one and another format
/// than those of {mean:.2f} and {mean:+.2f}.
Show read_show(const std::string& text, const std::string& location);

}  // namespace tearless::harness
