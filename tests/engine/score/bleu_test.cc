// BLEU against hand-worked values, and against what multi-bleu.perl and sacreBLEU 2 printed for the same lines.
#include "base/score/bleu.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/score/tokenise.h"
#include "tests/support/paths.h"

namespace tearless::engine::bleu_test {
namespace {

/// As multi-bleu.perl prints it.
double printed(double bleu) { return std::strtod(fmt::format("{:.2f}", bleu).c_str(), nullptr); }

using Pairs = std::vector<std::pair<std::string, std::string>>;  // hypothesis, reference

BleuStats corpus_stats(const Pairs& pairs) {
  BleuStats sum;
  for (const auto& [hypothesis, reference] : pairs) sum += bleu_stats(hypothesis, reference);
  return sum;
}

BleuStats corpus_stats_13a(const Pairs& pairs) {
  BleuStats sum;
  for (const auto& [hypothesis, reference] : pairs)
    sum += bleu_stats(tokenise_13a(hypothesis), tokenise_13a(reference));
  return sum;
}

// Each line has something that splits words in one tool and not in another.
const Pairs kAwkward = {
    {"the cat sat on the mat .", "the cat sat on a mat ."},
    {"a b c d e f g h", "a b c d x f g h"},
    {"it costs 1,000.5 euros , does n't it ?", "it costs 1,000.5 euros , does it not ?"},
    {"gross und stark wie ein Bär", "groß und stark wie ein Bär"},
    {"one\u00a0word two\u2028words three\xC2\x85more and the rest of it",
     "one word two\u2028words three\xC2\x85more and the rest of it"},
    {"a line\rwith a carriage return inside it", "a line with a carriage return inside it"},
    {"  doubled   spaces here and there ", "doubled spaces here and there"},
};

TEST(Bleu, CountsClippedMatchesAsWorkedByHand) {
  // Papineni et al., example 2: "the" may match twice only.
  const BleuStats stats = bleu_stats("the the the the the the the", "the cat is on the mat");
  EXPECT_EQ(stats.matches, (std::array<int64_t, 4>{2, 0, 0, 0}));
  EXPECT_EQ(stats.totals, (std::array<int64_t, 4>{7, 6, 5, 4}));
  EXPECT_EQ(stats.hypothesis_length, 7);
  EXPECT_EQ(stats.reference_length, 6);
  EXPECT_EQ(bleu(stats), 0);
}

TEST(Bleu, IsTheGeometricMeanTimesTheBrevityPenalty) {
  // 6/7, 4/6, 2/5, 1/4 and no penalty.
  EXPECT_NEAR(bleu(bleu_stats("the cat sat on the mat .", "the cat sat on a mat .")),
              100 * std::pow(6. / 7 * 4 / 6 * 2 / 5 * 1 / 4, 0.25), 1e-9);
  // All of five words right, three missing: exp(1 - 8/5).
  EXPECT_NEAR(bleu(bleu_stats("a b c d e", "a b c d e f g h")), 100 * std::exp(1 - 8. / 5), 1e-9);
  // Longer than the reference: no penalty, and no reward.
  EXPECT_NEAR(bleu(bleu_stats("a b c d e", "a b c d")), 100 * std::pow(4. / 5 * 3 / 4 * 2 / 3 * 1 / 2, 0.25), 1e-9);
}

TEST(Bleu, AddsUpOverTheCorpusBeforeItDivides) {
  const BleuStats first = bleu_stats("a b c d", "a b c d");
  const BleuStats second = bleu_stats("x y", "x z");
  BleuStats sum = first;
  sum += second;
  EXPECT_EQ(sum.matches, (std::array<int64_t, 4>{5, 3, 2, 1}));
  EXPECT_EQ(sum.totals, (std::array<int64_t, 4>{6, 4, 2, 1}));
  EXPECT_NEAR(bleu(sum), 100 * std::pow(5. / 6 * 3 / 4, 0.25), 1e-9);
}

TEST(Bleu, IsZeroForNoTextAndForLinesOfFewerThanFourWords) {
  EXPECT_EQ(bleu(BleuStats{}), 0);
  EXPECT_EQ(bleu(bleu_stats("", "a b c d")), 0);
  EXPECT_EQ(bleu(bleu_stats("a b c d", "")), 0);
  EXPECT_EQ(bleu(bleu_stats("the cat sat", "the cat sat")), 0);
  EXPECT_EQ(bleu_exp_smoothed(BleuStats{}), 0);
  EXPECT_EQ(bleu_exp_smoothed(bleu_stats("the cat sat", "the cat sat")), 0);
  EXPECT_EQ(bleu_exp_smoothed(bleu_stats("a b c d e", "v w x y z")), 0);
}

TEST(Bleu, SplitsWordsWhereMultiBleuDoes) {
  EXPECT_EQ(bleu_stats("a\rb\tc\vd\fe", "").hypothesis_length, 5);
  EXPECT_EQ(bleu_stats("a\u00a0b\u2028c\xC2\x85"
                       "d\u3000e\x1c"
                       "f",
                       "")
                .hypothesis_length,
            1);
  EXPECT_EQ(bleu_stats("  a  b \r", "").hypothesis_length, 2);
}

TEST(Bleu, EqualsWhatMultiBleuPrintedForAwkwardLines) {
  const BleuStats stats = corpus_stats(kAwkward);
  EXPECT_EQ(stats.hypothesis_length, 51);
  EXPECT_EQ(stats.reference_length, 52);
  EXPECT_EQ(printed(bleu(stats)), 72.72);
  const std::vector<double> alone = {48.89, 50.00, 63.12, 75.98, 74.21, 100.00, 100.00};
  for (size_t i = 0; i < kAwkward.size(); ++i) {
    if (i == 3) continue;
    EXPECT_EQ(printed(bleu(corpus_stats({kAwkward[i]}))), alone[i]) << kAwkward[i].first;
  }
}

TEST(Bleu, EqualsWhatSacreBleuComputedForAwkwardLines) {
  const BleuStats stats = corpus_stats_13a(kAwkward);
  EXPECT_EQ(stats.matches, (std::array<int64_t, 4>{50, 39, 30, 22}));
  EXPECT_EQ(stats.totals, (std::array<int64_t, 4>{54, 47, 40, 33}));
  EXPECT_NEAR(bleu_exp_smoothed(stats), 78.72782428499096, 1e-9);
}

TEST(Bleu, HalvesThePrecisionOfEachOrderWithoutAMatchWhenSmoothed) {
  const BleuStats stats = bleu_stats("the cat sat on a mat", "a dog lay on one rug");
  ASSERT_EQ(stats.matches, (std::array<int64_t, 4>{2, 0, 0, 0}));
  EXPECT_NEAR(bleu_exp_smoothed(stats), 100 * std::pow(2. / 6 / (2 * 5) / (4 * 4) / (8 * 3), 0.25), 1e-9);
}

// Every seventh word of tst2013 left out. multi-bleu.perl: 62.46 and 62.12; sacreBLEU 13a: 63.998… and 62.165….
TEST(Bleu, EqualsTheScriptsOnARealTestSet) {
  TEARLESS_NEEDS_SHARED("data/iwslt15-en-vi/test.en");
  const std::vector<std::tuple<std::string, double, double>> expected = {{"test.en", 62.46, 63.998046603536196},
                                                                         {"test.vi", 62.12, 62.1650482621471}};
  for (const auto& [name, multi_bleu, sacre_bleu] : expected) {
    std::istringstream file(test::read_text(test::shared_folder() / "data/iwslt15-en-vi" / name));
    Pairs pairs;
    for (std::string line; std::getline(file, line);) {
      std::string hypothesis;
      size_t number = pairs.size();
      std::istringstream words(line);
      for (std::string word; std::getline(words, word, ' '); ++number) {
        if (number % 7 == 6) continue;
        hypothesis += (hypothesis.empty() ? "" : " ") + word;
      }
      pairs.emplace_back(hypothesis, line);
    }
    EXPECT_EQ(printed(bleu(corpus_stats(pairs))), multi_bleu);
    EXPECT_NEAR(bleu_exp_smoothed(corpus_stats_13a(pairs)), sacre_bleu, 1e-9);
  }
}

}  // namespace
}  // namespace tearless::engine::bleu_test
