// Rows read from a database: which runs a selection means, in which sweep, with what derives from them there.
#include "harness/results/result_set.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/grid/grid.h"
#include "tests/support/paths.h"

namespace tearless::harness::result_set_test {
namespace {

harness::Run request(const std::string& id) {
  return {.id = id, .settings = "a = 1\n", .coordinates = {{"axis", "label of " + id}}, .seed = 1, .updates = 10};
}

harness::Run derived(const std::string& id, const harness::Run& of, const std::string& name) {
  harness::Run run = of;
  run.id = id;
  run.settings = fmt::format("derived.name = \"{}\"\nderived.of = \"{:0>16}\"\n", name, of.id);
  run.coordinates.emplace_back(kDerivedLabel, name);
  return run;
}

Sweep sweep(const std::string& id, std::vector<harness::Run> runs) {
  return {.id = id,
          .title = "a title",
          .grid_file = "/grids/g.toml",
          .submitted_at = "2026-01-31T12:00:00Z",
          .runs = std::move(runs),
          .stamp = {{"numerics", 1}}};
}

class ResultSetTest : public testing::Test {
 protected:
  ResultSetTest() : workspace_(folder_ / "work"), store_(Store::open_writer(workspace_)) {}

  ResultSet read(const std::vector<std::string>& words, Duplicates duplicates = Duplicates::kNewest) const {
    std::unique_ptr<const Store> store = Store::open_reader(workspace_);
    const Selection selection = select(*store, words);
    return selected_rows(std::move(store), selection, duplicates, Read::kResults);
  }
  void end(const std::string& id, RunState state, const std::string& scores = "", int64_t numerics = 1) {
    store_->move(id, RunState::kQueued, RunState::kRunning);
    AttemptRecord attempt;
    attempt.number = 1;
    attempt.outcome = "done";
    attempt.device = "cpu";
    attempt.numerics = numerics;
    store_->put_attempt(id, attempt);
    if (!scores.empty()) store_->put_result(id, {.done = "{}", .scores = scores});
    store_->move(id, RunState::kRunning, state, FailureClass::kNone, "", 7);
  }

  test::TempFolder folder_;
  Workspace workspace_;
  std::unique_ptr<Store> store_;
};

TEST_F(ResultSetTest, HasEachSelectedRunOnceAsTheNewestSweepHasItOrInEverySweep) {
  store_->submit(sweep("old", {request("aa"), request("bb")}));
  store_->submit(sweep("new", {request("cc"), request("bb"), request("bb")}));
  const auto selected = [&](const std::vector<std::string>& words, Duplicates duplicates) {
    std::vector<std::string> runs;
    for (const Row& row : read(words, duplicates).rows) {
      runs.push_back(fmt::format("{} {} {}", row.sweep_id(), row.place, row.run.id));
    }
    return runs;
  };
  using testing::ElementsAre;
  EXPECT_THAT(selected({"old", "new"}, Duplicates::kNewest), ElementsAre("old 1 aa", "new 1 cc", "new 2 bb"));
  EXPECT_THAT(selected({"old", "new", "old"}, Duplicates::kAll),
              ElementsAre("old 1 aa", "old 2 bb", "new 1 cc", "new 2 bb", "new 3 bb"));
  EXPECT_THAT(selected({"bb"}, Duplicates::kNewest), ElementsAre("new 2 bb"));
  EXPECT_THAT(selected({"old", "2"}, Duplicates::kNewest), ElementsAre("old 2 bb"));
  store_->submit(sweep("old", {request("aa"), request("bb")}));  // keeps its place in the queue, and is the newest now
  EXPECT_THAT(selected({"bb"}, Duplicates::kNewest), ElementsAre("old 2 bb"));
}

TEST_F(ResultSetTest, OfATrainedRunHasWhatThatSweepDerivesFromIt) {
  const harness::Run run = request("000000000000000a");
  store_->submit(sweep("old", {run, derived("000000000000000b", run, "wide")}));
  store_->submit(sweep("new", {run, derived("000000000000000c", run, "wide")}));
  const auto ids = [](const std::vector<Row>& rows) {
    std::vector<std::string> ids;
    for (const Row& row : rows) ids.push_back(row.sweep_id() + " " + row.run.id.substr(15));
    return ids;
  };
  using testing::ElementsAre;
  ResultSet one = read({"000000000000000a"});
  EXPECT_THAT(ids(one.rows), ElementsAre("new a"));
  EXPECT_THAT(ids(one.beside), ElementsAre("new c"));
  EXPECT_EQ(one.beside[0].trained, run.id);
  ResultSet all = read({"all"});
  EXPECT_THAT(ids(all.rows), ElementsAre("new a", "new c", "old b"));
  EXPECT_THAT(ids(all.beside), ElementsAre());
  EXPECT_THAT(ids(read({"all"}, Duplicates::kAll).rows), ElementsAre("new a", "new c", "old a", "old b"));
}

TEST_F(ResultSetTest, HasTheResultOfEachRunAndMarksThoseOfOtherNumericsThanTheSweeps) {
  store_->submit(sweep("s", {request("aa"), request("bb"), request("cc")}));
  end("aa", RunState::kDone, R"({"test.bleu": 20.5})");
  end("bb", RunState::kDiverged, R"({"test.bleu": 3})", /*numerics=*/2);
  const std::vector<Row> rows = read({"s"}).rows;
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].result.scores.at("test.bleu"), 20.5);
  EXPECT_EQ(rows[0].result.stale, "");
  EXPECT_TRUE(rows[0].counts(false));
  EXPECT_EQ(rows[1].result.step, 7);
  EXPECT_NE(rows[1].result.stale, "");
  EXPECT_FALSE(rows[1].counts(false));
  EXPECT_TRUE(rows[1].counts(true));
  EXPECT_EQ(rows[2].result.state, RunState::kQueued);
  EXPECT_FALSE(rows[2].counts(true));
}

TEST_F(ResultSetTest, HasWhatTheAttemptsHaveMeasuredUnderTheNameOfADerivedRun) {
  const harness::Run run = request("000000000000000a");
  store_->submit(sweep("new", {run, derived("000000000000000b", run, "wide")}));
  int64_t seconds = 3;
  for (const char* id : {"000000000000000a", "000000000000000b"}) {
    store_->move(id, RunState::kQueued, RunState::kRunning);
    for (const int64_t number : {1, 2}) {
      AttemptRecord attempt;
      attempt.number = number;
      attempt.device = "cpu";
      attempt.processor = "a processor";
      attempt.measured = {{"seconds", seconds}, {"updates", 6}, {"threads", 1}};
      store_->put_attempt(id, attempt);
    }
    seconds = 1;
  }
  const ResultSet found = read({"new"});
  ASSERT_EQ(found.rows.size(), 2u);
  const Row &trained = found.rows[0], &wide = found.rows[1];
  EXPECT_EQ(trained.number("measured.seconds_per_update"), 0.5);
  EXPECT_EQ(trained.number("wide.measured.seconds"), std::nullopt);
  EXPECT_EQ(wide.number("wide.measured.seconds"), 2);
  EXPECT_EQ(wide.number("measured.seconds"), std::nullopt);
  EXPECT_TRUE(trained.result.scores.empty()) << "they are no scores";
  EXPECT_EQ(trained.result.measured_on, std::set<std::string>{"cpu, a processor, 1 thread"});
}

}  // namespace
}  // namespace tearless::harness::result_set_test
