#include "base/score/bleu.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/score/ngrams.h"
#include "base/words.h"

namespace tearless {
namespace {

/// 100 · BP · exp(mean ln precision), 0 where a precision is 0.
double geometric(const BleuStats& stats, const std::array<double, 4>& precisions) {
  double sum = 0;
  for (const double precision : precisions) {
    if (precision == 0) return 0;
    sum += std::log(precision);
  }
  return 100 * brevity_penalty(stats) * std::exp(sum / 4);
}

}  // namespace

std::vector<int64_t> BleuStats::numbers() const {
  std::vector<int64_t> all(matches.begin(), matches.end());
  all.insert(all.end(), totals.begin(), totals.end());
  all.insert(all.end(), {hypothesis_length, reference_length});
  return all;
}

BleuStats BleuStats::of_numbers(std::span<const int64_t> numbers) {
  BleuStats stats;
  std::copy_n(numbers.begin(), 4, stats.matches.begin());
  std::copy_n(numbers.begin() + 4, 4, stats.totals.begin());
  stats.hypothesis_length = numbers[8];
  stats.reference_length = numbers[9];
  return stats;
}

const std::vector<std::string>& BleuStats::columns() {
  static const std::vector<std::string> names = {"matches_1",         "matches_2",       "matches_3", "matches_4",
                                                 "totals_1",          "totals_2",        "totals_3",  "totals_4",
                                                 "hypothesis_length", "reference_length"};
  return names;
}

BleuStats& BleuStats::operator+=(const BleuStats& other) {
  for (size_t n = 0; n < 4; ++n) {
    matches[n] += other.matches[n];
    totals[n] += other.totals[n];
  }
  hypothesis_length += other.hypothesis_length;
  reference_length += other.reference_length;
  return *this;
}

BleuStats bleu_stats(std::string_view hypothesis, std::string_view reference) {
  const auto hypothesis_words = split_words(hypothesis), reference_words = split_words(reference);
  BleuStats stats;
  stats.hypothesis_length = static_cast<int64_t>(hypothesis_words.size());
  stats.reference_length = static_cast<int64_t>(reference_words.size());
  for (size_t n = 0; n < 4; ++n) stats.totals[n] = count_ngrams(stats.hypothesis_length, static_cast<int64_t>(n) + 1);
  count_matches(std::span(hypothesis_words), std::span(reference_words), stats.matches);
  return stats;
}

double brevity_penalty(const BleuStats& stats) {
  const double shortness = static_cast<double>(stats.reference_length) / static_cast<double>(stats.hypothesis_length);
  return shortness > 1 ? std::exp(1 - shortness) : 1;
}

double bleu(const BleuStats& stats) {
  std::array<double, 4> precisions{};
  for (size_t n = 0; n < 4; ++n) {
    if (stats.totals[n] > 0)
      precisions[n] = static_cast<double>(stats.matches[n]) / static_cast<double>(stats.totals[n]);
  }
  return geometric(stats, precisions);
}

std::array<double, 4> exp_smoothed_precisions(const BleuStats& stats, double scale) {
  std::array<double, 4> precisions{};
  if (stats.matches == std::array<int64_t, 4>{}) return precisions;
  double halved = 1;
  for (size_t n = 0; n < 4 && stats.totals[n] > 0; ++n) {
    const auto total = static_cast<double>(stats.totals[n]);
    if (stats.matches[n] == 0) halved *= 2;
    precisions[n] =
        stats.matches[n] > 0 ? scale * static_cast<double>(stats.matches[n]) / total : scale / (halved * total);
  }
  return precisions;
}

double bleu_exp_smoothed(const BleuStats& stats) { return geometric(stats, exp_smoothed_precisions(stats, 1)); }

double sacrebleu(const BleuStats& stats) {
  double logs = 0;
  for (const double percent : exp_smoothed_precisions(stats, 100))
    logs += std::log(percent);  // of 0: -∞, so the score is 0
  return brevity_penalty(stats) * std::exp(logs / 4);
}

}  // namespace tearless
