#include "harness/statistics/sentence_test.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>
#include <vector>

#include "harness/statistics/stats.h"

namespace tearless::harness {
namespace {

/// (count + 1) / (samples + 1), where those count that are as far from 0 as `difference` or farther. One that is not a
/// number counts, so that it cannot make a difference significant.
double share_as_extreme(std::span<const double> samples, double difference, double rounding, Alternative alternative) {
  const auto strength = [alternative](double value) {
    if (alternative == Alternative::kTwoSided) return std::abs(value);
    return alternative == Alternative::kGreater ? value : -value;
  };
  const double limit = strength(difference) - rounding;
  const auto count = std::ranges::count_if(samples, [&](double sample) { return !(strength(sample) < limit); });
  return static_cast<double>(count + 1) / static_cast<double>(samples.size() + 1);
}

/// Sums of a − b over random halves of the sentences of one seed, for each sample. Sentences are added eight at a time:
/// a random byte picks one of the 256 sums that eight sentences can make.
class RandomHalves {
 public:
  RandomHalves(const SentencePairs& pairs, size_t samples)
      : pairs_(pairs), columns_(pairs.columns()), subsets_(kSubsets * columns_), sums_(samples * columns_) {}

  void draw(size_t seed, Random& random) {
    std::ranges::fill(sums_, 0);
    for (size_t first = 0; first < pairs_.sentences(); first += kTogether) {
      set_subsets(seed, first);
      uint64_t bits = 0;
      for (size_t i = 0; i < sums_.size() / columns_; ++i, bits >>= 8) {
        if (i % 8 == 0) bits = random.bits();
        add(std::span(subsets_).subspan((bits & 0xff) * columns_, columns_),
            std::span(sums_).subspan(i * columns_, columns_));
      }
    }
  }
  std::span<const int64_t> sums(size_t sample) const { return std::span(sums_).subspan(sample * columns_, columns_); }

 private:
  static constexpr size_t kTogether = 8, kSubsets = 256;

  /// The sums of all subsets of eight sentences: each is a smaller one and its lowest sentence.
  void set_subsets(size_t seed, size_t first) {
    for (size_t subset = 1; subset < kSubsets; ++subset) {
      const size_t smaller = subset & (subset - 1), index = first + static_cast<size_t>(std::countr_zero(subset));
      int64_t* sum = &subsets_[subset * columns_];
      std::copy_n(&subsets_[smaller * columns_], columns_, sum);
      if (index >= pairs_.sentences()) continue;
      const std::span<const int64_t> a = pairs_.sentence(index).subspan(seed * 2 * columns_, 2 * columns_);
      for (size_t i = 0; i < columns_; ++i) sum[i] += a[i] - a[columns_ + i];
    }
  }

  const SentencePairs& pairs_;
  size_t columns_;
  std::vector<int64_t> subsets_, sums_;
};

/// Δ of samples of sentences, drawn with replacement.
std::vector<double> bootstrap(const SentencePairs& pairs, const Sampling& sampling) {
  Random random(sampling.seed);
  std::vector<double> differences(static_cast<size_t>(sampling.samples));
  std::vector<int64_t> sums(pairs.sentence(0).size());
  for (double& difference : differences) {
    std::ranges::fill(sums, 0);
    for (size_t i = 0; i < pairs.sentences(); ++i) add(pairs.sentence(random.below(pairs.sentences())), sums);
    difference = pairs.mean_difference(sums);
  }
  return differences;
}

}  // namespace

double randomisation_p(const SentencePairs& pairs, const Sampling& sampling, Alternative alternative) {
  const auto samples = static_cast<size_t>(sampling.samples);
  const size_t columns = pairs.columns();
  const std::vector<int64_t> all = pairs.sums();
  std::vector<int64_t> sums(2 * columns);
  std::vector<double> differences(samples);
  Random random(sampling.seed);
  RandomHalves swapped(pairs, samples);
  for (size_t seed = 0; seed < pairs.seeds(); ++seed) {
    swapped.draw(seed, random);
    const std::span<const int64_t> own = std::span(all).subspan(seed * 2 * columns, 2 * columns);
    for (size_t i = 0; i < samples; ++i) {
      const std::span<const int64_t> moved = swapped.sums(i);
      for (size_t k = 0; k < columns; ++k) {
        sums[k] = own[k] - moved[k];
        sums[columns + k] = own[columns + k] + moved[k];
      }
      differences[i] += pairs.difference_of(sums) / static_cast<double>(pairs.seeds());
    }
  }
  return share_as_extreme(differences, pairs.difference(), pairs.rounding(), alternative);
}

double bootstrap_p(const SentencePairs& pairs, const Sampling& sampling, Alternative alternative) {
  const double difference = pairs.difference();
  std::vector<double> differences = bootstrap(pairs, sampling);
  for (double& sample : differences) sample -= difference;
  return share_as_extreme(differences, difference, pairs.rounding(), alternative);
}

double sacrebleu_bootstrap_p(const SentencePairs& pairs, const Sampling& sampling) {
  std::vector<double> magnitudes = bootstrap(pairs, sampling);
  for (double& sample : magnitudes) sample = std::abs(sample);
  const double limit = std::abs(pairs.difference()) + *mean(magnitudes);
  const auto count = std::ranges::count_if(magnitudes, [&](double magnitude) { return magnitude > limit; });
  return static_cast<double>(count + 1) / static_cast<double>(sampling.samples + 1);
}

double bootstrap_variance(const SentencePairs& pairs, const Sampling& sampling) {
  const double deviation = *sample_deviation(bootstrap(pairs, sampling));
  return deviation * deviation;
}

double TwoSources::standard_error() const { return std::sqrt(seeds + sentences); }

std::optional<TwoSources> two_sources(const SentencePairs& pairs, const Sampling& sampling) {
  const std::optional<double> deviation = sample_deviation(pairs.differences());
  if (!deviation) return std::nullopt;
  return TwoSources{.seeds = *deviation * *deviation / static_cast<double>(pairs.seeds()),
                    .sentences = bootstrap_variance(pairs, sampling)};
}

}  // namespace tearless::harness
