// The launcher of workers with a clock that the test sets and workers that are files which it writes: each arrow in the
// life of a grant.
#include "harness/grants/worker_launcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <memory>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/sealed_json.h"
#include "harness/grants/grant.h"
#include "harness/grants/launchers.h"
#include "harness/grants/work_folder.h"
#include "harness/runs/attempt_files.h"
#include "harness/runs/resume_check.h"
#include "harness/runs/verdict.h"
#include "tests/support/paths.h"

namespace tearless::harness::worker_launcher_test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class WorkerLauncherTest : public testing::Test {
 protected:
  WorkerLauncherTest() { restart(); }

  void restart(WorkerLauncher::MachinesOf machines_of = {}) {
    ended_.clear();
    launcher_ = std::make_unique<WorkerLauncher>(
        workspace_, [this] { return now_; }, std::move(machines_of));
    launcher_->on_end = [this](const std::string& id, const Launcher::End& end) { ended_.emplace(id, end); };
  }
  void later(double seconds = 1) {
    now_ += seconds;
    launcher_->poll();
  }
  // A worker that the service sees.
  WorkerFile& worker(const std::string& name, std::vector<WorkerDevice> devices = {},
                     const std::string& executor = kWorkers) {
    const WorkerFacts facts{.name = name,
                            .host = name.substr(0, name.find('-')),
                            .executor = executor,
                            .job = executor == kWorkers ? "" : "17_0@1a2b3c4d",
                            .cores = 2,
                            .memory_bytes = 100,
                            .devices = std::move(devices),
                            .until = until_};
    WorkerFile& file =
        *workers_.emplace(name, std::make_unique<WorkerFile>(folder_ / "queue/workers", facts)).first->second;
    later();
    return file;
  }

  RunDirectory run(int number) const { return workspace_.run(run_id(text(number))); }
  static std::string text(int number) { return "a = " + std::to_string(number) + "\n"; }
  void start(int number, const Needs& needs = {.executor = kWorkers}) {
    make_folders(run(number).root());
    test::write_text(run(number).settings(), text(number));
    test::write_text(run(number).local(), "");
    launcher_->start({.id = run(number).id(),
                      .folder = run(number).root(),
                      .needs = needs,
                      .program = {.path = folder_ / "programs/1/engine", .stamp = nlohmann::json::object()}});
    launcher_->poll();
  }
  // As `name` does, who finds the grant on the board.
  RunDirectory claim(int number, const std::string& name) {
    const int64_t attempt = run(number).newest_attempt();
    EXPECT_TRUE(claim_grant(run(number), attempt, name));
    const RunDirectory work = make_work_folder(workspace_, *read_grant(run(number), attempt), name,
                                               folder_ / ("lock." + std::to_string(number)));
    write_start(work, attempt, nlohmann::json::object());
    return work;
  }
  void report(int number, const std::string& name, const std::string& fault = "") {
    const int64_t attempt = run(number).newest_attempt();
    AttemptReport report{.id = run(number).id(), .attempt = attempt, .fault = fault};
    const fs::path folder = run(number).attempt(attempt);
    if (fs::exists(folder / "exit.json")) report.files["exit.json"] = sha256_of_file(folder / "exit.json");
    const RunDirectory work = work_of(run(number), attempt);
    if (fs::exists(work.done())) report.result = files_of(work);
    workers_.at(name)->ended(report);
  }
  void finish(const RunDirectory& work) const {
    test::write_text(work.scores(), "{}");
    write_done(work, "done", 1, "", {"scores.json"});
    test::write_text(work.attempt(work.newest_attempt()) / "exit.json", sealed({{"code", 0}}));
  }
  Board board() const { return *read_board(folder_ / "queue/board"); }
  std::vector<std::string> granted() const {
    std::vector<std::string> ids;
    for (const OpenGrant& grant : board().grants) ids.push_back(grant.id);
    return ids;
  }
  std::string why_not(Needs needs = {}) const {
    if (needs.executor.empty()) needs.executor = kWorkers;
    const auto refusal = launcher_->refusal_of(needs);
    EXPECT_TRUE(!refusal || refusal->others_may_pass);
    return refusal ? refusal->why : "";
  }

  test::TempFolder folder_;
  Workspace workspace_{folder_.path()};
  double now_ = 1000;
  std::optional<double> until_;  // of the next worker
  std::map<std::string, std::unique_ptr<WorkerFile>> workers_;
  std::map<std::string, Launcher::End> ended_;
  std::unique_ptr<WorkerLauncher> launcher_;
};

TEST_F(WorkerLauncherTest, GrantsNothingWhileNoWorkerIsThere) {
  EXPECT_THAT(why_not(),
              HasSubstr("no worker is there; start one: tearless worker --workspace " + folder_.path().string()));
  worker("n1-1");
  EXPECT_EQ(why_not(), "");
  EXPECT_THAT(why_not({.device = "cuda"}), HasSubstr("no worker has what it needs"));
  EXPECT_THAT(why_not({.memory_bytes = 101, .declared = true}), HasSubstr("no worker has what it needs"));
  EXPECT_EQ(why_not({.memory_bytes = 101}), "") << "an estimate: the worker may know better";
  worker("n2-2", {{.name = "NVIDIA H100", .memory_bytes = 80}});
  EXPECT_EQ(why_not({.device = "cuda", .memory_bytes = 80, .declared = true}), "");
  later(61);
  EXPECT_THAT(why_not(), HasSubstr("no worker is there")) << "they are silent";
  workers_.at("n1-1")->beat();
  later();
  EXPECT_EQ(why_not(), "");
  workers_.at("n1-1")->bye("idle");
  later();
  EXPECT_THAT(why_not(), HasSubstr("no worker is there"));
}

