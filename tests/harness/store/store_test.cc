#include "harness/store/store.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <random>
#include <set>
#include <stdexcept>
#include <thread>

#include "base/error.h"
#include "harness/store/database.h"
#include "harness/store/workspace_format.h"
#include "tests/support/error_of.h"
#include "tests/support/paths.h"
#include "tests/support/privileges.h"

namespace tearless::harness::store_test {
namespace {

using tearless::test::error_of;
namespace fs = std::filesystem;

harness::Run request(const std::string& id) {
  return {.id = id, .settings = "a = 1\n", .coordinates = {{"axis", "label of " + id}}, .seed = 1, .updates = 10};
}

Sweep sweep(const std::string& id, std::vector<harness::Run> runs) {
  return {.id = id,
          .title = "a title",
          .grid_file = "/grids/g.toml",
          .submitted_at = "2026-01-31T12:00:00Z",
          .runs = std::move(runs)};
}

AttemptRecord attempt(int64_t number, const std::string& outcome) {
  AttemptRecord record;
  record.number = number;
  record.outcome = outcome;
  record.numerics = 1;
  return record;
}

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename().string());
  return names;
}

class StoreTest : public testing::Test {
 protected:
  StoreTest() : workspace_(folder_ / "work"), store_(Store::open_writer(workspace_)) {}

  test::TempFolder folder_;
  Workspace workspace_;
  std::unique_ptr<Store> store_;
};

TEST_F(StoreTest, UndoesAPartOfATransactionAlone) {
  store_->in_transaction([&] {
    store_->put_run(request("a"));
    const std::string sentence = error_of([&] {
      store_->in_savepoint([&] {
        store_->put_run(request("b"));
        fail("a reason");
      });
    });
    EXPECT_EQ(sentence, "a reason");
    store_->in_savepoint([&] { store_->put_run(request("c")); });
  });
  EXPECT_TRUE(store_->run("a"));
  EXPECT_FALSE(store_->run("b"));
  EXPECT_TRUE(store_->run("c"));
}

TEST_F(StoreTest, KnowsHowLongTheRunsOfAResourceClassTook) {
  harness::Run done = request("a"), queued = request("b"), unknown = request("c");
  done.needs.resource_class = queued.needs.resource_class = "s";
  done.updates = 100;
  for (const harness::Run& run : {done, queued, unknown}) store_->put_run(run);
  for (const char* id : {"a", "c"}) {
    store_->move(id, RunState::kQueued, RunState::kRunning);
    for (const int64_t number : {1, 2}) {
      AttemptRecord record = attempt(number, number == 1 ? "stopped" : "done");
      record.started_at = "2026-01-31T12:00:00Z";
      record.ended_at = "2026-01-31T12:01:30Z";
      if (number == 2) {
        record.measured = {{"seconds", 12.5},
                           {"training_seconds", 8.5},
                           {"updates", 60},
                           {"evaluation_seconds", 2.5},
                           {"evaluations", 3}};
      }
      store_->put_attempt(id, record);
    }
    store_->move(id, RunState::kRunning, RunState::kDone);
  }
  const std::vector<Timing> timings = store_->timings();
  ASSERT_EQ(timings.size(), 1u);
  EXPECT_EQ(timings[0].resource_class, "s");
  EXPECT_EQ(timings[0].updates, 100);
  EXPECT_EQ(timings[0].seconds, 90 + 12.5) << "its own time where the program says it";
  EXPECT_EQ(timings[0].training_seconds, 8.5);
  EXPECT_EQ(timings[0].updates_made, 60);
  EXPECT_EQ(timings[0].evaluation_seconds, 2.5);
  EXPECT_EQ(timings[0].evaluations, 3);
}

TEST_F(StoreTest, AWriteDoesNotInheritValuesOfTheOneBefore) {
  store_->put_run(request("a"));
  AttemptRecord one = attempt(1, "crashed"), two = attempt(2, "crashed");
  one.lost = LostWork{.updates = 7, .seconds = 1.5};
  one.code = 139;
  store_->put_attempt("a", one);
  store_->put_attempt("a", two);
  const std::vector<AttemptRecord> attempts = store_->attempts_of("a");
  ASSERT_EQ(attempts.size(), 2u);
  EXPECT_EQ(attempts[0].lost->updates, 7);
  EXPECT_FALSE(attempts[1].lost.has_value());
  EXPECT_FALSE(attempts[1].code.has_value());
}

TEST_F(StoreTest, ReadsOfASnapshotSeeOneStateWhateverIsWrittenMeanwhile) {
  store_->put_run(request("a"));
  const std::unique_ptr<const Store> reader = Store::open_reader(workspace_);
  reader->in_snapshot([&] {
    EXPECT_EQ(reader->run("a")->state, RunState::kQueued);
    store_->move("a", RunState::kQueued, RunState::kRunning);
    EXPECT_EQ(reader->run("a")->state, RunState::kQueued);
    reader->in_snapshot([&] { EXPECT_EQ(reader->run("a")->state, RunState::kQueued) << "of the outer one"; });
  });
  EXPECT_EQ(reader->run("a")->state, RunState::kRunning);
  EXPECT_THROW(reader->in_snapshot([] { throw std::runtime_error("of the caller"); }), std::runtime_error);
  store_->move("a", RunState::kRunning, RunState::kQueued);
  EXPECT_EQ(reader->run("a")->state, RunState::kQueued) << "the snapshot has ended";
}

TEST_F(StoreTest, MetricsAreReadWholeWhileTheirRunGetsMetricsOfNewNames) {
  store_->put_run(request("a"));
  const std::unique_ptr<const Store> reader = Store::open_reader(workspace_);
  std::jthread training([&](const std::stop_token& ends) {
    for (int64_t at = 0; !ends.stop_requested() && at < 5000; ++at) {
      store_->in_transaction([&] {
        store_->put_metrics("a", at, {{at, at, fmt::format("metric{}", at), 1.0}}, at + 1);
      });
    }
  });
  for (int i = 0; i < 300; ++i) {
    const std::vector<MetricLine> lines = reader->metrics_of("a");
    EXPECT_FALSE(reader->newest_metrics("a").contains(""));
    if (!lines.empty()) EXPECT_EQ(lines.back().name, fmt::format("metric{}", lines.back().position));
  }
}

