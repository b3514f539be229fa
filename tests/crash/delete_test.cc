// `tearless delete` is killed at its calls, of which `make test-crash` tries all. After each kill the workspace is
// consistent, with its database and with one that is rebuilt, and a repetition finishes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "harness/runs/workspace.h"
#include "tests/crash/sweep.h"

namespace tearless::crash::delete_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

class DeleteCrash : public testing::Test {
 protected:
  // Two sweeps, of which the second has a run of its own and shares the other. Each run has a derived one.
  void SetUp() override {
    ASSERT_EQ(made_.run(nullptr, {"--only", "model.kind=a"}).code, 0);
    ASSERT_EQ(made_.run().code, 0);
    const json status = json::parse(tearless(made_.folder(), {"--json", "status"}).output);
    for (const json& sweep : status.at("sweeps")) {
      if (sweep.at("runs").size() == 4) doomed_ = sweep.at("id");
    }
    ASSERT_NE(doomed_, "");
  }

  static test::Finished tearless(const fs::path& folder, std::vector<std::string> arguments,
                                 const test::Faults* faults = nullptr) {
    arguments.insert(arguments.begin(), test::program("tearless").string());
    return test::run({.arguments = std::move(arguments),
                      .environment = faults ? faults->environment() : std::map<std::string, std::string>{},
                      .folder = folder});
  }
  static void expect_consistent(const fs::path& folder, const std::string& where) {
    const test::Finished verify = tearless(folder, {"verify"});
    EXPECT_EQ(verify.code, 0) << where << "\n" << verify.output << verify.errors;
  }

  // Kills the command at each chosen point, in a copy of the workspace each. `finished` is called after a repetition.
  void kill_everywhere(const std::vector<std::string>& command, int64_t sample,
                       const std::function<void(const fs::path&, const std::string&)>& finished) {
    int64_t all = 0;
    {
      const test::TempFolder copy;
      fs::copy(made_.folder(), copy.path(), fs::copy_options::recursive);
      const test::Faults count(copy.path());
      ASSERT_EQ(tearless(copy.path(), command, &count).code, 0);
      all = count.points();
    }
    const std::vector<int64_t> points = chosen_points(all, sample, 91);
    int64_t killed = 0;
    for (const int64_t point : points) {
      const std::string where = "killed at point " + std::to_string(point) + " of " + std::to_string(all);
      const test::TempFolder copy;
      fs::copy(made_.folder(), copy.path(), fs::copy_options::recursive);
      test::Faults faults(copy.path());
      faults.kill_at(point, fault::kEverybody);
      tearless(copy.path(), command, &faults);
      killed += faults.hits();
      expect_consistent(copy.path(), where);
      if (point % 3 == 0) {
        const test::TempFolder without;
        fs::copy(copy / "results", without / "results", fs::copy_options::recursive);
        for (const char* file : {"tearless.db", "tearless.db-wal", "tearless.db-shm", "tearless.db-journal"}) {
          fs::remove(without / "results" / file);
        }
        const test::Finished rebuilt = tearless(without.path(), {"rebuild"});
        EXPECT_EQ(rebuilt.code, 0) << where << "\n" << rebuilt.output << rebuilt.errors;
        expect_consistent(without.path(), where + ", with a rebuilt database");
      }
      const test::Finished again = tearless(copy.path(), command);
      if (again.code != 0) {
        EXPECT_THAT(again.errors, HasSubstr("\"" + doomed_ + "\" is no sweep")) << where;
      }
      expect_consistent(copy.path(), where + ", repeated");
      finished(copy.path(), where);
    }
    EXPECT_GT(killed * 10, static_cast<int64_t>(points.size()) * 3);  // the service waits by the clock
  }

  Sweep made_{Engine::kFake};
  std::string doomed_;
};

TEST_F(DeleteCrash, AKillBetweenAnyTwoCallsLeavesAWorkspaceThatARepetitionFinishes) {
  kill_everywhere({"delete", "--yes", doomed_}, 16, [&](const fs::path& folder, const std::string& where) {
    const harness::Workspace workspace(folder / "results");
    EXPECT_EQ(harness::folders_in(workspace.runs()).size(), 2u) << where << ": the shared run stays";
    EXPECT_EQ(harness::folders_in(workspace.sweeps()).size(), 1u) << where;
    EXPECT_TRUE(harness::folders_in(workspace.deleted()).empty()) << where;
    const json rows = json::parse(tearless(folder, {"--json", "sql", "SELECT id, state FROM runs_view"}).output);
    EXPECT_EQ(rows.size(), 2u) << where;
    EXPECT_EQ(json::parse(tearless(folder, {"--json", "status"}).output).at("sweeps").size(), 1u) << where;
  });
}

TEST_F(DeleteCrash, WithoutWordsAKillBetweenAnyTwoCallsLeavesNoHalfCheckpoint) {
  kill_everywhere({"clean"}, 6, [&](const fs::path& folder, const std::string& where) {
    const harness::Workspace workspace(folder / "results");
    for (const std::string& id : harness::folders_in(workspace.runs())) {
      EXPECT_TRUE(harness::folders_in(workspace.run(id).checkpoints()).empty()) << where;
    }
    EXPECT_EQ(harness::folders_in(workspace.programs()).size(), 1u) << where;
    EXPECT_FALSE(fs::exists(workspace.deleted())) << where;
  });
}

}  // namespace
}  // namespace tearless::crash::delete_test
