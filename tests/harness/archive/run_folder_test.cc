// What the store reads from run folders: complete ones, truncated ones, changed ones, and folders without a database.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/files.h"
#include "base/run_directory.h"
#include "harness/archive/copy.h"
#include "harness/folders/rebuild.h"
#include "harness/folders/sweep_directory.h"
#include "harness/runs/attempt_files.h"
#include "harness/runs/verdict.h"
#include "harness/store/record.h"
#include "tests/support/paths.h"

namespace tearless::harness::run_folder_test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMetrics =
    "{\"step\": 1, \"name\": \"train.loss\", \"value\": 5.5}\n"
    "{\"step\": 2, \"name\": \"train.loss\", \"value\": 4.5}\n";

class RunFolderTest : public testing::Test {
 protected:
  RunFolderTest() : workspace_(folder_.path()), run_(make_run("a = 1\n")) {}

  RunDirectory make_run(const std::string& canonical) {
    const RunDirectory run = workspace_.run(run_id(canonical));
    fs::create_directories(run.root());
    test::write_text(run.settings(), canonical);
    return run;
  }

  void end_attempt(const RunDirectory& run, int64_t number, int code, int signal, const std::string& log) {
    fs::create_directories(run.attempt(number));
    test::write_text(
        run.attempt(number) / "start.json",
        R"({"supervisor": {"pid": 1, "start_ticks": 2, "boot_id": "another boot"}, "host": "h", "numerics": 3})");
    test::write_text(run.attempt(number) / "log.txt", log);
    test::write_text(run.attempt(number) / "exit.json",
                     nlohmann::json{{"code", code}, {"signal", signal}, {"ended_at", "2026-01-31T12:00:00Z"}}.dump());
  }

  void finish(const RunDirectory& run) {
    test::write_text(run.metrics(), kMetrics);
    test::write_text(run.scores(), R"({"test.bleu": 20.5, "test.ppl": null})");
    end_attempt(run, 1, 0, 0, "");
    write_done(run, "done", 2, "max_updates", {"scores.json", "metrics.jsonl"});
  }

  test::TempFolder folder_;
  Workspace workspace_;
  RunDirectory run_;
};

TEST_F(RunFolderTest, ExitCodesBecomeClassesWithTheLastLogLine) {
  const struct {
    int code, signal;
    FailureClass failure;
    const char* reason;
  } cases[] = {
      {2, 0, FailureClass::kSettings, "exit code 2: last words"},
      {4, 0, FailureClass::kOutOfMemory, "exit code 4: last words"},
      {75, 0, FailureClass::kStopped, "exit code 75: last words"},
      {1, 0, FailureClass::kCrashed, "exit code 1: last words"},
      {127, 0, FailureClass::kCrashed, "exit code 127: last words"},
      {0, 0, FailureClass::kCrashed, "exit code 0 without DONE: last words"},
      {3, 0, FailureClass::kCrashed, "exit code 3 without DONE: last words"},
      {139, 11, FailureClass::kCrashed, "killed by signal 11 (Segmentation fault): last words"},
  };
  for (const auto& expected : cases) {
    end_attempt(run_, 1, expected.code, expected.signal, "first\nlast words\n\n");
    const Verdict verdict = verdict_of(run_, 1);
    EXPECT_EQ(verdict.state, RunState::kFailed);
    EXPECT_EQ(verdict.failure, expected.failure) << expected.code;
    EXPECT_EQ(verdict.reason, expected.reason);
  }
}

TEST_F(RunFolderTest, AnAttemptWithoutAnExitIsLost) {
  fs::create_directories(run_.attempt(1));
  EXPECT_EQ(verdict_of(run_, 1).failure, FailureClass::kLost);
}

TEST_F(RunFolderTest, DoneTakesPrecedenceOverTheExit) {
  finish(run_);
  end_attempt(run_, 1, 137, 9, "killed while saying goodbye");
  EXPECT_EQ(verdict_of(run_, 1).state, RunState::kDone);
  EXPECT_EQ(verdict_of(run_, 1).step, 2);
}

