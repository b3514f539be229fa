// What is one row of a table in the code stands on the page and in the help that list it.
#include <gtest/gtest.h>

#include <span>
#include <sstream>

#include "base/score/measures.h"
#include "base/words.h"
#include "harness/claims/claim.h"
#include "harness/runs/measured.h"
#include "harness/statistics/curve.h"
#include "harness/statistics/statistic.h"
#include "tests/harness/run_fixture.h"

namespace tearless::harness::documented_test {
namespace {

using Names = std::vector<std::string>;

// In backticks, in a row of a table of the page.
void expect_rows(const Names& names, const std::string& page) {
  ASSERT_FALSE(names.empty());
  std::istringstream lines(test::read_text(test::source_root() / "docs" / page));
  std::string rows;
  for (std::string line; std::getline(lines, line);) rows += line.starts_with('|') ? line + "\n" : "";
  for (const std::string& name : names)
    EXPECT_TRUE(rows.find("`" + name + "`") != std::string::npos) << "docs/" << page << " has no row of " << name;
}

template <class Kind>
Names names_of(std::span<const Kind> kinds, const std::string& before = "", const std::string& after = "") {
  Names names;
  for (const Kind& kind : kinds) names.push_back(before + std::string(kind.name) + after);
  return names;
}

TEST(Documented, EveryStatisticOfACellIsOnThePageOfTables) {
  expect_rows(names_of(statistics(), "{", "}"), "tables.md");
}
TEST(Documented, EveryKindOfClaimIsOnThePageOfClaims) { expect_rows(names_of(claim_kinds()), "claims.md"); }
TEST(Documented, EveryNumberOfACurveIsOnThePageOfFigures) { expect_rows(names_of(curve_measures()), "figures.md"); }
TEST(Documented, EveryMeasuredNumberIsOnThePageOfStatisticsFiles) {
  expect_rows(measured_names(), "statistics_files.md");
}
TEST(Documented, EveryScoreOfSumsIsOnThePageOfStatisticsFiles) { expect_rows(measure_names(), "statistics_files.md"); }

class DocumentedFormats : public RunTest {
 protected:
  // The list with which a value of an option is refused: "…; choose one of a, b, or add --format".
  Names listed(const std::string& command, const std::string& option, const std::string& before) const {
    const std::string refused = tearless({command, "grid.toml", option, "none.none"}).errors;
    const size_t at = refused.find(before);
    EXPECT_NE(at, std::string::npos) << refused;
    if (at == std::string::npos) return {};
    const std::string list = refused.substr(at + before.size());
    return list_items(list.substr(0, std::min(list.find('\n'), list.find(", or "))));
  }
  Names formats(const std::string& command) const { return listed(command, "--format", "it must be one of: "); }
  Names endings(const std::string& command) const { return listed(command, "--out", "choose one of "); }

  std::string line_of(const std::string& text, const std::string& begin) const {
    const size_t at = text.find("\n  " + begin);
    EXPECT_NE(at, std::string::npos) << begin;
    return at == std::string::npos ? "" : text.substr(at, text.find('\n', at + 1) - at);
  }
  void expect_words(const Names& words, const std::string& text) const {
    ASSERT_FALSE(words.empty());
    for (const std::string& word : words)
      EXPECT_TRUE(std::regex_search(text, std::regex("\\b" + word + "\\b", std::regex::icase))) << word << ": " << text;
  }
};

TEST_F(DocumentedFormats, EveryOneOfTablesAndFiguresIsInTheHelpAndOnItsPage) {
  for (const std::string command : {"table", "check-table", "figure"}) {
    const std::string help = line_of(tearless({command, "--help"}).output, "--format ");
    expect_words(formats(command), help);
    for (const std::string& ending : endings(command)) {
      const bool is_other_spelling = ending == ".markdown" || ending == ".htm";
      EXPECT_TRUE(is_other_spelling || help.find(ending) != std::string::npos) << ending << ": " << help;
    }
  }
  const std::string all = tearless({"--help"}).output;
  for (const std::string command : {"table", "figure"}) expect_words(formats(command), line_of(all, command + " "));
  expect_rows(formats("figure"), "figures.md");
  const std::string figures = test::read_text(test::source_root() / "docs/figures.md");
  for (const std::string& ending : endings("figure"))
    EXPECT_NE(figures.find("`" + ending + "`"), std::string::npos) << "docs/figures.md has not " << ending;
  const std::string tables = test::read_text(test::source_root() / "docs/tables.md");
  expect_words(formats("table"), tables.substr(0, tables.find("\n- ")));
}

}  // namespace
}  // namespace tearless::harness::documented_test
