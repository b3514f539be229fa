#include "base/spelling.h"

#include <cmath>
#include <string>

#include "base/numbers.h"

namespace tearless {

std::optional<double> number_spelled(std::string_view text) {
  std::string digits;
  for (const char c : text) {
    if (c != '_') digits += c;
  }
  const bool has_plus = digits.starts_with('+');
  const std::string_view unsigned_digits = std::string_view(digits).substr(has_plus ? 1 : 0);
  const std::optional<double> number = number_of<double>(unsigned_digits);
  const bool has_two_signs = has_plus && unsigned_digits.starts_with('-');
  return number && std::isfinite(*number) && !has_two_signs ? number : std::nullopt;
}

bool is_same_value(std::string_view a, std::string_view b) {
  if (a == b) return true;
  const std::optional<double> left = number_spelled(a), right = number_spelled(b);
  return left && right && *left == *right;
}

bool is_bare(std::string_view label) { return label == "true" || label == "false" || number_spelled(label); }

}  // namespace tearless