TEST_F(WorkerLauncherTest, TheBoardSaysWhomItSeesAndWhatMayBeClaimed) {
  worker("n1-1");
  EXPECT_THAT(board().seen, ElementsAre("n1-1"));
  start(1, {.threads = 3, .executor = kWorkers});
  EXPECT_THAT(granted(), ElementsAre(run(1).id()));
  EXPECT_EQ(board().grants[0].attempt, 1);
  EXPECT_EQ(board().grants[0].needs.threads, 3);
  EXPECT_EQ(read_grant(run(1), 1)->program.path, "programs/1/engine") << "relative: workers may see another path";
  EXPECT_EQ(launcher_->where(run(1).id()), "granted; no worker has taken it yet");
  claim(1, "n1-1");
  workers_.at("n1-1")->claimed(run(1).id(), 1);
  later();
  EXPECT_THAT(granted(), IsEmpty());
  EXPECT_EQ(launcher_->where(run(1).id()), "on worker n1-1");
  worker("n2-1");
  EXPECT_THAT(board().seen, ElementsAre("n1-1", "n2-1"));
}

TEST_F(WorkerLauncherTest, GrantsAsManyAsTheWorkersTakeBetweenTwoLooks) {
  worker("n1-1");
  start(1);
  EXPECT_EQ(why_not({.executor = kWorkers}), "the workers have enough to take");
  EXPECT_EQ(why_not({.threads = 2, .executor = kWorkers}), "") << "of another kind none is open";
  worker("n2-2");
  start(2);
  EXPECT_EQ(why_not({.executor = kWorkers}), "the workers have enough to take");
  for (int number : {1, 2}) workers_.at("n1-1")->claimed(run(number).id(), 1);
  later();  // two were claimed
  later();
  int granted = 0;
  for (int number = 3; why_not({.executor = kWorkers}).empty(); ++number, ++granted) {
    make_folders(run(number).root());
    test::write_text(run(number).settings(), text(number));
    test::write_text(run(number).local(), "");
    launcher_->start(
        {.id = run(number).id(), .folder = run(number).root(), .needs = {.executor = kWorkers}, .program = {}});
  }
  EXPECT_EQ(granted, 4) << "twice as many";
}

TEST_F(WorkerLauncherTest, AResultIsPublishedBeforeItsEndIsTold) {
  worker("n1-1");
  start(1);
  finish(claim(1, "n1-1"));
  launcher_->on_end = [&](const std::string& id, const Launcher::End& end) {
    EXPECT_EQ(verdict_of_done(run(1))->state, RunState::kDone);
    EXPECT_FALSE(is_alive(run(1)));
    ended_.emplace(id, end);
  };
  report(1, "n1-1");
  later();
  ASSERT_TRUE(ended_.contains(run(1).id()));
  EXPECT_EQ(ended_.at(run(1).id()).fault, "");
  EXPECT_FALSE(ended_.at(run(1).id()).never_began);
  EXPECT_FALSE(fs::exists(work_of(run(1), 1).root())) << "nothing needs it any more";
  ended_.clear();
  later();
  EXPECT_THAT(ended_, IsEmpty()) << "once";
}

TEST_F(WorkerLauncherTest, AnEndWithoutAResultIsAsTheSupervisorRecordedIt) {
  worker("n1-1");
  start(1);
  claim(1, "n1-1");
  test::write_text(run(1).attempt(1) / "exit.json", sealed({{"code", 1}}));
  report(1, "n1-1");
  later();
  EXPECT_TRUE(ended_.contains(run(1).id()));
  EXPECT_EQ(verdict_of(run(1), 1).failure, FailureClass::kCrashed);
  EXPECT_TRUE(fs::exists(work_of(run(1), 1).root())) << "the next attempt continues from its state";
  start(1);
  EXPECT_EQ(read_grant(run(1), 2)->from, 1);
}

TEST_F(WorkerLauncherTest, AFaultOfTheWorkerIsTold) {
  worker("n1-1");
  start(1);
  report(1, "n1-1", "no room for the copy");
  later();
  EXPECT_EQ(ended_.at(run(1).id()).fault, "no room for the copy");
}

TEST_F(WorkerLauncherTest, FilesThatAreNotSeenYetAreWaitedFor) {
  worker("n1-1");
  start(1);
  const RunDirectory work = claim(1, "n1-1");
  test::write_text(work.model(), "parameters");
  finish(work);
  report(1, "n1-1");
  // DONE names the scores; the model it does not.
  for (const fs::path& file : {work.done(), work.scores(), work.model()}) {
    fs::rename(file, folder_ / "late");
    later(50);
    EXPECT_THAT(ended_, IsEmpty()) << file;
    fs::rename(folder_ / "late", file);
  }
  test::write_text(work.scores(), "[]");
  workers_.at("n1-1")->bye("idle");
  later(50);
  EXPECT_THAT(ended_, IsEmpty()) << "as many bytes as there will be";
  EXPECT_THAT(why_not(), HasSubstr("no worker is there"));
  restart();  // the next service reads of it what the worker has left
  ASSERT_TRUE(launcher_->adopt(run(1).id(), run(1).root(), {}));
  later();
  EXPECT_THAT(ended_, IsEmpty());
  test::write_text(work.scores(), "{}");
  later();
  EXPECT_TRUE(ended_.contains(run(1).id()));
  EXPECT_TRUE(fs::exists(run(1).done()));
  EXPECT_EQ(test::read_text(run(1).model()), "parameters");
}

TEST_F(WorkerLauncherTest, FilesThatAreNeverSeenAreNamed) {
  worker("n1-1");
  start(1);
  const RunDirectory work = claim(1, "n1-1");
  finish(work);
  report(1, "n1-1");
  fs::remove(work.done());
  later();
  later(301);
  EXPECT_THAT(ended_.at(run(1).id()).fault, HasSubstr("DONE, which n1-1 has written, is not seen on this machine"));
}

TEST_F(WorkerLauncherTest, AGrantThatNobodyHasIsTakenBack) {
  worker("n1-1");
  start(1);
  launcher_->stop(run(1).id(), Stop::kOnRequest, 30);
  EXPECT_THAT(ended_, IsEmpty()) << "not within stop(): the scheduler is going through its attempts";
  later();
  EXPECT_TRUE(ended_.at(run(1).id()).never_began);
  EXPECT_THAT(granted(), IsEmpty());
  EXPECT_FALSE(is_alive(run(1)));
  EXPECT_FALSE(claim_grant(run(1), 1, "n1-1")) << "a worker that reads an old board comes too late";
}

