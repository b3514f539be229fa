// Numbers in text.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace tearless {

/// The number that the whole text is, as std::from_chars reads it: no blank, no "+", but "inf" and "nan". Nullopt for
/// any other text, and for what the type does not hold.
template <class Number>
std::optional<Number> number_of(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

}  // namespace tearless
