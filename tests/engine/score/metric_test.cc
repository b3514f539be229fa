// Text metrics against what the original programs printed for the same lines (tools/make_golden_scores.py), and against
// values worked out by hand.
#include "engine/score/metric.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>
#include <stdexcept>

#include "base/score/measures.h"
#include "tests/support/paths.h"

namespace tearless::engine::metric_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

/// "chrf beta=3", "multi-bleu lower_case".
std::unique_ptr<TextMetric> metric_with(const std::string& name_and_options) {
  std::istringstream words(name_and_options);
  std::string name;
  words >> name;
  std::replace(name.begin(), name.end(), '-', '_');
  std::unique_ptr<TextMetric> metric = text_metrics().at(name).clone();
  WrittenSettings written;
  for (std::string option; words >> option;) {
    const size_t equals = option.find('=');
    written.values[option.substr(0, equals)] =
        equals == std::string::npos ? json(true) : json::parse(option.substr(equals + 1));
  }
  read_settings(written, [&](SettingsVisitor& visitor) { metric->describe(visitor); });
  return metric;
}

TextScore score_of(const std::string& metric, const std::vector<std::pair<std::string, std::string>>& pairs) {
  std::vector<std::string_view> hypotheses, references;
  for (const auto& [hypothesis, reference] : pairs) {
    hypotheses.emplace_back(hypothesis);
    references.emplace_back(reference);
  }
  return score_text(*metric_with(metric), hypotheses, references);
}

const json& golden() {
  static const json all = json::parse(std::ifstream(test::source_root() / "tests/golden/scores.json"));
  return all;
}

/// What the original prints, with our version in place of its own.
std::string in_our_name(std::string line) {
  for (const auto& [before, original] : {std::pair("version:", "sacrebleu"), std::pair("version.", "sacrebleu_old")}) {
    const std::string version = golden().at(original);
    for (const std::string& with : {before + version, "\"version\": \"" + version}) {
      const size_t at = line.find(with);
      if (at != std::string::npos) line.replace(at + with.size() - version.size(), version.size(), signed_version());
    }
  }
  return line;
}

TEST(Metrics, PrintTheLinesOfTheOriginals) {
  std::set<std::string, std::less<>> metrics;
  for (const json& set : golden().at("sets")) {
    for (const auto& [key, line] : set.at("lines").items()) {
      if (line.is_null()) continue;
      const size_t as_json = key.find(" json");
      const TextScore score = score_of(key.substr(0, as_json), set.at("pairs"));
      EXPECT_EQ(as_json == std::string::npos ? score.line : score_json(score), in_our_name(line))
          << key << " of the set \"" << set.at("name").get<std::string>() << '"';
      metrics.insert(std::regex_replace(key.substr(0, key.find(' ')), std::regex("-"), "_"));
    }
  }
  for (const auto& metric : text_metrics()) EXPECT_TRUE(metrics.contains(metric->name)) << metric->name;
}

TEST(Metrics, MultiBleuIsSacreBleuWithoutTokeniserAndSmoothing) {
  for (const json& set : golden().at("sets")) {
    EXPECT_NEAR(score_of("multi-bleu", set.at("pairs")).value, set.at("bleu_by_sacrebleu").get<double>(), 1e-9)
        << set.at("name");
  }
}

TEST(Metrics, AreThoseOfTheList) {
  std::vector<std::string_view> names;
  for (const auto& metric : text_metrics()) {
    names.push_back(metric->name);
    EXPECT_FALSE(metric->meaning.empty()) << metric->name;
  }
  std::vector<std::string> listed;
  const std::string list = test::read_text(test::source_root() / "engine/score/metrics.def");
  const std::regex line(R"(METRIC\((\w+)\))");
  for (std::sregex_iterator at(list.begin(), list.end(), line), end; at != end; ++at) listed.push_back((*at)[1].str());
  EXPECT_THAT(names, testing::ElementsAreArray(listed));
  EXPECT_THAT(names, testing::IsSupersetOf({"multi_bleu", "sacrebleu", "chrf"}));
}

TEST(Metrics, OfTwoHalvesAddUp) {
  for (const auto& metric : text_metrics()) {
    TextMetric::Statistics sum = metric->statistics("The cat sat on the mat.", "The cat sat on a mat.");
    const TextMetric::Statistics second = metric->statistics("", "It is late, they say.");
    ASSERT_EQ(sum.size(), second.size()) << metric->name;
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += second[i];
    EXPECT_EQ(
        metric->score(sum).line,
        score_text(*metric, {"The cat sat on the mat.", ""}, {"The cat sat on a mat.", "It is late, they say."}).line)
        << metric->name;
  }
}

