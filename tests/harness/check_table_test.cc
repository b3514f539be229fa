// `tearless check-table`: its exit code, and what it is about.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <nlohmann/json.hpp>

#include "tests/harness/run_fixture.h"

namespace tearless::harness::check_table_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

class CheckTable : public RunTest {
 protected:
  // The runs of `a` have the score 3, those of `b` 1.
  void write(const std::string& claims, const std::string& table = "") {
    test::write_text(folder_ / "grid.toml",
                     "title = \"G\"\nseeds = 3\nvariables = [\"level\", \"spread\"]\n[computed]\n"
                     "\"fake.score.test.bleu\" = \"level + spread * (train.seed - 2)\"\n"
                     "[[axis.s]]\nlabel = \"a\"\nset = { level = 3.0, spread = 0.1 }\n"
                     "[[axis.s]]\nlabel = \"b\"\nset = { level = 1.0, spread = 0.0 }\n"
                     "[axis]\n\"model.kind\" = [\"x\", \"y\"]\n[table]\nrows = \"s\"\nscores = \"test.bleu\"\n" +
                         table + claims);
  }
  int code_of(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "check-table");
    return tearless(std::move(arguments)).code;
  }
};

constexpr const char* kBetter = "[[claim]]\ntext = \"a is better\"\nbetter = [\"a\", \"b\"]\n";
constexpr const char* kWorse = "[[claim]]\ntext = \"a is worse\"\nworse = [\"a\", \"b\"]\n";
constexpr const char* kOpen = "[[claim]]\ntext = \"a trains\"\ntrains = \"a\"\n";

TEST_F(CheckTable, ExitsWithOneIfAClaimIsContradictedAndIfStrictAlsoIfOneIsOpen) {
  write(kBetter);
  EXPECT_EQ(code_of({"grid.toml"}), 0) << "not tested yet";
  EXPECT_EQ(code_of({"grid.toml", "--strict"}), 1);
  ok({"run", "grid.toml"});
  EXPECT_EQ(code_of({"grid.toml", "--strict"}), 0);
  EXPECT_THAT(ok({"check-table", "grid.toml"}).output, HasSubstr("held: +2.00 (+1.75 … +2.25)"));
  write(std::string(kBetter) + kOpen);
  EXPECT_EQ(code_of({"grid.toml"}), 0);
  EXPECT_EQ(code_of({"grid.toml", "--strict"}), 1);
  write(std::string(kBetter) + kWorse);
  EXPECT_EQ(code_of({"grid.toml"}), 1);
  EXPECT_EQ(code_of({"last"}), 0) << "as it was submitted";
  EXPECT_EQ(code_of({"last", "--layout", "grid.toml"}), 1);
  write(kBetter, "published = { source = \"s\", tolerance = 0.5, values = [[3.4, 2.6], [1, 1]] }\n");
  EXPECT_EQ(code_of({"grid.toml", "--strict"}), 0);
  write("", "published = { source = \"s\", tolerance = 0.3, values = [[3.4, 2.8], [1, 1]] }\n");
  EXPECT_EQ(code_of({"grid.toml"}), 1);
  EXPECT_THAT(tearless({"check-table", "grid.toml"}).output, HasSubstr("3.00 ± 0.10 [3.4, −0.40]   0.3\n"));
}

TEST_F(CheckTable, WhoseSeedsWereAddedLaterHasACaveatOnWhichStrictFails) {
  write(kBetter);
  ok({"run", "grid.toml"});
  EXPECT_EQ(code_of({"grid.toml", "--strict"}), 0);
  ASSERT_TRUE(test::eventually(
      [before = std::time(nullptr)] { return std::time(nullptr) > before + 1; }));  // times are of seconds
  std::string text = test::read_text(folder_ / "grid.toml");
  test::write_text(folder_ / "grid.toml", text.replace(text.find("seeds = 3"), 9, "seeds = 4"));
  ok({"run", "grid.toml"});
  EXPECT_EQ(code_of({"grid.toml"}), 0);
  EXPECT_EQ(code_of({"grid.toml", "--strict"}), 1);
  EXPECT_THAT(ok({"check-table", "grid.toml"}).output, HasSubstr("; added seeds   "));
}