TEST_F(StoreTest, ARunThatWasForgottenSinceItWasSelectedIsRefused) {
  store_->submit(sweep("s", {request("a")}));
  EXPECT_EQ(store_->known_run(request("a").id).state, RunState::kQueued);
  store_->forget("s", {request("a").id});
  EXPECT_EQ(error_of([&] { store_->known_run(request("a").id); }), "run " + request("a").id + " was deleted meanwhile");
}

TEST_F(StoreTest, CountsAndListsTheRunsOfASweepByState) {
  store_->submit(sweep("another", {request("e")}));
  store_->submit(sweep("s", {request("a"), request("b"), request("c"), request("d")}));
  store_->move(request("b").id, RunState::kQueued, RunState::kRunning, FailureClass::kNone);
  store_->move(request("d").id, RunState::kQueued, RunState::kHeld, FailureClass::kNone, "on request");
  EXPECT_EQ(store_->counts_of("s"),
            (std::map<RunState, int64_t>{{RunState::kQueued, 2}, {RunState::kRunning, 1}, {RunState::kHeld, 1}}));
  EXPECT_TRUE(store_->counts_of("none").empty());
  const auto ids = [&](const std::vector<RunState>& states) {
    std::vector<std::string> ids;
    for (const RunRecord& run : store_->runs_of("s", states)) ids.push_back(run.id);
    return ids;
  };
  EXPECT_EQ(ids({}).size(), 4u);
  EXPECT_EQ(ids({RunState::kHeld}), std::vector<std::string>{request("d").id});
  EXPECT_EQ(ids({RunState::kHeld, RunState::kRunning}), (std::vector<std::string>{request("b").id, request("d").id}))
      << "in the grid's order";
  EXPECT_TRUE(ids({RunState::kDone}).empty());
}

TEST_F(StoreTest, KeepsWhatWasLearntOfShapes) {
  store_->put_memory_peak("a", 7);
  store_->put_memory_peak("a", 8);
  store_->put_memory_peak("b", 9);
  EXPECT_EQ(store_->memory_peaks(), (std::map<std::string, int64_t>{{"a", 8}, {"b", 9}}));
}

TEST_F(StoreTest, AddsUpWhatTheAttemptsOfASweepHaveLost) {
  store_->submit(sweep("s", {request("aa"), request("bb"), request("aa")}));
  store_->submit(sweep("another", {request("cc")}));
  const auto lose = [&](const std::string& run, int64_t number, std::optional<LostWork> lost) {
    AttemptRecord record = attempt(number, lost ? "killed" : "done");
    record.lost = lost;
    store_->put_attempt(run, record);
  };
  lose("aa", 1, LostWork{.updates = 120, .seconds = 35.5});
  lose("aa", 2, LostWork{.updates = 3, .seconds = 0.25});
  lose("aa", 3, std::nullopt);
  lose("bb", 1, LostWork{.updates = 7, .seconds = 4});
  lose("cc", 1, LostWork{.updates = 1000, .seconds = 1000});
  EXPECT_EQ(store_->lost_in("s").updates, 130) << "a run that is there twice counts once";
  EXPECT_DOUBLE_EQ(store_->lost_in("s").seconds, 39.75);
  EXPECT_EQ(store_->lost_in("empty").updates, 0);
  const std::vector<AttemptRecord> attempts = store_->attempts_of("aa");
  EXPECT_EQ(attempts.at(0).lost.value().updates, 120);
  EXPECT_DOUBLE_EQ(attempts.at(0).lost.value().seconds, 35.5);
  EXPECT_FALSE(attempts.at(2).lost);
}

TEST_F(StoreTest, KeepsASweepInTheGridsOrderWithItsCoordinates) {
  store_->submit(sweep("s", {request("bb"), request("aa"), request("bb")}));
  const std::vector<RunRecord> runs = store_->runs_of("s");
  ASSERT_EQ(runs.size(), 3u);  // two cells that share a run
  EXPECT_EQ(runs[0].id, "bb");
  EXPECT_EQ(runs[1].id, "aa");
  EXPECT_EQ(label_on(runs[1].coordinates, "axis"), "label of aa");
  EXPECT_EQ(runs[1].state, RunState::kQueued);
  EXPECT_EQ(store_->ids_in(RunState::kQueued), (std::vector<std::string>{"bb", "aa"}));
}

TEST_F(StoreTest, KeepsEachOfManyRunsAsItWasRequested) {
  const auto nth = [](int64_t i) {
    harness::Run run = request("run " + std::to_string(i));
    run.settings = "a = " + std::to_string(i) + "\n";
    if (i % 3 == 0) run.parameters = 1000 + i;
    if (i % 3 != 0) run.needs.memory_bytes = 2000 + i;
    run.updates = 3000 + i;
    run.coordinates = {{"axis", "point " + std::to_string(i / 7)}};
    run.seed = 4000 + i;
    run.local = "threads = " + std::to_string(i);
    run.needs.device = i % 2 == 0 ? "cpu" : "cuda";
    run.needs.threads = static_cast<int>(5000 + i);
    run.rank = 6000 - i;
    run.data = std::make_shared<const InputFiles>(InputFiles{{"/" + std::to_string(i % 5), "12"}});
    run.needs.resource_class = "shape " + std::to_string(i);
    return run;
  };
  std::vector<harness::Run> runs;
  for (const int64_t i : {77, 3}) runs.push_back(nth(i));  // known to another sweep already
  store_->submit(sweep("another", runs));
  for (int64_t i = 0; i < 160; ++i) runs.push_back(nth(i));  // a third time in one sweep: 77 and 3
  runs.push_back(nth(150));                                  // and one twice that is new
  store_->submit(sweep("s", runs));

  const std::vector<RunRecord> records = store_->runs_of("s");
  ASSERT_EQ(records.size(), runs.size());
  for (size_t place = 0; place < runs.size(); ++place) {
    SCOPED_TRACE(runs[place].id);
    const RunRecord& record = records[place];
    EXPECT_EQ(to_json(record), to_json(runs[place]));
    EXPECT_EQ(record.place, static_cast<int64_t>(place));
    EXPECT_EQ(to_json(store_->run_of("s", record.id)).at("seed"), record.seed);
  }
  EXPECT_EQ(store_->ids_in(RunState::kQueued).size(), 160u);
}

