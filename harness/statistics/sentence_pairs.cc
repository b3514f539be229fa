#include "harness/statistics/sentence_pairs.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/utf8.h"
#include "harness/statistics/rounding.h"

namespace tearless::harness {
namespace {

constexpr size_t kMinSentences = 2;

std::string listed(const std::vector<std::string>& columns) {
  return printable(fmt::format("{}", fmt::join(columns, ", ")));
}

}  // namespace

std::string why_incomparable(const SentenceStats& one, const SentenceStats& other) {
  if (one.columns != other.columns) {
    return fmt::format("one has the columns {}, the other {}", listed(one.columns), listed(other.columns));
  }
  const size_t n = one.rows.size();
  if (n != other.rows.size()) return fmt::format("one has {} sentences, the other {}", n, other.rows.size());
  if (n >= kMinSentences) return "";
  return fmt::format("a test over sentences needs {} or more, and there {} {}", kMinSentences, n == 1 ? "is" : "are",
                     n);
}

SentencePairs::SentencePairs(std::span<const Runs> seeds, ScoreOfSums score)
    : seeds_(seeds.size()),
      sentences_(seeds.front().a.rows.size()),
      columns_(seeds.front().a.columns.size()),
      score_(std::move(score)) {
  numbers_.reserve(sentences_ * width());
  for (size_t i = 0; i < sentences_; ++i) {
    for (const Runs& runs : seeds) {
      for (const SentenceStats* stats : {&runs.a, &runs.b})
        numbers_.insert(numbers_.end(), stats->rows[i].begin(), stats->rows[i].end());
    }
  }
}

std::vector<int64_t> SentencePairs::sums() const {
  std::vector<int64_t> sums(width());
  for (size_t i = 0; i < sentences_; ++i) add(sentence(i), sums);
  return sums;
}

double SentencePairs::difference_of(std::span<const int64_t> sums) const {
  return score_(sums.first(columns_)) - score_(sums.last(columns_));
}

double SentencePairs::mean_difference(std::span<const int64_t> sums) const {
  double total = 0;
  for (size_t seed = 0; seed < seeds_; ++seed) total += difference_of(sums.subspan(seed * 2 * columns_, 2 * columns_));
  return total / static_cast<double>(seeds_);
}

std::vector<double> SentencePairs::differences() const {
  const std::vector<int64_t> all = sums();
  std::vector<double> differences;
  for (size_t seed = 0; seed < seeds_; ++seed)
    differences.push_back(difference_of(std::span(all).subspan(seed * 2 * columns_, 2 * columns_)));
  return differences;
}

double SentencePairs::rounding() const {
  const std::vector<int64_t> all = sums();
  double greatest = 0;
  for (size_t first = 0; first < all.size(); first += columns_)
    greatest = std::max(greatest, std::abs(score_(std::span(all).subspan(first, columns_))));
  return kRounding * greatest;
}

}  // namespace tearless::harness
