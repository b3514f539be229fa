#include "harness/commands/number_option.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <string>

namespace tearless::harness {
namespace {

/// The number that `text` is from end to end. Nullopt if it is not a number, or does not fit the type.
template <class Number>
std::optional<Number> parse(const std::string& text) {
  Number number{};
  const char* end = text.data() + text.size();
  const auto [parsed, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || parsed != end) return std::nullopt;
  return number;
}

}  // namespace

CLI::Validator whole_number_from(int least) {
  return {[least](std::string& text) -> std::string {
            const std::optional<int64_t> number = parse<int64_t>(text);
            constexpr int kMax = std::numeric_limits<int>::max();
            if (number && *number >= least && *number <= kMax) return "";
            const std::string most = number && *number > kMax ? fmt::format(" to {}", kMax) : "";
            return fmt::format("expected a whole number from {}{}, got {}", least, most, text);
          },
          ""};
}

CLI::Validator whole_number() {
  return {[](std::string& text) -> std::string {
            if (parse<int64_t>(text)) return "";
            using Limits = std::numeric_limits<int64_t>;
            return fmt::format("expected a whole number from {} to {}, got {}", Limits::min(), Limits::max(), text);
          },
          ""};
}

CLI::Validator number_from(double least) {
  return {[least](std::string& text) -> std::string {
            const std::optional<double> number = parse<double>(text);
            if (number && std::isfinite(*number) && *number >= least) return "";
            return fmt::format("expected a number from {}, got {}", least, text);
          },
          ""};
}

}  // namespace tearless::harness
