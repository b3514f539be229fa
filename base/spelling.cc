#include "base/spelling.h"

#include <charconv>
#include <cmath>
#include <string>

namespace tearless {

std::optional<double> number_spelled(std::string_view text) {
  std::string digits;
  for (const char c : text) {
    if (c != '_') digits += c;
  }
  const bool has_plus = digits.starts_with('+');
  const char* const begin = digits.data() + (has_plus ? 1 : 0);
  const char* const end = digits.data() + digits.size();
  double number = 0;
  const auto [read, error] = std::from_chars(begin, end, number);
  if (begin == end || error != std::errc() || read != end || !std::isfinite(number) || (has_plus && *begin == '-')) {
    return std::nullopt;
  }
  return number;
}

bool is_same_value(std::string_view a, std::string_view b) {
  if (a == b) return true;
  const std::optional<double> left = number_spelled(a), right = number_spelled(b);
  return left && right && *left == *right;
}

}  // namespace tearless