TEST_F(StoreTest, ASecondSubmissionFillsInWhatWasNotKnownAndKeepsWhatWas) {
  harness::Run bare = request("aa");
  bare.settings = "";
  store_->submit(sweep("s", {bare}));
  harness::Run whole = request("aa");
  whole.parameters = 7;
  whole.needs.memory_bytes = 8;
  whole.needs.resource_class = "a class";
  whole.updates = 20;
  whole.local = "threads = 2";
  whole.needs.device = "cuda";
  whole.needs.threads = 2;
  store_->submit(sweep("s", {whole}));
  bare.updates = 5;
  bare.settings = "a = 2\n";
  bare.local = "threads = 3";
  bare.needs.threads = 3;
  store_->submit(sweep("s", {bare}));
  const RunRecord run = store_->run("aa").value();
  EXPECT_EQ(run.settings, "a = 1\n");
  EXPECT_EQ(run.parameters, 7);
  EXPECT_EQ(run.needs.memory_bytes, 8);
  EXPECT_EQ(run.needs.resource_class, "a class");
  EXPECT_EQ(run.updates, 20);
  EXPECT_EQ(run.needs.threads, 3) << "where and how it runs: as it was last asked for";
  EXPECT_EQ(run.local, "threads = 3");
}

TEST_F(StoreTest, ASecondSubmissionLeavesStatesAsTheyAre) {
  store_->submit(sweep("s", {request("aa")}));
  store_->move("aa", RunState::kQueued, RunState::kRunning);
  store_->submit(sweep("s", {request("aa")}));
  store_->submit(sweep("another", {request("aa")}));
  EXPECT_EQ(store_->run("aa")->state, RunState::kRunning);
  EXPECT_EQ(store_->sweeps().size(), 2u);
}

TEST_F(StoreTest, WhatWaitedUnderAProvisionalIdIsCancelledWhenTheCorpusHasCome) {
  harness::Run waiting = request("provisional");
  waiting.settings = "";
  waiting.waiting_for = "train.de is missing";
  store_->submit(sweep("before", {waiting, request("planned")}));
  EXPECT_EQ(store_->run("provisional")->state, RunState::kWaitingData);
  EXPECT_EQ(store_->run("provisional")->reason, "train.de is missing");
  store_->move("planned", RunState::kQueued, RunState::kWaitingData);
  store_->submit(sweep("after", {request("final")}));
  EXPECT_EQ(store_->run("provisional")->state, RunState::kCancelled);
  EXPECT_EQ(store_->run("planned")->state, RunState::kWaitingData) << "it has its final id and waits for other bytes";
  EXPECT_EQ(store_->run("final")->state, RunState::kQueued);
}

TEST_F(StoreTest, RunsOfTheSameInputFilesAreFoundTogether) {
  harness::Run a = request("a"), b = request("b"), c = request("c"), other = request("d");
  const InputFiles files = {{"/train.en", "12"}, {"/train.\"de\"", "34"}};
  a.data = b.data = c.data = std::make_shared<const InputFiles>(files);
  other.data = std::make_shared<const InputFiles>(InputFiles{{"/train.en", "12"}});
  store_->submit(sweep("s", {a, b, c, other, request("e")}));
  store_->move("b", RunState::kQueued, RunState::kRunning);
  EXPECT_EQ(store_->queued_with(files), (std::vector<std::string>{"a", "c"}));
  EXPECT_EQ(*store_->run("a")->data, files);
  EXPECT_EQ(*store_->run("e")->data, InputFiles());
  store_->move("a", RunState::kQueued, RunState::kWaitingData);
  EXPECT_EQ(store_->queued_with(files), std::vector<std::string>{"c"});
  a.data = other.data;  // as a later submission names them
  store_->submit(sweep("s", {a}));
  EXPECT_EQ(*store_->run("a")->data, *other.data);
}

TEST_F(StoreTest, AnIllegalMoveOrAStaleOneIsALogicError) {
  store_->submit(sweep("s", {request("aa")}));
  EXPECT_THROW(store_->move("aa", RunState::kDone, RunState::kFailed), std::logic_error);
  EXPECT_THROW(store_->move("aa", RunState::kRunning, RunState::kDone), std::logic_error);  // it is queued
  EXPECT_EQ(store_->run("aa")->state, RunState::kQueued);
}

TEST_F(StoreTest, CountsFailuresOfOneClassUntilTheCountIsReset) {
  store_->submit(sweep("s", {request("aa")}));
  store_->in_transaction([&] {
    store_->put_attempt("aa", attempt(1, "crashed"));
    store_->put_attempt("aa", attempt(2, "stopped"));
    store_->put_attempt("aa", attempt(3, "crashed"));
  });
  EXPECT_EQ(store_->failures_of("aa", FailureClass::kCrashed), 2);
  store_->move("aa", RunState::kQueued, RunState::kFailed, FailureClass::kCrashed, "again");
  store_->requeue("aa", "on request");
  EXPECT_EQ(store_->failures_of("aa", FailureClass::kCrashed), 0);
  EXPECT_EQ(store_->attempts_of("aa").size(), 3u);  // not counted any more, but still recorded
}

TEST_F(StoreTest, ForgetsTheMetricsThatAResumedAttemptCutOff) {
  store_->submit(sweep("s", {request("aa")}));
  store_->in_transaction([&] {
    store_->put_metrics("aa", 0, {{0, 1, "train.loss", 5.0}, {40, 2, "train.loss", 4.0}}, 80);
  });
  store_->in_transaction([&] {
    store_->put_metrics("aa", 0, {{0, 1, "train.loss", 5.0}, {40, 2, "train.loss", 3.5}}, 81);
  });
  const auto newest = store_->newest_metrics("aa");
  EXPECT_EQ(newest.at("train.loss").value, 3.5);
  EXPECT_EQ(store_->query("SELECT count(*) FROM metrics_view").rows[0][0], 2);
  EXPECT_EQ(store_->metrics_bytes("aa"), 81);
}

