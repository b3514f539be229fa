// Patterns of names, in which `*` stands for any text, including "".
#pragma once

#include <string_view>

namespace tearless {

/// Whether a name is such a pattern.
inline bool is_pattern(std::string_view name) { return name.find('*') != std::string_view::npos; }

/// True if `name` matches `pattern`. A `*` in the name is a letter like others.
bool matches_pattern(std::string_view pattern, std::string_view name);

/// True if some text matches both patterns.
bool patterns_meet(std::string_view a, std::string_view b);

}  // namespace tearless