// To the last bit, with every option that changes what the statistics are.
TEST(Metrics, ScoresAreMadeOfTheStatisticsOfSentencesInAnyOrder) {
  const std::vector<std::pair<std::string, std::string>> pairs = {
      {"The cat sat on the mat.", "The cat sat on a mat."},
      {"", "It is late, they say."},
      {"A well-known red-hot stove", "a well-known stove!"},
      {"one two three four five", "one two three four six"}};
  std::vector<std::string_view> hypotheses, references;
  for (const auto& [hypothesis, reference] : pairs) {
    hypotheses.emplace_back(hypothesis);
    references.emplace_back(reference);
  }
  std::set<std::string_view> covered;
  for (const char* options :
       {"multi-bleu", "multi-bleu lower_case compound_split", "sacrebleu", "sacrebleu tokeniser=\"char\"", "chrf",
        "chrf beta=1", "chrf beta=3 word_order=1", "chrf word_order=2"}) {
    const auto metric = metric_with(options);
    SentenceStats stats = sentence_stats(*metric, hypotheses, references);
    ASSERT_EQ(stats.rows.size(), pairs.size());
    for (const auto& row : stats.rows) ASSERT_EQ(row.size(), stats.columns.size()) << options;
    const ScoreOfSums made = score_of_sums(fmt::format("test.{}", metric->name), stats.columns, "test.stats");
    const double value = score_of(options, pairs).value;
    EXPECT_GT(value, 0) << options;
    EXPECT_EQ(made(stats.sum()), value) << options;
    std::reverse(stats.rows.begin(), stats.rows.end());
    EXPECT_EQ(made(read_stats(stats_text(stats), "test.stats").sum()), value) << options;
    covered.insert(metric->name);
  }
  EXPECT_EQ(covered.size(), text_metrics().names().size());
}

TEST(Metrics, OfHypothesesAndReferencesThatDifferInNumberAreRefused) {
  const auto metric = metric_with("multi-bleu");
  EXPECT_THROW(score_text(*metric, {"a b", "c"}, {"a b"}), std::logic_error);
  EXPECT_THROW(score_text(*metric, {"a b"}, {"a b", "c"}), std::logic_error);
  EXPECT_THROW(score_text(*metric, {}, {}), std::logic_error);
}

TEST(Metrics, TakeBytesThatAreNotUtf8AsCharacters) {
  const std::string text = "caf\xe9 \xff\xe2\x80 a b c d \xc2";
  for (const auto& metric : text_metrics()) {
    EXPECT_NEAR(score_text(*metric, {text}, {text}).value, 100, 1e-9) << metric->name;
    EXPECT_LT(score_text(*metric, {text}, {"caf\xe8 \xff\xe2\x80 a b c d \xc2"}).value, 100) << metric->name;
  }
}

TEST(MultiBleu, ScoresNoWordsAsZeroWhereTheScriptFails) {
  EXPECT_EQ(score_of("multi-bleu", {{"", "a b"}}).line,
            "BLEU = 0.00, 0.0/0.0/0.0/0.0 (BP=0.000, ratio=0.000, hyp_len=0, ref_len=2)");
}

TEST(MultiBleu, LowersTheCaseOfAsciiLettersAlone) {
  EXPECT_EQ(score_of("multi-bleu lower_case", {{"A Bc DE f", "a bC de F"}}).value, 100);
  EXPECT_EQ(score_of("multi-bleu lower_case", {{"Ä b c d e f", "ä b c d e f"}}).value,
            score_of("multi-bleu", {{"x b c d e f", "y b c d e f"}}).value);
  EXPECT_THAT(score_of("multi-bleu lower_case", {{"a", "a"}}).signature, HasSubstr("|case:lc|"));
}