TEST_F(StoreTest, MetricsThatWereChangedAreRefusedWhereTheyAreRead) {
  store_->submit(sweep("s", {request("aa"), request("bb")}));
  store_->in_transaction([&] { store_->put_metrics("aa", 0, {{0, 1, "train.loss", 5.5}, {40, 2, "x", -0.0}}, 80); });
  store_->in_transaction([&] { store_->put_metrics("aa", 80, {{80, 3, "train.loss", 4.0}}, 120); });
  store_->in_transaction([&] { store_->put_metrics("bb", 0, {{0, 1, "train.loss", 1.0}}, 40); });
  store_.reset();
  const fs::path database = workspace_.database(), sound = folder_ / "sound";
  fs::copy_file(database, sound);
  EXPECT_EQ(Store::open_reader(workspace_)->metrics_of("aa").size(), 3u);
  EXPECT_EQ(Store::open_reader(workspace_)->query("SELECT * FROM metrics_view").rows.size(), 4u);
  for (const char* change :
       {"UPDATE metrics SET value = 5.25 WHERE position = 0", "UPDATE metrics SET value = value + 1 WHERE run = 1",
        "UPDATE metrics SET step = 4 WHERE position = 80", "UPDATE metrics SET position = 79 WHERE position = 80",
        "UPDATE metrics SET name = 1 WHERE position = 40", "UPDATE metric_names SET name = 'y' WHERE name = 'x'",
        "DELETE FROM metrics WHERE position = 80", "DELETE FROM metrics WHERE run = 1",
        "DELETE FROM metric_names WHERE name = 'x'", "INSERT INTO metrics VALUES (1, 120, 4, 1, 3.0)",
        "UPDATE metrics SET run = 2 WHERE position = 40"}) {
    SQLite::Database(database.string(), SQLite::OPEN_READWRITE).exec(change);
    const auto reader = Store::open_reader(workspace_);
    const auto refuses =
        testing::HasSubstr("no longer holds what was recorded (the metrics of run aa); to see what is wrong");
    EXPECT_THAT(error_of([&] { reader->metrics_of("aa"); }), refuses) << change;
    EXPECT_THAT(error_of([&] { reader->newest_metrics("aa"); }), refuses) << change;
    EXPECT_THAT(error_of([&] { reader->query("SELECT count(*) FROM metrics_view"); }), refuses) << change;
    EXPECT_EQ(reader->query("SELECT * FROM runs_view").rows.size(), 2u) << "where metrics are not read";
    fs::copy_file(sound, database, fs::copy_options::overwrite_existing);
  }
}

TEST_F(StoreTest, MetricsThatAreNotFiniteAreKept) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  store_->put_run(request("a"));
  const std::vector<double> values = {std::nan(""), kInfinity, -kInfinity, 0.5};
  for (int64_t at = 0; at < std::ssize(values); ++at)
    store_->in_transaction([&] { store_->put_metrics("a", at, {{at, at, "loss", values[at]}}, at + 1); });
  store_.reset();
  const auto reader = Store::open_reader(workspace_);
  const std::vector<MetricLine> lines = reader->metrics_of("a");
  ASSERT_EQ(lines.size(), values.size());
  EXPECT_TRUE(std::isnan(lines[0].value));
  for (size_t i = 1; i < values.size(); ++i) EXPECT_EQ(lines[i].value, values[i]);
  EXPECT_EQ(reader->query("SELECT step FROM metrics_view WHERE value IS NULL").rows.size(), 1u);
  EXPECT_EQ(reader->query("SELECT step FROM metrics_view WHERE value > 1e308").rows[0][0], 1);
}

TEST_F(StoreTest, AResultIsStaleUnderNewerNumericsAndMixedAfterTwoMachines) {
  store_->submit(sweep("s", {request("aa")}));
  AttemptRecord first = attempt(1, "stopped"), second = attempt(2, "done");
  first.device = second.device = "cpu";

  first.checkpoint = second.checkpoint = 10;
  first.processor = "one processor";
  second.processor = "another";
  store_->in_transaction([&] {
    store_->put_attempt("aa", first);
    store_->put_attempt("aa", second);
    store_->put_result("aa", {.done = "{}", .scores = R"({"test.bleu": 20.9})"});
    store_->move("aa", RunState::kQueued, RunState::kDone);
  });
  EXPECT_EQ(store_->result_of("aa").stale, "");
  EXPECT_EQ(store_->result_of("aa", {.numerics = 1}).stale, "");
  EXPECT_EQ(store_->result_of("aa", {.numerics = 2}).stale,
            "the training program computed other numbers (numerics 1, now 2)");
  second.numerics = 2;  // it was resumed by another build
  store_->in_transaction([&] { store_->put_attempt("aa", second); });
  for (const int64_t now : {1, 2, 3}) EXPECT_NE(store_->result_of("aa", {.numerics = now}).stale, "") << now;
  first.checkpoint = 0;  // killed before its first checkpoint: it has no part in the result
  store_->in_transaction([&] { store_->put_attempt("aa", first); });
  EXPECT_EQ(store_->result_of("aa", {.numerics = 2}).stale, "");
  first.checkpoint = 10;
  second.numerics = 1;
  store_->in_transaction([&] {
    store_->put_attempt("aa", first);
    store_->put_attempt("aa", second);
  });
  EXPECT_EQ(store_->result_of("aa").trained_on.size(), 2u);
  EXPECT_EQ(store_->result_of("aa").scores.at("test.bleu"), 20.9);

  second.processor = first.processor;
  second.arithmetic = "OpenBLAS 0.3.34 SkylakeX";
  store_->put_attempt("aa", second);
  EXPECT_EQ(store_->result_of("aa").trained_on,
            (std::set<std::string>{"cpu, one processor", "cpu, one processor, OpenBLAS 0.3.34 SkylakeX"}));
  first.checkpoint = 0;  // it was killed before it had named its library, and left nothing
  store_->put_attempt("aa", first);
  EXPECT_EQ(store_->result_of("aa").trained_on, std::set<std::string>{"cpu, one processor, OpenBLAS 0.3.34 SkylakeX"});
  EXPECT_EQ(store_->result_of("unheard of").state, std::nullopt);
}

