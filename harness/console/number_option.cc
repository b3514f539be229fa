#include "harness/console/number_option.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "base/numbers.h"

namespace tearless::harness {

CLI::Validator whole_number_from(int least) {
  return {[least](std::string& text) -> std::string {
            const std::optional<int64_t> number = number_of<int64_t>(text);
            constexpr int kMax = std::numeric_limits<int>::max();
            if (number && *number >= least && *number <= kMax) return "";
            const std::string most = number && *number > kMax ? fmt::format(" to {}", kMax) : "";
            return fmt::format("expected a whole number from {}{}, got {}", least, most, text);
          },
          ""};
}

CLI::Validator whole_number() {
  return {[](std::string& text) -> std::string {
            if (number_of<int64_t>(text)) return "";
            using Limits = std::numeric_limits<int64_t>;
            return fmt::format("expected a whole number from {} to {}, got {}", Limits::min(), Limits::max(), text);
          },
          ""};
}

CLI::Validator number_from(double least) {
  return {[least](std::string& text) -> std::string {
            const std::optional<double> number = number_of<double>(text);
            if (number && std::isfinite(*number) && *number >= least) return "";
            return fmt::format("expected a number from {}, got {}", least, text);
          },
          ""};
}

}  // namespace tearless::harness