TEST_F(RunFolderTest, AResultThatWasChangedByHandIsNotTaken) {
  finish(run_);
  test::write_text(run_.scores(), R"({"test.bleu": 99})");
  const Verdict verdict = verdict_of(run_, 1);
  EXPECT_EQ(verdict.failure, FailureClass::kSettings);
  EXPECT_NE(verdict.reason.find("scores.json is not what the run had written"), std::string::npos) << verdict.reason;
}

TEST_F(RunFolderTest, ADamagedDoneIsReported) {
  test::write_text(run_.done(), "{\"outcome\": \"do");
  EXPECT_EQ(verdict_of(run_, 1).failure, FailureClass::kSettings);
}

// --- attempts that were granted to another machine

TEST_F(RunFolderTest, WhatTheServiceFoundOutGoesBeforeTheExitAndDoneBeforeBoth) {
  end_attempt(run_, 1, 1, 0, "last words");
  test::write_text(run_.attempt(1) / "ended.json", R"({"class": "", "reason": ""})");
  EXPECT_EQ(verdict_of(run_, 1).failure, FailureClass::kCrashed) << "nothing that the supervisor did not record";
  test::write_text(run_.attempt(1) / "ended.json", R"({"class": "stopped", "reason": "preempted on n2"})");
  EXPECT_EQ(verdict_of(run_, 1).failure, FailureClass::kStopped);
  EXPECT_EQ(verdict_of(run_, 1).reason, "preempted on n2");
  test::write_text(run_.attempt(1) / "ended.json", R"({"class": "of a later version", "reason": ""})");
  EXPECT_EQ(verdict_of(run_, 1).failure, FailureClass::kCrashed);
  test::write_text(run_.attempt(1) / "ended.json", R"({"class": "lost", "reason": ""})");
  finish(run_);
  EXPECT_EQ(verdict_of(run_, 1).state, RunState::kDone);
}

class WorkFolderTest : public RunFolderTest {
 protected:
  // As a worker makes it, in which attempts/3 leads back.
  RunDirectory make_work(int64_t attempt) {
    fs::create_directories(run_.attempt(attempt));
    test::write_text(run_.attempt(attempt) / "claimed", "n1-1\n");
    const RunDirectory work = work_of(run_, attempt);
    fs::create_directories(work.attempts());
    fs::create_directory_symlink("../../..", work.attempt(attempt));
    fs::create_symlink("/nowhere", work.lock());
    test::write_text(work.settings(), test::read_text(run_.settings()));
    return work;
  }
};

TEST_F(WorkFolderTest, HasMetricsAndCheckpointsUntilTheRunHasItsResult) {
  const RunDirectory work = make_work(3);
  end_attempt(run_, 3, 75, 0, "");
  test::write_text(work.metrics(), kMetrics);
  fs::create_directories(work.checkpoint(7));
  EXPECT_EQ(folder_of(run_, 3).root(), work.root());
  EXPECT_EQ(folder_of(run_, 2).root(), run_.root());
  EXPECT_EQ(read_attempt(run_, 3).checkpoint, 7);
  EXPECT_EQ(folder_of(work, 3).newest_checkpoint(), 7) << "for the worker, who sees its own folder alone, too";
  const auto store = Store::open_writer(workspace_);
  store->put_run({.id = run_.id(), .settings = "a = 1\n"});
  record_end(*store, workspace_, run_.id(), 3, verdict_of(run_, 3));
  EXPECT_EQ(store->metrics_of(run_.id()).size(), 2u);
  EXPECT_EQ(store->attempts_of(run_.id()).at(0).checkpoint, 7);
  finish(run_);
  EXPECT_EQ(folder_of(run_, 3).root(), run_.root());
}

