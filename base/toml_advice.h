// What people write that is no TOML: values of Python, YAML or JSON, numbers without a digit, texts without quotes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tearless {

/// One sentence on the line with this number, from 1, of a text that is no TOML; "" if it is of no kind that is known
/// here.
std::string advice_on(std::string_view text, int64_t line);

}  // namespace tearless
