#include "base/memory_size.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

namespace tearless {
namespace {

constexpr double kMiB = 1 << 20;
constexpr double kGiB = 1 << 30;
constexpr double kMaxGiB = 1 << 20;  // a pebibyte: no machine has it, and its bytes fit int64_t

template <class Round>
std::string rounded_text(int64_t bytes, Round round) {
  const auto size = static_cast<double>(bytes);
  if (std::abs(size) < kGiB) return fmt::format("{:.0f} MiB", round(size / kMiB));
  return fmt::format("{:.1f} GiB", round(10 * size / kGiB) / 10);
}

}  // namespace

std::string memory_text(int64_t bytes) {
  return rounded_text(bytes, [](double x) { return std::round(x); });
}

std::string memory_text_up(int64_t bytes) {
  return rounded_text(bytes, [](double x) { return std::ceil(x); });
}

std::string memory_text_down(int64_t bytes) {
  return rounded_text(bytes, [](double x) { return std::floor(x); });
}

int64_t scaled(int64_t bytes, double factor) {
  return static_cast<int64_t>(std::ceil(static_cast<double>(bytes) * factor));
}

std::optional<int64_t> parse_memory(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  if (text.starts_with(' ')) text.remove_prefix(1);
  const double unit = text == "GiB" ? kGiB : text == "MiB" ? kMiB : 0;
  const double bytes = number * unit;
  if (!(bytes >= 1 && bytes <= kMaxGiB * kGiB)) return std::nullopt;
  return static_cast<int64_t>(bytes);
}

}  // namespace tearless
