#include "harness/claims/claim.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "base/words.h"
#include "harness/statistics/difference.h"
#include "harness/statistics/holm.h"
#include "harness/statistics/looks.h"
#include "harness/statistics/proportion.h"
#include "harness/statistics/rounding.h"
#include "harness/statistics/stats.h"

namespace tearless::harness {
namespace {

constexpr std::array<const char*, kVerdicts> kVerdictNames = {"held", "contradicted", "cannot tell", "not tested",
                                                              "not claimed"};
constexpr size_t kMaxCells = 100;
constexpr const char* kConstant = "the seeds differ by the same amount";

using Samples = std::span<const CellSample>;

// --- levels ----------------------------------------------------------------------------------------------------------

/// `all`: of all looks together. `n`: the values at each of them, as far as they are known.
double level_at_look(double all, std::vector<size_t> n, Sides sides, Design design) {
  std::erase_if(n, [](size_t values) { return values < 2; });
  return n.size() < 2 ? all : constant_level(n, all, sides, design);
}

/// How many of the values each look has: of the later ones as if no more seeds were lost.
std::vector<size_t> values_at_looks(const Look& look, const std::set<int64_t>& seeds_with_value) {
  std::vector<size_t> n;
  for (size_t i = 0; i < look.of.size(); ++i) {
    const auto first = look.seeds.begin(), last = first + static_cast<ptrdiff_t>(look.of[std::min(i, look.index)]);
    const auto there = std::count_if(first, last, [&](int64_t seed) { return seeds_with_value.contains(seed); });
    n.push_back(static_cast<size_t>(there) + look.of[i] - look.of[std::min(i, look.index)]);
  }
  return n;
}

std::set<int64_t> seeds_of(const CellSample& sample) {
  std::set<int64_t> seeds;
  for (const SeedValue& one : sample.values) seeds.insert(one.seed);
  return seeds;
}

// --- two samples -----------------------------------------------------------------------------------------------------

/// The difference of the means of two samples as far as it is known: with one pair there is an estimate alone.
struct Estimate {
  std::optional<double> mean = {};
  std::optional<MeanDifference> difference = {};  // with an interval and p
  std::vector<size_t> n = {};
  bool is_constant = false;           // MeanDifference
  std::vector<size_t> at_looks = {};  // pairs, or the values of the smaller cell
  Design design = Design::kPaired;