TEST_F(WorkerLauncherTest, AnAttemptThatSomebodyHasIsStoppedByTheBoardUntilItEnds) {
  worker("n1-1");
  start(1);
  const RunDirectory work = claim(1, "n1-1");  // and its line is not seen yet
  launcher_->stop(run(1).id(), Stop::kOnRequest, 7);
  later();
  EXPECT_THAT(ended_, IsEmpty());
  ASSERT_EQ(board().stops.size(), 1u);
  EXPECT_EQ(board().stops[0].id, run(1).id());
  EXPECT_EQ(board().stops[0].attempt, 1);
  EXPECT_EQ(board().stops[0].grace, 7);
  launcher_->stop(run(1).id(), Stop::kAtOnce, 0);
  later();
  EXPECT_EQ(board().stops[0].how, Stop::kAtOnce);
  finish(work);
  report(1, "n1-1");
  later();
  EXPECT_FALSE(ended_.at(run(1).id()).never_began) << "it has brought its result all the same";
  EXPECT_THAT(board().stops, IsEmpty());
}

TEST_F(WorkerLauncherTest, AnAttemptOfASilentWorkerIsGivenUp) {
  worker("n1-1");
  start(1);
  claim(1, "n1-1");
  workers_.at("n1-1")->claimed(run(1).id(), 1);
  later();
  later(599);
  EXPECT_THAT(launcher_->where(run(1).id()),
              HasSubstr("n1-1 is silent for 9:59; the run is granted again after 10:00"));
  EXPECT_THAT(ended_, IsEmpty());
  later(2);
  ASSERT_TRUE(ended_.contains(run(1).id()));
  EXPECT_FALSE(ended_.at(run(1).id()).never_began);
  EXPECT_EQ(verdict_of(run(1), 1).failure, FailureClass::kLost);
  EXPECT_THAT(verdict_of(run(1), 1).reason, HasSubstr("worker n1-1"));
  start(1);
  EXPECT_THAT(granted(), ElementsAre(run(1).id()));
  const AttemptReport late{.id = run(1).id(), .attempt = 1, .fault = ""};
  workers_.at("n1-1")->ended(late);
  later();
  EXPECT_EQ(run(1).newest_attempt(), 2);
  EXPECT_THAT(granted(), ElementsAre(run(1).id())) << "the end of an old attempt is not that of the new one";
}

// --- clusters --------------------------------------------------------------------------------------------------------

// What it was told last, and what it says of any worker.
struct Cluster {
  std::map<Needs, int64_t> waiting = {};
  std::vector<ClusterWorker> alive = {};
  std::set<std::string> not_on = {};
  std::optional<Machines::Fate> fate = {};
  int64_t memory_above = 0;
};

class FakeMachines : public Machines {
 public:
  explicit FakeMachines(Cluster& cluster) : cluster_(cluster) {}
  void expect(const std::map<Needs, int64_t>& waiting, const std::vector<ClusterWorker>& alive,
              const std::set<std::string>& not_on) override {
    cluster_.waiting = waiting;
    cluster_.alive = alive;
    cluster_.not_on = not_on;
  }
  std::optional<Fate> fate_of(const ClusterWorker&) override { return cluster_.fate; }
  std::string never_fits(const Needs& needs) const override { return needs.device == "cuda" ? "it has no GPU" : ""; }
  int64_t memory_above(const Needs&) const override { return cluster_.memory_above; }
  std::string why_none() const override { return "2 jobs pending (Priority)"; }

 private:
  Cluster& cluster_;
};

class ClusterTest : public WorkerLauncherTest {
 protected:
  ClusterTest() { restart_cluster(); }

  void restart_cluster() {
    restart([this](const std::string& executor) {
      return executor == "a100" ? std::make_unique<FakeMachines>(cluster_) : nullptr;
    });
  }

  const Needs needs_{.executor = "a100"};
  Cluster cluster_;
};

TEST_F(ClusterTest, IsToldWhatWaitsForItAndWhoIsThere) {
  worker("n1-1");
  worker("n2-2", {}, "a100");
  launcher_->expect({{needs_, 3}, {{.executor = kWorkers}, 5}, {{}, 7}});
  EXPECT_EQ(cluster_.waiting, (std::map<Needs, int64_t>{{needs_, 3}}));
  ASSERT_EQ(cluster_.alive.size(), 1u);
  EXPECT_EQ(cluster_.alive[0].name, "n2-2");
  EXPECT_EQ(cluster_.alive[0].job, "17_0@1a2b3c4d");
  launcher_->expect({});
  EXPECT_THAT(cluster_.waiting, IsEmpty()) << "also when nothing waits: it cancels what is pending";
}

TEST_F(ClusterTest, AGrantThatNobodyTakesWaitsToo) {
  worker("n2-2", {}, "a100");
  start(1, needs_);
  start(2, needs_);
  claim(1, "n2-2");
  workers_.at("n2-2")->claimed(run(1).id(), 1);
  later(9);
  launcher_->expect({{needs_, 3}});
  EXPECT_EQ(cluster_.waiting, (std::map<Needs, int64_t>{{needs_, 3}})) << "a free worker may be about to";
  later(2);
  launcher_->expect({{needs_, 3}});
  EXPECT_EQ(cluster_.waiting, (std::map<Needs, int64_t>{{needs_, 4}}));
  launcher_->stop(run(2).id(), Stop::kOnRequest, 30);
  launcher_->expect({});
  EXPECT_THAT(cluster_.waiting, IsEmpty()) << "taken back";
}

TEST_F(ClusterTest, SaysWhyARunWaitsOrNeverStarts) {
  worker("n1-1");
  EXPECT_EQ(why_not(needs_), "2 jobs pending (Priority)") << "a worker of another executor is none";
  const auto never = launcher_->refusal_of({.device = "cuda", .executor = "a100"});
  EXPECT_TRUE(never && never->for_good && never->why == "it has no GPU");
  worker("n2-2", {}, "a100");
  EXPECT_EQ(why_not(needs_), "");
}

TEST_F(ClusterTest, ARunThatNeedsALargerAllocationIsForItsWorkersAlone) {
  worker("n1-1", {}, "a100");
  cluster_.memory_above = 100;
  EXPECT_THAT(why_not(needs_), HasSubstr("2 jobs pending")) << "the worker has just as much";
  cluster_.memory_above = 99;
  EXPECT_EQ(why_not(needs_), "");
  start(1, needs_);
  EXPECT_EQ(board().grants.at(0).memory_above, 99);
}