TEST_F(WorkFolderTest, ARunThatNobodyHasBegunYetIsRebuiltAsQueued) {
  end_attempt(run_, 1, 1, 0, "last words");
  make_work(2);
  test::write_text(run_.attempt(2) / "grant.json", "{}");
  rebuild(workspace_);
  const auto store = Store::open_reader(workspace_);
  EXPECT_EQ(store->run(run_.id())->state, RunState::kQueued) << "the service adopts it";
  ASSERT_EQ(store->attempts_of(run_.id()).size(), 1u);
  EXPECT_EQ(store->attempts_of(run_.id()).at(0).outcome, "crashed") << "the one before is not alive";
}

TEST_F(WorkFolderTest, IsCopiedWithoutItsLinks) {
  const RunDirectory work = make_work(3);
  end_attempt(run_, 3, 75, 0, "");
  test::write_text(run_.attempt(3) / "ended.json", R"({"class": "", "reason": ""})");
  test::write_text(work.metrics(), kMetrics);
  const RunDirectory other = make_run("b = 1\n");
  test::write_text(other.root() / "large", "large");
  fs::create_directory_symlink("../../../../" + other.id(), run_.attempt(3) / "work.n1-1" / other.id());
  const test::TempFolder place;
  EXPECT_EQ(copy_workspace(workspace_, place / "copy").runs, 2);
  const RunDirectory copy = Workspace(place / "copy").run(run_.id());
  EXPECT_EQ(test::read_text(folder_of(copy, 3).metrics()), kMetrics);
  EXPECT_FALSE(fs::exists(folder_of(copy, 3).attempt(3)));
  EXPECT_FALSE(fs::exists(copy.attempt(3) / "work.n1-1" / other.id()));
  EXPECT_TRUE(fs::exists(Workspace(place / "copy").run(other.id()).root() / "large"));

  copy_workspace(workspace_, place / "results", {.results_only = true});
  const RunDirectory results = Workspace(place / "results").run(run_.id());
  EXPECT_EQ(test::read_text(results.metrics()), kMetrics) << "in the run's own folder";
  EXPECT_FALSE(fs::exists(results.attempt(3) / "work.n1-1"));
  EXPECT_TRUE(fs::exists(results.attempt(3) / "ended.json"));

  EXPECT_EQ(bytes_in(run_.attempt(3) / "work.n1-1"), static_cast<int64_t>(std::string(kMetrics).size() + 6));
  remove_recursively(run_.root());
  EXPECT_TRUE(fs::exists(other.root() / "large")) << "nothing behind the link is deleted";
}

TEST_F(RunFolderTest, LogsOfAnyBytesHaveALastLine) {
  end_attempt(run_, 1, 1, 0, "10%\r20%\r\xff\xfe broken\n");
  EXPECT_EQ(last_log_line(run_, 1), "\xEF\xBF\xBD\xEF\xBF\xBD broken");
  EXPECT_EQ(last_log_line(run_, 7), "");
}

// A file that we parse, cut at every byte: a prefix of its lines, never nonsense.
TEST_F(RunFolderTest, MetricsCutAnywhereGiveTheirWholeLines) {
  const std::string whole = kMetrics;
  for (size_t length = 0; length <= whole.size(); ++length) {
    test::write_text(run_.metrics(), whole.substr(0, length));
    const MetricsRead read = read_metrics(run_, 0);
    const auto lines =
        static_cast<size_t>(std::count(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(length), '\n'));
    ASSERT_EQ(read.lines.size(), lines) << length;
    // and what comes later is read from where this ended
    test::write_text(run_.metrics(), whole);
    EXPECT_EQ(read.lines.size() + read_metrics(run_, read.to).lines.size(), 2u) << length;
  }
}

TEST_F(RunFolderTest, MetricsThatCannotBeParsedAreSkipped) {
  test::write_text(run_.metrics(), std::string("\0\0\0\n", 4) + "[]\n{\"step\": \"x\"}\n" + kMetrics);
  EXPECT_EQ(read_metrics(run_, 0).lines.size(), 2u);
}