TEST_F(CheckTable, SaysSoWhereThereIsNothingToCheckAndWritesNothing) {
  write("");
  const test::Finished none = tearless({"check-table", "grid.toml", "--out", "c.md"});
  EXPECT_EQ(none.code, 2);
  EXPECT_EQ(
      none.errors,
      "tearless: grid.toml has neither claims ([[claim]]) nor published numbers with a tolerance: there is nothing "
      "to check\n");
  EXPECT_FALSE(fs::exists(folder_ / "c.md"));
  write("[[claim]]\ntext = \"a is better\"\nscore = \"test.blue\"\nbetter = [\"a\", \"b\"]\n");
  EXPECT_THAT(tearless({"check-table", "grid.toml"}).errors,
              HasSubstr("grid.toml:19: score: the table does not show test.blue"));
}

TEST_F(CheckTable, PrintsInEachFormatAndTableDoesNotPrintClaims) {
  write(kBetter);
  ok({"run", "grid.toml"});
  ok({"check-table", "grid.toml", "--out", "c.md"});
  EXPECT_THAT(test::read_text(folder_ / "c.md"), HasSubstr("| a is better (bleu): held at 2 of 2 | **held**: +2.00"));
  const json all = json::parse(ok({"--json", "check-table", "grid.toml"}).output);
  EXPECT_EQ(all.at("claims").size(), 2u);
  EXPECT_EQ(all.at("counts").at("claims").at("held"), 2);
  EXPECT_THAT(ok({"check-table", "grid.toml", "--format", "csv"}).output,
              testing::ContainsRegex("\nG,,a is "
                                     "better,,better,test.bleu,,model.kind=x,held,2[.0-9]*,1\\.75[0-9]*,2\\.24[0-9]*,3,"
                                     "0\\.05,,,,,bleu,,20[0-9-]+,[0-9a-f]+\n"));
  EXPECT_THAT(ok({"table", "grid.toml"}).output, Not(HasSubstr("a is better")));
  EXPECT_EQ(json::parse(ok({"table", "grid.toml", "--json"}).output).at("title"), "G") << "one table, no list";
}

