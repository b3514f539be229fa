// Detokenised lines against what the script of Moses made of them (tools/make_golden_detokenised.py).
#include "engine/score/detokenise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/paths.h"

namespace tearless::engine::detokenise_test {
namespace {

using nlohmann::json;

TEST(Detokenise, MakesTheLinesOfTheOriginalInEachLanguage) {
  const json golden = json::parse(std::ifstream(test::source_root() / "tests/golden/detokenised.json"));
  const auto lines = golden.at("lines").get<std::vector<std::string>>();
  int languages = 0;
  for (const auto& [language, made] : golden.items()) {
    if (language == "lines") continue;
    ++languages;
    const auto expected = made.get<std::vector<std::string>>();
    ASSERT_EQ(expected.size(), lines.size());
    for (size_t i = 0; i < lines.size(); ++i) {
      EXPECT_EQ(detokenise(lines[i], language), expected[i]) << language << ": \"" << lines[i] << '"';
    }
  }
  EXPECT_EQ(languages, 8);
}

// Perl's counts it as a letter.
TEST(Detokenise, TakesNoMarkForALetter) { EXPECT_EQ(detokenise("\u0915\u093E 's", "en"), "\u0915\u093E 's"); }

// An apostrophe after s closes a quotation that is open, and belongs to the word otherwise.
TEST(Detokenise, ClosesAQuotationThatEndsInSBeforeItOpensTheNext) {
  EXPECT_EQ(detokenise("they said ' yes ' , then ' no ' .", "en"), "they said 'yes', then 'no'.");
  EXPECT_EQ(detokenise("' the boys ' and ' the girls '", "en"), "'the boys' and 'the girls'");
  EXPECT_EQ(detokenise("the boys ' ' cats ' and ' dogs '", "en"), "the boys' 'cats' and 'dogs'");
}

TEST(Detokenise, LeavesBytesThatAreNotUtf8) { EXPECT_EQ(detokenise("a , b\xFF", "de"), "a, b\uFFFD"); }

}  // namespace
}  // namespace tearless::engine::detokenise_test