TEST_F(ClusterTest, KnowsBeforeTheLongSilenceHowAJobEnded) {
  worker("n2-2", {}, "a100");
  start(1, needs_);
  claim(1, "n2-2");
  workers_.at("n2-2")->claimed(run(1).id(), 1);
  later();
  cluster_.fate = {FailureClass::kStopped, "its job 17_0 was preempted (PREEMPTED) on n2"};
  later(59);
  EXPECT_THAT(ended_, IsEmpty()) << "it is alive, whatever the cluster says";
  later(2);
  ASSERT_TRUE(ended_.contains(run(1).id()));
  EXPECT_EQ(verdict_of(run(1), 1).failure, FailureClass::kStopped);
  EXPECT_THAT(verdict_of(run(1), 1).reason, HasSubstr("PREEMPTED"));
}

TEST_F(ClusterTest, DoesNotKnowWhichOfSeveralRunsTookTheMemory) {
  worker("n2-2", {}, "a100");
  for (const int number : {1, 2}) {
    start(number, needs_);
    claim(number, "n2-2");
    workers_.at("n2-2")->claimed(run(number).id(), 1);
  }
  later();
  cluster_.fate = {FailureClass::kOutOfMemory, "out of memory"};
  later(61);
  EXPECT_EQ(verdict_of(run(1), 1).failure, FailureClass::kStopped);
  EXPECT_EQ(verdict_of(run(2), 1).failure, FailureClass::kStopped);
}

TEST_F(WorkerLauncherTest, AnAttemptOfAWorkerWhoseFileIsGoneIsGivenUpAsLate) {
  worker("n1-1");
  start(1);
  claim(1, "n1-1");
  fs::remove(folder_ / "queue/workers/n1-1.jsonl");
  restart();
  ASSERT_TRUE(launcher_->adopt(run(1).id(), run(1).root(), {}));
  later(599);
  EXPECT_THAT(ended_, IsEmpty());
  later(2);
  EXPECT_TRUE(ended_.contains(run(1).id()));
}

TEST_F(WorkerLauncherTest, AResultThatASilentWorkerHasLeftIsTaken) {
  worker("n1-1");
  start(1);
  finish(claim(1, "n1-1"));
  workers_.at("n1-1")->claimed(run(1).id(), 1);
  later();
  later(601);
  EXPECT_TRUE(ended_.contains(run(1).id()));
  EXPECT_TRUE(fs::exists(run(1).done()));
  EXPECT_EQ(grant_end_of(run(1), 1).failure, FailureClass::kNone);
}

// Of a run whose first machine was given up and trained on, so that there are two results.
class TwoResultsTest : public WorkerLauncherTest {
 protected:
  // `scores` and `version`: of the older one.
  std::optional<ResumeCheck> check(const std::string& scores, const std::string& version = "1") {
    const RunDirectory old = claim_and_begin("n1-1", version);
    later(601);
    start(1);
    const RunDirectory now = claim_and_begin("n2-1", "1");
    test::write_text(old.scores(), scores);
    write_done(old, "done", 1, "", {"scores.json"});
    finish(now);
    EXPECT_FALSE(fs::exists(run(1).done()));
    report(1, "n2-1");
    later();
    EXPECT_EQ(test::read_text(run(1).scores()), "{}") << "the newest attempt's";
    EXPECT_FALSE(fs::exists(old.root()));
    return read_resume_check(run(1));
  }

 private:
  RunDirectory claim_and_begin(const std::string& name, const std::string& version) {
    worker(name);
    if (name == "n1-1") start(1);
    const RunDirectory work = claim(1, name);
    write_start(work, run(1).newest_attempt(), {{"version", version}});
    workers_.at(name)->claimed(run(1).id(), run(1).newest_attempt());
    later();
    return work;
  }
};

TEST_F(TwoResultsTest, ThatAreEqualAreSaidToBe) {
  const std::optional<ResumeCheck> found = check("{}");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->outcome, "equal");
  EXPECT_EQ(sentence_of(*found), "equal to the result of attempt 1, which was given up and trained on elsewhere");
}

TEST_F(TwoResultsTest, ThatDifferAreNamed) {
  const std::optional<ResumeCheck> found = check("{\"a\": 1}");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->outcome, "different");
  EXPECT_EQ(sentence_of(*found),
            "DIFFERENT in scores.json from line 1 from the result of attempt 1, which was given up and trained on "
            "elsewhere");
}

TEST_F(TwoResultsTest, OfTwoBuildsMayDiffer) { EXPECT_FALSE(check("{\"a\": 1}", "2")); }

TEST_F(TwoResultsTest, OfTwoBuildsThatAreEqualAreSaidToBe) { EXPECT_EQ(check("{}", "2").value().outcome, "equal"); }

TEST_F(WorkerLauncherTest, ALostWorkerOfADeletedRunIsNotHeardAboutTheNewOne) {
  worker("n1-1");
  worker("n2-2");
  start(1);
  claim(1, "n2-2");
  workers_.at("n1-1")->claimed(run(1).id(), 1);
  report(1, "n1-1");
  later();
  EXPECT_THAT(ended_, IsEmpty());
  workers_.at("n2-2")->claimed(run(1).id(), 1);
  later();
  EXPECT_EQ(launcher_->where(run(1).id()), "on worker n2-2");
}

TEST_F(WorkerLauncherTest, AClaimThatItsWorkerDidNotLiveToTellIsFound) {
  worker("n1-1");
  start(1);
  claim(1, "n1-1");
  later(11);
  EXPECT_THAT(launcher_->where(run(1).id()), HasSubstr("on worker n1-1"));
  EXPECT_THAT(granted(), IsEmpty());
}

TEST_F(WorkerLauncherTest, AWorkerThatHasSaidByeHasNothingMore) {
  worker("n1-1");
  start(1);
  claim(1, "n1-1");
  workers_.at("n1-1")->claimed(run(1).id(), 1);
  workers_.at("n1-1")->bye("asked");
  later();
  EXPECT_TRUE(ended_.contains(run(1).id()));
  later();
  EXPECT_FALSE(fs::exists(folder_ / "queue/workers/n1-1.jsonl")) << "and is forgotten";
  EXPECT_THAT(board().seen, IsEmpty());
}

