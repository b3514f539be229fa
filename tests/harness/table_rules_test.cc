// Which point `select` takes and which runs `fail_below` leaves out, in the tables of grids whose runs have chosen
// scores.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <nlohmann/json.hpp>

#include "tests/harness/run_fixture.h"

namespace tearless::harness::table_rules_test {
namespace {

using nlohmann::json;
using testing::Contains;

class TableRulesTest : public RunTest {
 protected:
  // The table of a grid, all of whose runs are trained.
  json table_of(const std::string& grid) const {
    test::write_text(folder_ / "grid.toml", grid);
    ok({"run", "grid.toml"});
    return json::parse(ok({"table", "grid.toml", "--format", "json"}).output);
  }
  static json cell(const json& table, size_t row, size_t column) {
    return table.at("rows").at(row).at("cells")[column];
  }
};

// One bundle of an axis: its scores "dev" and "test".
std::string point(const std::string& axis, const std::string& label, double dev, double test) {
  return fmt::format(
      "[[axis.{}]]\nlabel = \"{}\"\nset = {{ \"model.{}\" = \"{}\", \"fake.score.dev\" = {}, \"fake.score.test\" = {} "
      "}}\n",
      axis, label, axis, label, dev, test);
}

TEST_F(TableRulesTest, OfPointsThatAreEquallyGoodSelectTakesTheFirstOfTheGrid) {
  const std::string points = "[axis]\n\"model.norm\" = [\"x\"]\n" + point("size", "s", 5, 1) +
                             point("size", "m", 7, 2) + point("size", "l", 7, 3) + point("size", "xl", 5, 4);
  const auto chosen = [&](const std::string& by, const std::string& best) {
    const json table = table_of(points + "[table]\nscores = [\"test\"]\nselect = { over = [\"size\"], by = \"" + by +
                                "\", best = \"" + best + "\" }\n");
    return std::pair(cell(table, 0, 0).at("chosen").get<std::string>(), cell(table, 0, 0).at("mean").get<double>());
  };
  EXPECT_EQ(chosen("dev", "highest"), std::pair(std::string("m"), 2.0));
  EXPECT_EQ(chosen("dev", "lowest"), std::pair(std::string("s"), 1.0));
}

TEST_F(TableRulesTest, OfPointsThatAreEquallyGoodTheFirstIsByTheAxesAsSelectNamesThem) {
  const std::string points =
      "[axis]\n\"model.norm\" = [\"x\"]\n\"model.a\" = [\"a1\", \"a2\"]\n\"model.b\" = [\"b1\", \"b2\"]\n"
      "[set]\n\"fake.score.dev\" = 7\n"
      "[[exclude]]\nwhen = { \"model.a\" = \"a1\", \"model.b\" = \"b1\" }\nwhy = \"w\"\n"
      "[[exclude]]\nwhen = { \"model.a\" = \"a2\", \"model.b\" = \"b2\" }\nwhy = \"w\"\n"
      "[table]\nscores = [\"dev\"]\n";
  const auto chosen = [&](const std::string& over) {
    const json table = table_of(points + "select = { over = [" + over + "], by = \"dev\" }\n");
    return cell(table, 0, 0).at("chosen").get<std::string>();
  };
  EXPECT_EQ(chosen("\"model.a\", \"model.b\""), "a1, b2");
  EXPECT_EQ(chosen("\"model.b\", \"model.a\""), "b1, a2");
}

// Two rows of two sizes; those of the row y have no score "alt" to choose by.
std::string with_nothing_to_choose_by_in_y(const std::string& table) {
  return "[axis]\n[[axis.norm]]\nlabel = \"x\"\nset = { \"model.norm\" = \"x\", \"fake.score.alt\" = 3 "
         "}\n[[axis.norm]]\n"
         "label = \"y\"\nset = { \"model.norm\" = \"y\" }\n" +
         point("size", "s", 5, 1) + point("size", "m", 7, 2) + "[table]\nrows = [\"norm\"]\nscores = [\"test\"]\n" +
         table;
}
constexpr const char* kChoosing = "select = { over = [\"size\"], by = \"alt\" }\n";

// All runs are done, so nothing is missing: what the cell lacks is a reason to choose.
TEST_F(TableRulesTest, WhereNoRunHasTheScoreThatSelectChoosesByTheCellSaysThatNothingIsChosen) {
  const json table = table_of(with_nothing_to_choose_by_in_y(kChoosing)), one = cell(table, 1, 0);
  EXPECT_EQ(one.at("state"), "not_chosen");
  EXPECT_EQ(one.at("reason"), "not chosen: no run has alt");
  for (const char* count : {"missing", "failed", "scoreless", "diverged", "n"}) EXPECT_EQ(one.at(count), 0) << count;
  EXPECT_EQ(cell(table, 0, 0).at("reason"), "");
  EXPECT_EQ(cell(table, 0, 0).at("mean"), 1.0) << "of equal ones the first";
  const auto shown = [&](const char* format) { return ok({"table", "grid.toml", "--format", format}).output; };
  EXPECT_THAT(shown("text"), testing::AllOf(testing::ContainsRegex("y +not chosen\n"),
                                            testing::HasSubstr("not chosen: no run has alt")));
  EXPECT_THAT(ok({"table", "grid.toml", "--final"}).output, testing::Not(testing::HasSubstr("have no result")));
  const std::string csv = shown("csv"), header = csv.substr(0, csv.find('\n'));
  EXPECT_TRUE(header.ends_with(",reason")) << header;
  EXPECT_TRUE(csv.ends_with(",not chosen: no run has alt\n")) << csv;
  EXPECT_THAT(table_of(with_nothing_to_choose_by_in_y("columns = [\"size\"]\n")).dump(),
              testing::Not(testing::HasSubstr("reason")))
      << "a table that chooses nothing has no such field";
}

TEST_F(TableRulesTest, AClaimAndANumberOfACellInWhichNothingIsChosenAreNotTestedForThatReason) {
  test::write_text(
      folder_ / "grid.toml",
      with_nothing_to_choose_by_in_y(std::string(kChoosing) +
                                     "[[table.published]]\nsource = \"s\"\ntolerance = 1\nvalues = [[1], [1]]\n"
                                     "[[claim]]\ntext = \"c\"\nbetter = [\"x\", \"y\"]\n"));
  ok({"run", "grid.toml"});
  const json found = json::parse(tearless({"check-table", "grid.toml", "--format", "json"}).output);
  const json of_y[] = {found.at("claims").at(0), found.at("cells").at(1)};
  for (const json& one : of_y) {
    EXPECT_EQ(one.at("verdict"), "not tested") << one;
    EXPECT_EQ(one.at("reason"), "not chosen: no run has alt") << one;
  }
  EXPECT_EQ(found.at("cells").at(0).at("verdict"), "held") << "of x one is chosen";
}

TEST_F(TableRulesTest, ARunWhoseFirstScoreIsBelowTheLimitFailsInEveryColumnAndNoOther) {
  const std::string points = "[axis]\n" + point("size", "below", 19.999, 50) + point("size", "at", 20, 1) +
                             point("size", "above", 20.001, 2) +
                             "[[axis.size]]\nlabel = \"without\"\nset = { \"fake.score.test\" = 3 }\n";
  const auto states_and_means = [](const json& table) {
    std::vector<std::string> all;
    for (size_t row = 0; row < 4; ++row) {
      for (size_t column = 0; column < 2; ++column) {
        const json one = cell(table, row, column);
        all.push_back(one.at("state").get<std::string>() + " " + one.at("mean").dump());
      }
    }
    return all;
  };
  const json by_dev = table_of(points + "[table]\nscores = [\"dev\", \"test\"]\nfail_below = 20\n");
  EXPECT_THAT(states_and_means(by_dev), testing::ElementsAre("below null", "below null", "done 20.0", "done 1.0",
                                                             "done 20.001", "done 2.0", "scoreless null", "done 3.0"));
  EXPECT_THAT(by_dev.at("notes"), Contains("fail: trained to the end with dev below 20."));

  const json by_test = table_of(points + "[table]\nscores = [\"test\", \"dev\"]\nfail_below = 2\n");
  EXPECT_THAT(states_and_means(by_test), testing::ElementsAre("done 50.0", "done 19.999", "below null", "below null",
                                                              "done 2.0", "done 20.001", "done 3.0", "scoreless null"));
  EXPECT_THAT(by_test.at("notes"), Contains("fail: trained to the end with test below 2."));
}

TEST_F(TableRulesTest, ASeedThatIsAddedAfterTheOthersHaveResultsIsNamed) {
  const auto grid = [](int seeds) {
    return fmt::format("seeds = {}\n[axis]\n\"model.norm\" = [\"x\", \"y\"]\n", seeds);
  };
  const auto added = Contains(testing::StartsWith("Seed 3 was added on "));
  EXPECT_THAT(table_of(grid(2)).at("notes").get<std::vector<std::string>>(), testing::Not(added));
  ASSERT_TRUE(test::eventually(
      [before = std::time(nullptr)] { return std::time(nullptr) > before + 1; }));  // times are of seconds
  EXPECT_THAT(table_of(grid(3)).at("notes").get<std::vector<std::string>>(), added);
}

// What a test over sentences compares are the sentences of the score that the table shows.
TEST_F(TableRulesTest, ATestOverSentencesReadsThoseOfTheRunsAndRefusesOthers) {
  test::write_text(folder_ / "grid.toml",
                   "seeds = 2\n[axis]\n\"model.norm\" = [\"x\", \"y\"]\n[table]\nscores = \"test.bleu\"\n"
                   "rows = \"model.norm\"\nbaseline = \"x\"\n[table.test]\nsamples = 999\n");
  const auto answer = [&](std::vector<std::string> words) {
    test::Command command = this->command(std::move(words));
    command.environment["FAKE_SCORES"] = "test.bleu";
    command.environment["FAKE_SENTENCES"] = "40";
    return finish(command);
  };
  ASSERT_EQ(answer({"run", "grid.toml"}).code, 0);
  const json table = json::parse(answer({"table", "last", "--json"}).output);
  const double p = cell(table, 1, 0).at("p");
  EXPECT_GE(p, 0.001);
  EXPECT_LE(p, 1);
  EXPECT_TRUE(cell(table, 0, 0).at("p").is_null());
  // The file of another run.
  const std::string one = cell(table, 0, 0).at("runs").at(0), other = cell(table, 1, 0).at("runs").at(0);
  const fs::path file = folder_ / "results/runs" / one / "outputs/test.stats";
  fs::copy_file(folder_ / "results/runs" / other / "outputs/test.stats", file, fs::copy_options::overwrite_existing);
  const test::Finished refused = answer({"table", "last"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_EQ(refused.output, "");
  EXPECT_THAT(refused.errors,
              testing::AllOf(testing::HasSubstr(one), testing::HasSubstr("outputs/test.stats: it makes test.bleu"),
                             testing::HasSubstr("the file is of other outputs")));
  fs::remove(file);
  EXPECT_THAT(answer({"table", "last"}).output, testing::HasSubstr("no statistics of sentences (1)"));
}

}  // namespace
}  // namespace tearless::harness::table_rules_test
