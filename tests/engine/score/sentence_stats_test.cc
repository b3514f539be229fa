#include "engine/score/sentence_stats.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace tearless::engine::sentence_stats_test {
namespace {

std::string error_of(std::string_view text) {
  try {
    parse_sentence_stats(text, "test.stats");
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(SentenceStats, AreReadBackAsWritten) {
  const std::vector<BleuStats> sentences = {bleu_stats("a b c d e", "a b c d x"), bleu_stats("", "a"), BleuStats{}};
  const std::string text = sentence_stats_text(sentences);
  EXPECT_EQ(parse_sentence_stats(text, "test.stats"), sentences);
  EXPECT_EQ(text.substr(text.find('\n') + 1, 20), "4\t3\t2\t1\t5\t4\t3\t2\t5\t5\n");
}

TEST(SentenceStats, AddUpToTheCorpus) {
  const auto sentences = parse_sentence_stats(
      sentence_stats_text({bleu_stats("a b c d", "a b c d"), bleu_stats("e f g h", "e f g x")}), "test.stats");
  BleuStats sum;
  for (const BleuStats& sentence : sentences) sum += sentence;
  EXPECT_EQ(sum.matches, (std::array<int64_t, 4>{7, 5, 3, 1}));
}

TEST(SentenceStats, RefusesOtherText) {
  const std::string good = sentence_stats_text({BleuStats{}});
  EXPECT_EQ(error_of("1\t2\n"), "test.stats:1: not a line of sentence statistics; decode the run again");
  EXPECT_EQ(error_of(good + "1\t2\n"), "test.stats:3: not a line of sentence statistics; decode the run again");
  EXPECT_EQ(error_of(good.substr(0, good.size() - 1)),
            "test.stats:2: not a line of sentence statistics; decode the run again");
  EXPECT_EQ(error_of(good + "0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\n"),
            "test.stats:3: not a line of sentence statistics; decode the run again");
  for (size_t field = 0; field < 10; ++field) {
    for (const char* other : {"x", "", "1 ", " 1", "1.5", "99999999999999999999"}) {
      std::string line;
      for (size_t i = 0; i < 10; ++i) line += std::string(i == 0 ? "" : "\t") + (i == field ? other : "1");
      EXPECT_NE(error_of(good + line + "\n"), "") << line;
    }
  }
}

}  // namespace
}  // namespace tearless::engine::sentence_stats_test