TEST_F(WorkerLauncherTest, WhatIsGrantedIsTakenOrSilentIsTold) {
  const auto phase = [&] { return launcher_->standing_of(run(1).id()).phase; };
  worker("n1-1");
  start(1);
  EXPECT_EQ(phase(), Phase::kGranted);
  EXPECT_EQ(launcher_->standing_of(run(1).id()).executor, kWorkers);
  claim(1, "n1-1");
  workers_.at("n1-1")->claimed(run(1).id(), 1);
  later();
  EXPECT_EQ(phase(), Phase::kRunning);
  later(59);
  EXPECT_EQ(phase(), Phase::kRunning);
  later(1);
  EXPECT_EQ(phase(), Phase::kSilent);
  EXPECT_THAT(launcher_->standing_of(run(1).id()).waits_for, HasSubstr("n1-1 is silent for 1:00"));
}

TEST_F(WorkerLauncherTest, AsManyIdleWorkersStayAsRunsAreSilent) {
  for (const char* name : {"n1-1", "n2-2", "n3-3", "n4-4"}) worker(name);
  worker("n0-0", {}, "a100");
  start(1);
  claim(1, "n1-1");
  workers_.at("n1-1")->claimed(run(1).id(), 1);
  start(2);
  claim(2, "n2-2");
  workers_.at("n2-2")->claimed(run(2).id(), 1);
  later();
  EXPECT_THAT(board().stay, IsEmpty());
  later(60);
  for (const char* name : {"n0-0", "n2-2", "n3-3", "n4-4"}) workers_.at(name)->beat();
  later();
  EXPECT_THAT(board().stay, ElementsAre("n3-3")) << "one that is free, and of that executor";
  workers_.at("n1-1")->beat();
  later();
  EXPECT_THAT(board().stay, IsEmpty());
}

TEST_F(WorkerLauncherTest, GrantsNothingToAWorkerWithoutTheSecretsOfARun) {
  const Needs needs{.executor = kWorkers, .secrets = {"HF_TOKEN"}};
  EXPECT_THAT(why_not(needs), HasSubstr("no worker is there; start one: HF_TOKEN=… tearless worker"));
  worker("n1-1");
  EXPECT_THAT(why_not(needs), HasSubstr("no worker has HF_TOKEN; start one: HF_TOKEN=… tearless worker"));
  EXPECT_EQ(why_not(), "");
  const WorkerFile having(folder_ / "queue/workers", {.name = "n2-2", .host = "n2", .secrets = {"A_KEY", "HF_TOKEN"}});
  later();
  EXPECT_EQ(why_not(needs), "");
  start(1, needs);
  EXPECT_THAT(board().grants.at(0).needs.secrets, ElementsAre("HF_TOKEN"));
}

TEST_F(ClusterTest, SubmitsNoFurtherJobsForSecretsThatTheNewestDidNotHave) {
  const Needs needs{.executor = "a100", .secrets = {"HF_TOKEN"}};
  launcher_->expect({{needs, 2}});
  EXPECT_EQ(cluster_.waiting.size(), 1u);
  worker("n1-1", {}, "a100");
  launcher_->expect({{needs, 2}});
  EXPECT_THAT(cluster_.waiting, IsEmpty());
  EXPECT_THAT(why_not(needs), HasSubstr("its jobs have no HF_TOKEN in their environment"));
}

TEST_F(WorkerLauncherTest, AResultThatOthersMayHaveWrittenIsNotRecorded) {
  for (const char* name : {"claimed", "work.n1-1"}) {
    worker(fmt::format("n1-1"));
    start(1);
    const RunDirectory work = claim(1, "n1-1");
    finish(work);
    const fs::path folder = run(1).attempt(run(1).newest_attempt());
    const fs::path bad = name == std::string("claimed") ? folder / name : work.root();
    fs::permissions(bad, fs::perms::others_write, fs::perm_options::add);
    report(1, "n1-1");
    later();
    ASSERT_TRUE(ended_.contains(run(1).id())) << name;
    EXPECT_THAT(ended_.at(run(1).id()).fault, HasSubstr("chmod o-w " + bad.string())) << name;
    EXPECT_FALSE(fs::exists(run(1).done())) << name;
    EXPECT_EQ(verdict_of(run(1), run(1).newest_attempt()).failure, FailureClass::kMachine) << "whatever exit.json says";
    fs::remove_all(run(1).root());
    workers_.clear();
    fs::remove_all(folder_ / "queue");
    restart();
  }
}

TEST_F(WorkerLauncherTest, AResultOfAWorkerThatTakesTheFolderAsItIsIsRecorded) {
  workers_.emplace("n1-1", std::make_unique<WorkerFile>(folder_ / "queue/workers",
                                                        WorkerFacts{.name = "n1-1", .host = "n1", .shared = true}));
  later();
  start(1);
  const RunDirectory work = claim(1, "n1-1");
  finish(work);
  fs::permissions(run(1).root(), fs::perms::others_write, fs::perm_options::add);
  report(1, "n1-1");
  later();
  EXPECT_EQ(ended_.at(run(1).id()).fault, "");
  EXPECT_TRUE(fs::exists(run(1).done()));
}

TEST_F(WorkerLauncherTest, WhatIsGrantedSaysWhyNobodyTakesIt) {
  worker("n1-1");
  start(1);
  EXPECT_EQ(launcher_->standing_of(run(1).id()).waits_for, "");
  workers_.at("n1-1")->bye("idle");
  later();
  EXPECT_THAT(launcher_->standing_of(run(1).id()).waits_for,
              HasSubstr("no worker is there; start one: tearless worker"));
}

// --- machines that may be at fault -----------------------------------------------------------------------------------

class BadMachineTest : public ClusterTest {
 protected:
  // On the host of the worker that takes it, the run's program ends so.
  void fail_on(const std::string& name, int number, int code = 1, double seconds = 5) {
    start(number, needs_);
    claim(number, name);
    workers_.at(name)->claimed(run(number).id(), run(number).newest_attempt());
    later();
    later(seconds);
    for (auto& [each, file] : workers_) file->beat();
    later();
    test::write_text(run(number).attempt(run(number).newest_attempt()) / "exit.json", sealed({{"code", code}}));
    report(number, name);
    later();
  }
  Verdict verdict(int number) const { return verdict_of(run(number), run(number).newest_attempt()); }
};

