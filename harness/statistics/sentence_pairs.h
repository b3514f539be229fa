// The sentences of two systems on one test set, by their statistics (base/score/sentence_stats.h), for tests over
// sentences. Systems may have several runs each: their sentences are paired by seed, and the difference Δ is the mean
// over the seeds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/score/measures.h"
#include "base/score/sentence_stats.h"

namespace tearless::harness {

/// Why a test over sentences cannot compare the two, as the end of a message that names them; "" if it can.
std::string why_incomparable(const SentenceStats& one, const SentenceStats& other);

/// Adds equally many numbers to `sums`.
inline void add(std::span<const int64_t> numbers, std::span<int64_t> sums) {
  for (size_t i = 0; i < numbers.size(); ++i) sums[i] += numbers[i];
}

/// The sentences of two systems.
class SentencePairs {
 public:
  /// What the runs of one seed have. Borrowed by the constructor alone.
  struct Runs {
    const SentenceStats& a;
    const SentenceStats& b;
  };

  /// REQUIRES: one seed or more, and that any two of the statistics are comparable.
  SentencePairs(std::span<const Runs> seeds, ScoreOfSums score);

  size_t seeds() const { return seeds_; }
  size_t sentences() const { return sentences_; }
  size_t columns() const { return columns_; }
  /// Of one sentence: for each seed the columns of a, then those of b.
  std::span<const int64_t> sentence(size_t index) const {
    return std::span(numbers_).subspan(index * width(), width());
  }
  /// The sums over all sentences, in the same order.
  std::vector<int64_t> sums() const;

  /// score(a) − score(b) of the sums that one seed has: the columns of a, then those of b.
  double difference_of(std::span<const int64_t> sums) const;
  /// The mean of these over the seeds, of the sums that sums() has or of others in the same order.
  double mean_difference(std::span<const int64_t> sums) const;

  std::vector<double> differences() const;                       ///< score(a) − score(b) of each seed
  double difference() const { return mean_difference(sums()); }  ///< Δ
  /// How far apart two differences of these systems may be by rounding errors alone.
  double rounding() const;

 private:
  size_t width() const { return seeds_ * 2 * columns_; }

  size_t seeds_, sentences_, columns_;
  ScoreOfSums score_;
  std::vector<int64_t> numbers_;
};

}  // namespace tearless::harness