// The metric dev.bleu of `a` is three times the update, that of `b` the update, of 5 updates each, but for a thousandth
// more with each seed.
TEST_F(CheckTable, DecidesClaimsOverCurvesAndOverScoresThatTheGridTakesFromThem) {
  const auto claim = [](const std::string& text, const std::string& keys) {
    return "[[claim]]\ntext = \"" + text + "\"\n" + keys + "\n";
  };
  const std::string curve = "\ncurve = \"dev.bleu\"\nfrom = ";
  test::write_text(
      folder_ / "grid.toml",
      "title = \"G\"\nseeds = 3\nvariables = \"slope\"\n[computed]\n"
      "\"fake.metric.dev.bleu\" = \"slope * (1 + 0.001 * (train.seed - 1))\"\n"
      "[[axis.s]]\nlabel = \"a\"\nset = { slope = 3.0 }\n[[axis.s]]\nlabel = \"b\"\nset = { slope = 1.0 }\n"
      "[score.last]\nof = \"dev.bleu\"\ntake = \"final\"\n"
      "[score.to_six]\nof = \"dev.bleu\"\ntake = \"first_at_least\"\nvalue = 6\n"
      "[score.to_three]\nof = \"dev.bleu\"\ntake = \"first_at_least\"\nvalue = 3\n"
      "[score.early]\nof = \"dev.bleu\"\ntake = \"mean\"\nto = 3\n"
      "[table]\nrows = \"s\"\nscores = [\"last\", \"to_six\", \"early\", \"to_three\"]\n" +
          claim("a stays above b", "stays_better = [\"a\", \"b\"]\nbest_is = \"highest\"" + curve + "2") +
          claim("b stays above a", "stays_better = [\"b\", \"a\"]\nbest_is = \"highest\"" + curve + "2") +
          claim("b stays below a", "stays_better = [\"b\", \"a\"]\nbest_is = \"lowest\"" + curve + "2") +
          claim("a stays above b later", "stays_better = [\"a\", \"b\"]\nbest_is = \"highest\"" + curve + "100") +
          claim("both end above 4", "above = [\"a\", \"b\"]\nthan = 4") +
          claim("both end above 6", "above = [\"a\", \"b\"]\nthan = 6") +
          claim("b ends below 6", "below = \"b\"\nthan = 6") + claim("a ends below 6", "below = \"a\"\nthan = 6") +
          claim("a is there first", "score = \"to_three\"\nbetter = [\"a\", \"b\"]") +
          claim("a is early", "score = \"early\"\nabove = \"a\"\nthan = 5.9"));
  EXPECT_THAT(ok({"check-table", "grid.toml"}).output, HasSubstr("not tested"));
  ok({"run", "grid.toml"});
  const json table = json::parse(ok({"table", "grid.toml", "--json"}).output);
  const json &of_a = table.at("rows").at(0).at("cells"), &of_b = table.at("rows").at(1).at("cells");
  EXPECT_NEAR(of_a.at(0).at("mean"), 15.015, 1e-9);
  EXPECT_EQ(of_a.at(1).at("mean"), 2) << "6 at update 2";
  EXPECT_NEAR(of_a.at(2).at("mean"), 6.006, 1e-9) << "of 3, 6 and 9";
  EXPECT_NEAR(of_b.at(0).at("mean"), 5.005, 1e-9);
  EXPECT_TRUE(of_b.at(1).at("mean").is_null());
  EXPECT_NEAR(of_b.at(2).at("mean"), 2.002, 1e-9);
  EXPECT_THAT(ok({"table", "grid.toml"}).output, HasSubstr("not reached"));

  EXPECT_EQ(code_of({"grid.toml"}), 1);
  std::map<std::string, std::string> verdicts;
  std::map<std::string, json> estimates;
  const json checked = json::parse(tearless({"--json", "check-table", "grid.toml"}).output);
  for (const json& one : checked.at("claims")) {
    verdicts[one.at("text")] = one.at("verdict");
    estimates[one.at("text")] = one.at("estimate");
  }
  EXPECT_EQ(verdicts, (std::map<std::string, std::string>{{"a stays above b", "held"},
                                                          {"b stays above a", "contradicted"},
                                                          {"b stays below a", "held"},
                                                          {"a stays above b later", "not tested"},
                                                          {"both end above 4", "held"},
                                                          {"both end above 6", "contradicted"},
                                                          {"b ends below 6", "held"},
                                                          {"a ends below 6", "contradicted"},
                                                          {"a is there first", "cannot tell"},  // by 2 updates each
                                                          {"a is early", "held"}}));
  EXPECT_NEAR(estimates.at("a stays above b"), 4.004, 1e-9) << "at update 2, where it is least ahead: 6 - 2";
  EXPECT_NEAR(estimates.at("both end above 4"), 5.005, 1e-9) << "b's, which is nearer";

  std::string grid = test::read_text(folder_ / "grid.toml");
  test::write_text(folder_ / "grid.toml", grid.replace(grid.find("\"lowest\""), 8, "\"a\""));
  EXPECT_THAT(tearless({"check-table", "grid.toml"}).errors,
              HasSubstr("grid.toml:45: [claim] best_is = \"a\" is not known; it must be one of: highest, lowest"));
}

}  // namespace
}  // namespace tearless::harness::check_table_test