TEST_F(BadMachineTest, AQuickFailureCostsNothingWhereAnotherMachineIsThere) {
  worker("n1-1", {}, "a100");
  worker("n2-2", {}, "a100");
  fail_on("n1-1", 1);
  EXPECT_EQ(verdict(1).failure, FailureClass::kStopped);
  EXPECT_THAT(verdict(1).reason, HasSubstr("exit code 1; n1 may be at fault: it is tried elsewhere"));
  EXPECT_FALSE(ended_.at(run(1).id()).never_began);
  start(1, needs_);
  EXPECT_THAT(board().grants.at(0).not_on, ElementsAre("n1"));
  EXPECT_EQ(launcher_->where(run(1).id()), "granted; no worker has taken it yet, not on n1");
  claim(1, "n2-2");
  test::write_text(run(1).attempt(2) / "exit.json", sealed({{"code", 1}}));
  report(1, "n2-2");
  later();
  EXPECT_EQ(verdict(1).failure, FailureClass::kCrashed) << "on a second machine it is the run's";
}

TEST_F(BadMachineTest, WithOneMachineAloneItCostsATry) {
  worker("n1-1", {}, "a100");
  worker("n1-2", {}, "a100");
  worker("n2-3");  // of another executor
  fail_on("n1-1", 1);
  EXPECT_EQ(verdict(1).failure, FailureClass::kCrashed);
}

TEST_F(BadMachineTest, OfWhatIsNotAMachinesFaultTheClassStands) {
  worker("n1-1", {}, "a100");
  worker("n2-2", {}, "a100");
  fail_on("n1-1", 1, kExitOutOfMemory);
  EXPECT_EQ(verdict(1).failure, FailureClass::kOutOfMemory);
  fail_on("n1-1", 2, kExitData);
  EXPECT_EQ(verdict(2).failure, FailureClass::kData);
  fail_on("n1-1", 3, 1, 60);
  EXPECT_EQ(verdict(3).failure, FailureClass::kCrashed) << "it lived for a minute";
  fail_on("n1-1", 4, kExitMachine);
  EXPECT_EQ(verdict(4).failure, FailureClass::kStopped) << "its disk may be full, and another one's not";
}

TEST_F(BadMachineTest, ARunThatWroteACheckpointGotOn) {
  worker("n1-1", {}, "a100");
  worker("n2-2", {}, "a100");
  start(1, needs_);
  const RunDirectory work = claim(1, "n1-1");
  workers_.at("n1-1")->claimed(run(1).id(), 1);
  later();
  make_folders(work.checkpoint(3));
  test::write_text(run(1).attempt(1) / "exit.json", sealed({{"code", 1}}));
  report(1, "n1-1");
  later();
  EXPECT_EQ(verdict(1).failure, FailureClass::kCrashed);
  fail_on("n1-1", 1);
  EXPECT_EQ(verdict(1).failure, FailureClass::kStopped) << "without a new one it did not";
}

TEST_F(BadMachineTest, AFaultBeforeTheProgramBeganIsNoEnd) {
  worker("n1-1", {}, "a100");
  worker("n2-2", {}, "a100");
  start(1, needs_);
  report(1, "n1-1", "no room for the copy");
  later();
  EXPECT_EQ(ended_.at(run(1).id()).fault, "");
  EXPECT_TRUE(ended_.at(run(1).id()).never_began);
  EXPECT_THAT(grant_end_of(run(1), 1).reason, HasSubstr("no room for the copy; n1 may be at fault"));
}

TEST_F(BadMachineTest, AWorkerThatIsLostWithARunThatItHasJustBegunIs) {
  worker("n1-1", {}, "a100");
  worker("n2-2", {}, "a100");
  start(1, needs_);
  claim(1, "n1-1");
  workers_.at("n1-1")->claimed(run(1).id(), 1);
  later();
  later(599);
  workers_.at("n2-2")->beat();
  later(2);
  EXPECT_EQ(verdict(1).failure, FailureClass::kStopped);
  EXPECT_THAT(verdict(1).reason, HasSubstr("its worker n1-1 gives no sign of life; n1 may be at fault"));
}

TEST_F(BadMachineTest, TwoRunsLeaveAMachineOutAndItIsNamed) {
  worker("n1-1", {}, "a100");
  worker("n2-2", {}, "a100");
  fail_on("n1-1", 1);
  EXPECT_THAT(launcher_->notes(), IsEmpty());
  fail_on("n1-1", 2);
  workers_.at("n2-2")->beat();
  start(3, needs_);
  EXPECT_THAT(board().grants.at(0).not_on, ElementsAre("n1"));
  ASSERT_THAT(launcher_->notes(), SizeIs(1));
  EXPECT_THAT(launcher_->notes()[0], HasSubstr("n1 is left out for 60 minutes: "));
  EXPECT_THAT(launcher_->notes()[0], HasSubstr(run(1).id().substr(0, 8)));
  launcher_->expect({{needs_, 1}});
  EXPECT_THAT(cluster_.not_on, ElementsAre("n1"));
  workers_.at("n2-2")->bye("idle");
  later();
  EXPECT_THAT(why_not(needs_), HasSubstr("2 jobs pending (Priority); n1 is left out"));
}

TEST_F(BadMachineTest, TheNextServiceLeavesItOutTooForTheRestOfTheTime) {
  worker("n1-1", {}, "a100");
  worker("n2-2", {}, "a100");
  fail_on("n1-1", 1);
  fail_on("n1-1", 2);
  now_ = 5;  // of another machine's clock
  restart_cluster();
  later();
  ASSERT_THAT(launcher_->notes(), SizeIs(1));
  EXPECT_THAT(launcher_->notes()[0], HasSubstr("n1 is left out for 60 minutes: "));
  later(3600);
  EXPECT_THAT(launcher_->notes(), IsEmpty());
  test::write_text(folder_ / "queue/blame.json", "{\"sealed\": true}");
  restart_cluster();
  later();
  EXPECT_THAT(launcher_->notes(), IsEmpty()) << "a damaged file is none";
}