TEST_F(StoreTest, ReturnsAllRecordedFieldsOfAnAttempt) {
  store_->submit(sweep("s", {request("aa")}));
  AttemptRecord record;
  record.number = 3;
  record.outcome = "killed";
  record.reason = "from outside";
  record.code = 137;
  record.signal = 9;
  record.started_at = "2026-01-31T12:00:00Z";
  record.ended_at = "2026-01-31T13:00:00Z";
  record.host = "a host";
  record.device = "cuda:1";
  record.processor = "a processor";
  record.version = "0.1.0";
  record.numerics = 7;
  record.arithmetic = "a library 1.0";
  record.measured = {{"updates", 40}};
  record.checkpoint = 30;
  store_->put_attempt("aa", record);
  const std::vector<AttemptRecord> attempts = store_->attempts_of("aa");
  ASSERT_EQ(attempts.size(), 1u);
  const AttemptRecord& stored = attempts[0];
  const auto fields = [](const AttemptRecord& a) {
    return std::tie(a.number, a.outcome, a.reason, a.code, a.signal, a.started_at, a.ended_at, a.host, a.device,
                    a.processor, a.version, a.numerics, a.arithmetic, a.measured, a.checkpoint);
  };
  EXPECT_EQ(fields(stored), fields(record));
  record.code = record.signal = std::nullopt;  // as it is while it runs
  store_->put_attempt("aa", record);
  ASSERT_EQ(store_->attempts_of("aa").size(), 1u);
  EXPECT_EQ(fields(store_->attempts_of("aa")[0]), fields(record));
}

TEST_F(StoreTest, ListsSweepsWithTheNewestFirstThoughTheClockWasSetBack) {
  Sweep older = sweep("older", {request("aa")}), newer = sweep("newer", {request("aa")});
  newer.submitted_at = "2025-12-31T00:00:00Z";
  newer.title = "another title";
  newer.name = "another name";
  newer.grid_file = "/grids/h.toml";
  store_->submit(older);
  store_->submit(newer);
  const std::vector<Sweep> sweeps = store_->sweeps();
  ASSERT_EQ(sweeps.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    const Sweep& expected = i == 0 ? newer : older;
    EXPECT_EQ(sweeps[i].id, expected.id);
    EXPECT_EQ(sweeps[i].title, expected.title);
    EXPECT_EQ(sweeps[i].name, expected.name);
    EXPECT_EQ(sweeps[i].grid_file, expected.grid_file);
    EXPECT_EQ(sweeps[i].submitted_at, expected.submitted_at);
  }
}

TEST_F(StoreTest, ATransactionIsAllOrNothing) {
  store_->submit(sweep("s", {request("aa")}));
  EXPECT_THROW(store_->in_transaction([&] {
    store_->put_result("aa", {.done = "{}", .scores = std::nullopt});
    throw UserError("a folder is missing");
  }),
               UserError);
  EXPECT_FALSE(store_->recorded_result("aa"));
}

// SQLite parses the text of a number on its own.
TEST_F(StoreTest, TheViewOfScoresHasTheNumbersThatTablesPrint) {
  std::mt19937_64 random(20260131);
  nlohmann::json scores = {{"whole", 5}, {"unknown", nullptr}, {"tiny", 5e-324}, {"huge", 1.7976931348623157e308}};
  for (int i = 0; i < 300; ++i) scores[fmt::format("test.{}", i)] = std::ldexp(static_cast<double>(random()), -57);
  store_->submit(sweep("s", {request("aa"), request("bb")}));
  store_->put_result("aa", {.done = "{}", .scores = scores.dump()});
  store_->put_result("bb", {.done = "{}", .scores = std::nullopt});
  store_->move("aa", RunState::kQueued, RunState::kDone);
  std::map<std::string, double> shown;
  for (const auto& row : store_->query("SELECT run, name, value FROM scores_view").rows) {
    EXPECT_EQ(row[0], "aa");
    shown[row[1]] = row[2];
  }
  EXPECT_EQ(shown.size(), 303u) << "without the one that is not known";
  EXPECT_EQ(shown, store_->result_of("aa").scores);
}

TEST_F(StoreTest, MetricsOfARunAreReadInTheOrderOfItsFile) {
  store_->submit(sweep("s", {request("aa"), request("bb")}));
  store_->put_metrics("aa", 0, {{0, 1, "train.loss", 5}, {40, 1, "dev.bleu", 7}, {80, 2, "train.loss", 4}}, 120);
  std::vector<std::string> read;
  const auto note = [&](const MetricLine& line) {
    read.push_back(fmt::format("{} {} {}", line.step, line.name, line.value));
  };
  store_->read_metrics("bb", note);
  store_->put_metrics("bb", 0, {{0, 1, "other", 5}}, 40);
  store_->read_metrics("aa", note);
  EXPECT_EQ(read, (std::vector<std::string>{"1 train.loss 5", "1 dev.bleu 7", "2 train.loss 4"}));
  EXPECT_EQ(store_->metric_names_of("aa"), (std::vector<std::string>{"dev.bleu", "train.loss"}));
  EXPECT_EQ(store_->metric_names(), (std::vector<std::string>{"dev.bleu", "other", "train.loss"}));
}

TEST_F(StoreTest, TheViewOfSettingsHasTheLinesOfTheCanonicalText) {
  const std::string text =
      "data.name = \"a \\\\n \\\"b\\\" = c\\n\"\nmodel.layers = 6\ntrain.lr = 1e-05\ntrain.names = [\"x\", \"ü\"]\n";
  harness::Run run = request("aa");
  run.settings = text;
  harness::Run waiting = request("bb");
  waiting.settings = "";
  store_->submit(sweep("s", {run, waiting}));
  std::string shown;
  for (const auto& row : store_->query("SELECT run, key, value FROM settings_view").rows) {
    EXPECT_EQ(row[0], "aa");
    shown += row[1].get<std::string>() + " = " + row[2].get<std::string>() + "\n";
  }
  EXPECT_EQ(shown, text);
}

TEST_F(StoreTest, EveryViewCanBeQueried) {
  for (const auto& row : store_->query("SELECT name FROM sqlite_schema WHERE type = 'view'").rows) {
    EXPECT_NO_THROW(store_->query("SELECT * FROM " + row[0].get<std::string>())) << row[0];
  }
}

