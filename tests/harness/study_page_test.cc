// The prose of results/study.md: a sentence with a number in digits or an order names its claim, or `report --text`
// writes the number from the results, or it is a setting that their runs have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace tearless::study_page_test {
namespace {

using testing::IsEmpty;

std::string page() { return test::read_text(test::source_root() / "results/study.md"); }

std::string without(const std::string& text, const char* pattern, const char* by = "") {
  return std::regex_replace(text, std::regex(pattern), by);
}

/// The sentences of a page, without headings, code blocks, and places on lines of their own. A place in a sentence is
/// "[made]".
std::vector<std::string> sentences_of(const std::string& markdown) {
  std::string prose, paragraph;
  bool is_code = false, is_place = false;
  std::vector<std::string> paragraphs;
  const auto end_paragraph = [&] {
    if (!paragraph.empty()) paragraphs.push_back(std::exchange(paragraph, ""));
  };
  std::istringstream lines(markdown);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) is_code = !is_code;
    if (line.starts_with("<!-- tearless") && line.find("<!-- end -->") == std::string::npos) is_place = true;
    const bool is_prose = !is_code && !is_place && !line.starts_with("```") && !line.starts_with("#") &&
                          !line.starts_with("    ") && !line.starts_with("<!--") && !line.empty();
    if (line.starts_with("<!-- end -->") || line.starts_with("<!-- tearless --workspace")) is_place = false;
    if (!is_prose || line.starts_with("- ")) end_paragraph();
    if (is_prose) paragraph += line + " ";
  }
  end_paragraph();
  std::vector<std::string> sentences;
  for (std::string text : paragraphs) {
    text = without(text, R"(<!-- tearless [^>]*-->.*?<!-- end -->)", "[made]");
    text = without(text, R"(\]\([^)]*\))", "]");
    text = without(text, R"(\((\w+ (and \w+|et al\.) )?(19|20)[0-9]{2}\))");  // "(Qi et al. 2018)"
    static const std::regex end(R"([.:;!?]\s+|$)");
    for (std::sregex_token_iterator it(text.begin(), text.end(), end, -1), none; it != none; ++it) {
      if (!it->str().empty()) sentences.push_back(*it);
    }
  }
  return sentences;
}

/// Those that say a number or an order, but name no claim and no setting, and have nothing that is made from results.
std::vector<std::string> unfounded(const std::vector<std::string>& sentences) {
  static const std::regex order(
      R"(\b(better|worse|best|worst|higher|lower|highest|lowest|above|below|faster|slower|smaller|larger|greater|)"
      R"(falls?|rises?|grows?|collapses?|fails?|restores?|equal|held|contradicted)\b)"),
      founded(R"(\[made\]|\bT[0-9]+\b|`[a-z_.]+ = )"), digit("[0-9]");
  std::vector<std::string> found;
  for (const std::string& sentence : sentences) {
    const std::string text = without(sentence, "`[^`]*`");
    const bool says = std::regex_search(text, order) || std::regex_search(text, digit);
    if (says && !std::regex_search(sentence, founded)) found.push_back(sentence);
  }
  return found;
}

TEST(StudyPage, RestsEachSentenceWithANumberOrAnOrderOnAClaimOrACell) {
  EXPECT_THAT(unfounded(sentences_of(page())), IsEmpty());
}

TEST(StudyPage, WouldBeFoundToSayWhatNothingRestsOn) {
  const auto found = [](const std::string& text) { return unfounded(sentences_of(text)).size(); };
  EXPECT_EQ(found("PreNorm is better.\n"), 1u);
  EXPECT_EQ(found("It has 3 layers.\nThe others\nare larger.\n"), 2u);
  EXPECT_EQ(found("- It is 1. It is so.\n- It is 2.\n"), 2u);
  EXPECT_EQ(found("PreNorm is better (T3).\n"), 0u);
  EXPECT_EQ(found("It is <!-- tearless cell a=b -->3.1<!-- end --> better, `a = 64`, [see](x/3.md).\n"), 0u);
  EXPECT_EQ(found("Talks (Qi et al. 2018), as Xu (2019) has them.\nThey have `model.heads = 4`, 4 of them.\n"), 0u);
  EXPECT_EQ(found("Talks (4 of 2018) are many.\n"), 1u);
  EXPECT_EQ(found("# 3\n```\n5\n```\n<!-- tearless table s -->\n1 is better\n<!-- end -->\nText.\n"), 0u);
}

/// The settings that a page has in code: `model.d_model = 64`.
TEST(StudyPage, HasTheSettingsOfItsRuns) {
  const test::TempFolder folder;
  std::set<std::string> settings;
  for (const char* archive : {"results/study.tar.gz", "results/study_2.tar.gz"}) {
    ASSERT_EQ(test::run({.arguments = {"/bin/tar", "xzf", (test::source_root() / archive).string(), "-C",
                                       folder.path().string(), "runs"}})
                  .code,
              0);
  }
  for (const auto& run : std::filesystem::directory_iterator(folder / "runs")) {
    std::istringstream lines(test::read_text(run.path() / "run.toml"));
    for (std::string line; std::getline(lines, line);) settings.insert(line);
  }
  const std::string text = page();
  static const std::regex setting(R"(`([a-z_]+\.[a-z_.0-9]+ = [^`]+)`)");
  int count = 0;
  for (std::sregex_iterator it(text.begin(), text.end(), setting), none; it != none; ++it, ++count)
    EXPECT_TRUE(settings.contains((*it)[1])) << (*it)[1];
  EXPECT_GE(count, 5);
}

}  // namespace
}  // namespace tearless::study_page_test