TEST_F(BadMachineTest, ARunThatGetsOnThereClearsIt) {
  worker("n1-1", {}, "a100");
  worker("n2-2", {}, "a100");
  start(3, needs_);
  claim(3, "n1-1");
  workers_.at("n1-1")->claimed(run(3).id(), 1);
  later();
  fail_on("n1-1", 1);
  fail_on("n1-1", 2);
  EXPECT_THAT(launcher_->notes(), SizeIs(1));
  for (const char* name : {"n1-1", "n2-2"}) workers_.at(name)->beat();
  later(50);
  EXPECT_THAT(launcher_->notes(), IsEmpty()) << "the first run has lived for a minute";
  fail_on("n1-1", 4);
  fail_on("n1-1", 5);
  EXPECT_THAT(launcher_->notes(), IsEmpty()) << "and still does";
}

// Else a run that no worker there may take would wait for ever, and the others of its kind with it.
TEST_F(BadMachineTest, AGrantThatNobodyThereMayTakeWaitsForFurtherMachines) {
  worker("n1-1", {}, "a100");
  worker("n2-2", {}, "a100");
  fail_on("n1-1", 1);
  workers_.at("n2-2")->bye("idle");
  start(1, needs_);
  launcher_->expect({});
  EXPECT_EQ(cluster_.waiting, (std::map<Needs, int64_t>{{needs_, 1}}));
  EXPECT_THAT(cluster_.not_on, ElementsAre("n1"));
  EXPECT_EQ(why_not(needs_), "") << "another run can go to the worker that is there";
  for (int minute = 0; minute < 10; ++minute) {
    workers_.at("n1-1")->beat();
    later(60);
  }
  EXPECT_THAT(board().grants.at(0).not_on, IsEmpty()) << "nobody else came";
  launcher_->expect({});
  EXPECT_THAT(cluster_.not_on, IsEmpty());
}

TEST_F(BadMachineTest, WhatAnEarlierServiceHasSeenBeginIsNoQuickFailure) {
  worker("n1-1", {}, "a100");
  worker("n2-2", {}, "a100");
  start(1, needs_);
  claim(1, "n1-1");
  restart();
  ASSERT_TRUE(launcher_->adopt(run(1).id(), run(1).root(), needs_));
  test::write_text(run(1).attempt(1) / "exit.json", sealed({{"code", 1}}));
  report(1, "n1-1");
  later();
  EXPECT_EQ(verdict(1).failure, FailureClass::kCrashed);
}

// --- runs that need more time than a worker has ----------------------------------------------------------------------

class ShortTimeTest : public ClusterTest {
 protected:
  // The run is on a worker with an hour for all its work, from `from` seconds after its begin to the end, which stops
  // it.
  RunDirectory train(int number, double from, bool writes_checkpoint = false) {
    const std::string name = "n1-" + std::to_string(workers_.size());
    until_ = 3600;
    worker(name, {}, "a100");
    until_.reset();
    later(from);
    workers_.at(name)->beat();
    later();
    start(number, needs_);
    const RunDirectory work = claim(number, name);
    workers_.at(name)->claimed(run(number).id(), run(number).newest_attempt());
    later();
    if (writes_checkpoint) make_folders(work.checkpoint(run(number).newest_attempt()));
    while (from < 3500) {
      workers_.at(name)->beat();
      later(50);
      from += 50;
    }
    worker_ = name;
    return work;
  }
  void stop(int number, const std::string& asked = "stop") {
    test::write_text(run(number).attempt(run(number).newest_attempt()) / "exit.json",
                     sealed({{"code", 75}, {"asked", asked}}));
    report(number, worker_);
    workers_.at(worker_)->bye("until");
    later();
  }
  Verdict verdict(int number) const { return verdict_of(run(number), run(number).newest_attempt()); }

  std::string worker_;
};

TEST_F(ShortTimeTest, TwoWholeTimesWithoutACheckpointInARowEndTheRun) {
  train(1, 0);
  stop(1);
  EXPECT_EQ(verdict(1).failure, FailureClass::kStopped) << "once costs nothing";
  EXPECT_THAT(verdict(1).reason, HasSubstr("no checkpoint within the 1:00:00 that its worker had: give workers more "));
  restart_cluster();
  train(1, 1000);
  stop(1);
  EXPECT_EQ(verdict(1).failure, FailureClass::kSettings);
  EXPECT_THAT(verdict(1).reason, HasSubstr("no checkpoint within the 1:00:00"));
}

TEST_F(ShortTimeTest, ACheckpointAdvancesTheRun) {
  train(1, 0);
  stop(1);
  train(1, 0, true);
  stop(1);
  EXPECT_EQ(verdict(1).failure, FailureClass::kStopped);
  EXPECT_THAT(verdict(1).reason, HasSubstr("on request"));
  train(1, 0);
  stop(1);
  EXPECT_EQ(verdict(1).failure, FailureClass::kStopped) << "they are not two in a row";
  train(1, 0);
  stop(1);
  EXPECT_EQ(verdict(1).failure, FailureClass::kSettings) << "as the one that is there was made before";
}

TEST_F(ShortTimeTest, AnAttemptThatCameLateProvesNothing) {
  train(1, 0);
  stop(1);
  train(1, 2000);
  stop(1);
  EXPECT_EQ(verdict(1).failure, FailureClass::kStopped);
  EXPECT_THAT(verdict(1).reason, HasSubstr("on request"));
}

TEST_F(ShortTimeTest, NeitherDoesOneThatAUserHasStoppedOrAPreemption) {
  train(1, 0);
  stop(1);
  train(1, 0);
  launcher_->stop(run(1).id(), Stop::kOnRequest, 1);
  stop(1);
  EXPECT_THAT(verdict(1).reason, HasSubstr("on request"));
  train(1, 0);
  cluster_.fate = {FailureClass::kStopped, "preempted"};
  later(61);
  EXPECT_EQ(verdict(1).reason, "preempted");
}

