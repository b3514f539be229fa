#include "harness/figure/scale.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace tearless::harness {
namespace {

constexpr double kSameAs = 1e-9;   // relative: values that differ less are drawn as equal
constexpr double kLeast = 1e-290;  // where no value is greater, all are drawn as 0: a step would be no double

}  // namespace

double Scale::position(double value) const {
  if (is_log && !(value > 0)) return std::numeric_limits<double>::quiet_NaN();
  const long double at = is_log ? std::log10(value) : static_cast<long double>(value);  // as `low` was computed
  return static_cast<double>((at - low) / (static_cast<long double>(high) - low));
}

std::string Scale::label(double tick) const {
  if (is_log) return fmt::format("{:.6g}", tick);
  const int of_step = static_cast<int>(std::floor(std::log10(step) + kSameAs));
  const double greatest = std::max(std::abs(ticks.front()), std::abs(ticks.back()));
  if (greatest < 1e6 && of_step >= -5) return fmt::format("{:.{}f}", tick, std::max(0, -of_step));
  const int of_greatest = static_cast<int>(std::floor(std::log10(greatest) + kSameAs));
  return tick == 0 ? "0" : fmt::format("{:.{}e}", tick, std::clamp(of_greatest - of_step, 0, 16));
}

double round_step(long double range, int most) {
  const long double least = range / most;
  const long double power = std::pow(10.0L, std::floor(std::log10(least)));
  for (const int factor : {1, 2, 5}) {
    if (power * factor >= least * (1 - kSameAs)) return static_cast<double>(power * factor);
  }
  return static_cast<double>(power * 10);
}

Scale round_scale(double low, double high, int most_ticks) {
  double greatest = std::max(std::abs(low), std::abs(high));
  if (greatest < kLeast) low = high = greatest = 0;
  long double range = static_cast<long double>(high) - low;
  if (range <= greatest * kSameAs) {
    const double around = greatest == 0 ? 1 : greatest / 10;
    low -= around;
    high += around;
    range = 2 * around;
  }
  Scale scale;
  scale.step = round_step(range, most_ticks);
  const double first = std::floor(low / scale.step + kSameAs), last = std::ceil(high / scale.step - kSameAs);
  for (double i = first; i <= last; ++i) scale.ticks.push_back(i == 0 ? 0 : i * scale.step);
  scale.low = scale.ticks.front();
  scale.high = scale.ticks.back();
  return scale;
}

Scale scale_between(double low, double high, int most_ticks, double least_step) {
  if (!(high > low)) return round_scale(low, high, most_ticks);
  Scale scale = {.low = low, .high = high};
  scale.step = std::max(least_step, round_step(static_cast<long double>(high) - low, most_ticks));
  const double first = std::ceil(low / scale.step - kSameAs), last = std::floor(high / scale.step + kSameAs);
  for (double i = first; i <= last; ++i) scale.ticks.push_back(i == 0 ? 0 : i * scale.step);
  return scale;
}

Scale log_scale(double low, double high, int most_ticks) {
  low = std::max(low, kLeast);
  high = std::max(high, low);
  if (high - low <= high * kSameAs) {
    low /= 2;
    high *= 2;
  }
  Scale scale = {.low = std::log10(low), .high = std::log10(high), .is_log = true};
  const int first = static_cast<int>(std::floor(scale.low)), last = static_cast<int>(std::ceil(scale.high));
  const double decades = scale.high - scale.low;
  const int stride = std::max(1, static_cast<int>(std::ceil(decades / most_ticks)));
  const bool has_room = 3 * decades <= most_ticks || decades < 1;
  for (int power = first; power <= last; power += stride) {
    for (const int factor : has_room ? std::vector{1, 2, 5} : std::vector{1}) {
      const double tick = factor * std::pow(10, power), at = std::log10(tick);
      if (at >= scale.low - kSameAs && at <= scale.high + kSameAs) scale.ticks.push_back(tick);
    }
  }
  constexpr size_t kFew = 2;
  if (scale.ticks.size() < kFew) scale.ticks = scale_between(low, high, most_ticks, 0).ticks;
  return scale;
}

}  // namespace tearless::harness
