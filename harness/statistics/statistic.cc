#include "harness/statistics/statistic.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "harness/statistics/difference.h"
#include "harness/statistics/stats.h"
#include "harness/statistics/superiority.h"

namespace tearless::harness {
namespace {

using Kind = Statistic::Kind;
using Needs = Statistic::Needs;
using Value = std::optional<double>;

/// A statistic of the values without their seeds.
template <auto kOf>
Value of_values(const CellValues& s) {
  return kOf(numbers_of(s.values));
}

Value best_of(const CellValues& s) {
  const std::vector<double> values = numbers_of(s.values);
  return s.highest_is_best ? greatest(values) : least(values);
}

Value delta_of(const CellValues& s) {
  if (s.is_paired) return mean(pairs_of(s.values, s.baseline).differences());
  const Value own = mean(numbers_of(s.values)), baseline = mean(numbers_of(s.baseline));
  return own && baseline ? Value(*own - *baseline) : std::nullopt;
}

Value half_interval_of_delta(const CellValues& s) {
  const auto difference = difference_of(s.values, s.baseline, s.is_paired);
  if (!difference || (difference->is_constant() && !s.is_exact)) return std::nullopt;
  const Interval interval = difference->interval();
  return (interval.second - interval.first) / 2;
}

/// Of means that are above 0; above 1 is better, whichever direction the score has.
Value ratio_of(const CellValues& s) {
  if (s.is_baseline) return s.values.empty() ? std::nullopt : Value(1);
  const SeedPairs pairs =
      s.is_paired ? pairs_of(s.values, s.baseline) : SeedPairs{numbers_of(s.values), numbers_of(s.baseline)};
  const Value own = mean(pairs.first), baseline = mean(pairs.second);
  if (!own || !baseline || !(*own > 0 && *baseline > 0)) return std::nullopt;
  return s.highest_is_best ? *own / *baseline : *baseline / *own;
}

Value correlation_of(const CellValues& s) {
  const auto difference = paired_difference(s.values, s.baseline);
  return difference ? difference->correlation : std::nullopt;
}

/// P(A > B), or of a score of which the lowest is best P(A < B).
std::optional<Superiority> superiority_of(const CellValues& s) {
  const std::vector<double> own = numbers_of(s.values), baseline = numbers_of(s.baseline);
  return s.highest_is_best ? superiority(own, baseline) : superiority(baseline, own);
}
Value better_of(const CellValues& s) {
  const auto better = superiority_of(s);
  return better ? Value(better->probability) : std::nullopt;
}
template <auto kEnd>
Value end_of_better(const CellValues& s) {
  const auto better = superiority_of(s);
  return better ? Value(better->interval.*kEnd) : std::nullopt;
}

// clang-format off
constexpr Statistic kStatistics[] = {
    {"mean",         "mean",                                        Kind::kValue,       Needs::kNothing,   of_values<mean>},
    {"std",          "sample standard deviation",                   Kind::kSpread,      Needs::kNothing,   of_values<sample_deviation>},
    {"n",            "number of seeds",                             Kind::kCount,       Needs::kNothing,   [](const CellValues& s) -> Value { return static_cast<double>(s.values.size()); }},
    {"ci95",         "half the 95 % t interval",                    Kind::kSpread,      Needs::kNothing,   of_values<half_interval>},
    {"median",       "median",                                      Kind::kValue,       Needs::kNothing,   of_values<median>},
    {"best",         "best seed",                                   Kind::kValue,       Needs::kNothing,   best_of},
    {"min",          "least",                                       Kind::kValue,       Needs::kNothing,   of_values<least>},
    {"max",          "greatest",                                    Kind::kValue,       Needs::kNothing,   of_values<greatest>},
    {"delta",        "mean difference from the baseline",           Kind::kDifference,  Needs::kBaseline,  delta_of},
    {"delta_ci95",   "half the 95 % t interval of the difference",  Kind::kSpread,      Needs::kBaseline,  half_interval_of_delta},
    {"ratio",        "ratio to the baseline (above 1 is better)", Kind::kRatio, Needs::kBaseline,  ratio_of},
    {"r",            "correlation of its seeds with the baseline's", Kind::kShare, Needs::kBaseline,  correlation_of},
    {"better",       "probability that a run is better than one of the baseline", Kind::kShare, Needs::kBaseline, better_of},
    {"better_low",   "lower end of its 95 % interval",              Kind::kShare, Needs::kBaseline,  end_of_better<&Interval::first>},
    {"better_high",  "upper end of its 95 % interval",              Kind::kShare, Needs::kBaseline,  end_of_better<&Interval::second>},
    {"p",            "corrected p of the difference from the baseline",       Kind::kP, Needs::kTest,      [](const CellValues& s) { return s.p; }},
    {"se",           "standard error of the difference, of seeds and sentences", Kind::kSpread, Needs::kSentences, [](const CellValues& s) { return s.sources ? Value(s.sources->standard_error()) : std::nullopt; }},
    {"se_seeds",     "its part of the seeds",                       Kind::kSpread,      Needs::kSentences, [](const CellValues& s) { return s.sources ? Value(std::sqrt(s.sources->seeds)) : std::nullopt; }},
    {"se_sentences", "its part of the sentences",                   Kind::kSpread,      Needs::kSentences, [](const CellValues& s) { return s.sources ? Value(std::sqrt(s.sources->sentences)) : std::nullopt; }},
};
// clang-format on

}  // namespace

std::span<const Statistic> statistics() { return kStatistics; }

const Statistic* find_statistic(std::string_view name) {
  const auto* found = std::ranges::find(kStatistics, name, &Statistic::name);
  return found == std::end(kStatistics) ? nullptr : found;
}

}  // namespace tearless::harness