TEST_F(ShortTimeTest, AJobThatReachedItsLimitWithoutAWordDoes) {
  cluster_.fate = {.failure = FailureClass::kStopped, .reason = "its limit", .is_time_over = true};
  train(1, 0);
  later(61);
  EXPECT_THAT(verdict(1).reason, HasSubstr("no checkpoint within the 1:00:00"));
  EXPECT_EQ(verdict(1).failure, FailureClass::kStopped);
  train(1, 0);
  later(61);
  EXPECT_EQ(verdict(1).failure, FailureClass::kSettings);
  train(2, 3000);
  later(61);
  EXPECT_EQ(verdict(2).reason, "its limit");
}

// --- the service was killed

TEST_F(WorkerLauncherTest, AGrantWithoutAClaimIsOnTheNextBoard) {
  worker("n1-1");
  start(1);
  restart();
  EXPECT_TRUE(launcher_->adopt(run(1).id(), run(1).root(), {}));
  later();
  EXPECT_THAT(granted(), ElementsAre(run(1).id()));
}

TEST_F(WorkerLauncherTest, WhatAWorkerSaidMeanwhileIsHeardThoughItIsGone) {
  worker("n1-1");
  start(1);
  finish(claim(1, "n1-1"));
  report(1, "n1-1");
  workers_.at("n1-1")->bye("idle");
  restart();
  ASSERT_TRUE(launcher_->adopt(run(1).id(), run(1).root(), {}));
  later();
  EXPECT_TRUE(ended_.contains(run(1).id()));
  EXPECT_TRUE(fs::exists(run(1).done()));
}

TEST_F(WorkerLauncherTest, WhatWasBeingTakenBackIsNobodys) {
  start(1);
  ASSERT_TRUE(claim_grant(run(1), 1, kService));
  restart();
  EXPECT_FALSE(launcher_->adopt(run(1).id(), run(1).root(), {}));
  EXPECT_FALSE(is_alive(run(1)));
}

TEST_F(WorkerLauncherTest, AnEndThatIsWrittenDownIsNotAdopted) {
  start(1);
  launcher_->stop(run(1).id(), Stop::kOnRequest, 30);
  later();
  restart();
  EXPECT_FALSE(launcher_->adopt(run(1).id(), run(1).root(), {}));
}

TEST_F(WorkerLauncherTest, ADerivedRunsGrantNamesTheResultsThatItReads) {
  start(1);
  test::write_text(run(1).done(), "{}");
  const std::string settings = "derived.of = \"" + run(1).id() + "\"\n";
  const RunDirectory derived = workspace_.run(run_id(settings));
  make_folders(derived.root());
  test::write_text(derived.settings(), settings);
  test::write_text(derived.local(), "");
  launcher_->start({.id = derived.id(), .folder = derived.root(), .needs = {}, .program = {}});
  EXPECT_THAT(read_grant(derived, 1)->origins,
              ElementsAre(testing::Pair(run(1).id(), testing::Field(&RunFiles::done, sha256("{}")))));
}

// --- beside the launcher of this machine

class Noted : public Launcher {
 public:
  explicit Noted(std::vector<std::string>& story, std::string name) : story_(story), name_(std::move(name)) {}
  std::optional<Refusal> refusal_of(const Needs&) const override { return Refusal{.why = name_}; }
  void start(const Launch& launch) override { story_.push_back(name_ + " starts " + launch.id); }
  bool adopt(const std::string& id, const fs::path&, const Needs&) override {
    story_.push_back(name_ + " adopts " + id);
    return true;
  }
  void stop(const std::string& id, Stop, int) override { story_.push_back(name_ + " stops " + id); }
  std::string where(const std::string&) const override { return name_; }
  void poll() override {}

 private:
  std::vector<std::string>& story_;
  std::string name_;
};

TEST(Launchers, ARunGoesWhereItsExecutorIsAndStaysWithWhoHasIt) {
  const test::TempFolder folder;
  std::vector<std::string> story;
  auto local = std::make_unique<Noted>(story, "local");
  Noted* far = nullptr;
  Launchers both(std::move(local), [&] {
    auto made = std::make_unique<Noted>(story, "far");
    far = made.get();
    return made;
  });
  std::vector<std::string> ended;
  both.on_end = [&](const std::string& id, const Launcher::End&) { ended.push_back(id); };
  const auto start = [&](const char* id, const Needs& needs) {
    make_folders(folder / id);
    both.start({.id = id, .folder = folder / id, .needs = needs, .program = {}});
  };
  EXPECT_EQ(both.refusal_of({})->why, "local");
  start("a", {});
  EXPECT_EQ(far, nullptr) << "only who needs it makes queue/";
  start("b", {.executor = kWorkers});
  EXPECT_EQ(both.refusal_of({.executor = kWorkers})->why, "far");
  test::write_text(RunDirectory(folder / "c").attempt(1) / "grant.json", "{}");
  both.adopt("c", folder / "c", {});
  both.adopt("d", folder / "d", {.executor = kWorkers});
  for (const char* id : {"a", "b", "c", "d", "e"}) both.stop(id, Stop::kOnRequest, 1);
  EXPECT_EQ(both.where("b"), "far");
  far->on_end("b", {});
  EXPECT_THAT(ended, ElementsAre("b"));
  EXPECT_THAT(story, ElementsAre("local starts a", "far starts b", "far adopts c", "local adopts d", "local stops a",
                                 "far stops b", "far stops c", "local stops d"));
}

TEST(Launchers, OnThisMachineARunGoesOnFromWhereAWorkerLeftIt) {
  const test::TempFolder folder;
  std::vector<std::string> story;
  Launchers both(std::make_unique<Noted>(story, "local"), [&] { return std::make_unique<Noted>(story, "far"); });
  const RunDirectory run(folder / "a");
  test::write_text(run.attempt(run.make_attempt()) / "claimed", "n1-1\n");
  const RunDirectory work = work_of(run, 1);
  make_folders(work.checkpoint(3));
  test::write_text(work.metrics(), "x");
  both.start({.id = "a", .folder = run.root(), .needs = {}, .program = {}});
  EXPECT_EQ(run.newest_checkpoint(), 3);
  EXPECT_EQ(test::read_text(run.metrics()), "x");
}

}  // namespace
}  // namespace tearless::harness::worker_launcher_test
