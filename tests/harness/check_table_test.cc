// `tearless check-table`: its exit code, and what it is about.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
                     "title = \"G\"\nseeds = 3\n[[axis.s]]\nlabel = \"a\"\nset = { \"fake.score.test.bleu\" = 3.0 }\n"
                     "[[axis.s]]\nlabel = \"b\"\nset = { \"fake.score.test.bleu\" = 1.0 }\n"
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
  EXPECT_THAT(ok({"check-table", "grid.toml"}).output, HasSubstr("held: +2.00 (+2.00 … +2.00)"));
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
  EXPECT_THAT(tearless({"check-table", "grid.toml"}).output, HasSubstr("3.00 ± 0.00 [3.4, −0.40]   0.3\n"));
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
              HasSubstr("grid.toml:16: score: the table does not show test.blue"));
}

TEST_F(CheckTable, PrintsInEachFormatAndTableDoesNotPrintClaims) {
  write(kBetter);
  ok({"run", "grid.toml"});
  ok({"check-table", "grid.toml", "--out", "c.md"});
  EXPECT_THAT(test::read_text(folder_ / "c.md"), HasSubstr("| a is better | **held**: +2.00"));
  const json all = json::parse(ok({"--json", "check-table", "grid.toml"}).output);
  EXPECT_EQ(all.at("claims").size(), 2u);
  EXPECT_EQ(all.at("counts").at("claims").at("held"), 2);
  EXPECT_THAT(ok({"check-table", "grid.toml", "--format", "csv"}).output,
              HasSubstr("\nG,,a is better,,better,test.bleu,,model.kind=x,held,2,2,2,3,\n"));
  EXPECT_THAT(ok({"table", "grid.toml"}).output, Not(HasSubstr("a is better")));
  EXPECT_EQ(json::parse(ok({"table", "grid.toml", "--json"}).output).at("title"), "G") << "one table, no list";
}

}  // namespace
}  // namespace tearless::harness::check_table_test
