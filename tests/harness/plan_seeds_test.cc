// What `tearless plan` says of the seeds that claims need, by runs of the workspace or of an archive.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/harness/run_fixture.h"

namespace tearless::harness::plan_seeds_test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::MatchesRegex;
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
                        "cells have run\n  One more seed: 2 runs; "));
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
