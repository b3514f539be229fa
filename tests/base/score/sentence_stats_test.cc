// The files outputs/<set>.stats: what is written is read again, and what is not of their form is refused by line.
#include "base/score/sentence_stats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "base/score/bleu.h"

namespace tearless::sentence_stats_test {
namespace {

using testing::ElementsAre;

SentenceStats bleu_of(const std::vector<std::pair<std::string, std::string>>& pairs) {
  SentenceStats stats{.columns = BleuStats::columns()};
  for (const auto& [hypothesis, reference] : pairs) stats.rows.push_back(bleu_stats(hypothesis, reference).numbers());
  return stats;
}

std::string refusal(const std::string& text) {
  try {
    read_stats(text, "runs/1/outputs/test.stats");
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(SentenceStats, OfBleuAreTheBytesThatEveryVersionHasWritten) {
  EXPECT_EQ(stats_text(bleu_of({{"a b c d e", "a b c d x"}, {"", "a"}, {"", ""}})),
            "matches_1\tmatches_2\tmatches_3\tmatches_4\ttotals_1\ttotals_2\ttotals_3\ttotals_4\thypothesis_length\t"
            "reference_length\n4\t3\t2\t1\t5\t4\t3\t2\t5\t5\n0\t0\t0\t0\t0\t0\t0\t0\t0\t1\n"
            "0\t0\t0\t0\t0\t0\t0\t0\t0\t0\n");
}

TEST(SentenceStats, AreReadAsTheyWereWritten) {
  const SentenceStats written = bleu_of({{"a b c d e", "a b c d x"}, {"", "a"}, {"x y", "x z"}});
  const SentenceStats read = read_stats(stats_text(written), "test.stats");
  EXPECT_EQ(read.columns, written.columns);
  EXPECT_EQ(read.rows, written.rows);
  EXPECT_THAT(read.sum(), ElementsAre(5, 3, 2, 1, 7, 5, 3, 2, 7, 8));
}

TEST(SentenceStats, OfNoSentenceAreColumnsThatSumToZero) {
  const SentenceStats none = read_stats("correct\texamples\n", "test.stats");
  EXPECT_TRUE(none.rows.empty());
  EXPECT_THAT(none.sum(), ElementsAre(0, 0));
}

TEST(SentenceStats, OfASumOf2To53AreReadAndOfMoreAreNot) {
  EXPECT_THAT(read_stats("bits\n9007199254740991\n1\n", "test.stats").sum(), ElementsAre(int64_t{1} << 53));
  EXPECT_EQ(refusal("bits\n9007199254740991\n1\n1\n"),
            "runs/1/outputs/test.stats:4: the sum of bits is above 2^53 from here on");
}

TEST(SentenceStats, ThatAreNotOfTheirFormAreRefusedWithFileAndLine) {
  const std::string file = "runs/1/outputs/test.stats";
  EXPECT_EQ(refusal(""), file + " is empty: it has no whole last line");
  EXPECT_EQ(refusal("correct\texamples\n1\t1\n0\t"), file + " is cut off: it has no whole last line");
  EXPECT_EQ(refusal("4\t3\n1\t1\n"),
            file + ":1: \"4\" is no name of a column; the first line names the columns, with tabs between them");
  EXPECT_EQ(refusal("correct\t\n1\t1\n"),
            file + ":1: \"\" is no name of a column; the first line names the columns, with tabs between them");
  EXPECT_EQ(refusal("\n"),
            file + ":1: \"\" is no name of a column; the first line names the columns, with tabs between them");
  EXPECT_EQ(refusal("a\tb\ta\n"), file + ":1: there are two columns a");
  EXPECT_EQ(refusal("correct\texamples\n1\t1\n1\n"), file + ":3: 1 numbers for 2 columns");
  EXPECT_EQ(refusal("correct\texamples\n1\t1\t1\n"), file + ":2: 3 numbers for 2 columns");
  EXPECT_EQ(refusal("correct\n\n"), file + ":2: \"\" is no count, a whole number from 0 to 2^53");
  for (const std::string wrong :
       {"-1", "1.0", " 1", "1 ", "+1", "1e3", "nan", "9007199254740993", "99999999999999999999", "0x1", "1\r"}) {
    const std::string shown = wrong == "1\r" ? "1\\r" : wrong;
    EXPECT_EQ(refusal("correct\n0\n" + wrong + "\n"),
              file + ":3: \"" + shown + "\" is no count, a whole number from 0 to 2^53");
  }
}

}  // namespace
}  // namespace tearless::sentence_stats_test
