// How often each test rejects, at 5 %, cells and systems that are equal, and how often ones that differ: the tables of
// docs/statistics.md. TEARLESS_SEED=N draws others.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/math/distributions/non_central_t.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "base/score/bleu.h"
#include "base/score/measures.h"
#include "harness/statistics/difference.h"
#include "harness/statistics/power.h"
#include "harness/statistics/sentence_test.h"
#include "harness/statistics/sign_flip.h"
#include "harness/statistics/superiority.h"

namespace tearless::harness::simulation_test {
namespace {

constexpr double kLevel = 0.05;

uint64_t simulation_seed() {
  const char* asked = std::getenv("TEARLESS_SEED");
  const uint64_t seed = asked ? std::stoull(asked) : 2026;
  fmt::print("TEARLESS_SEED={}\n", seed);
  return seed;
}

/// Four standard deviations of a share of so many trials.
double error_of(double share, int trials) { return 4 * std::sqrt(share * (1 - share) / trials); }

/// Two cells of n runs with the standard deviation 1, whose seeds have this correlation.
struct Cells {
  std::vector<SeedValue> a, b;

  Cells(size_t n, double difference, double correlation, std::mt19937_64& random) {
    std::normal_distribution<double> normal;
    for (size_t i = 0; i < n; ++i) {
      const double shared = std::sqrt(correlation) * normal(random), own = std::sqrt(1 - correlation);
      a.push_back({static_cast<int64_t>(i), 27 + difference + shared + own * normal(random)});
      b.push_back({static_cast<int64_t>(i), 27 + shared + own * normal(random)});
    }
  }
};

/// The share of trials in which `rejects` holds.
double share_of(int trials, const std::function<bool()>& rejects) {
  int count = 0;
  for (int i = 0; i < trials; ++i) count += rejects();
  return static_cast<double>(count) / trials;
}

/// How often a two-sided t test rejects where the mean is so many standard errors from 0.
double t_power(double errors, double degrees) {
  const double limit = boost::math::quantile(boost::math::students_t(degrees), 1 - kLevel / 2);
  const boost::math::non_central_t t(degrees, errors);
  return boost::math::cdf(boost::math::complement(t, limit)) + boost::math::cdf(t, -limit);
}

TEST(Simulation, OfTestsOverSeeds) {
  constexpr int kTrials = 20'000;
  std::mt19937_64 random(simulation_seed());
  const auto paired_p = [](const Cells& cells) { return paired_difference(cells.a, cells.b)->p(); };
  const auto welch_p = [](const Cells& cells) {
    return welch_difference(numbers_of(cells.a), numbers_of(cells.b))->p();
  };
  const auto flip_p = [](const Cells& cells) { return *sign_flip_p(cells.a, cells.b); };
  const auto share = [&](size_t n, double difference, double correlation, auto p_of) {
    return share_of(kTrials, [&] { return p_of(Cells(n, difference, correlation, random)) <= kLevel; });
  };
  fmt::print("| seeds | correlation | test | equal cells | cells that differ by 1.5 s |\n|---:|---:|---|---:|---:|\n");
  for (const size_t n : {3, 5, 6, 10}) {
    for (const double correlation : {0.0, 0.5}) {
      const auto print = [&](const char* test, double equal, double power) {
        fmt::print("| {} | {} | {} | {:.1f} % | {:.1f} % |\n", n, correlation, test, 100 * equal, 100 * power);
      };
      const auto seeds = static_cast<double>(n);

      const double paired = share(n, 0, correlation, paired_p), paired_power = share(n, 1.5, correlation, paired_p);
      print("paired t", paired, paired_power);
      EXPECT_NEAR(paired, kLevel, error_of(kLevel, kTrials));
      const double exact = t_power(1.5 * std::sqrt(seeds / (2 - 2 * correlation)), seeds - 1);
      EXPECT_NEAR(paired_power, exact, error_of(exact, kTrials));

      const double welch = share(n, 0, correlation, welch_p), welch_power = share(n, 1.5, correlation, welch_p);
      print("Welch", welch, welch_power);
      EXPECT_LE(welch, kLevel + error_of(kLevel, kTrials));
      if (correlation == 0) {
        EXPECT_GE(welch, 0.03);  // its degrees of freedom are those of the t test or fewer
        EXPECT_LE(welch_power, t_power(1.5 * std::sqrt(seeds / 2), 2 * seeds - 2) + error_of(0.5, kTrials));
        EXPECT_GE(welch_power, t_power(1.5 * std::sqrt(seeds / 2), 2 * seeds - 2) - 0.08);
      }

      const double flip = share(n, 0, correlation, flip_p), flip_power = share(n, 1.5, correlation, flip_p);
      print("sign-flip", flip, flip_power);
      const double least = least_sign_flip_p(n);
      const double attained = std::floor(kLevel / least) * least;  // p is a multiple of the least, each equally likely
      EXPECT_NEAR(flip, attained, error_of(attained, kTrials));
      if (least > kLevel) {
        EXPECT_EQ(flip_power, 0);
      }
    }
  }
}

TEST(Simulation, OfTheSmallestDifferenceThatIsFoundWithEightyPerCent) {
  constexpr int kTrials = 20'000;
  std::mt19937_64 random(simulation_seed());
  fmt::print("| seeds | difference | found by Student's t | by Welch |\n|---:|---:|---:|---:|\n");
  for (const size_t n : {2, 3, 4, 5, 10}) {
    const double difference = *detectable_difference(1, n);
    const double student = t_power(difference * std::sqrt(static_cast<double>(n) / 2), 2 * static_cast<double>(n) - 2);
    const double welch = share_of(kTrials, [&] {
      const Cells cells(n, difference, 0, random);
      return welch_difference(numbers_of(cells.a), numbers_of(cells.b))->p() <= kLevel;
    });
    fmt::print("| {} | {:.1f} s | {:.1f} % | {:.1f} % |\n", n, difference, 100 * student, 100 * welch);
    EXPECT_NEAR(student, 0.8, n == 2 ? 0.04 : 0.015) << n;  // the formula is an approximation
    EXPECT_LE(welch, student + error_of(0.8, kTrials)) << n;
    EXPECT_GE(welch, n == 2 ? 0.4 : student - 0.12) << n;  // its degrees of freedom are fewer
  }
}

TEST(Simulation, OfIntervalsOfSuperiority) {
  constexpr int kTrials = 4'000;
  std::mt19937_64 random(simulation_seed());
  fmt::print("| runs each | equal cells significant | P = 0.76: significant |\n|---:|---:|---:|\n");
  for (const size_t n : {3, 5, 10, 29}) {
    const auto share = [&](double difference) {
      return share_of(kTrials, [&] {
        const Cells cells(n, difference, 0, random);
        const auto seed = static_cast<uint64_t>(random());
        return superiority(numbers_of(cells.a), numbers_of(cells.b), {.samples = 400, .seed = seed})->interval.first >
               0.5;
      });
    };
    const double equal = share(0), better = share(1);
    fmt::print("| {} | {:.1f} % | {:.1f} % |\n", n, 100 * equal, 100 * better);
    EXPECT_LE(equal, kLevel / 2 + error_of(kLevel / 2, kTrials) + (n > kFewRuns ? 0.01 : 0)) << n;  // of one side
  }
}

/// The sentences of a test set: each has a length and a difficulty.
struct TestSet {
  struct Sentence {
    int words;
    double share;  // of words that are right
  };
  std::vector<Sentence> sentences;