TEST_F(StoreTest, ASecondWriterLearnsTheProcessOfTheFirst) {
  const std::string message = error_of([&] { Store::open_writer(workspace_); });
  EXPECT_NE(message.find("process " + std::to_string(::getpid())), std::string::npos) << message;
}

TEST_F(StoreTest, AReaderSeesWhatAWriterCommitsAndCannotWrite) {
  const auto reader = Store::open_reader(workspace_);
  store_->submit(sweep("s", {request("aa")}));
  EXPECT_EQ(reader->runs_of("s").size(), 1u);
  EXPECT_NE(error_of([&] { reader->query("DELETE FROM runs"); }).find("only reads"), std::string::npos);
}

TEST_F(StoreTest, AQueryCanOnlyRead) {
  const std::set<std::string> before = names_in(workspace_.root());
  const std::string other = (workspace_.root() / "other.db").string();
  for (const std::string& sql : {"ATTACH '" + other + "' AS o", "VACUUM INTO '" + other + "'", std::string("VACUUM"),
                                 std::string("PRAGMA journal_mode = DELETE"), std::string("PRAGMA user_version = 7"),
                                 std::string("CREATE TEMP TABLE t (a)"), std::string("UPDATE runs SET state = 'done'"),
                                 std::string("BEGIN"), std::string("EXPLAIN DELETE FROM runs")}) {
    EXPECT_EQ(error_of([&] { store_->query(sql); }), "`tearless sql` only reads; write the query as a SELECT") << sql;
  }
  EXPECT_EQ(names_in(workspace_.root()), before);
  EXPECT_FALSE(store_->query("PRAGMA table_info(runs)").rows.empty());
  EXPECT_FALSE(store_->query("EXPLAIN QUERY PLAN SELECT * FROM runs_view").rows.empty());
  EXPECT_EQ(store_
                ->query("WITH RECURSIVE n(i) AS (SELECT 1 UNION SELECT i + 1 FROM n WHERE i < 3) "
                        "SELECT group_concat(i) FROM n")
                .rows[0][0],
            "1,2,3");
  store_->submit(sweep("s", {request("aa")}));  // the writer may still write
}

TEST_F(StoreTest, AQueryIsOneStatement) {
  EXPECT_EQ(store_->query("SELECT 1; -- and no more\n;").rows.size(), 1u);
  EXPECT_EQ(error_of([&] { store_->query("SELECT 1; SELECT 2"); }),
            "the query is several statements; send them one at a time");
  for (const char* sql : {"", " ;", "-- nothing"}) {
    EXPECT_EQ(error_of([&] { store_->query(sql); }).rfind("the query is empty", 0), 0u) << sql;
  }
  EXPECT_EQ(
      error_of([&] { store_->query("SELECT x FROM nowhere"); }),
      "SQLite refuses the query: no such table: nowhere; `tearless sql` without a query lists the views and their "
      "columns");
}

TEST_F(StoreTest, AQueryGivesBlobsAndNulBytes) {
  const QueryResult result = store_->query("SELECT x'00ff', x'', cast(x'61ff' AS TEXT), 'a' || char(0) || 'b', 9e999");
  EXPECT_EQ(result.rows[0][0], "x'00ff'");
  EXPECT_EQ(result.rows[0][1], "x''");
  EXPECT_EQ(result.rows[0][2], "a\xff");
  EXPECT_EQ(result.rows[0][3], std::string("a\0b", 3));
}

TEST_F(StoreTest, NothingIsRecordedInADatabaseThatIsGone) {
  const fs::path file = workspace_.database(), log = file.string() + "-wal";
  fs::remove(file);
  EXPECT_THAT(error_of([&] { store_->put_run({.id = "0123456789abcdef", .settings = ""}); }),
              testing::AllOf(testing::HasSubstr(file.string() + " was deleted or replaced while a service used it"),
                             testing::EndsWith("tearless rebuild --workspace " + workspace_.root().string())));
  test::write_text(file, "another database");
  fs::remove(log);
  test::write_text(log, "and its log");
  store_.reset();
  EXPECT_EQ(test::read_text(log), "and its log");
}

TEST_F(StoreTest, ReadingLeavesNoFiles) {
  store_.reset();
  const std::set<std::string> before = names_in(workspace_.root());
  EXPECT_EQ(before, (std::set<std::string>{"tearless.db", "tearless.lock",
                                           "tearless.writer"}));  // at rest the database is one file
  Store::open_reader(workspace_)->sweeps();
  EXPECT_EQ(names_in(workspace_.root()), before);
}

TEST(Store, ReadingAMissingDatabaseCreatesNothing) {
  const test::TempFolder folder;
  EXPECT_EQ(Store::open_reader(Workspace(folder / "nowhere")), nullptr);
  EXPECT_FALSE(fs::exists(folder / "nowhere"));
}

TEST_F(StoreTest, ADatabaseOfAnotherFormatIsRefusedByBoth) {
  store_.reset();
  for (const int format : {1, kWorkspaceFormat - 1, kDatabaseFormat + 1}) {
    SQLite::Database(workspace_.database().string(), SQLite::OPEN_READWRITE)
        .exec(fmt::format("PRAGMA user_version = {}", format));
    for (const std::string& message :
         {error_of([&] { Store::open_writer(workspace_); }), error_of([&] { Store::open_reader(workspace_); })}) {
      EXPECT_EQ(message.find(workspace_.root().string() + " is a workspace of " +
                             (format < kWorkspaceFormat ? "an earlier" : "a later") +
                             " build of tearless, and was left as it is"),
                0u)
          << message;
    }
  }
}

TEST_F(StoreTest, AFileThatIsNoDatabaseIsNamed) {
  store_.reset();
  test::write_text(workspace_.database(), std::string(4096, 'x'));
  const std::string message = error_of([&] { Store::open_writer(workspace_); });
  EXPECT_NE(message.find("tearless rebuild"), std::string::npos) << message;
}

TEST_F(StoreTest, AnotherSchemaUnderTheSameVersionIsRefusedByBoth) {
  store_.reset();
  SQLite::Database(workspace_.database().string(), SQLite::OPEN_READWRITE)
      .exec("DROP VIEW runs_view; ALTER TABLE sweeps RENAME COLUMN title TO heading");
  for (const std::string& message :
       {error_of([&] { Store::open_writer(workspace_); }), error_of([&] { Store::open_reader(workspace_); })}) {
    EXPECT_EQ(message.rfind(workspace_.database().string() + " is not a database of this tearless", 0), 0u) << message;
    EXPECT_NE(message.find("tearless rebuild"), std::string::npos) << message;
  }
}

