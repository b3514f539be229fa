// Which settings keep finished runs out of a grid: one line for each difference.
#include "harness/plan/earlier_results.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/run_directory.h"
#include "tests/support/paths.h"

namespace tearless::harness::earlier_results_test {
namespace {

class EarlierResults : public testing::Test {
 protected:
  // A sweep of a run for each of `canonicals`, at axis a = 0, 1 …
  void submit(const std::string& sweep, const std::string& grid_file, const std::vector<std::string>& canonicals,
              RunState end = RunState::kDone) {
    Sweep submitted{.id = sweep,
                    .title = "t",
                    .grid_file = grid_file,
                    .submitted_at = "2026-01-01T00:00:0" + std::to_string(++sweeps_) + "Z",
                    .runs = {}};
    for (size_t i = 0; i < canonicals.size(); ++i) {
      submitted.runs.push_back({.id = run_id(canonicals[i]),
                                .settings = canonicals[i],
                                .coordinates = {{"a", std::to_string(i)}},
                                .seed = 1,
                                .updates = 1});
    }
    store_->submit(submitted);
    for (const harness::Run& run : submitted.runs) {
      if (store_->run(run.id)->state != RunState::kQueued || end == RunState::kQueued) continue;
      store_->move(run.id, RunState::kQueued, RunState::kRunning);
      store_->move(run.id, RunState::kRunning, end);
    }
  }

  // What is said if the grid now asks for runs with these settings.
  std::string lines_for(const std::vector<std::string>& canonicals, int64_t seed = 1) const {
    std::vector<harness::Run> asked;
    for (size_t i = 0; i < canonicals.size(); ++i) {
      asked.push_back({.id = "", .settings = canonicals[i], .coordinates = {{"a", std::to_string(i)}}, .seed = seed});
    }
    testing::internal::CaptureStderr();
    report_earlier_results(*store_, "/grids/../grids/g.toml", asked, globals_);
    return testing::internal::GetCapturedStderr();
  }

  test::TempFolder folder_;
  Globals globals_{.workspace = folder_ / "w", .engine = {}, .json = false};
  std::unique_ptr<Store> store_ = Store::open_writer(Workspace(folder_ / "w"));
  int sweeps_ = 0;
  const std::string workspace_ = " --workspace " + (folder_ / "w").string();
};

TEST_F(EarlierResults, AreCountedByDifference) {
  submit("s", "/grids/g.toml", {"b = 1\n", "b = 1\nc = 2\n", "b = 1\nc = 3\n"});
  EXPECT_EQ(lines_for({"b = 2\n", "b = 2\nc = 2\n", "c = 3\nd = \"x = y\"\n"}),
            "2 finished runs of this grid differ in b (1 → 2); tearless table s" + workspace_ +
                " shows them\n1 finished run of this grid differs in b (1 → –), d (– → \"x = y\"); tearless table "
                "s" +
                workspace_ + " shows it\n");
}

TEST_F(EarlierResults, AreOfTheNewestSweepThatFinishedThem) {
  submit("old", "/grids/g.toml", {"b = 1\n", "b = 1\nc = 1\n"});
  submit("new", "/grids/g.toml", {"b = 2\n"}, RunState::kDiverged);
  submit("newest", "/grids/g.toml", {"b = 3\n"}, RunState::kFailed);
  EXPECT_EQ(lines_for({"b = 4\n", "b = 4\nc = 1\n"}),
            "1 finished run of this grid differs in b (2 → 4); tearless table new" + workspace_ +
                " shows it\n1 finished run of this grid differs in b (1 → 4); tearless table old" + workspace_ +
                " shows it\n");
}

TEST_F(EarlierResults, OfOtherGridsSeedsAndPlacesAreNotMeant) {
  submit("other", "/grids/other.toml", {"b = 1\n"});
  submit("same", "/grids/g.toml", {"b = 1\nc = 1\n"}, RunState::kQueued);
  EXPECT_EQ(lines_for({"b = 2\n"}), "");
  submit("done", "/grids/g.toml", {"b = 5\n"});
  EXPECT_EQ(lines_for({"b = 2\n"}, /*seed=*/2), "");
  EXPECT_EQ(lines_for({""}), "") << "its data are missing";
  EXPECT_EQ(lines_for({}), "");
  EXPECT_NE(lines_for({"b = 2\n"}), "");
}

TEST_F(EarlierResults, AreNamedBriefly) {
  std::string many;
  for (const char key : std::string("bcdefg")) many += std::string(1, key) + " = 1\n";
  submit("s", "/grids/g.toml", {many, "b = \"" + std::string(20, 'x') + "éééé\"\n"});
  const std::string lines = lines_for({"a = 1\n", "b = 1\n"});
  EXPECT_THAT(lines, testing::HasSubstr("a (– → 1), b (1 → –), c (1 → –), d (1 → –) and 3 more settings;"));
  EXPECT_THAT(lines, testing::HasSubstr("b (\"" + std::string(20, 'x') + "é… → 1);"));
}

}  // namespace
}  // namespace tearless::harness::earlier_results_test
