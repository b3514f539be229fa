#include "harness/figure/scale.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tearless::harness {
namespace {

constexpr double kSameAs = 1e-9;   // relative: values that differ less are drawn as equal
constexpr double kLeast = 1e-290;  // where no value is greater, all are drawn as 0: a step would be no double

}  // namespace

double Scale::position(double value) const {
  return static_cast<double>((static_cast<long double>(value) - low) / (static_cast<long double>(high) - low));
}

std::string Scale::label(double tick) const {
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

Scale scale_of_steps(int64_t last, int most_ticks) {
  Scale scale = {.low = 0, .high = static_cast<double>(std::max<int64_t>(last, 1))};
  scale.step = std::max(1.0, round_step(scale.high, most_ticks));
  for (double tick = 0; tick <= scale.high; tick += scale.step) scale.ticks.push_back(tick);
  return scale;
}

}  // namespace tearless::harness
