// The tokenisers zh and char against what sacreBLEU 2 made of the same lines (tools/make_golden_tokenisers.py), and
// which texts have hardly a space.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>

#include "engine/score/metric.h"
#include "engine/score/tokenise.h"
#include "tests/support/error_of.h"
#include "tests/support/paths.h"

namespace tearless::engine::tokenise_characters_test {
namespace {

using nlohmann::json;
using Lines = std::vector<std::string_view>;

std::unique_ptr<TextMetric> sacrebleu_with(const std::string& tokeniser) {
  std::unique_ptr<TextMetric> metric = text_metrics().at("sacrebleu").clone();
  WrittenSettings written{.values = {{"tokeniser", tokeniser}}, .locations = {}, .name = "score"};
  read_settings(written, [&](SettingsVisitor& visitor) { metric->describe(visitor); });
  return metric;
}

TEST(TokenisersWithoutSpaces, MakeTheWordsAndScoresOfTheOriginal) {
  const json golden = json::parse(std::ifstream(test::source_root() / "tests/golden/tokenisers.json"));
  for (const json& set : golden.at("sets")) {
    const auto pairs = set.at("pairs").get<std::vector<std::pair<std::string, std::string>>>();
    for (const Tokeniser tokeniser : {Tokeniser::kZh, Tokeniser::kChar}) {
      const std::string name(kTokeniserNames[static_cast<size_t>(tokeniser)]);
      SCOPED_TRACE(name + " of the set " + set.at("name").get<std::string>());
      Lines hypotheses, references;
      for (size_t i = 0; i < pairs.size(); ++i) {
        hypotheses.emplace_back(pairs[i].first);
        references.emplace_back(pairs[i].second);
        const auto words = set.at(name).at("words").at(i).get<std::vector<std::string>>();
        EXPECT_EQ(tokenise(tokeniser, pairs[i].second), fmt::format("{}", fmt::join(words, " ")));
      }
      const std::string line = set.at(name).at("line");
      EXPECT_EQ(score_text(*sacrebleu_with(name), hypotheses, references).line,
                std::regex_replace(line, std::regex("version:[0-9.]+"), "version:" + signed_version()));
    }
  }
}

TEST(TokenisersWithoutSpaces, AreNamedInTheOldSignatureToo) {
  std::unique_ptr<TextMetric> metric = text_metrics().at("sacrebleu").clone();
  WrittenSettings written{.values = {{"tokeniser", "zh"}, {"signature", 1}}, .locations = {}, .name = "score"};
  read_settings(written, [&](SettingsVisitor& visitor) { metric->describe(visitor); });
  EXPECT_THAT(score_text(*metric, Lines{"好"}, Lines{"好"}).line,
              testing::StartsWith("BLEU+case.mixed+numrefs.1+smooth.exp+tok.zh+version."));
}

TEST(TokenisersWithoutSpaces, RefuseThoseOfSacreBleuThatNeedADictionaryWithWhatToUse) {
  for (const char* other : {"ja-mecab", "ko-mecab", "flores200", "spm", "intl"}) {
    EXPECT_THAT(tearless::test::error_of([&] { sacrebleu_with(other); }),
                testing::AllOf(testing::HasSubstr(std::string("\"") + other + "\""),
                               testing::HasSubstr("use \"char\" for text without spaces")));
  }
  EXPECT_THAT(tearless::test::error_of([&] { sacrebleu_with("zhh"); }),
              testing::AllOf(testing::HasSubstr("13a, zh, char"), testing::Not(testing::HasSubstr("dictionary"))));
}

TEST(HardlyASpace, IsInChineseJapaneseThaiAndKhmerAndInNoTextWithWords) {
  const Lines without[] = {{"今天天气不错，我们去公园散步。", "这是二十一世纪的新战争。"},
                           {"今日はいい天気ですね。", "カタカナとひらがなで書きます。"},
                           {"วันนี้อากาศดีมาก เราไปเดินเล่นที่สวนสาธารณะ"},
                           {"ខ្ញុំចង់ទៅផ្សារនៅថ្ងៃនេះ"},
                           {"他用Python写代码并且提交到仓库。"},
                           {"thequickbrownfoxjumpsoverthelazydog"}};
  for (const Lines& lines : without) EXPECT_TRUE(has_hardly_a_space(lines)) << lines.front();
  const Lines with[] = {{"The quick brown fox jumps over the lazy dog."},
                        {"Donaudampfschifffahrtsgesellschaft", "Ein langes Wort.", "Ja."},
                        {"오늘은 날씨가 정말 좋네요. 공원에 갑시다."},
                        {"今天 天气 不错 ， 我们 去 公园 散步 。"},
                        {"The word 天气 means weather in Chinese."},
                        {"Epäjärjestelmällisyydellänsäkään hän ei häirinnyt muita."},
                        {"ja", "nein"},
                        {""},
                        {}};
  for (const Lines& lines : with) EXPECT_FALSE(has_hardly_a_space(lines)) << (lines.empty() ? "" : lines.front());
}

}  // namespace
}  // namespace tearless::engine::tokenise_characters_test