TEST_F(StoreTest, ViewsThatAUserAddsAreAccepted) {
  store_->submit(sweep("s", {request("aa")}));
  store_.reset();
  SQLite::Database(workspace_.database().string(), SQLite::OPEN_READWRITE).exec("CREATE VIEW mine AS SELECT 1 AS one");
  EXPECT_EQ(Store::open_reader(workspace_)->runs_of("s").size(), 1u);
}

TEST_F(StoreTest, ADamagedDatabaseIsNamedByWhateverReadsIt) {
  store_->submit(sweep("s", {request("aa")}));
  store_.reset();
  std::string bytes = test::read_text(workspace_.database());
  constexpr int64_t kPage = 4096;
  std::fill(bytes.begin() + kPage, bytes.end(), 'x');  // the head that makes it a database stays
  test::write_text(workspace_.database(), bytes);
  const std::string message = error_of([&] { Store::open_reader(workspace_)->runs_of("s"); });
  EXPECT_NE(message.find("cannot read the database " + workspace_.database().string()), std::string::npos) << message;
  EXPECT_NE(message.find("tearless rebuild --workspace " + workspace_.root().string()), std::string::npos) << message;
}

// Two runs in two sweeps, two attempts, a result. Every kind of write has changed it.
TEST_F(StoreTest, WhatItWroteItselfIsAsItWasRecorded) {
  store_->submit(sweep("s", {request("aa"), request("bb"), request("aa")}));
  store_->submit(sweep("other", {request("cc")}));
  store_->submit(sweep("s", {request("aa"), request("bb"), request("aa")}));
  store_->set_priority("s", 3);
  store_->set_sweep_state("s", SweepState::kPaused, "on request");
  store_->set_reason("bb", "waits");
  store_->put_attempt("aa", attempt(1, ""));
  store_->put_attempt("aa", attempt(1, "crashed"));
  store_->put_attempt("bb", attempt(1, "crashed"));
  store_->put_metrics("aa", 0, {{0, 1, "train.loss", 5.0}}, 40);
  store_->put_result("aa", {.done = "{}", .scores = "{}"});
  store_->put_result("aa", {.done = "{ }", .scores = std::nullopt});
  store_->put_result("bb", {.done = "{}", .scores = std::nullopt});
  store_->move("aa", RunState::kQueued, RunState::kDone);
  EXPECT_EQ(store_->recorded_result("aa")->done, "{ }");
  store_->requeue("aa", "its run folder was deleted");
  EXPECT_FALSE(store_->recorded_result("aa"));
  store_->forget_attempts("bb");
  store_->forget("other", {"cc"});
  EXPECT_EQ(Store::open_reader(workspace_)->runs_of("s").size(), 3u);
  store_.reset();
  EXPECT_EQ(Store::open_writer(workspace_)->attempts_of("aa").size(), 1u);
}

TEST_F(StoreTest, AChangedValueAMissingRowAndANewOneAreRefusedByBoth) {
  store_->submit(sweep("s", {request("aa"), request("bb")}));
  store_->put_attempt("aa", attempt(1, "done"));
  store_->put_result("aa", {.done = "{}", .scores = R"({"test.bleu": 20.9})"});
  store_.reset();
  const std::string sound = test::read_text(workspace_.database());
  const auto expect_refused = [&](const std::string& table, const std::string& change) {
    {
      SQLite::Database other(workspace_.database().string(), SQLite::OPEN_READWRITE);
      other.exec("PRAGMA foreign_keys = OFF; " + change);
    }
    for (const std::string& message :
         {error_of([&] { Store::open_writer(workspace_); }), error_of([&] { Store::open_reader(workspace_); })}) {
      EXPECT_EQ(message, fmt::format("{} no longer holds what was recorded ({}); to see what is wrong and what to do: "
                                     "tearless verify --workspace {}",
                                     workspace_.database().string(), table, workspace_.root().string()))
          << change;
    }
    test::write_text(workspace_.database(), sound);
  };
  const auto columns =
      Store::open_reader(workspace_)
          ->query(
              "SELECT m.name, c.name, c.type FROM sqlite_schema m, pragma_table_info(m.name) c "
              "WHERE m.type = 'table' AND m.name NOT IN ('metrics', 'metric_names', 'resource_classes', "
              "'checksums')")
          .rows;
  EXPECT_GT(columns.size(), 50u);
  for (const auto& row : columns) {
    const std::string table = row[0], column = row[1];
    const std::string value = row[2] == "TEXT" ? "coalesce({1}, '') || 'x'" : "coalesce({1}, 0) + 1000";
    expect_refused(table, fmt::format(fmt::runtime("UPDATE {0} SET {1} = " + value), table, column));
  }
  for (const char* table : {"runs", "attempts", "results", "sweeps", "sweep_runs"}) {
    expect_refused(table, fmt::format("DELETE FROM {}", table));
    expect_refused(table, fmt::format("UPDATE checksums SET value = value + 1 WHERE name = '{}'", table));
    expect_refused(table, fmt::format("DELETE FROM checksums WHERE name = '{}'", table));
  }
  expect_refused("results", "INSERT INTO results (run, done) VALUES (2, '{}')");
}

TEST_F(StoreTest, AnIndexThatLacksARowIsRefused) {
  store_->submit(sweep("s", {request("aa"), request("bb")}));
  store_.reset();
  {
    SQLite::Database other(workspace_.database().string(), SQLite::OPEN_READWRITE);
    other.exec(
        "PRAGMA writable_schema = ON; "
        "UPDATE sqlite_schema SET sql = replace(sql, '(state)', '(state) WHERE id = ''aa''') "
        "WHERE name = 'runs_by_state'");
  }
  SQLite::Database(workspace_.database().string(), SQLite::OPEN_READWRITE)
      .exec(
          "REINDEX runs_by_state; PRAGMA writable_schema = ON; "
          "UPDATE sqlite_schema SET sql = 'CREATE INDEX runs_by_state ON runs (state)' WHERE name = 'runs_by_state'");
  EXPECT_THAT(error_of([&] { Store::open_reader(workspace_); }), testing::HasSubstr("what was recorded (runs)"));
}

