// Scores of sums over sentences, against values worked out by hand and against the same formulas written out here.
#include "base/score/measures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

#include "base/error.h"
#include "base/score/bleu.h"
#include "base/score/chrf.h"

namespace tearless::measures_test {
namespace {

using testing::HasSubstr;
using Columns = std::vector<std::string>;

double score_of(const std::string& score, const Columns& columns, const std::vector<int64_t>& sum) {
  return score_of_sums(score, columns, "test.stats")(sum);
}

std::string refusal(const std::string& score, const Columns& columns) {
  try {
    score_of_sums(score, columns, "test.stats");
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(Measures, OfBleuDifferInTheirSmoothing) {
  const Columns& columns = BleuStats::columns();
  const std::vector<int64_t> whole = {6, 4, 2, 1, 7, 6, 5, 4, 7, 7};
  const std::vector<int64_t> short_of_matches = {2, 0, 0, 0, 6, 5, 4, 3, 6, 6};
  const std::vector<int64_t> short_text = {5, 4, 3, 2, 5, 4, 3, 2, 5, 8};
  const double by_hand = 100 * std::pow(6. / 7 * 4 / 6 * 2 / 5 * 1 / 4, 0.25);
  const double smoothed = 100 * std::pow(2. / 6 / (2 * 5) / (4 * 4) / (8 * 3), 0.25);
  for (const char* score : {"test.bleu", "beam8.test.bleu", "dev.bleu", "atat.test.multi_bleu"}) {
    EXPECT_NEAR(score_of(score, columns, whole), by_hand, 1e-9) << score;
    EXPECT_EQ(score_of(score, columns, short_of_matches), 0) << score;
    EXPECT_NEAR(score_of(score, columns, short_text), 100 * std::exp(1 - 8. / 5), 1e-9) << score;
  }
  for (const char* score : {"test.bleu_13a", "test.bleu_zh", "test.bleu_char", "NAME.test.sacrebleu"}) {
    EXPECT_NEAR(score_of(score, columns, whole), by_hand, 1e-9) << score;
    EXPECT_NEAR(score_of(score, columns, short_of_matches), smoothed, 1e-9) << score;
    EXPECT_NEAR(score_of(score, columns, short_text), 100 * std::exp(1 - 8. / 5), 1e-9) << score;
  }
}

TEST(Measures, OfChrfTakeBetaAndWordsFromTheColumns) {
  // One order with n-grams on both sides: precision 3/4, recall 3/6. The others: none in the hypothesis.
  std::vector<int64_t> sum(3 * 8, 0);
  sum[0] = 4, sum[1] = 6, sum[2] = 3;
  const auto f_score = [](double beta, double precision, double recall) {
    return 100 * (1 + beta * beta) * precision * recall / (beta * beta * precision + recall);
  };
  EXPECT_NEAR(score_of("test.chrf", chrf_columns(2, 2), sum), f_score(2, 0.75, 0.5), 1e-9);
  EXPECT_NEAR(score_of("NAME.test.chrf", chrf_columns(1, 2), sum), f_score(1, 0.75, 0.5), 1e-9);
  EXPECT_NEAR(score_of("test.chrf", chrf_columns(100, 2), sum), f_score(100, 0.75, 0.5), 1e-9);
  sum[3 * 7] = 2, sum[3 * 7 + 1] = 2, sum[3 * 7 + 2] = 2;  // of word bigrams all
  EXPECT_NEAR(score_of("test.chrf", chrf_columns(2, 2), sum), f_score(2, (0.75 + 1) / 2, (0.5 + 1) / 2), 1e-9);
  sum[3] = 3;  // n-grams of an order that the references have not
  EXPECT_NEAR(score_of("test.chrf", chrf_columns(2, 2), sum), f_score(2, (0.75 + 1) / 2, (0.5 + 1) / 2), 1e-9);
  sum.resize(3 * 7);
  EXPECT_NEAR(score_of("test.chrf", chrf_columns(2, 1), sum), f_score(2, 0.75, 0.5), 1e-9);
  sum.resize(3 * 6);
  EXPECT_NEAR(score_of("test.chrf", chrf_columns(2, 0), sum), f_score(2, 0.75, 0.5), 1e-9);
  EXPECT_EQ(score_of("test.chrf", chrf_columns(2, 0), std::vector<int64_t>(18, 0)), 0);
  EXPECT_THAT(chrf_columns(2, 1), testing::Contains("chrF2_matches_c6"));
  EXPECT_EQ(chrf_columns(2, 1).back(), "chrF2_matches_w1");
}

TEST(Measures, OfAccuracyBitsAndHeadsAreRatiosOfNamedColumns) {
  EXPECT_EQ(score_of("test.accuracy", {"correct", "examples"}, {3, 4}), 75);
  EXPECT_EQ(score_of("dev.accuracy", accuracy_columns(), {1, 3}), 100.0 / 3);
  EXPECT_EQ(score_of("test.accuracy", {"examples", "lines", "correct"}, {4, 9, 1}), 25) << "wherever they stand";
  EXPECT_EQ(score_of("test.uas", {"correct_heads", "tokens"}, {9, 12}), 75);
  const Columns attachment = {"correct_heads", "tokens", "correct_heads_no_punct", "tokens_no_punct", "correct_arcs"};
  EXPECT_EQ(score_of("test.uas", attachment, {9, 20, 6, 10, 5}), 45);
  EXPECT_EQ(score_of("test.uas_no_punct", attachment, {9, 20, 6, 10, 5}), 60);
  EXPECT_EQ(score_of("test.las", attachment, {9, 20, 6, 10, 5}), 25);
  EXPECT_EQ(score_of("test.bpc", {"microbits", "symbols"}, {2'500'000, 2}), 1.25);
}

TEST(Measures, OfEveryNameOfTheTableAreMadeOfSomeColumns) {
  std::set<std::string> made;
  for (const Columns& columns :
       {BleuStats::columns(), chrf_columns(2, 0), accuracy_columns(), Columns{"microbits", "symbols"},
        Columns{"correct_heads", "tokens"}, Columns{"correct_heads_no_punct", "tokens_no_punct"},
        Columns{"correct_arcs", "tokens"}}) {
    for (const std::string& name : measure_names()) {
      if (!refusal("test." + name, columns).empty()) continue;
      EXPECT_TRUE(made.insert(name).second) << name << ": of two kinds";
    }
  }
  EXPECT_EQ(made.size(), measure_names().size());
}

TEST(Measures, ThatAreNotMadeOfSumsAreRefusedWithTheNearestName) {
  EXPECT_EQ(
      refusal("test.perplexity", accuracy_columns()),
      "test.perplexity is not made of sums over sentences; such scores end with bleu, bleu_13a, bleu_zh, bleu_char, "
      "multi_bleu, sacrebleu, chrf, accuracy, bpc, uas, uas_no_punct, las");
  EXPECT_THAT(refusal("test.accurac", accuracy_columns()), HasSubstr("(did you mean \"accuracy\"?)"));
}

TEST(Measures, OfOtherColumnsAreRefusedWithBoth) {
  EXPECT_EQ(
      refusal("test.accuracy", {"microbits", "symbols"}),
      "test.stats has not the statistics of test.accuracy: its columns are microbits, symbols, those of accuracy are "
      "correct, examples");
  Columns cut = BleuStats::columns();
  cut.pop_back();
  EXPECT_THAT(refusal("test.bleu", cut), HasSubstr("has not the statistics of test.bleu"));
  EXPECT_THAT(refusal("test.bleu", chrf_columns(2, 0)), HasSubstr("has not the statistics of test.bleu"));
  for (const Columns& columns : {BleuStats::columns(), Columns{}, Columns{"chrF"}, Columns{"chrF2_hypothesis_c1"}}) {
    EXPECT_THAT(refusal("test.chrf", columns), HasSubstr("has not the statistics of test.chrf"));
  }
  for (const int64_t beta : {0, -2}) {
    EXPECT_THAT(refusal("test.chrf", chrf_columns(beta, 0)), HasSubstr("has not the statistics of test.chrf"));
  }
  Columns mixed = chrf_columns(2, 0);
  mixed.back() = chrf_columns(3, 0).back();
  EXPECT_THAT(refusal("test.chrf", mixed), HasSubstr("has not the statistics of test.chrf"));
}

}  // namespace
}  // namespace tearless::measures_test
