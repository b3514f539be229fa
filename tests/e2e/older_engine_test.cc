// A workspace that an engine left which knew translation alone (tests/golden/engine/workspace_before_tasks: a run done,
// one stopped in the middle) is taken over: nothing is trained again that was trained.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/run_directory.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace tearless::older_engine_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

TEST(OlderEngine, AWorkspaceFromBeforeTasksIsTakenOverWithoutTrainingAgain) {
  const test::TempFolder folder;
  const fs::path old = test::source_root() / "tests/golden/engine/workspace_before_tasks";
  fs::copy(old, folder.path(), fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  const RunDirectory done(folder / "workspace/runs/d279c0c745b07ca7");
  const RunDirectory stopped(folder / "workspace/runs/cf3bc05c19532329");
  const std::string of_done =
      test::read_text(done.metrics()) + test::read_text(done.scores()) + test::read_text(done.done());
  const std::string metrics_so_far = test::read_text(stopped.metrics());
  const int64_t updates_so_far = stopped.checkpoint_steps().back();
  ASSERT_GT(updates_so_far, 100);

  const auto tearless = [&](std::vector<std::string> arguments) {
    std::vector<std::string> command = {test::program("tearless").string(), "--workspace", "workspace"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return test::run({.arguments = command, .folder = folder.path()});
  };
  const test::Finished run = tearless({"run", "grid.toml"});
  EXPECT_EQ(run.code, 0) << run.errors;
  EXPECT_THAT(run.output, HasSubstr("2 runs: 2 done"));
  EXPECT_THAT(run.output, Not(HasSubstr("d279c0c7"))) << "that run was done";

  EXPECT_EQ(done.newest_attempt(), 1);
  EXPECT_EQ(test::read_text(done.metrics()) + test::read_text(done.scores()) + test::read_text(done.done()), of_done);
  EXPECT_EQ(stopped.newest_attempt(), 2);
  EXPECT_TRUE(test::read_text(stopped.metrics()).starts_with(metrics_so_far));
  const json measured = json::parse(test::read_text(stopped.attempt(2) / "measured.json"));
  EXPECT_EQ(measured.at("updates"), 1600 - updates_so_far) << "it resumed from the checkpoint of the older engine";
  EXPECT_EQ(measured.at("metrics_kept_bytes"), metrics_so_far.size());
  EXPECT_TRUE(read_done(stopped).has_value());

  const test::Finished table = tearless({"table", "grid.toml"});
  EXPECT_EQ(table.code, 0) << table.errors;
  EXPECT_THAT(table.output, Not(HasSubstr("*"))) << "the results of the older engine are not stale";
  EXPECT_EQ(tearless({"verify"}).code, 0);
}

}  // namespace
}  // namespace tearless::older_engine_test
