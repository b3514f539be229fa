#include "harness/table/digits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <vector>

#include "harness/statistics/stats.h"

namespace tearless::harness {
namespace {

constexpr double kSmall = 1e-6;  // below it a number is written with an exponent
constexpr double kLarge = 1e15;  // from it on, too: a double has no more digits
constexpr int kMaxDecimals = 7;  // two digits of the smallest number that is not small
constexpr int kMaxGiven = 9;

// The power of ten of the first digit.
int magnitude_of(double value) {
  return static_cast<int>(std::floor(std::log10(std::abs(value)) + 1e-9));  // errors can turn 0.1 into 0.0999…
}

int decimals_for_two_digits(double value) { return 1 - magnitude_of(value); }

bool is_whole(double value) { return std::trunc(value) == value; }

bool has_exponent(double scale, const Digits& digits) {
  const double size = std::abs(scale);
  if (size == 0 || !std::isfinite(size)) return false;
  if (size >= kLarge) return true;
  if (digits.is_given) return size < kSmall && size < 0.5 * std::pow(10, -digits.decimals);
  return size < (digits.decimals > kMaxDecimals ? 1000 * kSmall : kSmall);  // one notation for 2.5e-08 and 3.1e-06
}

// "-0.00" → "0.00".
std::string without_sign_of_zero(std::string text) {
  const bool is_zero = text.find_first_of("123456789in") == std::string::npos;  // nor inf or nan
  if (is_zero && text.starts_with('-')) text.erase(0, 1);
  return text;
}

}  // namespace

Digits Digits::of(std::span<const double> means, std::span<const double> spreads) {
  std::vector<double> wide, sizes;
  std::ranges::copy_if(spreads, std::back_inserter(wide), [](double spread) { return spread > 0; });
  if (const auto usual = lower_median(wide); usual && std::isfinite(*usual)) return {decimals_for_two_digits(*usual)};
  for (const double mean : means) {
    if (mean != 0 && std::isfinite(mean)) sizes.push_back(std::abs(mean));
  }
  const std::optional<double> usual = lower_median(sizes);
  if (!usual) return {};
  if (*usual < 0.1 || *usual >= kLarge) return {decimals_for_two_digits(*usual)};
  const bool are_whole = std::ranges::all_of(sizes, is_whole) && std::ranges::max(sizes) >= 1000;
  return {are_whole ? 0 : 2};
}

std::string number_text(double value, double scale, const Digits& digits) {
  constexpr int kMaxBehindExponent = 6;
  if (!has_exponent(scale, digits) || value == 0 || !std::isfinite(value)) {
    const int most = digits.is_given ? kMaxGiven : kMaxDecimals;
    return without_sign_of_zero(fmt::format("{:.{}f}", value, std::clamp(digits.decimals, 0, most)));
  }
  const int last = digits.is_given ? digits.decimals : magnitude_of(value) + digits.decimals;
  return fmt::format("{:.{}e}", value, std::clamp(last, 1, digits.is_given ? kMaxGiven : kMaxBehindExponent));
}

std::string signed_text(double value, double scale, const Digits& digits) {
  const std::string text = number_text(value, scale, digits);
  return text.starts_with('-') ? text : "+" + text;
}

std::string with_minus(const std::string& number) { return number.starts_with('-') ? "−" + number.substr(1) : number; }

}  // namespace tearless::harness
