// Tests over sentences: against counts made by hand, exact distributions, and p values of sacreBLEU 2.6.
#include "harness/statistics/sentence_test.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/score/bleu.h"
#include "tests/support/paths.h"
#include "tests/support/sanitized.h"

namespace tearless::harness::sentence_test_test {
namespace {

using testing::ElementsAre;

/// Right and wrong answers: '1' and '0'.
SentenceStats answers(const std::string& right) {
  SentenceStats stats = {.columns = accuracy_columns()};
  for (const char one : right) stats.rows.push_back({one - '0', 1});
  return stats;
}

const ScoreOfSums kAccuracy = [](std::span<const int64_t> sums) { return accuracy(sums[0], sums[1]); };

SentencePairs of_one_seed(const std::string& a, const std::string& b) {
  const SentenceStats stats_a = answers(a), stats_b = answers(b);
  return SentencePairs(std::vector<SentencePairs::Runs>{{stats_a, stats_b}}, kAccuracy);
}

constexpr int64_t kSamples = test::kSanitized ? 2'000 : 10'000;  // of the bootstrap

/// Four standard deviations of a share of so many samples.
double error_of(double p, double samples) { return 4 * std::sqrt(p * (1 - p) / samples) + 1 / samples; }

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

TEST(SentencePairs, HaveTheDifferenceOfTheScoresOfTheirSumsInTheMeanOfTheSeeds) {
  const SentenceStats a1 = answers("1110"), b1 = answers("1000"), a2 = answers("1111"), b2 = answers("0111");
  const SentencePairs pairs(std::vector<SentencePairs::Runs>{{a1, b1}, {a2, b2}}, kAccuracy);
  EXPECT_EQ(pairs.seeds(), 2);
  EXPECT_EQ(pairs.sentences(), 4);
  EXPECT_THAT(pairs.differences(), ElementsAre(50, 25));
  EXPECT_DOUBLE_EQ(pairs.difference(), 37.5);
  EXPECT_THAT(pairs.sums(), ElementsAre(3, 4, 1, 4, 4, 4, 3, 4));
}

TEST(WhyIncomparable, SaysWhatDiffers) {
  EXPECT_EQ(why_incomparable(answers("10"), answers("01")), "");
  EXPECT_EQ(why_incomparable(answers("101"), answers("01")), "one has 3 sentences, the other 2");
  SentenceStats bits = {.columns = {"microbits", "symbols"}, .rows = {{1, 1}, {2, 1}}};
  EXPECT_EQ(why_incomparable(answers("10"), bits),
            "one has the columns correct, examples, the other microbits, symbols");
  EXPECT_EQ(why_incomparable(answers("1"), answers("0")), "a test over sentences needs 2 or more, and there is 1");
  EXPECT_EQ(why_incomparable(answers(""), answers("")), "a test over sentences needs 2 or more, and there are 0");
}

// Sentences that both have right or wrong do not count. Of ten others a has eight: P(|2k − 10| ≥ 6) of the binomial
// distribution with n = 10 is 2 (1 + 10 + 45) / 1024.
TEST(Randomisation, IsTheBinomialTestOfAnswersThatDiffer) {
  const SentencePairs pairs = of_one_seed(repeated("01", 20) + "1111111100", repeated("01", 20) + "0000000011");
  constexpr double kExact = 112.0 / 1024;
  for (const uint64_t seed : {1, 2, 3}) {
    EXPECT_NEAR(randomisation_p(pairs, {.seed = seed}), kExact, error_of(kExact, 10'000)) << "seed " << seed;
  }
}

TEST(Randomisation, OneSidedCountsOneSideAlone) {
  const SentencePairs pairs = of_one_seed("1111111100", "0000000011"),
                      opposite = of_one_seed("0000000011", "1111111100");
  constexpr double kUpper = 56.0 / 1024, kLower = 1013.0 / 1024;  // P(k ≥ 8), P(k ≤ 8)
  const auto p = [](const SentencePairs& of, Alternative alternative) { return randomisation_p(of, {}, alternative); };
  EXPECT_NEAR(p(pairs, Alternative::kGreater), kUpper, error_of(kUpper, 10'000));
  EXPECT_NEAR(p(pairs, Alternative::kLess), kLower, error_of(kLower, 10'000));
  EXPECT_NEAR(p(opposite, Alternative::kLess), kUpper, error_of(kUpper, 10'000));
  EXPECT_NEAR(p(opposite, Alternative::kGreater), kLower, error_of(kLower, 10'000));
}

// Six sentences of one seed and four of another differ, eight of the ten in favour of a: if all ten are swapped by
// themselves, this is the test above.
TEST(Randomisation, SwapsEachSeedByItself) {
  const SentenceStats a1 = answers("1111100000"), b1 = answers("0000010000");
  const SentenceStats a2 = answers("1110000000"), b2 = answers("0001000000");
  constexpr double kExact = 112.0 / 1024;
  for (const auto& seeds : {std::vector<SentencePairs::Runs>{{a1, b1}, {a2, b2}}, {{a2, b2}, {a1, b1}}}) {
    EXPECT_NEAR(randomisation_p(SentencePairs(seeds, kAccuracy)), kExact, error_of(kExact, 10'000));
  }
}

// Numbers of sentences that are not, are and exceed a multiple of eight: all of them are swapped.
TEST(Randomisation, SwapsEverySentence) {
  for (const int n : {2, 3, 7, 8, 9, 15, 16, 17}) {
    const SentencePairs pairs =
        of_one_seed(std::string(static_cast<size_t>(n), '1'), std::string(static_cast<size_t>(n), '0'));
    const double exact = std::ldexp(1, -n);  // none is swapped
    EXPECT_NEAR(randomisation_p(pairs, {.samples = 100'000}, Alternative::kGreater), exact, error_of(exact, 100'000))
        << n;
  }
}

TEST(Randomisation, AddsOneToCountAndSamples) {
  const SentencePairs apart = of_one_seed(std::string(100, '1'), std::string(100, '0'));
  EXPECT_DOUBLE_EQ(randomisation_p(apart, {.samples = 999}), 1e-3);
  EXPECT_DOUBLE_EQ(bootstrap_p(apart, {.samples = 999}), 1e-3);
  EXPECT_DOUBLE_EQ(sacrebleu_bootstrap_p(apart, {.samples = 999}), 1e-3);
}

TEST(Randomisation, OfEqualSystemsIsOne) {
  const SentencePairs same = of_one_seed("10101", "10101");
  EXPECT_EQ(randomisation_p(same), 1);
  EXPECT_EQ(bootstrap_p(same), 1);
  EXPECT_EQ(bootstrap_variance(same), 0);
}

// Sums of thirds: samples that tie with Δ differ from it by rounding errors. Seeds of one sentence that differs:
// all differences ± 1/3 %, |Σ| ≥ 1/3 always.
TEST(Randomisation, CountsTiesOfDifferentSeeds) {
  const std::string base = repeated("10", 149);  // 300 sentences with the two below
  const SentenceStats one = answers(base + "11"), none = answers(base + "10"), other = answers(base + "01");
  const SentencePairs pairs(std::vector<SentencePairs::Runs>{{one, none}, {none, one}, {one, other}}, kAccuracy);
  EXPECT_EQ(randomisation_p(pairs), 1);
}

TEST(Randomisation, GivesTheSamePOnEveryMachine) {
  const SentencePairs pairs = of_one_seed("110101101110011010", "010110001010011001");
  EXPECT_DOUBLE_EQ(randomisation_p(pairs, {.samples = 1000, .seed = 7}), 443.0 / 1001);
  EXPECT_DOUBLE_EQ(bootstrap_p(pairs, {.samples = 1000, .seed = 7}), 326.0 / 1001);
  EXPECT_NE(randomisation_p(pairs, {.samples = 1000, .seed = 8}), 443.0 / 1001);
  EXPECT_NE(bootstrap_p(pairs, {.samples = 1000, .seed = 8}), 326.0 / 1001);
}

TEST(Randomisation, ANumberThatIsNoneMakesNothingSignificant) {
  const ScoreOfSums undefined = [](std::span<const int64_t> sums) {
    return sums[0] % 2 == 1 ? std::numeric_limits<double>::quiet_NaN() : static_cast<double>(sums[0]);
  };
  const SentenceStats a = answers("1111111111"), b = answers("0000000000");
  const SentencePairs pairs(std::vector<SentencePairs::Runs>{{a, b}}, undefined);
  EXPECT_GT(randomisation_p(pairs), 0.4);
}

/// The distribution of the sum of n draws, of which each is 1 or −1 with these probabilities, else 0.
std::map<int, double> sums_of_draws(int n, double plus, double minus) {
  std::map<int, double> sums = {{0, 1}};
  for (int i = 0; i < n; ++i) {
    std::map<int, double> next;
    for (const auto& [sum, probability] : sums) {
      next[sum + 1] += probability * plus;
      next[sum - 1] += probability * minus;
      next[sum] += probability * (1 - plus - minus);
    }
    sums = std::move(next);
  }
  return sums;
}

/// Of 200 sentences 14 are for the one system and 6 for the other: a resample is 200 draws.
struct FourteenToSix {
  std::string one = repeated("0", 180) + std::string(14, '1') + "000000";
  std::string other = repeated("0", 180) + std::string(14, '0') + "111111";
  std::map<int, double> sums = sums_of_draws(200, 14.0 / 200, 6.0 / 200);

  double share(const std::function<bool(int)>& of) const {
    double share = 0;
    for (const auto& [sum, probability] : sums) share += of(sum) ? probability : 0;
    return share;
  }
};

TEST(Bootstrap, IsCentredBeforeItsMagnitudeIsTaken) {
  const FourteenToSix systems;
  const double exact = systems.share([](int sum) { return std::abs(sum - 8) >= 8; });
  EXPECT_NEAR(bootstrap_p(of_one_seed(systems.one, systems.other), {.samples = kSamples}), exact,
              error_of(exact, kSamples));
  EXPECT_NEAR(bootstrap_p(of_one_seed(systems.other, systems.one), {.samples = kSamples}), exact,
              error_of(exact, kSamples));
}

TEST(Bootstrap, OneSidedCountsOneSideAlone) {
  const FourteenToSix systems;
  const SentencePairs forth = of_one_seed(systems.one, systems.other), back = of_one_seed(systems.other, systems.one);
  const double upper = systems.share([](int sum) { return sum - 8 >= 8; });
  const double lower = systems.share([](int sum) { return sum - 8 <= 8; });
  EXPECT_NEAR(bootstrap_p(forth, {.samples = kSamples}, Alternative::kGreater), upper, error_of(upper, kSamples));
  EXPECT_NEAR(bootstrap_p(forth, {.samples = kSamples}, Alternative::kLess), lower, error_of(lower, kSamples));
  EXPECT_NEAR(bootstrap_p(back, {.samples = kSamples}, Alternative::kLess), upper, error_of(upper, kSamples));
  EXPECT_NEAR(bootstrap_p(back, {.samples = kSamples}, Alternative::kGreater), lower, error_of(lower, kSamples));
}

TEST(SacrebleuBootstrap, IsCentredAfterItsMagnitudeIsTaken) {
  const FourteenToSix systems;
  double mean = 0;
  for (const auto& [sum, probability] : systems.sums) mean += std::abs(sum) * probability;
  const double exact = systems.share([&](int sum) { return std::abs(sum) - mean > 8; });
  for (const SentencePairs& pairs :
       {of_one_seed(systems.one, systems.other), of_one_seed(systems.other, systems.one)}) {
    EXPECT_NEAR(sacrebleu_bootstrap_p(pairs, {.samples = kSamples}), exact, error_of(exact, kSamples));
  }
}

// sacreBLEU counts what exceeds the difference: "a zero difference should not be attributed to chance".
TEST(SacrebleuBootstrap, OfEqualSystemsHasTheLeastPAsThere) {
  EXPECT_DOUBLE_EQ(sacrebleu_bootstrap_p(of_one_seed("10101", "10101")), 1.0 / 1001);
}

// The variance of the mean of n differences is Σ(d − d̄)² / n². Two seeds with the same sentences have that of one; were
// sentences drawn for each seed by itself, it would be half.
TEST(Bootstrap, DrawsTheSameSentencesForBothSystemsAndAllSeeds) {
  const SentenceStats a = answers(repeated("1110", 25)), b = answers(repeated("1001", 25));
  const SentencePairs once(std::vector<SentencePairs::Runs>{{a, b}}, kAccuracy);
  const SentencePairs twice(std::vector<SentencePairs::Runs>{{a, b}, {a, b}}, kAccuracy);
  // In percent: differences 0, 1, 1, −1 with the mean ¼. Drawn for each system by itself it would be 0.4375 / 100.
  const double exact = 1e4 * (0.75 - 0.25 * 0.25) / 100;
  EXPECT_NEAR(bootstrap_variance(once), exact, 0.06 * exact);  // a variance of 10,000 samples has an error of 1.4 %
  EXPECT_DOUBLE_EQ(bootstrap_variance(twice), bootstrap_variance(once));
}

TEST(TwoSources, AddTheSquaredErrorsOfSeedsAndSentences) {
  const SentenceStats a = answers(repeated("1110", 25)), b = answers(repeated("1001", 25));
  const SentenceStats c = answers(repeated("1111", 25)), d = answers(repeated("1000", 25));
  const SentencePairs pairs(std::vector<SentencePairs::Runs>{{a, b}, {c, d}}, kAccuracy);
  ASSERT_THAT(pairs.differences(), ElementsAre(25, 75));
  const TwoSources both = *two_sources(pairs);
  EXPECT_DOUBLE_EQ(both.seeds, 2 * 25 * 25 / 1.0 / 2);  // s² = 1250, of two seeds
  EXPECT_DOUBLE_EQ(both.sentences, bootstrap_variance(pairs));
  EXPECT_DOUBLE_EQ(both.standard_error(), std::sqrt(both.seeds + both.sentences));
  EXPECT_EQ(two_sources(SentencePairs(std::vector<SentencePairs::Runs>{{a, b}}, kAccuracy)), std::nullopt);
}

SentenceStats stats_of(const nlohmann::json& hypotheses, const nlohmann::json& references) {
  SentenceStats stats = {.columns = BleuStats::columns()};
  for (size_t i = 0; i < references.size(); ++i)
    stats.rows.push_back(bleu_stats(hypotheses[i].get<std::string>(), references[i].get<std::string>()).numbers());
  return stats;
}

// tools/make_golden_significance.py. Its p is of 1,000 samples, so two of them may be this far apart.
TEST(SacrebleuBootstrap, AgreesWithSacrebleuOnTenPairs) {
  const auto golden = nlohmann::json::parse(test::read_text(test::source_root() / "tests/golden/significance.json"));
  const SentenceStats baseline = stats_of(golden["baseline"], golden["references"]);
  const ScoreOfSums score = score_of_sums("test.sacrebleu", baseline.columns, "significance.json");
  int centred_differs = 0;
  ASSERT_EQ(golden["systems"].size(), 10);
  for (const auto& system : golden["systems"]) {
    const SentenceStats stats = stats_of(system["hypotheses"], golden["references"]);
    const SentencePairs pairs(std::vector<SentencePairs::Runs>{{stats, baseline}}, score);
    const auto expected = system["p"].get<double>();
    const double error = error_of(expected, 1'000) * std::sqrt(1 + 1000.0 / kSamples);
    EXPECT_NEAR(pairs.difference(), system["score"].get<double>() - golden["baseline_score"].get<double>(), 1e-9);
    EXPECT_NEAR(sacrebleu_bootstrap_p(pairs, {.samples = kSamples}), expected, error);
    centred_differs += std::abs(bootstrap_p(pairs, {.samples = kSamples}) - expected) > error;
  }
  EXPECT_GE(centred_differs, 5) << "the pairs do not tell one procedure from the other";
}

}  // namespace
}  // namespace tearless::harness::sentence_test_test
