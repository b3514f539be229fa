// Two spellings of one value: people write 5e-4 where a grid has 0.0005, and 1.0 for 1.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <ranges>
#include <string_view>

namespace tearless {

/// The finite number that the whole text spells, as people and TOML write numbers: "5e-4", "+.5", "3_000", "1.".
/// Nullopt for any other text.
std::optional<double> number_spelled(std::string_view text);

/// True if the texts are equal, or spell the same number.
bool is_same_value(std::string_view a, std::string_view b);

/// A number or a truth value: without the name of its axis such a label says nothing.
bool is_bare(std::string_view label);

/// The first whose text is `word`, else the first whose text is_same_value(); the end of the range if there is none.
template <std::ranges::forward_range Range, class TextOf = std::identity>
auto find_spelled(Range& range, std::string_view word, TextOf text_of = {}) {
  const auto found = std::ranges::find(range, word, text_of);
  if (found != std::ranges::end(range)) return found;
  return std::ranges::find_if(
      range, [&](std::string_view text) { return is_same_value(text, word); }, text_of);
}

}  // namespace tearless
