#include "harness/statistics/superiority.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "harness/statistics/rounding.h"

namespace tearless::harness {
namespace {

constexpr double kLevel = 0.05;

/// Where each of the values stands among all of them, as twice its mean rank from 0: values that differ by rounding
/// errors alone have the same.
std::vector<size_t> doubled_ranks(std::span<const double> values, double rounding) {
  std::vector<size_t> ranks;
  for (const double value : values) {
    size_t& rank = ranks.emplace_back(0);
    for (const double other : values) rank += other < value - rounding ? 2 : other <= value + rounding ? 1 : 0;
    rank -= 1;  // itself
  }
  return ranks;
}

/// Twice the pairs of a run of each cell in which the run of `a` is greater; ties count once.
size_t doubled_wins(std::span<const double> a, std::span<const double> b, double rounding) {
  size_t wins = 0;
  for (const double one : a) {
    for (const double other : b) wins += std::abs(one - other) <= rounding ? 1 : one > other ? 2 : 0;
  }
  return wins;
}

/// |doubled wins − pairs| of two equal cells, in all but 5 % of the ways to choose the n runs of the one.
size_t reach_of_equal_cells(std::span<const size_t> ranks, size_t n) {
  const size_t greatest_sum = 2 * ranks.size() * n, pairs = n * (ranks.size() - n);
  // ways[k][sum]: to choose k of the runs so far with this sum of ranks
  std::vector<std::vector<double>> ways(n + 1, std::vector<double>(greatest_sum + 1));
  ways[0][0] = 1;
  for (const size_t rank : ranks) {
    for (size_t k = n; k > 0; --k) {
      for (size_t sum = greatest_sum + 1; sum-- > rank;) ways[k][sum] += ways[k - 1][sum - rank];
    }
  }
  std::vector<double> at_distance(pairs + 1);
  double all = 0;
  for (size_t sum = n * (n - 1); sum <= greatest_sum; ++sum) {
    if (ways[n][sum] == 0) continue;
    const size_t wins = sum - n * (n - 1);  // doubled: what the others of the n add to a rank does not count
    at_distance[wins > pairs ? wins - pairs : pairs - wins] += ways[n][sum];
    all += ways[n][sum];
  }
  double farther = 0;
  size_t reach = pairs;
  while (reach > 0 && farther + at_distance[reach] <= kLevel * all) farther += at_distance[reach--];
  return reach;
}

Interval exact_interval(std::span<const double> a, std::span<const double> b, double rounding) {
  std::vector<double> values(a.begin(), a.end());
  values.insert(values.end(), b.begin(), b.end());
  const size_t reach = reach_of_equal_cells(doubled_ranks(values, rounding), std::min(a.size(), b.size()));
  const size_t wins = doubled_wins(a, b, rounding), all = 2 * a.size() * b.size();
  // divided once, so that an end that is ½ is exactly that
  return {wins > reach ? static_cast<double>(wins - reach) / static_cast<double>(all) : 0,
          wins + reach < all ? static_cast<double>(wins + reach) / static_cast<double>(all) : 1};
}

double probability_of(std::span<const double> a, std::span<const double> b, double rounding) {
  return static_cast<double>(doubled_wins(a, b, rounding)) / static_cast<double>(2 * a.size() * b.size());
}

Interval bootstrap_interval(std::span<const double> a, std::span<const double> b, double rounding,
                            const Sampling& sampling) {
  Random random(sampling.seed);
  const auto resample = [&random](std::span<const double> values) {
    std::vector<double> drawn(values.size());
    for (double& one : drawn) one = values[random.below(values.size())];
    return drawn;
  };
  std::vector<double> probabilities(static_cast<size_t>(sampling.samples));
  for (double& probability : probabilities) {
    const std::vector<double> of_a = resample(a), of_b = resample(b);
    probability = probability_of(of_a, of_b, rounding);
  }
  std::ranges::sort(probabilities);
  const auto below = static_cast<size_t>(kLevel / 2 * static_cast<double>(probabilities.size()));
  return {probabilities[below], probabilities[probabilities.size() - 1 - below]};
}

}  // namespace

std::optional<Superiority> superiority(std::span<const double> a, std::span<const double> b, const Sampling& sampling) {
  if (a.empty() || b.empty()) return std::nullopt;
  const double rounding = kRounding * std::max(greatest_magnitude(a), greatest_magnitude(b));
  const bool few = std::min(a.size(), b.size()) <= kFewRuns;
  return Superiority{.probability = probability_of(a, b, rounding),
                     .interval = few ? exact_interval(a, b, rounding) : bootstrap_interval(a, b, rounding, sampling)};
}

}  // namespace tearless::harness
