#include "harness/statistics/statistic.h"

#include <algorithm>
#include <iterator>

#include "harness/statistics/stats.h"

namespace tearless::harness {
namespace {

using Kind = Statistic::Kind;
using Value = std::optional<double>;

// clang-format off
constexpr Statistic kStatistics[] = {
    {"mean",   "mean",                              Kind::kValue,      [](const CellValues& s) { return mean(s.values); }},
    {"std",    "sample standard deviation",         Kind::kSpread,     [](const CellValues& s) { return sample_deviation(s.values); }},
    {"n",      "number of seeds",                   Kind::kCount,      [](const CellValues& s) -> Value { return static_cast<double>(s.values.size()); }},
    {"ci95",   "half the 95 % t interval",          Kind::kSpread,     [](const CellValues& s) { return half_interval(s.values); }},
    {"median", "median",                            Kind::kValue,      [](const CellValues& s) { return median(s.values); }},
    {"best",   "best seed",                         Kind::kValue,      [](const CellValues& s) { return s.highest_is_best ? greatest(s.values) : least(s.values); }},
    {"min",    "least",                             Kind::kValue,      [](const CellValues& s) { return least(s.values); }},
    {"max",    "greatest",                          Kind::kValue,      [](const CellValues& s) { return greatest(s.values); }},
    {"delta",  "mean difference from the baseline", Kind::kDifference, [](const CellValues& s) { return mean(s.differences); }},
};
// clang-format on

}  // namespace

std::span<const Statistic> statistics() { return kStatistics; }

const Statistic* find_statistic(std::string_view name) {
  const auto* found = std::ranges::find(kStatistics, name, &Statistic::name);
  return found == std::end(kStatistics) ? nullptr : found;
}

}  // namespace tearless::harness
