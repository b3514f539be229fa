// Two spellings of one value: people write 5e-4 where a grid has 0.0005, and 1.0 for 1.
#pragma once

#include <optional>
#include <string_view>

namespace tearless {

/// The finite number that the whole text spells, as people and TOML write numbers: "5e-4", "+.5", "3_000", "1.".
/// Nullopt for any other text.
std::optional<double> number_spelled(std::string_view text);

/// True if the texts are equal, or spell the same number.
bool is_same_value(std::string_view a, std::string_view b);

}  // namespace tearless