TEST(MultiBleu, SplitsCompoundsAtHyphensWithinWords) {
  // As words: "well ##AT##-##AT## known - fact" beside "well ##AT##-##AT## read - fact": 4/5, 2/4, 0/3.
  EXPECT_THAT(score_of("multi-bleu compound_split", {{"well-known - fact", "well-read - fact"}}).line,
              HasSubstr(" 80.0/50.0/0.0/0.0 "));
  // A hyphen beside one that was split, and one at either end of a word, stay.
  EXPECT_THAT(score_of("multi-bleu compound_split", {{"a-b-c -d e-", ""}}).line, HasSubstr("hyp_len=0"));
  EXPECT_THAT(score_of("multi-bleu compound_split", {{"a-b-c -d e-", "x"}}).line, HasSubstr("hyp_len=5"));
  EXPECT_THAT(score_of("multi-bleu compound_split", {{"a", "a"}}).signature, HasSubstr("|tok:compound-split|"));
}

TEST(SacreBleu, SignsWithThisProgramsVersion) {
  EXPECT_THAT(signed_version(), testing::MatchesRegex("tearless-[0-9]+\\.[0-9]+\\.[0-9]+"));
  EXPECT_EQ(score_of("sacrebleu", {{"a", "a"}}).signature,
            "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:" + signed_version());
  EXPECT_EQ(score_of("sacrebleu signature=1", {{"a", "a"}}).signature,
            "case.mixed+numrefs.1+smooth.exp+tok.13a+version." + signed_version());
}

TEST(SacreBleu, ValueIsThatOfTraining) {
  EXPECT_NEAR(score_of("sacrebleu", {{"the cat sat on a mat", "a dog lay on one rug"}}).value,
              100 * std::pow(2. / 6 / (2 * 5) / (4 * 4) / (8 * 3), 0.25), 1e-9);
}

TEST(ChrF, WeighsRecallByBeta) {
  // Characters "abcd" beside "abce": 3/4, 2/3, 1/2, 0/1; there are no longer n-grams. Equal precision and recall.
  EXPECT_NEAR(score_of("chrf", {{"ab cd", "abc e"}}).value, 100 * (3. / 4 + 2. / 3 + 1. / 2) / 4, 1e-12);
  // "ab" beside "abab": precision 1 and 1, recall 2/4 and 1/3; orders 3 and 4 have no n-grams in the hypothesis.
  const double recall = (2. / 4 + 1. / 3) / 2;
  EXPECT_NEAR(score_of("chrf", {{"ab", "abab"}}).value, 100 * 5 * recall / (4 + recall), 1e-12);
  EXPECT_NEAR(score_of("chrf beta=3", {{"ab", "abab"}}).value, 100 * 10 * recall / (9 + recall), 1e-12);
  EXPECT_NEAR(score_of("chrf beta=1", {{"ab", "abab"}}).value, 100 * 2 * recall / (1 + recall), 1e-12);
}

TEST(ChrF, CountsNgramsOfOrdersThatTheReferenceHas) {
  // The second reference has no 2-grams, so the 2-gram of its hypothesis does not count.
  const double precision = (3. / 4 + 1) / 2;
  EXPECT_NEAR(score_of("chrf", {{"ab", "ab"}, {"xy", "x"}}).value, 100 * 5 * precision / (4 * precision + 1), 1e-12);
}

TEST(ChrF, CountsWordsWithoutTheirPunctuation) {
  EXPECT_EQ(score_of("chrf word_order=2", {{"hi) -there", "hi ) - there"}}).value, 100);
  // Of a word one character is set apart: "(hi", ")".
  EXPECT_LT(score_of("chrf word_order=2", {{"(hi) there", "( hi ) there"}}).value, 100);
  EXPECT_EQ(score_of("chrf word_order=0", {{"(hi) there", "( hi ) there"}}).value, 100);
  EXPECT_EQ(score_of("chrf word_order=2", {{"a", "a"}}).name, "chrF2++");
}

TEST(ChrF, TakesCodePointsAsCharacters) {
  // "é日" beside "è日": one of two characters, though they share bytes.
  EXPECT_NEAR(score_of("chrf", {{"é日", "è日"}}).value, 100 * (1. / 2 + 0) / 2, 1e-12);
}

TEST(ScoreJson, HasThePartsOfTheSignature) {
  const json score = json::parse(score_json(score_of("chrf", {{"ab", "abab"}})));
  EXPECT_EQ(score.at("name"), "chrF2");
  EXPECT_EQ(score.at("nc"), "6");
  EXPECT_EQ(score.at("version"), signed_version());
  EXPECT_FALSE(score.contains("verbose_score"));
  const json old = json::parse(score_json(score_of("sacrebleu signature=1", {{"a", "a"}})));
  EXPECT_EQ(old.size(), 4);  // name, score, signature, verbose_score
}

}  // namespace
}  // namespace tearless::engine::metric_test