  /// Of one look, so that all together have the level `all`.
  double level(double all, Sides sides) const { return level_at_look(all, at_looks, sides, design); }
};

Estimate estimate_of(const CellSample& a, const CellSample& b, const Comparison& comparison) {
  Estimate estimate{.difference = difference_of(a.values, b.values, comparison.is_paired)};
  if (comparison.is_paired) {
    const SeedPairs pairs = pairs_of(a.values, b.values);
    estimate.mean = mean(pairs.differences());
    estimate.n = {pairs.size()};
    std::set<int64_t> both;
    std::ranges::set_intersection(seeds_of(a), seeds_of(b), std::inserter(both, both.end()));
    estimate.at_looks = values_at_looks(comparison.look, both);
  } else {
    const CellSample& smaller = a.values.size() < b.values.size() ? a : b;
    estimate.at_looks = values_at_looks(comparison.look, seeds_of(smaller));
    estimate.design = Design::kWelch;
    const std::vector<double> of_a = numbers_of(a.values), of_b = numbers_of(b.values);
    const std::optional<double> mean_a = mean(of_a), mean_b = mean(of_b);
    if (mean_a && mean_b) estimate.mean = *mean_a - *mean_b;
    estimate.n = {of_a.size(), of_b.size()};
  }
  if (estimate.difference) estimate.mean = estimate.difference->mean;
  estimate.is_constant = estimate.difference && estimate.difference->is_constant() && !comparison.is_exact;
  if (estimate.is_constant) estimate.difference.reset();
  return estimate;
}

double confidence_of(double level, Sides sides) { return 1 - level * (sides == Sides::kOne ? 2 : 1); }

/// Sides::kOne: each end of the interval is a one-sided test at the level.
Finding finding_of(const Estimate& estimate, const Comparison& comparison, Sides sides = Sides::kTwo) {
  Finding finding{.estimate = estimate.mean, .n = estimate.n};
  if (estimate.difference) {
    finding.level = estimate.level(comparison.level, sides);
    finding.interval = estimate.difference->interval(confidence_of(*finding.level, sides));
  } else {
    finding.reason = estimate.is_constant                ? kConstant
                     : std::ranges::min(estimate.n) == 0 ? "no seed has a value of both"
                                                         : "1 seed cannot decide: it takes 2 or more";
  }
  return finding;
}

/// The comparison of a sample with one that is made of it.
Comparison within_seeds(Comparison comparison) {
  comparison.is_paired = true;
  return comparison;
}

// --- shares of failures ----------------------------------------------------------------------------------------------

std::string failures_text(const CellSample& sample) {
  return fmt::format("{}/{} of {}", sample.failed, sample.runs, sample.name);
}

bool fail_alike(const CellSample& a, const CellSample& b) { return a.failed * b.runs == b.failed * a.runs; }

/// One-sided, of one look at counts. They take fewer values than means: the level of means is not reached.
double share_level(const Comparison& comparison) {
  const Look& look = comparison.look;
  return look.of.empty() ? comparison.level
                         : level_at_look(comparison.level / 2, look.of, Sides::kOne, Design::kPaired);
}

/// What shares of failures say of a claim that `a` is better than `b`, in place of means, which are then over
/// different seeds; nullopt where both have the same share and means can be compared.
std::optional<Finding> better_by_failures(const CellSample& a, const CellSample& b, const Comparison& comparison) {
  if (a.runs == 0 || b.runs == 0) return std::nullopt;
  if (fail_alike(a, b) && (!a.values.empty() || a.failed < a.runs)) return std::nullopt;
  const auto interval = [&](const CellSample& one) {
    return wilson_interval(one.failed, one.runs, 1 - comparison.level);
  };
  const std::optional<Interval> of_a = interval(a), of_b = interval(b);
  Finding finding{.reason = fmt::format("{} and {} failed", failures_text(a), failures_text(b))};
  bool is_less = of_a->second < of_b->first, is_more = of_b->second < of_a->first;
  if (!comparison.look.of.empty()) {
    const bool differ = equal_shares_p(a.failed, a.runs, b.failed, b.runs) <= 2 * share_level(comparison);
    is_less = differ && a.failed * b.runs < b.failed * a.runs;
    is_more = differ && !is_less;
  }
  if (is_less) finding.verdict = ClaimVerdict::kHeld;
  if (is_more) finding.verdict = ClaimVerdict::kContradicted;
  return finding;
}

/// Of claims about sizes, which no share of failures decides.
std::optional<Finding> undecided_by_failures(Samples samples) {
  std::string text;
  for (const CellSample& sample : samples) {
    if (sample.failed > 0) text += (text.empty() ? "" : ", ") + failures_text(sample);
  }
  if (text.empty()) return std::nullopt;
  return Finding{.reason = text + " failed"};
}

/// Of kinds for which no level of a look is known; nullopt at the last look.
std::optional<Finding> not_yet(const Comparison& comparison) {
  if (comparison.look.is_last()) return std::nullopt;
  return Finding{.reason = "this kind of claim is decided at the last look alone"};
}

/// A test with all seeds, at the level itself.
Comparison with_all_seeds(Comparison comparison) {
  comparison.look = {};
  return comparison;
}

// --- several comparisons ---------------------------------------------------------------------------------------------

struct Part {
  std::string name;
  Finding finding;
  double margin;  // from the estimate to where the claim ends
};

double margin_of(const Finding& finding, double delta = 0) {
  return finding.estimate ? *finding.estimate + delta : std::numeric_limits<double>::infinity();
}

/// All of them must hold: what decides is the first that is contradicted, else the first that is not held, else the one
/// with the smallest margin.
Finding all_of(std::vector<Part> parts) {
  const auto rank = [](const Part& part) {
    const ClaimVerdict verdict = part.finding.verdict;
    const int order = verdict == ClaimVerdict::kContradicted ? 0 : verdict == ClaimVerdict::kHeld ? 2 : 1;
    return std::pair(order, order == 2 ? part.margin : 0);
  };
  auto& [name, finding, margin] = *std::ranges::min_element(parts, {}, rank);
  if (parts.size() > 1) finding.reason = name + (finding.reason.empty() ? "" : ": " + finding.reason);
  return std::move(finding);
}

std::string name_of_pair(const CellSample& a, const CellSample& b) { return fmt::format("{} and {}", a.name, b.name); }

double delta_of(const Limits& limits, const CellSample& second) {
  if (!limits.is_percent) return limits.within;
  return limits.within / 100 * std::abs(mean(numbers_of(second.values)).value_or(0));
}

/// Each against the next.
template <class F>
Finding along(Samples samples, const Limits& limits, const F& find) {
  std::vector<Part> parts;
  for (size_t i = 0; i + 1 < samples.size(); ++i) {
    const CellSample &a = samples[i], &b = samples[i + 1];
    const Finding finding = find(a, b);
    parts.push_back({name_of_pair(a, b), finding, margin_of(finding, delta_of(limits, b))});
  }
  return all_of(std::move(parts));
}

// --- kinds -----------------------------------------------------------------------------------------------------------

/// By how much `a` is better than `b`.
Estimate advantage(const CellSample& a, const CellSample& b, const Comparison& comparison) {
  return comparison.highest_is_best ? estimate_of(a, b, comparison) : estimate_of(b, a, comparison);
}

Finding find_order(const CellSample& a, const CellSample& b, const Comparison& comparison) {
  if (auto failures = better_by_failures(a, b, comparison)) return *failures;
  Finding finding = finding_of(advantage(a, b, comparison), comparison);
  if (!finding.interval) return finding;
  if (finding.interval->first > 0) finding.verdict = ClaimVerdict::kHeld;
  if (finding.interval->second < 0) finding.verdict = ClaimVerdict::kContradicted;
  return finding;
}

Finding find_better(Samples samples, const Comparison& comparison) {
  return along(samples, comparison.limits,
               [&](const CellSample& a, const CellSample& b) { return find_order(a, b, comparison); });
}

Finding find_worse(Samples samples, const Comparison& comparison) {
  return along(samples, comparison.limits,
               [&](const CellSample& a, const CellSample& b) { return find_order(b, a, comparison); });
}

Finding find_not_worse(Samples samples, const Comparison& comparison) {
  return along(samples, comparison.limits, [&](const CellSample& a, const CellSample& b) {
    if (auto failures = better_by_failures(a, b, comparison)) return *failures;
    const Estimate estimate = advantage(a, b, comparison);
    Finding finding = finding_of(estimate, comparison, Sides::kOne);
    if (!estimate.difference) return finding;
    const double delta = delta_of(comparison.limits, b);
    if (is_not_worse(*estimate.difference, delta, confidence_of(*finding.level, Sides::kOne)))
      finding.verdict = ClaimVerdict::kHeld;
    if (is_less(finding.interval->second, -delta, estimate.difference->magnitude))
      finding.verdict = ClaimVerdict::kContradicted;
    return finding;
  });
}

/// Each with each.
Finding find_equivalent(Samples samples, const Comparison& comparison) {
  std::vector<Part> parts;
  const auto find = [&](const CellSample& a, const CellSample& b) {
    if (auto failures = better_by_failures(a, b, comparison)) {
      if (failures->verdict == ClaimVerdict::kHeld) failures->verdict = ClaimVerdict::kContradicted;
      return *failures;
    }
    const Estimate estimate = estimate_of(a, b, comparison);
    Finding finding = finding_of(estimate, comparison, Sides::kOne);
    const double delta = delta_of(comparison.limits, b);
    if (!estimate.difference || delta == 0) return finding;
    if (lies_within(*estimate.difference, delta, confidence_of(*finding.level, Sides::kOne)))
      finding.verdict = ClaimVerdict::kHeld;
    if (lies_outside(*estimate.difference, delta, confidence_of(*finding.level, Sides::kOne)))
      finding.verdict = ClaimVerdict::kContradicted;
    return finding;
  };
  for (size_t i = 0; i < samples.size(); ++i) {
    for (size_t j = i + 1; j < samples.size(); ++j) {
      const CellSample &a = samples[i], &b = samples[j];
      Part& part = parts.emplace_back(name_of_pair(a, b), find(a, b), 0);
      const std::optional<double>& estimate = part.finding.estimate;
      part.margin = delta_of(comparison.limits, b) - std::abs(estimate.value_or(0));
    }
  }
  return all_of(std::move(parts));
}

/// The least number of runs that can decide whether most fail.
size_t least_runs_for_share(double level) {
  size_t runs = 1;
  while (more_than_half_p(runs, runs) > level) ++runs;
  return runs;
}

/// Of each, that most of its runs fail, or with `trains` that most do not.
Finding find_share(Samples samples, const Comparison& comparison, bool trains) {
  const double level = share_level(comparison);
  std::vector<Part> parts;
  for (const CellSample& sample : samples) {
    const size_t count = trains ? sample.runs - sample.failed : sample.failed;
    Finding finding{.interval = wilson_interval(count, sample.runs), .n = {sample.runs}};
    if (finding.interval) {
      finding.estimate = static_cast<double>(count) / static_cast<double>(sample.runs);
      if (more_than_half_p(count, sample.runs) <= level) finding.verdict = ClaimVerdict::kHeld;
      if (more_than_half_p(sample.runs - count, sample.runs) <= level) finding.verdict = ClaimVerdict::kContradicted;
    }
    if (const size_t least = least_runs_for_share(level); sample.runs < least)
      finding.reason = fmt::format("{} cannot decide: it takes {} or more",
                                   counted(static_cast<int64_t>(sample.runs), "seed"), least);
    parts.push_back({sample.name, finding, margin_of(finding)});
  }
  return all_of(std::move(parts));
}
Finding find_fails(Samples samples, const Comparison& comparison) { return find_share(samples, comparison, false); }
Finding find_trains(Samples samples, const Comparison& comparison) { return find_share(samples, comparison, true); }

/// The first against one of the others.
struct Against {
  Estimate estimate;
  Finding finding;
  double p = 1;
};

Against against(const CellSample& first, const CellSample& other, const Comparison& comparison) {
  if (auto failures = better_by_failures(first, other, comparison)) {
    const bool is_decided = failures->verdict != ClaimVerdict::kCannotTell;
    return {{.at_looks = comparison.look.of},
            *failures,
            is_decided ? equal_shares_p(first.failed, first.runs, other.failed, other.runs) : 1};
  }
  Against one{.estimate = advantage(first, other, comparison), .finding = {}};
  one.finding = finding_of(one.estimate, comparison);
  if (!one.estimate.difference) return one;
  one.p = one.estimate.difference->p();
  one.finding.verdict = *one.estimate.mean > 0 ? ClaimVerdict::kHeld : ClaimVerdict::kContradicted;
  return one;
}

/// The first, of all of them. Its number is the one against the strongest of the others. It must be better than each,
/// so that needs no correction; that another is better is corrected by Holm for all of them.
Finding find_best(Samples samples, const Comparison& comparison) {
  std::vector<Against> all;
  for (const CellSample& other : samples.subspan(1)) all.push_back(against(samples[0], other, comparison));
  std::vector<Against*> by_p;
  for (Against& one : all) by_p.push_back(&one);
  std::ranges::stable_sort(by_p, {}, &Against::p);
  auto left = static_cast<double>(by_p.size());
  bool is_rejected = true;
  for (Against* one : by_p) {
    is_rejected &= one->p <= one->estimate.level(comparison.level / left--, Sides::kTwo);
    const bool is_held = one->finding.verdict == ClaimVerdict::kHeld;
    if (is_held ? one->p > one->estimate.level(comparison.level, Sides::kTwo) : !is_rejected)
      one->finding.verdict = ClaimVerdict::kCannotTell;
  }
  std::vector<Part> parts;
  for (size_t i = 0; i < all.size(); ++i)
    parts.push_back({"against " + samples[i + 1].name, all[i].finding, margin_of(all[i].finding)});
  // Of those that do not decide, the strongest of the others.
  std::ranges::stable_sort(parts, {}, [](const auto& part) {
    return part.finding.estimate.value_or(-std::numeric_limits<double>::infinity());
  });
  return all_of(std::move(parts));
}

/// Of two, by the differences of their logarithms.
Finding find_ratio(Samples samples, const Comparison& comparison) {
  if (auto failures = undecided_by_failures(samples)) return *failures;
  std::vector<CellSample> logs(samples.begin(), samples.end());
  for (CellSample& sample : logs) {
    for (SeedValue& one : sample.values) {
      if (one.value <= 0) return {.reason = fmt::format("{} has a value that is not above 0", sample.name)};
      one.value = std::log(one.value);
    }
  }
  Finding finding = finding_of(estimate_of(logs[0], logs[1], comparison), comparison);
  if (finding.estimate) finding.estimate = std::exp(*finding.estimate);
  if (!finding.interval) return finding;
  finding.interval = {std::exp(finding.interval->first), std::exp(finding.interval->second)};
  const auto& [low, high] = comparison.limits.between;
  const auto& [lower, upper] = *finding.interval;
  if (!is_less(lower, low) && !is_less(high, upper)) finding.verdict = ClaimVerdict::kHeld;
  if (is_less(high, lower) || is_less(upper, low)) finding.verdict = ClaimVerdict::kContradicted;
  return finding;
}

/// The mean over seeds of one of a line's numbers.
Finding find_line(Samples samples, const Comparison& comparison, double StraightLine::*number) {
  if (auto failures = undecided_by_failures(samples)) return *failures;
  std::map<int64_t, Curve> points;
  for (const CellSample& sample : samples) {
    for (const SeedValue& one : sample.values) points[one.seed].push_back({sample.at, one.value});
  }
  CellSample lines, zeros;
  for (const auto& [seed, own] : points) {
    if (own.size() < samples.size()) continue;
    lines.values.push_back({seed, straight_line(own).*number});
    zeros.values.push_back({seed, 0});
  }
  return finding_of(estimate_of(lines, zeros, within_seeds(comparison)), comparison);
}

Finding find_slope(Samples samples, const Comparison& comparison) {
  Finding finding = find_line(samples, comparison, &StraightLine::slope);
  if (!finding.interval) return finding;
  if (finding.interval->first > 0)
    finding.verdict = comparison.limits.falls ? ClaimVerdict::kContradicted : ClaimVerdict::kHeld;
  if (finding.interval->second < 0)
    finding.verdict = comparison.limits.falls ? ClaimVerdict::kHeld : ClaimVerdict::kContradicted;
  return finding;
}

Finding find_linear(Samples samples, const Comparison& comparison) {
  if (auto later = not_yet(comparison)) return *later;
  Finding finding = find_line(samples, with_all_seeds(comparison), &StraightLine::r2);
  if (!finding.interval) return finding;
  if (!is_less(finding.interval->first, comparison.limits.r2)) finding.verdict = ClaimVerdict::kHeld;
  if (is_less(finding.interval->second, comparison.limits.r2)) finding.verdict = ClaimVerdict::kContradicted;
  return finding;
}

/// The mean of each, above a number or below it.
Finding find_side(Samples samples, const Comparison& comparison, bool above) {
  if (auto failures = undecided_by_failures(samples)) return *failures;
  const double than = comparison.limits.than;
  std::vector<Part> parts;
  for (const CellSample& sample : samples) {
    CellSample limits = sample;
    for (SeedValue& one : limits.values) one.value = than;
    Estimate estimate = estimate_of(sample, limits, within_seeds(comparison));
    if (estimate.difference && estimate.difference->standard_error == 0 && !comparison.is_exact) {
      estimate.is_constant = true;  // at the limit, too: equal values have no spread
      estimate.difference.reset();
    }
    Finding finding = finding_of(estimate, comparison);
    if (estimate.is_constant) finding.reason = "the seeds have the same value";
    if (finding.interval) {
      const auto [lower, upper] = *finding.interval;
      const double magnitude = estimate.difference->magnitude;
      if (!is_less(above ? lower : -upper, 0, magnitude)) finding.verdict = ClaimVerdict::kHeld;
      if (is_less(above ? upper : -lower, 0, magnitude)) finding.verdict = ClaimVerdict::kContradicted;
      finding.interval = {lower + than, upper + than};
    }
    const double margin = finding.estimate.value_or(0) * (above ? 1 : -1);
    if (finding.estimate) finding.estimate = mean(numbers_of(sample.values));
    parts.push_back({sample.name, finding, margin});
  }
  return all_of(std::move(parts));
}
Finding find_above(Samples samples, const Comparison& comparison) { return find_side(samples, comparison, true); }
Finding find_below(Samples samples, const Comparison& comparison) { return find_side(samples, comparison, false); }

/// The values of all curves at each update from `from` on, until the first of them ends. Curves that have not finite
/// values are as if they lacked the update.
std::map<double, std::vector<CellSample>> values_by_update(Samples samples, double from) {
  double end = std::numeric_limits<double>::infinity();
  for (const CellSample& sample : samples) {
    for (const auto& [seed, curve] : sample.curves) end = std::min(end, curve.empty() ? 0 : curve.back().x);
  }
  std::map<double, std::vector<CellSample>> at;
  for (size_t i = 0; i < samples.size(); ++i) {
    for (const auto& [seed, curve] : samples[i].curves) {
      for (const CurvePoint& point : curve) {
        if (point.x < from || point.x > end) continue;
        std::vector<CellSample>& there = at[point.x];
        there.resize(samples.size());
        if (std::isfinite(point.y)) there[i].values.push_back({seed, point.y});
      }
    }
  }
  return at;
}

size_t count_values(const std::vector<CellSample>& samples) {
  size_t count = 0;
  for (const CellSample& sample : samples) count += sample.values.size();
  return count;
}

/// "" unless there are too many updates to compare, each by itself.
std::string too_many_updates(Samples samples, double from) {
  constexpr ptrdiff_t kMaxUpdates = 20000;
  for (const CellSample& sample : samples) {
    for (const auto& [seed, curve] : sample.curves) {
      const auto updates = std::ranges::count_if(curve, [&](const CurvePoint& point) { return point.x >= from; });
      if (updates > kMaxUpdates)
        return fmt::format("{} updates are too many to compare each; name a metric of evaluations", updates);
    }
  }
  return "";
}

/// The first is better than the second at every update from one on: held if it is so at each by its own interval, which
/// needs no correction; contradicted by an update at which the second is better, corrected for all of them.
Finding find_stays_better(Samples samples, const Comparison& given) {
  if (auto later = not_yet(given)) return *later;
  const Comparison comparison = with_all_seeds(given);
  if (auto failures = undecided_by_failures(samples)) return *failures;
  if (const std::string why = too_many_updates(samples, comparison.limits.from); !why.empty()) return {.reason = why};
  size_t curves = 0;
  for (const CellSample& sample : samples) curves += sample.curves.size();
  std::vector<double> p;
  std::vector<Part> parts;
  const auto updates = values_by_update(samples, comparison.limits.from);
  for (const auto& [update, there] : updates) {
    if (const size_t values = count_values(there); values < curves)
      return {.reason = fmt::format("at update {:.0f} only {} of {} runs have a value", update, values, curves)};
    const Estimate estimate = advantage(there[0], there[1], comparison);
    Finding finding = finding_of(estimate, comparison);
    if (finding.interval && finding.interval->first > 0) finding.verdict = ClaimVerdict::kHeld;
    const bool is_worse = estimate.difference && *estimate.mean < 0;
    p.push_back(is_worse ? estimate.difference->p() : 1);
    parts.push_back({fmt::format("at update {:.0f}, of {} to {:.0f}", update, updates.size(), updates.rbegin()->first),
                     finding, margin_of(finding)});
  }
  if (parts.empty()) {
    return {.verdict = ClaimVerdict::kNotTested,
            .reason = fmt::format("no update from {:.0f} on at which all runs have reported", comparison.limits.from)};
  }
  const std::vector<double> adjusted = holm(p);
  for (size_t i = 0; i < parts.size(); ++i) {
    if (adjusted[i] <= comparison.level) parts[i].finding.verdict = ClaimVerdict::kContradicted;
  }
  // Of those that do not decide, the one at which the first is least ahead.
  std::ranges::stable_sort(parts, {}, &Part::margin);
  return all_of(std::move(parts));
}

size_t points_of(Samples samples) {
  std::set<double> points;
  for (const CellSample& sample : samples) points.insert(sample.at);
  return points.size();
}

using Form = ClaimKind::Form;
// clang-format off
constexpr ClaimKind kKinds[] = {
    {"better", 2, kMaxCells, 2, 0, true, Form::kDifference,
     "by how much it is better, with its {95}", find_better},
    {"worse", 2, kMaxCells, 2, 0, true, Form::kDifference,
     "by how much it is worse, with its {95}", find_worse},
    {"not_worse", 2, kMaxCells, 2, ClaimKind::kWithin, true, Form::kDifference,
     "by how much it is better, with its {90}, which must not reach as far down as the claim's limit",
     find_not_worse},
    {"equivalent", 2, kMaxCells, 2, ClaimKind::kWithin, true, Form::kDifference,
     "the difference with its {90}, which must be inside the claim's limits", find_equivalent},
    {"fails", 1, kMaxCells, 1, 0, false, Form::kShare,
     "the share of runs that failed, with Wilson's 95 % interval; above one half by the exact one-sided test{share}", find_fails},
    {"trains", 1, kMaxCells, 1, 0, false, Form::kShare,
     "the share of runs that did not fail, with Wilson's 95 % interval; above one half by the exact one-sided test{share}", find_trains},
    {"best", 1, 1, 2, ClaimKind::kOf, true, Form::kDifference,
     "by how much it is better than the strongest other, with its {95}; it must be better than each, and is "
     "contradicted where another is better, corrected by Holm for all of them", find_best},
    {"ratio", 2, 2, 2, ClaimKind::kBetween, false, Form::kRatio,
     "the ratio, the geometric mean over seeds, with its {95}", find_ratio},
    {"slope", 1, 1, 2, ClaimKind::kOver | ClaimKind::kDirection, false, Form::kSlope,
     "the slope of least squares, the mean over seeds, with its {95}", find_slope},
    {"linear", 1, 1, 3, ClaimKind::kOver | ClaimKind::kR2, false, Form::kFit,
     "R² of a straight line, the mean over seeds, with its {95}", find_linear},
    {"above", 1, kMaxCells, 1, ClaimKind::kThan, true, Form::kValue,
     "the mean with its {95}, which must be above the claim's number", find_above},
    {"below", 1, kMaxCells, 1, ClaimKind::kThan, true, Form::kValue,
     "the mean with its {95}, which must be below the claim's number", find_below},
    {"stays_better", 2, 2, 2, ClaimKind::kCurve, true, Form::kSlope,
     "by how much it is better at the update that decides, with its {95}; it must be better at each, and is "
     "contradicted where Holm's p for all of them is at most the level", find_stays_better},
};
// clang-format on

}  // namespace

const char* name_of(ClaimVerdict verdict) { return kVerdictNames[static_cast<size_t>(verdict)]; }

ClaimVerdict verdict_called(std::string_view name) {
  const auto found = std::ranges::find(kVerdictNames, name);
  return found == kVerdictNames.end() ? ClaimVerdict::kCannotTell
                                      : static_cast<ClaimVerdict>(found - kVerdictNames.begin());
}

std::span<const ClaimKind> claim_kinds() { return kKinds; }

Finding check_claim(const ClaimKind& kind, std::span<const CellSample> samples, const Comparison& comparison) {
  const bool is_line = kind.keys & ClaimKind::kOver;
  if (const size_t size = is_line ? points_of(samples) : samples.size(); size < kind.needed) {
    return {
        .verdict = ClaimVerdict::kNotTested,
        .reason = fmt::format("the grid has {} there, and {} needs {}",
                              counted(static_cast<int64_t>(size), is_line ? "point" : "cell"), kind.name, kind.needed)};
  }
  std::string missing;
  std::vector<CellSample> there(samples.begin(), samples.end());
  bool has_numbers = true;
  for (CellSample& sample : there) {
    if (sample.runs == 0)
      return {.verdict = ClaimVerdict::kNotTested, .reason = fmt::format("the grid has no run of {}", sample.name)};
    if (sample.missing == 0) continue;
    missing += fmt::format("{}{}/{} of {}", missing.empty() ? "" : ", ", sample.missing, sample.runs, sample.name);
    sample.runs -= sample.missing;
    has_numbers &= sample.runs > 0;
  }
  Finding finding = has_numbers ? kind.find(there, comparison) : Finding();
  if (missing.empty()) return finding;
  finding.verdict = ClaimVerdict::kNotTested;
  finding.reason = missing + " missing";
  return finding;
}

}  // namespace tearless::harness
