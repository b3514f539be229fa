#include "engine/score/bleu.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "base/words.h"

namespace tearless::engine {
namespace {

using Words = std::vector<std::string_view>;

std::map<Words, int64_t> count_ngrams(const Words& words, size_t n) {
  std::map<Words, int64_t> counts;
  for (size_t i = 0; i + n <= words.size(); ++i) ++counts[Words(words.begin() + i, words.begin() + i + n)];
  return counts;
}

/// 100 · BP · exp(mean ln precision), 0 where a precision is 0.
double geometric(const BleuStats& stats, const std::array<double, 4>& precisions) {
  double sum = 0;
  for (const double precision : precisions) {
    if (precision == 0) return 0;
    sum += std::log(precision);
  }
  const double shortness = static_cast<double>(stats.reference_length) / static_cast<double>(stats.hypothesis_length);
  const double brevity_penalty = shortness > 1 ? std::exp(1 - shortness) : 1;
  return 100 * brevity_penalty * std::exp(sum / 4);
}

}  // namespace

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
  const Words hypothesis_words = split_words(hypothesis);
  const Words reference_words = split_words(reference);
  BleuStats stats;
  stats.hypothesis_length = static_cast<int64_t>(hypothesis_words.size());
  stats.reference_length = static_cast<int64_t>(reference_words.size());
  for (size_t n = 1; n <= 4; ++n) {
    const auto wanted = count_ngrams(reference_words, n);
    for (const auto& [ngram, count] : count_ngrams(hypothesis_words, n)) {
      stats.totals[n - 1] += count;
      const auto it = wanted.find(ngram);
      if (it != wanted.end()) stats.matches[n - 1] += std::min(count, it->second);
    }
  }
  return stats;
}

double bleu(const BleuStats& stats) {
  std::array<double, 4> precisions{};
  for (size_t n = 0; n < 4; ++n) {
    if (stats.totals[n] > 0)
      precisions[n] = static_cast<double>(stats.matches[n]) / static_cast<double>(stats.totals[n]);
  }
  return geometric(stats, precisions);
}

double bleu_exp_smoothed(const BleuStats& stats) {
  if (stats.matches == std::array<int64_t, 4>{}) return 0;
  std::array<double, 4> precisions{};
  double halved = 1;
  for (size_t n = 0; n < 4 && stats.totals[n] > 0; ++n) {
    const auto total = static_cast<double>(stats.totals[n]);
    if (stats.matches[n] == 0) halved *= 2;
    precisions[n] = stats.matches[n] > 0 ? static_cast<double>(stats.matches[n]) / total : 1 / (halved * total);
  }
  return geometric(stats, precisions);
}

// Rounded through decimal text, as multi-bleu.perl does; arithmetic rounding would differ in rare ties.
std::string sentence_stats_text(const std::vector<BleuStats>& sentences) {
  std::string text =
      "matches_1\tmatches_2\tmatches_3\tmatches_4\ttotals_1\ttotals_2\ttotals_3\ttotals_4\thypothesis_length\t"
      "reference_length\n";
  for (const BleuStats& s : sentences) {
    text += fmt::format("{}\t{}\t{}\t{}\n", fmt::join(s.matches, "\t"), fmt::join(s.totals, "\t"), s.hypothesis_length,
                        s.reference_length);
  }
  return text;
}

}  // namespace tearless::engine