TEST_F(RunFolderTest, TruncatedMetricsAreReadAgain) {
  test::write_text(run_.metrics(), kMetrics);
  EXPECT_EQ(read_metrics(run_, 10'000).from, 0);
  EXPECT_EQ(read_metrics(run_, 10'000).lines.size(), 2u);
}

TEST_F(RunFolderTest, AProcessOfAnotherBootIsNotAlive) {
  end_attempt(run_, 1, 0, 0, "");
  EXPECT_FALSE(supervisor_of(run_, 1)->is_alive());
  EXPECT_FALSE(supervisor_of(run_, 2).has_value());
}

TEST_F(RunFolderTest, ALostDatabaseIsRebuilt) {
  finish(run_);
  const RunDirectory crashed = make_run("a = 2\n");
  end_attempt(crashed, 1, 1, 0, "oh\n");
  const RunDirectory tampered = make_run("a = 3\n");
  test::write_text(tampered.settings(), "a = 4\n");
  const std::string id = run_id("a = 1\n"), crashed_id = run_id("a = 2\n"), never_started = run_id("a = 5\n");

  Sweep sweep{.id = "", .title = "title", .grid_file = "/g.toml", .submitted_at = "2026-01-31T12:00:00Z", .runs = {}};
  for (const std::string& run : {id, crashed_id, never_started}) {
    sweep.runs.push_back({.id = run, .settings = "", .coordinates = {{"axis", "label"}}, .seed = 2, .updates = 7});
  }
  sweep.id = sweep_id(sweep, "text of the grid");
  freeze_sweep(workspace_, sweep, "text of the grid");
  test::write_text(workspace_.database(), "a damaged database");

  const RebuildReport report = rebuild(workspace_);
  EXPECT_EQ(report.runs, 2);
  EXPECT_EQ(report.sweeps, 1);
  ASSERT_EQ(report.passed_over.size(), 1u);
  EXPECT_NE(report.passed_over[0].find(tampered.settings().string()), std::string::npos);

  const auto store = Store::open_reader(workspace_);
  EXPECT_EQ(store->run(id)->state, RunState::kDone);
  EXPECT_EQ(store->result_of(id).scores, (std::map<std::string, double>{{"test.bleu", 20.5}}));
  EXPECT_EQ(store->newest_metrics(id).at("train.loss").value, 4.5);
  EXPECT_EQ(store->run(crashed_id)->state, RunState::kQueued);
  EXPECT_EQ(store->attempts_of(crashed_id).at(0).outcome, "crashed");
  EXPECT_EQ(store->run(never_started)->state, RunState::kQueued);
  const std::vector<RunRecord> runs = store->runs_of(sweep.id);
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_EQ(label_on(runs[0].coordinates, "axis"), "label");
  EXPECT_EQ(runs[0].updates, 7);
  EXPECT_EQ(test::read_text(workspace_.database().string() + ".before-rebuild"), "a damaged database");
}

TEST_F(RunFolderTest, ADivergedRunIsRebuiltWithTheScoresThatItLeft) {
  finish(run_);
  test::write_text(run_.scores(), R"({"diverged_step": 9, "test.bleu": 25.5})");
  test::write_text(run_.gradient_norms(), "abcdefgh");
  end_attempt(run_, 1, kExitDiverged, 0, "");
  write_done(run_, "diverged", 9, "the loss is not finite", {"scores.json", "metrics.jsonl", "gradient_norms.f32"});
  rebuild(workspace_);
  {
    const auto store = Store::open_reader(workspace_);
    const RunResult result = store->result_of(run_.id());
    EXPECT_EQ(result.state, RunState::kDiverged);
    EXPECT_EQ(result.step, 9);
    EXPECT_EQ(result.scores, (std::map<std::string, double>{{"diverged_step", 9}, {"test.bleu", 25.5}}));
  }
  test::write_text(run_.gradient_norms(), "abcdefgx");
  EXPECT_NE(verdict_of(run_, 1).reason.find("gradient_norms.f32 is not what the run had written"), std::string::npos);
}

}  // namespace
}  // namespace tearless::harness::run_folder_test
