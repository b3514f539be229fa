// What `tearless plan` says of the seeds that claims need, by runs of the workspace or of an archive.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "harness/commands/plan_seeds.h"
#include "tests/harness/run_fixture.h"

namespace tearless::harness::plan_seeds_test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class PlanSeedsTest : public RunTest {
 protected:
  void write_claims(const std::string& seeds, const std::string& name = "grid.toml") {
    std::string grid = grid_of("\"succeed\"", 0);
    grid.replace(grid.find("seeds = 2"), 9, "seeds = " + seeds);
    test::write_text(folder_ / name, grid + R"(rows = "model.kind"
columns = "fake.behaviour"
[[claim]]
name = "C1"
text = "b is better"
better = ["b", "a"]
matters = "0.3 score"
[[claim]]
text = "a is no worse"
not_worse = ["a", "b"]
within = "2 %"
[[claim]]
text = "a is the worst"
worse = ["a", "b"]
[[claim]]
text = "b is the best"
best = "b"
)");
  }
  json claim_of(const std::vector<std::string>& options = {}) const {
    std::vector<std::string> words = {"--json", "plan", "grid.toml"};
    words.insert(words.end(), options.begin(), options.end());
    return json::parse(ok(words).output).at("seeds_needed").at("claims").at(0);
  }
};

TEST_F(PlanSeedsTest, GoByAGuessUntilTwoSeedsHaveRun) {
  write_claims("5");
  EXPECT_THAT(ok({"plan", "grid.toml"}).output,
              HasSubstr("  C1 b is better: 10 seeds for 0.3 score; a guess, that s_d is as large: no two seeds of its "
                        "cells have run\n  2 claims of unknown spread: 10 seeds for one s_d\n"
                        "  1 claim of unknown spread: 8 seeds for one s_d\n  One more seed: 2 runs; "));
  write_claims("3");
  ok({"run", "grid.toml"});
  write_claims("5");
  const std::string plan = ok({"plan", "grid.toml"}).output;
  EXPECT_THAT(plan,
              AllOf(HasSubstr(" from 3 seeds (succeed)\n  One more seed: 2 runs; about "), Not(HasSubstr("guess"))));
  const json claim = claim_of();
  EXPECT_EQ(claim.at("deviation_seeds"), 3);
  EXPECT_LT(claim.at("least_seeds"), claim.at("most_seeds"));
}

TEST_F(PlanSeedsTest, GoByAnArchiveOfOtherSeeds) {
  write_claims("[11, 12, 13]");
  ok({"run", "grid.toml"});
  ok({"copy", "trial.tar.gz"});
  const json of_trial = claim_of();
  fs::rename(folder_ / "results", folder_ / "gone");
  write_claims("5");
  EXPECT_EQ(claim_of().at("deviation"), nullptr);
  EXPECT_EQ(claim_of({"--like", "trial.tar.gz"}), of_trial);
}

TEST_F(PlanSeedsTest, OfLooksAreTheSeedsOnAverage) {
  write_claims("12");
  const SeedsPlan plan = {
      .claims = {{.claim = 1,
                  .score = "test.score",
                  .difference = 0.3,
                  .at_looks = {{{.power = 0.987, .seeds = 5.12}, {.power = 0.314, .seeds = 11.2}}}}},
      .tests = {.looks = {3, 5, 8, 12}},
      .further = {}};
  EXPECT_THAT(lines_of(plan, views_of(load_grid(folder_ / "grid.toml")), ""),
              ElementsAre("Claims with looks at 3, 5, 8, 12 seeds:",
                          "  C1 b is better: at most 12 seeds, 5.1 to 11.2 on average, find 0.3 score in 31 to 99 %; a "
                          "guess, that s_d is as large: no two seeds of its cells have run",
                          "  One more seed: 0 runs; "));
}

TEST_F(PlanSeedsTest, OfAGridWithLooksSaysWhatTheFirstOneTakes) {
  write_claims("5");
  EXPECT_THAT(ok({"plan", "grid.toml"}).output, Not(HasSubstr("First look")));
  EXPECT_EQ(json::parse(ok({"plan", "grid.toml", "--json"}).output).at("first_look"), nullptr);
  const std::string grid = test::read_text(folder_ / "grid.toml");
  test::write_text(folder_ / "grid.toml", grid + "[claims]\nlooks = [3, 5]\n");
  const auto first_look = [&] { return json::parse(ok({"plan", "grid.toml", "--json"}).output).at("first_look"); };
  EXPECT_EQ(first_look().at("runs_without"), 6);
  EXPECT_THAT(ok({"plan", "grid.toml"}).output, HasSubstr("\nFirst look, with --until-decided: 6 runs; "));
  ok({"run", "grid.toml", "--only", "seed=2"});
  EXPECT_THAT(ok({"plan", "grid.toml"}).output, HasSubstr("\nFirst look, with --until-decided: 4 runs; about "))
      << "of two seeds that are left; by the time of the first";
  test::write_text(folder_ / "paper.toml", "title = \"P\"\ngrids = [\"grid.toml\", \"other.toml\"]\n");
  test::write_text(folder_ / "other.toml", grid);
  EXPECT_THAT(ok({"plan", "paper.toml"}).output, HasSubstr("\nFirst look, with --until-decided: 4 runs; about "))
      << "a grid without looks has none";
}

TEST_F(PlanSeedsTest, RefuseAnArchiveThatIsNone) {
  write_claims("5");
  for (const char* none : {"nowhere.tar.gz", "grid.toml"}) {
    const test::Finished refused = tearless({"plan", "grid.toml", "--like", none});
    EXPECT_EQ(refused.code, 2);
    EXPECT_THAT(refused.errors, HasSubstr(std::string("--like ") + none +
                                          ": there is no such archive; tearless copy FILE.tar.gz writes one"));
  }
}

}  // namespace
}  // namespace tearless::harness::plan_seeds_test