  TestSet(size_t size, std::mt19937_64& random) {
    std::uniform_int_distribution<int> words(5, 30);
    std::normal_distribution<double> normal;
    for (size_t i = 0; i < size; ++i) sentences.push_back({words(random), 0.6 + 0.15 * normal(random)});
  }

  /// What a run makes of them that is better by so much: n-grams match where all of their words are right.
  SentenceStats translate(double better, std::mt19937_64& random) const {
    std::uniform_real_distribution<double> uniform;
    std::uniform_int_distribution<int> longer(-1, 1);
    SentenceStats stats = {.columns = BleuStats::columns()};
    for (const Sentence& sentence : sentences) {
      const int length = sentence.words + longer(random);
      BleuStats one = {.hypothesis_length = length, .reference_length = sentence.words};
      int right = 0;  // words in a row
      for (int i = 0; i < length; ++i) {
        right = uniform(random) < sentence.share + better ? right + 1 : 0;
        for (int n = 1; n <= 4; ++n) {
          one.totals.at(static_cast<size_t>(n - 1)) += i + 1 >= n;
          one.matches.at(static_cast<size_t>(n - 1)) += right >= n;
        }
      }
      stats.rows.push_back(one.numbers());
    }
    return stats;
  }
};

struct Rates {
  double randomisation = 0, bootstrap = 0, sacrebleu = 0;
  double over_seeds = 0;  // the paired t test of the runs' scores
};

bool is_told_apart_over_seeds(const SentencePairs& pairs) {
  std::vector<SeedValue> differences, none;
  for (const double difference : pairs.differences()) {
    const auto seed = static_cast<int64_t>(none.size());
    differences.push_back({seed, difference});
    none.push_back({seed, 0});
  }
  const auto difference = paired_difference(differences, none);
  return difference && difference->p() <= kLevel;
}

/// Of trials with a new test set and new runs each: how often two systems are told apart that differ by `better`, and
/// whose runs differ among themselves by a normal variable with the deviation `of_runs`.
Rates rates_of(size_t sentences, size_t seeds, double better, double of_runs, int trials, std::mt19937_64& random) {
  const ScoreOfSums score = score_of_sums("test.sacrebleu", BleuStats::columns(), "");
  std::normal_distribution<double> normal;
  Rates rates;
  for (int trial = 0; trial < trials; ++trial) {
    const TestSet set(sentences, random);
    std::vector<SentenceStats> runs;
    for (size_t i = 0; i < 2 * seeds; ++i)
      runs.push_back(set.translate((i % 2 == 0 ? better : 0) + of_runs * normal(random), random));
    std::vector<SentencePairs::Runs> by_seed;
    for (size_t i = 0; i < 2 * seeds; i += 2) by_seed.push_back({runs[i], runs[i + 1]});
    const SentencePairs pairs(by_seed, score);
    const Sampling sampling = {.samples = 1000, .seed = static_cast<uint64_t>(random())};
    rates.randomisation += randomisation_p(pairs, sampling) <= kLevel;
    rates.bootstrap += bootstrap_p(pairs, sampling) <= kLevel;
    rates.sacrebleu += sacrebleu_bootstrap_p(pairs, sampling) <= kLevel;
    rates.over_seeds += is_told_apart_over_seeds(pairs);
  }
  for (double* rate : {&rates.randomisation, &rates.bootstrap, &rates.sacrebleu, &rates.over_seeds}) *rate /= trials;
  return rates;
}

TEST(Simulation, OfTestsOverSentences) {
  constexpr int kTrials = 2'000;
  constexpr size_t kSentences = 200;
  constexpr double kBetter = 0.02, kOfRuns = 0.01;  // of the share of words that are right
  std::mt19937_64 random(simulation_seed());
  fmt::print("| seeds | systems | randomisation | bootstrap | as sacreBLEU | t over seeds |\n");
  fmt::print("|---:|---|---:|---:|---:|---:|\n");
  const auto rates = [&](const char* systems, size_t seeds, double better, double of_runs, int trials) {
    const Rates rates = rates_of(kSentences, seeds, better, of_runs, trials, random);
    fmt::print("| {} | {} | {:.1f} % | {:.1f} % | {:.1f} % | {} |\n", seeds, systems, 100 * rates.randomisation,
               100 * rates.bootstrap, 100 * rates.sacrebleu,
               seeds > 1 ? fmt::format("{:.1f} %", 100 * rates.over_seeds) : "");
    return rates;
  };
  for (const size_t seeds : {1, 5}) {
    const Rates equal = rates("equal", seeds, 0, 0, kTrials);
    EXPECT_NEAR(equal.randomisation, kLevel, error_of(kLevel, kTrials));
    EXPECT_GE(equal.bootstrap, kLevel - error_of(kLevel, kTrials));
    EXPECT_LE(equal.bootstrap, 0.06 + error_of(0.06, kTrials));  // of few sentences its spread is a little too small
    EXPECT_GE(equal.sacrebleu, 0.10 - error_of(0.10, kTrials));
    EXPECT_LE(equal.sacrebleu, 0.12 + error_of(0.12, kTrials));

    const Rates differ = rates("one is better", seeds, kBetter, 0, kTrials / 4);
    EXPECT_NEAR(differ.bootstrap, differ.randomisation, 0.06);
    EXPECT_GE(differ.sacrebleu, differ.bootstrap);
    EXPECT_GT(differ.randomisation, seeds == 1 ? 0.2 : 0.5);

    // Equal methods whose runs differ: tests over sentences compare these runs, and find them different.
    const Rates runs = rates("equal, but their runs differ", seeds, 0, kOfRuns, kTrials / 4);
    EXPECT_GT(runs.randomisation, 0.1);
    for (const Rates& rates : {equal, runs}) {
      EXPECT_LE(rates.over_seeds, kLevel + error_of(kLevel, kTrials / 4));
      EXPECT_GE(rates.over_seeds, seeds == 1 ? 0 : 0.01);
    }
  }
}

}  // namespace
}  // namespace tearless::harness::simulation_test
