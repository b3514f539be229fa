// What a database that is made from the folders says of runs without a result.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/harness/run_fixture.h"

namespace tearless::harness::rebuild_test {
namespace {

class RebuildTest : public RunTest {};

TEST_F(RebuildTest, OfRunsThatTheirProgramRefusedLeavesThemFailed) {
  write_grid("\"refuse_late\"", 0);
  EXPECT_EQ(tearless({"run", "grid.toml"}).code, 1);
  const std::string states = "SELECT state, class, count(*) FROM runs_view GROUP BY 1, 2";
  const std::string before = ok({"sql", states}).output;
  EXPECT_THAT(before, testing::AllOf(testing::HasSubstr("failed"), testing::HasSubstr("settings")));
  fs::remove(folder_ / "results/tearless.db");
  ok({"rebuild"});
  EXPECT_EQ(ok({"sql", states}).output, before);
}

TEST_F(RebuildTest, InJsonSaysWhatItHasMadeAndWhatItCouldNotRead) {
  ok({"run", "grid.toml"});
  fs::remove(folder_ / "results/tearless.db");
  test::write_text(folder_ / "results/runs/0123456789abcdef/run.json", "damaged");
  const test::Finished rebuilt = tearless({"rebuild", "--json"});
  EXPECT_EQ(rebuilt.code, 1);
  EXPECT_EQ(rebuilt.errors, "");
  const nlohmann::json answer = nlohmann::json::parse(rebuilt.output);
  EXPECT_EQ(answer.at("database"), "results/tearless.db");
  EXPECT_EQ(answer.at("runs"), 4);
  EXPECT_EQ(answer.at("sweeps"), 1);
  EXPECT_EQ(answer.at("kept"), "");
  EXPECT_EQ(answer.at("skipped").size(), 1u);
  EXPECT_THAT(answer.at("skipped").at(0).get<std::string>(), testing::HasSubstr("0123456789abcdef"));
}

// In a new database, a copy and an archive; of a run that has had all tries, one that has not, and those that derive.
TEST_F(RebuildTest, OfRunsThatHaveFailedLeavesThemFailedAndSaysHowOftenTheyWereTried) {
  test::write_text(folder_ / "grid.toml", R"([set]
"fake.updates" = 4
[policy]
tries = { stalled = 2 }
[axis]
"model.kind" = ["a"]
"fake.behaviour" = ["crash", "out_of_memory", "crash_once", "succeed"]
[derived.wide]
beam = 8
)");
  EXPECT_EQ(tearless({"run", "grid.toml"}).code, 1);
  const auto states_in = [&](const std::string& workspace) {
    test::Command one = command(
        {"--workspace", workspace, "sql", "SELECT id, state, class, reason, attempts FROM runs_view ORDER BY id"});
    one.environment["XDG_CACHE_HOME"] = (folder_ / "cache").string();
    return test::run(one).output;
  };
  const std::string before = states_in("results");
  EXPECT_THAT(before, testing::AllOf(testing::HasSubstr("crashed"), testing::HasSubstr("out_of_memory"),
                                     testing::HasSubstr("derives has failed")));
  ok({"copy", "whole"});
  ok({"copy", "alone", "--results"});
  ok({"copy", "all.tar.gz"});
  for (const char* copy : {"whole", "alone", "all.tar.gz"}) EXPECT_EQ(states_in(copy), before) << copy;
  fs::remove(folder_ / "results/tearless.db");
  ok({"rebuild"});
  EXPECT_EQ(states_in("results"), before);
  EXPECT_EQ(tearless({"run", "grid.toml"}).code, 1);
  EXPECT_EQ(states_in("results"), before) << "they are not tried again unasked";
}

TEST_F(RebuildTest, OfARunThatHasTriesLeftQueuesIt) {
  test::write_text(folder_ / "grid.toml",
                   "[set]\n\"fake.updates\" = 4\n[axis]\n\"model.kind\" = [\"a\"]\n\"fake.behaviour\" = [\"crash\"]\n");
  EXPECT_EQ(tearless({"run", "grid.toml"}).code, 1);
  fs::remove_all(runs().at(0).attempt(3));
  fs::remove(folder_ / "results/tearless.db");
  ok({"rebuild"});
  EXPECT_THAT(ok({"sql", "SELECT state, class FROM runs_view", "--csv"}).output, testing::HasSubstr("queued,crashed"));
}

}  // namespace
}  // namespace tearless::harness::rebuild_test
