// What `tearless-engine score` prints for lines whose matches are counted by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace tearless::score_command_test {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;

class ScoreCommand : public testing::Test {
 protected:
  std::string score(const std::string& hypotheses, const std::string& references,
                    std::vector<std::string> options = {}) {
    return output_of(hypotheses, references, std::move(options), {"hypotheses", "references"});
  }

  /// The line of a text metric.
  std::string metric(const std::string& hypotheses, const std::string& references, std::vector<std::string> options) {
    options.insert(options.begin(), "--metric");
    return output_of(hypotheses, references, std::move(options),
                     {"--hypothesis", "hypotheses", "--reference", "references"});
  }

  std::string output_of(const std::string& hypotheses, const std::string& references, std::vector<std::string> options,
                        const std::vector<std::string>& files) {
    test::write_text(folder_ / "hypotheses", hypotheses);
    test::write_text(folder_ / "references", references);
    std::vector<std::string> arguments = {test::program("tearless-engine").string(), "score"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    arguments.insert(arguments.end(), files.begin(), files.end());
    const test::Finished finished = test::run({.arguments = arguments, .folder = folder_.path()});
    EXPECT_EQ(finished.code, 0) << finished.errors;
    return finished.output;
  }

  test::TempFolder folder_;
};

TEST_F(ScoreCommand, SumsTheMatchesOfAllLines) {
  // Of the first line 6/7, 4/6, 2/5, 1/4 match, of the second 7/8, 5/7, 3/6, 1/5.
  const double precisions = 13. / 15 * 9. / 13 * 5. / 11 * 2. / 9;
  ASSERT_NEAR(100 * std::pow(precisions, 0.25), 49.617, 1e-3);
  EXPECT_EQ(score("the cat sat on the mat .\na b c d e f g h\n", "the cat sat on a mat .\na b c d x f g h\n"),
            "bleu 49.62, 86.7/69.2/45.5/22.2 (hypothesis 15 words, reference 15)\n");
}

// As sacreBLEU 2.6.0 prints for -l en-zh.
TEST_F(ScoreCommand, ScoresChineseByItsCharacters) {
  const std::string hypotheses = "今天天气不错，我们去公园散步。\n这是二十一世纪的新战争。\n";
  const std::string references = "今天天气很好，我们去公园散步。\n这是21世纪的新战争。\n";
  const std::string line = metric(hypotheses, references, {"sacrebleu", "--tokeniser", "zh"});
  EXPECT_THAT(line, HasSubstr("|tok:zh|"));
  EXPECT_THAT(line, MatchesRegex(".* = 65.76 .*\n"));
}

TEST_F(ScoreCommand, JoinsWordsToRawTextFirst) {
  const std::string tokenised = "it &apos;s ( well @-@ known ) , no ?\n", raw = "it's (well-known), no?\n";
  EXPECT_THAT(metric(tokenised, raw, {"multi-bleu", "--detokenise", "en"}), HasSubstr("100.0/100.0/100.0/0.0 "));
  EXPECT_THAT(metric(tokenised, raw, {"multi-bleu", "--detokenise", "fr"}), HasSubstr("hyp_len=5, ref_len=3"));
  EXPECT_THAT(metric(tokenised, tokenised, {"multi-bleu", "--detokenise", "en"}), HasSubstr("hyp_len=3, ref_len=10"));
  EXPECT_THAT(metric(tokenised, tokenised, {"multi-bleu", "--detokenise", "en", "--detokenise-reference"}),
              HasSubstr("100.0/100.0/100.0/0.0 "));
}

TEST_F(ScoreCommand, WarnsThatAScoreThatNeedsSpacesHasNone) {
  const std::string chinese = "今天天气不错，我们去公园散步。\n", english = "we sat in the park today .\n";
  const auto errors_of = [&](const std::string& text, const std::vector<std::string>& options) {
    test::write_text(folder_ / "text", text);
    std::vector<std::string> arguments = {test::program("tearless-engine").string(), "score"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const test::Finished finished = test::run({.arguments = arguments, .folder = folder_.path()});
    EXPECT_EQ(finished.code, 0);
    return finished.errors;
  };
  const std::vector<std::string> files = {"--hypothesis", "text", "--reference", "text", "--metric"};
  const auto by = [&](const std::vector<std::string>& metric) {
    std::vector<std::string> options = files;
    options.insert(options.end(), metric.begin(), metric.end());
    return options;
  };
  for (const auto& needs_spaces :
       {by({"sacrebleu"}), by({"multi-bleu"}), {"text", "text"}, {"--raw", "text", "text"}}) {
    EXPECT_THAT(errors_of(chinese, needs_spaces),
                MatchesRegex("tearless-engine: text has hardly a space.*--tokeniser zh.*\n"));
    EXPECT_EQ(errors_of(english, needs_spaces), "");
  }
  for (const auto& other :
       {by({"sacrebleu", "--tokeniser", "zh"}), by({"sacrebleu", "--tokeniser", "char"}), by({"chrf"})}) {
    EXPECT_EQ(errors_of(chinese, other), "");
  }
}

TEST_F(ScoreCommand, NamesAFileThatIsCompressedAndHowToUnpackIt) {
  const std::pair<std::string, std::string> kinds[] = {{"\x1f\x8b\x08", "gzip; unpack it with gunzip"},
                                                       {"\xfd\x37zXZ", "xz; unpack it with unxz"},
                                                       {"\x28\xb5\x2f\xfd", "zstd; unpack it with unzstd"},
                                                       {"BZh91AY&SY", "bzip2; unpack it with bunzip2"},
                                                       {"PK\x03\x04", "zip; unpack it with unzip"}};
  test::write_text(folder_ / "plain", "a b\n");
  for (const auto& [bytes, what] : kinds) {
    test::write_text(folder_ / "packed", bytes + "\n");
    for (const std::vector<std::string>& files :
         {std::vector<std::string>{"packed", "plain"},
          {"plain", "packed"},
          {"--metric", "sacrebleu", "--hypothesis", "packed", "--reference", "plain"},
          {"--metric", "chrf", "--hypothesis", "plain", "--reference", "packed"}}) {
      std::vector<std::string> arguments = {test::program("tearless-engine").string(), "score"};
      arguments.insert(arguments.end(), files.begin(), files.end());
      const test::Finished finished = test::run({.arguments = arguments, .folder = folder_.path()});
      EXPECT_EQ(finished.code, 2);
      EXPECT_EQ(finished.errors, "tearless-engine: packed is compressed with " + what + "\n");
    }
  }
}

TEST_F(ScoreCommand, RefusesFilesWithDifferentNumbersOfLines) {
  test::write_text(folder_ / "two", "a\nb\n");
  test::write_text(folder_ / "three", "a\nb\nc\n");
  for (const std::vector<std::string>& files : {std::vector<std::string>{"two", "three"},
                                                {"--metric", "chrf", "--hypothesis", "two", "--reference", "three"}}) {
    std::vector<std::string> arguments = {test::program("tearless-engine").string(), "score"};
    arguments.insert(arguments.end(), files.begin(), files.end());
    const test::Finished finished = test::run({.arguments = arguments, .folder = folder_.path()});
    EXPECT_EQ(finished.code, 2);
    EXPECT_EQ(finished.output, "");
    EXPECT_EQ(finished.errors,
              "tearless-engine: two has 2 lines, three has 3: both must hold the same sentences, one a line\n");
  }
}

TEST_F(ScoreCommand, LeavesOutCarriageReturnsAtTheEndsOfLinesAndAByteOrderMark) {
  const std::string lines = "今天天气不错\n我们去公园\n", from_windows = "\xEF\xBB\xBF今天天气不错\r\n我们去公园\r\n";
  const std::vector<std::string> by_character = {"sacrebleu", "--tokeniser", "char"};
  EXPECT_EQ(metric(from_windows, lines, by_character), metric(lines, lines, by_character));
  EXPECT_EQ(metric(lines, from_windows, by_character), metric(lines, lines, by_character));
  EXPECT_EQ(score("\xEF\xBB\xBF"
                  "a b c d\r\n",
                  "a b c d\n"),
            score("a b c d\n", "a b c d\n"));
}

TEST_F(ScoreCommand, AcceptsALastLineWithoutNewlineAndNoOtherLineEnds) {
  // One of 8 words is missing: exp(1 - 8/7) = 0.8669.
  EXPECT_EQ(score("a b c d\re f g", "a b c d\re f g h\n"),
            "bleu 86.69, 100.0/100.0/100.0/100.0 (hypothesis 7 words, reference 8)\n");
}

TEST_F(ScoreCommand, TokenisesRawTextAndSmoothsItsScore) {
  // As tokens: "it sat on a mat ." beside "it sat on the mat .": 5/6, 3/5, 1/4, and 0/3, which counts as 1/2 of 1/3.
  const double precisions = 5. / 6 * 3. / 5 * 1. / 4 * 1. / 6;
  ASSERT_NEAR(100 * std::pow(precisions, 0.25), 37.992, 1e-3);
  const std::string hypothesis = "it sat on a mat.\n", reference = "it sat on the mat.\n";
  EXPECT_EQ(score(hypothesis, reference, {"--raw"}),
            "bleu_13a 37.99, 83.3/60.0/25.0/0.0 (hypothesis 6 words, reference 6)\n");
  EXPECT_EQ(score(hypothesis, reference), "bleu 0.00, 80.0/50.0/33.3/0.0 (hypothesis 5 words, reference 5)\n");
}

TEST_F(ScoreCommand, PrintsZeroForNgramsLongerThanTheLines) {
  EXPECT_EQ(score("a b", "a b"), "bleu 0.00, 100.0/100.0/0.0/0.0 (hypothesis 2 words, reference 2)\n");
}

// Of 15 words 13 match, of the pairs 9 of 13 and so on, as above.
TEST_F(ScoreCommand, PrintsTheLineOfAMetric) {
  const std::string hypotheses = "the cat sat on the mat .\na b c d e f g h\n";
  const std::string references = "the cat sat on a mat .\na b c d x f g h\n";
  EXPECT_EQ(metric(hypotheses, references, {"multi-bleu"}),
            "BLEU = 49.62, 86.7/69.2/45.5/22.2 (BP=1.000, ratio=1.000, hyp_len=15, ref_len=15)\n");
  EXPECT_THAT(
      metric(hypotheses, references, {"sacrebleu"}),
      MatchesRegex("BLEU\\|nrefs:1\\|case:mixed\\|eff:no\\|tok:13a\\|smooth:exp\\|version:tearless-[0-9.]+ = 49.62 "
                   "86.7/69.2/45.5/22.2 \\(BP = 1.000 ratio = 1.000 hyp_len = 15 ref_len = 15\\)\n"));
  EXPECT_THAT(metric(hypotheses, references, {"chrf"}),
              MatchesRegex("chrF2\\|nrefs:1\\|case:mixed\\|eff:yes\\|nc:6\\|nw:0\\|space:no\\|version:.* = [0-9.]+\n"));
}

TEST_F(ScoreCommand, GivesAMetricItsOptions) {
  // With ASCII letters lowered and the hyphen apart: "the a ##AT##-##AT## b" on both sides.
  EXPECT_EQ(metric("THE a-b", "the A-b", {"multi-bleu", "--lower-case", "--compound-split"}),
            "BLEU = 100.00, 100.0/100.0/100.0/100.0 (BP=1.000, ratio=1.000, hyp_len=4, ref_len=4)\n");
  EXPECT_THAT(metric("a", "a", {"sacrebleu", "--signature", "1"}), HasSubstr("BLEU+case.mixed+numrefs.1+"));
  EXPECT_THAT(metric("a", "a", {"chrf", "--beta", "3", "--word-order=2"}), HasSubstr("chrF3++|"));
}

TEST_F(ScoreCommand, PrintsJson) {
  const auto json = nlohmann::json::parse(metric("a b", "a b c", {"multi-bleu", "--json"}));
  EXPECT_EQ(json.at("name"), "BLEU");
  EXPECT_EQ(json.at("score"), 0);
  EXPECT_EQ(json.at("verbose_score"), "100.0/100.0/0.0/0.0 (BP=0.607, ratio=0.667, hyp_len=2, ref_len=3)");
  EXPECT_EQ(json.at("tok"), "none");
}

}  // namespace
}  // namespace tearless::score_command_test