// As an earlier build left them, or somebody changed them.
TEST_F(StoreTest, OtherViewsAreNotReadAndAWriterReplacesThem) {
  store_.reset();
  const auto columns = [&](SQLite::Database& database) {
    SQLite::Statement row(database, "SELECT * FROM runs_view");
    return row.getColumnCount();
  };
  const auto in_file = [&] {
    SQLite::Database file(workspace_.database().string(), SQLite::OPEN_READONLY);
    return columns(file);
  };
  const int ours = in_file();
  SQLite::Database file(workspace_.database().string(), SQLite::OPEN_READWRITE);
  file.exec(
      "DROP VIEW runs_view; CREATE VIEW runs_view AS SELECT id FROM runs; DROP VIEW derived_runs_view; "
      "DROP INDEX runs_by_of");
  EXPECT_EQ(columns(*open_for_reading(workspace_.database())), ours);
  EXPECT_TRUE(Store::open_reader(workspace_)->derived_from("aa").empty());
  EXPECT_EQ(in_file(), 1);
  Store::open_writer(workspace_).reset();
  EXPECT_EQ(in_file(), ours);
  EXPECT_EQ(file.execAndGet("SELECT count(*) FROM sqlite_schema WHERE name = 'runs_by_of'").getInt(), 1);
}

TEST_F(StoreTest, AnEmptyFileIsNoOlderDatabase) {
  store_.reset();
  test::write_text(workspace_.database(), "");
  const std::string message = error_of([&] { Store::open_reader(workspace_); });
  EXPECT_EQ(
      message.rfind(
          "the database " + workspace_.database().string() + " is empty; if anything was run here, rebuild it", 0),
      0u)
      << message;
}

TEST_F(StoreTest, ADatabaseThatOthersUseIsNotCalledDamaged) {
  store_.reset();
  SQLite::Database other(workspace_.database().string(), SQLite::OPEN_READWRITE);
  other.exec("BEGIN EXCLUSIVE");
  const std::string message = error_of([&] { open_for_reading(workspace_.database(), /*busy_milliseconds=*/1); });
  EXPECT_EQ(message,
            "the database " + workspace_.database().string() +
                " is in use by another program (database is locked); wait until that has ended, and try again");
}

TEST_F(StoreTest, EachErrorOfSqliteHasASentenceOfItsOwn) {
  const auto sentence = [&](int code) {
    return error_of([&] { refuse_unusable(workspace_.database(), SQLite::Exception("said", code)); });
  };
  EXPECT_NE(sentence(SQLITE_CORRUPT).find("tearless rebuild"), std::string::npos);
  EXPECT_NE(sentence(SQLITE_NOTADB).find("tearless rebuild"), std::string::npos);
  EXPECT_NE(sentence(SQLITE_ERROR).find("tearless rebuild"), std::string::npos);  // a schema with a flipped bit
  std::set<std::string> others;
  for (const int code : {SQLITE_BUSY, SQLITE_FULL, SQLITE_IOERR, SQLITE_CANTOPEN, SQLITE_READONLY}) {
    const std::string text = sentence(code);
    EXPECT_EQ(text.find("damaged"), std::string::npos) << text;
    EXPECT_NE(text.find(workspace_.database().string()), std::string::npos) << text;
    EXPECT_TRUE(others.insert(text).second) << text;
  }
  EXPECT_EQ(sentence(SQLITE_IOERR_FSYNC), sentence(SQLITE_IOERR));  // kinds of the same
  EXPECT_EQ(sentence(SQLITE_CORRUPT_INDEX), sentence(SQLITE_CORRUPT));
}

TEST(Store, ALinkToItselfIsNamed) {
  const test::TempFolder folder;
  fs::create_symlink("loop", folder / "loop");
  const Workspace workspace(folder / "loop");
  const std::string message = error_of([&] { Store::open_reader(workspace); });
  EXPECT_EQ(message, "cannot list " + workspace.sweeps().string() +
                         ": Too many levels of symbolic links; a symbolic link there leads back to itself: remove it");
}

TEST_F(StoreTest, AMissingDatabaseBesideItsRunsIsReported) {
  store_.reset();
  fs::remove(workspace_.database());
  EXPECT_EQ(Store::open_reader(workspace_), nullptr);  // nothing has been run
  fs::create_directories(workspace_.run("aa").root());
  const std::string message = error_of([&] { Store::open_reader(workspace_); });
  EXPECT_NE(message.find("tearless.db is missing"), std::string::npos) << message;
  EXPECT_NE(message.find("tearless rebuild"), std::string::npos) << message;
}

TEST_F(StoreTest, AReadOnlyFolderCanBeReadAndNotWritten) {
  store_->submit(sweep("s", {request("aa")}));
  store_.reset();
  fs::permissions(folder_.path(), fs::perms::owner_all | fs::perms::others_read | fs::perms::others_exec);
  fs::permissions(workspace_.root(),
                  fs::perms::owner_read | fs::perms::owner_exec | fs::perms::others_read | fs::perms::others_exec);
  {
    const test::WithoutRoot nobody;
    EXPECT_EQ(Store::open_reader(workspace_)->runs_of("s").size(), 1u);
    EXPECT_NE(error_of([&] { Store::open_writer(workspace_); }).find(workspace_.lock().string()), std::string::npos);
  }
  fs::permissions(workspace_.root(), fs::perms::owner_all);
}

// kill -9 between any two writes: what was committed is there, and the next writer continues.
TEST(Store, SurvivesTheDeathOfItsWriter) {
  const test::TempFolder folder;
  const Workspace workspace(folder / "work");
  const pid_t child = ::fork();
  if (child == 0) {
    const auto store = Store::open_writer(workspace);
    store->submit(sweep("s", {request("aa")}));
    ::kill(::getpid(), SIGKILL);
  }
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(Store::open_reader(workspace)->runs_of("s").size(), 1u);
  const auto store = Store::open_writer(workspace);
  store->move("aa", RunState::kQueued, RunState::kRunning);
}

}  // namespace
}  // namespace tearless::harness::store_test
