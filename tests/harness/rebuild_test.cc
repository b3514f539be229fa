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

}  // namespace
}  // namespace tearless::harness::rebuild_test
