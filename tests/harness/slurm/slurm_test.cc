// How many workers are kept submitted, and what is said of those that end: with a cluster of a few lines, and with the
// stand-ins of Slurm's commands where these misbehave.
#include "harness/slurm/slurm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/sealed_json.h"
#include "base/time.h"
#include "tests/harness/slurm/stand_ins.h"
#include "tests/support/error_of.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace tearless::harness::slurm_test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

std::string text_of(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += word + " ";
  return text;
}

std::string value_in(const std::string& call, const std::string& option) {
  const size_t begin = call.find(option);
  return begin == call.npos ? "" : call.substr(begin + option.size(), call.find(' ', begin) - begin - option.size());
}

// What answers in place of Slurm.
struct Cluster {
  std::vector<SlurmJob> jobs;
  std::vector<std::string> calls;
  Said test{.code = 0}, squeue{.code = 0};
  std::deque<Said> sbatch;  // of the next calls; a code of 0 or a time-out: the jobs exist
  int next_id = 1;

  std::vector<std::string> calls_of(const std::string& begin) const {
    std::vector<std::string> found;
    std::ranges::copy_if(calls, std::back_inserter(found),
                         [&](const std::string& call) { return call.starts_with(begin); });
    return found;
  }
  std::vector<std::string> submissions() const { return calls_of("sbatch --parsable"); }

  Said answer(const std::string& call) {
    calls.push_back(call);
    if (call.starts_with("squeue")) {
      Said said = squeue;
      for (const SlurmJob& job : jobs) {
        said.output += job.array + "|" + std::to_string(*job.task) + "|" + job.word + "|" + job.node +
                       "|0:" + std::to_string(job.seconds) + ":0|" + job.name + "|" + job.reason + "\n";
      }
      return said;
    }
    if (call.starts_with("sbatch --test-only")) return test;
    if (call.starts_with("scancel")) {
      const std::string name = value_in(call, "--name=");
      std::erase_if(jobs, [&](const SlurmJob& job) { return job.name == name && job.word == "PENDING"; });
      return {.code = 0};
    }
    Said said{.code = 0};
    if (!sbatch.empty()) {
      said = sbatch.front();
      sbatch.pop_front();
    }
    if (said.code != 0 && !said.timed_out) return said;
    const std::string id = std::to_string(next_id++);
    for (int task = 0; task <= std::stoi(value_in(call, "--array=0-")); ++task) {
      jobs.push_back({.array = id,
                      .task = task,
                      .word = "PENDING",
                      .node = "",
                      .name = value_in(call, "--job-name="),
                      .reason = "Priority"});
    }
    if (said.code == 0) said.output = id + "\n";
    return said;
  }
};

class FakeCommands : public SlurmCommands {
 public:
  explicit FakeCommands(Cluster& cluster) : cluster_(cluster) {}
  void ask(std::vector<std::string> words, double, Then then) override {
    asked_.emplace_back(text_of(words), std::move(then));
  }
  void poll() override {
    for (auto& [call, then] : std::exchange(asked_, {})) then(cluster_.answer(call));
  }

 private:
  Cluster& cluster_;
  std::vector<std::pair<std::string, Then>> asked_;
};

const Needs kTwoThreads{.threads = 2};

class SlurmTest : public testing::Test {
 protected:
  SlurmTest() { begin(); }

  // A service begins; the one before is gone without a word.
  void begin() {
    slurm_.reset();
    list_ = std::make_shared<JobList>(std::make_unique<FakeCommands>(cluster_), [this] { return now_; });
    slurm_ = make(executor_);
  }
  std::unique_ptr<Slurm> make(const Executor& executor) {
    return std::make_unique<Slurm>(Workspace(folder_.path()), executor, "/bin/tearless", list_,
                                   std::make_unique<FakeCommands>(cluster_), [this] { return now_; });
  }
  // Time passes, and all that is asked is answered.
  void after(double seconds) {
    now_ += seconds;
    for (int look = 0; look < 5; ++look) slurm_->expect(waiting_, alive_, not_on_);
  }
  void run_all() {
    for (SlurmJob& job : cluster_.jobs) {
      if (job.word != "PENDING") continue;
      job.word = "RUNNING";
      job.node = "n1";
      job.reason = "None";
    }
  }
  std::string job_of(const SlurmJob& job) const { return job.id() + "@" + token_in(job.name); }
  // Every job that runs has a worker.
  void make_workers() {
    alive_.clear();
    for (const SlurmJob& job : cluster_.jobs) {
      if (job.word == "RUNNING") alive_.push_back({.name = "w" + job.id(), .host = "n1", .job = job_of(job)});
    }
  }
  // So many runs wait, and the workers that were asked for are there.
  void have_workers_for(int64_t runs) {
    waiting_[kTwoThreads] = runs;
    after(1);
    run_all();
    make_workers();
    after(31);
  }
  // All fall silent. Returns the job of the first.
  std::string lose_workers() {
    const std::string job = alive_[0].job;
    alive_.clear();
    return job;
  }
  void end_jobs(const std::string& word, const std::string& node = "n1") {
    for (SlurmJob& job : cluster_.jobs) {
      job.word = word;
      job.node = node;
    }
  }
  std::string fate(const std::string& job) {
    const auto fate = slurm_->fate_of({.name = "w", .host = "n1", .job = job});
    if (!fate) return "";
    return fmt::format("{}: {}{}", name_of(fate->failure), fate->reason, fate->is_time_over ? ", all its time" : "");
  }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_ / "queue/jobs")) names.push_back(entry.path().filename());
    std::ranges::sort(names);
    return names;
  }

  test::TempFolder folder_;
  Cluster cluster_;
  double now_ = 1000;
  Executor executor_{.name = "cpu", .cpus = 8, .workers = 6};
  std::map<Needs, int64_t> waiting_;
  std::vector<ClusterWorker> alive_;
  std::set<std::string> not_on_;
  std::shared_ptr<JobList> list_;
  std::unique_ptr<Slurm> slurm_;
};

TEST_F(SlurmTest, NothingIsAskedWhileNothingWaits) {
  after(1);
  after(100);
  EXPECT_THAT(cluster_.calls, IsEmpty());
}

TEST_F(SlurmTest, AsManyWorkersAsTheRunsFill) {
  waiting_[kTwoThreads] = 10;
  after(1);
  ASSERT_THAT(cluster_.submissions(), SizeIs(1));
  EXPECT_EQ(value_in(cluster_.submissions()[0], "--array="), "0-2") << "four runs in each";
  after(1);
  after(100);
  EXPECT_THAT(cluster_.submissions(), SizeIs(1)) << "they are on their way";
}

TEST_F(SlurmTest, NeverMoreThanTheSectionAllows) {
  waiting_[kTwoThreads] = 1000;
  after(1);
  ASSERT_THAT(cluster_.submissions(), SizeIs(1));
  EXPECT_EQ(value_in(cluster_.submissions()[0], "--array="), "0-5");
  run_all();
  make_workers();
  for (int i = 0; i < 5; ++i) after(31);
  EXPECT_THAT(cluster_.submissions(), SizeIs(1));
}

TEST_F(SlurmTest, RunsThatWaitBesideBusyWorkersGetMore) {
  have_workers_for(8);
  EXPECT_THAT(cluster_.submissions(), SizeIs(2)) << "two have come, and eight runs wait still";
}

TEST_F(SlurmTest, WhoHasEndedIsReplaced) {
  have_workers_for(1000);
  for (SlurmJob& job : cluster_.jobs) {
    if (*job.task < 2) job.word = "TIMEOUT";
  }
  make_workers();
  after(31);
  ASSERT_THAT(cluster_.submissions(), SizeIs(2));
  EXPECT_EQ(value_in(cluster_.submissions()[1], "--array="), "0-1");
}

TEST_F(SlurmTest, EachGresIsASubmissionOfItsOwn) {
  executor_ = {.name = "cpu", .gres = "gpu:a:1", .workers = 6, .instead = {{.memory_above = 100, .gres = "gpu:b:1"}}};
  begin();
  EXPECT_EQ(slurm_->memory_above({.device = "cuda", .memory_bytes = 100}), 0);
  EXPECT_EQ(slurm_->memory_above({.device = "cuda", .memory_bytes = 101}), 100) << "no worker with the other takes it";
  waiting_[{.device = "cuda"}] = 2;
  waiting_[{.device = "cuda", .memory_bytes = 101}] = 1;
  after(1);
  after(1);
  ASSERT_THAT(cluster_.submissions(), SizeIs(2));
  EXPECT_THAT(cluster_.submissions()[0], AllOf(HasSubstr("--gres=gpu:a:1 "), HasSubstr("--array=0-1 ")));
  EXPECT_THAT(cluster_.submissions()[1], AllOf(HasSubstr("--gres=gpu:b:1 "), HasSubstr("--array=0-0 ")));
}

TEST_F(SlurmTest, ARunThatRanOutOfMemoryAndItsLikeGetHalfAsMuchAgain) {
  executor_.memory_bytes = int64_t{32} << 30;
  begin();
  const Needs needs{.resource_class = "large"}, small{.resource_class = "small"};
  waiting_ = {{needs, 1}, {small, 1}};
  after(1);
  ASSERT_THAT(cluster_.submissions(), SizeIs(1));
  EXPECT_THAT(cluster_.submissions()[0], HasSubstr("--mem=32768M "));
  EXPECT_EQ(slurm_->memory_above(needs), 0);
  const Needs alone{.resource_class = "large", .alone = true};
  waiting_ = {{alone, 1}, {needs, 9}};
  after(1);
  ASSERT_THAT(cluster_.submissions(), SizeIs(2));
  EXPECT_THAT(cluster_.submissions()[1], AllOf(HasSubstr("--mem=49152M "), HasSubstr("--array=0-2 ")));
  for (const Needs& each : {alone, needs}) EXPECT_EQ(slurm_->memory_above(each), int64_t{32} << 30);
  EXPECT_EQ(slurm_->memory_above(small), 0);
  begin();
  waiting_ = {{alone, 1}};
  after(1);
  after(31);
  EXPECT_THAT(cluster_.submissions(), SizeIs(2)) << "the next service knows which are on their way";
}

TEST_F(SlurmTest, WhereThatIsRefusedItIsTriedInTheUsualAllocation) {
  executor_.memory_bytes = int64_t{32} << 30;
  begin();
  const Needs alone{.alone = true};
  waiting_ = {{alone, 1}};
  cluster_.sbatch = {
      {.code = 1, .errors = "sbatch: error: Memory specification can not be satisfied\nsbatch: error: Batch job \n"}};
  after(1);
  ASSERT_THAT(cluster_.submissions(), SizeIs(2));
  EXPECT_THAT(cluster_.submissions()[0], HasSubstr("--mem=49152M "));
  EXPECT_THAT(cluster_.submissions()[1], HasSubstr("--mem=32768M "));
  EXPECT_EQ(slurm_->memory_above(alone), 0);
}

// The stand-in counts in minutes here.
TEST_F(SlurmTest, AfterSoManyGpuHoursNothingMoreIsSubmitted) {
  executor_ = {.name = "cpu", .gres = "gpu:2", .workers = 6, .max_gpu_hours = 5};
  begin();
  EXPECT_THAT(slurm_->notes(), ElementsAre("cpu: 0.0 of 5 GPU hours are used"));
  const Needs gpu{.device = "cuda"};
  waiting_[gpu] = 2;
  after(1);
  run_all();
  make_workers();
  for (SlurmJob& job : cluster_.jobs) job.seconds = 60;
  after(31);
  EXPECT_THAT(slurm_->notes(), ElementsAre("cpu: 4.0 of 5 GPU hours are used"));
  ASSERT_THAT(cluster_.submissions(), SizeIs(2)) << "two for those that wait, and two for those that wait still";
  begin();
  EXPECT_THAT(slurm_->notes(), ElementsAre("cpu: 4.0 of 5 GPU hours are used")) << "a restart forgets nothing";
  for (SlurmJob& job : cluster_.jobs) {
    job.word = "COMPLETED";
    job.seconds = 80;
  }
  alive_.clear();
  after(31);
  EXPECT_THAT(slurm_->notes(), ElementsAre("cpu: 10.7 of 5 GPU hours are used, and no further workers are submitted "
                                           "(--max-gpu-hours)"));
  cluster_.jobs.clear();
  waiting_[gpu] = 40;
  for (int i = 0; i < 5; ++i) after(400);
  EXPECT_THAT(cluster_.submissions(), SizeIs(2));
  EXPECT_THAT(slurm_->why_none(), HasSubstr("no further workers are submitted"));
  executor_.max_gpu_hours = 20;
  begin();
  EXPECT_THAT(slurm_->notes(), ElementsAre("cpu: 10.7 of 20 GPU hours are used"))
      << "of submissions that are over, too";
  after(31);
  after(31);
  EXPECT_THAT(cluster_.submissions(), SizeIs(3));
}

TEST_F(SlurmTest, TheHoursOfAJobThatIsRequeuedDoNotFall) {
  executor_ = {.name = "cpu", .gres = "gpu:1", .workers = 1, .max_gpu_hours = 5};
  begin();
  waiting_[{.device = "cuda"}] = 1;
  after(1);
  run_all();
  make_workers();
  cluster_.jobs[0].seconds = 60;  // minutes here
  after(31);
  EXPECT_THAT(slurm_->notes(), ElementsAre("cpu: 1.0 of 5 GPU hours are used"));
  cluster_.jobs[0].word = "PENDING";
  cluster_.jobs[0].seconds = 0;
  after(31);
  EXPECT_THAT(slurm_->notes(), ElementsAre("cpu: 1.0 of 5 GPU hours are used"));
  cluster_.jobs[0].word = "RUNNING";
  cluster_.jobs[0].seconds = 5;
  after(31);
  EXPECT_THAT(slurm_->notes(), ElementsAre("cpu: 1.0 of 5 GPU hours are used")) << "the longest counts";
}

TEST_F(SlurmTest, RunsThatItNeverTrainsGetNoWorkers) {
  waiting_[{.device = "cuda"}] = 5;
  after(1);
  EXPECT_THAT(cluster_.calls, IsEmpty());
  EXPECT_THAT(slurm_->never_fits({.device = "cuda"}), HasSubstr("has no GPU"));
}

TEST_F(SlurmTest, TheScriptIsKeptBesideTheSubmission) {
  waiting_[kTwoThreads] = 1;
  after(1);
  const std::string token = token_in(value_in(cluster_.submissions()[0], "--job-name="));
  EXPECT_THAT(files(), ElementsAre(token + ".json", token + ".sh"));
  EXPECT_THAT(test::read_text(folder_ / "queue/jobs" / (token + ".sh")), HasSubstr("exec /bin/tearless worker"));
}

TEST_F(SlurmTest, TheTokenIsOnTheDiskBeforeSbatchIsCalled) {
  waiting_[kTwoThreads] = 1;
  slurm_->expect(waiting_, alive_, not_on_);
  EXPECT_THAT(cluster_.calls, IsEmpty()) << "it is asked, not yet answered";
  const auto submissions = read_submissions(folder_ / "queue/jobs", "cpu");
  ASSERT_THAT(submissions, SizeIs(1));
  EXPECT_EQ(submissions[0].state, WorkerSubmission::State::kAsked);
  after(1);
  EXPECT_EQ(read_submissions(folder_ / "queue/jobs", "cpu")[0].state, WorkerSubmission::State::kKnown);
  EXPECT_EQ(read_submissions(folder_ / "queue/jobs", "cpu")[0].job, "1");
}

TEST_F(SlurmTest, OnlyTheFirstIsTested) {
  waiting_[kTwoThreads] = 1000;
  after(1);
  end_jobs("COMPLETED");
  cluster_.jobs.clear();
  for (int i = 0; i < 20; ++i) after(31);
  EXPECT_THAT(cluster_.submissions(), SizeIs(testing::Gt(1)));
  EXPECT_THAT(cluster_.calls_of("sbatch --test-only"), SizeIs(1));
}

TEST_F(SlurmTest, WhatSlurmRefusesIsSaidAndTriedAgainInFiveMinutes) {
  waiting_[kTwoThreads] = 1;
  cluster_.test = {.code = 1, .errors = "allocation failure: Invalid partition name specified\n"};
  after(1);
  EXPECT_THAT(cluster_.submissions(), IsEmpty());
  EXPECT_THAT(files(), IsEmpty());
  EXPECT_EQ(slurm_->why_none(), "sbatch: Invalid partition name specified");
  after(290);
  EXPECT_THAT(cluster_.calls, SizeIs(1));
  cluster_.test = {.code = 0};
  after(20);
  EXPECT_THAT(cluster_.submissions(), SizeIs(1)) << "somebody has made the partition";
}

TEST_F(SlurmTest, WithoutSbatchOneSentenceSaysSo) {
  waiting_[kTwoThreads] = 1;
  cluster_.test = {.code = 127, .errors = "Slurm's sbatch is not on PATH of this machine", .missing = true};
  after(1);
  EXPECT_THAT(slurm_->why_none(), HasSubstr("Slurm's sbatch is not on PATH of this machine"));
}

TEST_F(SlurmTest, WhileSlurmctldIsSilentNothingIsSubmitted) {
  waiting_[kTwoThreads] = 1;
  cluster_.test = {.code = 1, .errors = "allocation failure: Unable to contact slurm controller (connect failure)\n"};
  after(1);
  EXPECT_EQ(slurm_->why_none(), "sbatch does not answer: Unable to contact slurm controller (connect failure)");
  EXPECT_THAT(files(), IsEmpty());
  cluster_.test = {.code = 1, .errors = "allocation failure: Nodes are busy\n"};
  after(61);
  EXPECT_THAT(cluster_.submissions(), SizeIs(1)) << "that is a word for now";
}

TEST_F(SlurmTest, HalfAsManyAfterALimit) {
  waiting_[kTwoThreads] = 1000;
  const Said limit{.code = 1,
                   .errors = "sbatch: error: Batch job submission failed: Invalid job array specification\n"};
  cluster_.sbatch = {limit, limit};
  after(1);
  after(1);
  after(1);
  std::vector<std::string> arrays;
  for (const std::string& call : cluster_.submissions()) arrays.push_back(value_in(call, "--array="));
  EXPECT_THAT(arrays, testing::Contains("0-5"));
  ASSERT_GE(arrays.size(), 3U);
  EXPECT_EQ(arrays[1], "0-2");
  EXPECT_EQ(arrays[2], "0-0");
}

TEST_F(SlurmTest, ALimitOfOneIsWaitedOut) {
  waiting_[kTwoThreads] = 1;
  cluster_.sbatch = {
      {.code = 1, .errors = "sbatch: error: Batch job submission failed: Resource temporarily unavailable\n"}};
  after(1);
  after(100);
  EXPECT_THAT(cluster_.submissions(), SizeIs(1));
  EXPECT_THAT(slurm_->why_none(), HasSubstr("Resource temporarily unavailable"));
  after(201);
  EXPECT_THAT(cluster_.submissions(), SizeIs(2));
}

TEST_F(SlurmTest, AJobWhoseAnswerWasLostIsFoundByItsName) {
  waiting_[kTwoThreads] = 4;
  cluster_.sbatch = {{.code = 137, .timed_out = true}};
  after(1);
  EXPECT_THAT(slurm_->why_none(), HasSubstr("whether sbatch has submitted workers is not known"));
  for (int i = 0; i < 5; ++i) after(31);
  EXPECT_THAT(cluster_.submissions(), SizeIs(1)) << "the job existed";
  EXPECT_EQ(slurm_->why_none(), "1 job pending (Priority)");
}

TEST_F(SlurmTest, ANameThatTwoListsLackWasNeverSubmitted) {
  waiting_[kTwoThreads] = 4;
  cluster_.sbatch = {{.code = 137, .timed_out = true}};
  after(1);
  cluster_.jobs.clear();
  after(31);
  EXPECT_THAT(cluster_.submissions(), SizeIs(1)) << "one list is not enough";
  after(31);
  after(1);
  ASSERT_THAT(cluster_.submissions(), SizeIs(2));
  EXPECT_NE(value_in(cluster_.submissions()[0], "--job-name="), value_in(cluster_.submissions()[1], "--job-name="));
  EXPECT_THAT(read_submissions(folder_ / "queue/jobs", "cpu"), SizeIs(1));
}

TEST_F(SlurmTest, WhileNoListAnswersNothingIsSubmittedTwice) {
  waiting_[kTwoThreads] = 4;
  cluster_.sbatch = {{.code = 137, .timed_out = true}};
  cluster_.squeue = {.code = 1,
                     .errors = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)"};
  after(1);
  cluster_.jobs.clear();
  for (int i = 0; i < 100; ++i) after(31);
  EXPECT_THAT(cluster_.submissions(), SizeIs(1));
  EXPECT_THAT(slurm_->why_none(), HasSubstr("Unable to contact slurm controller"));
}

TEST_F(SlurmTest, OfSubmissionsThatAreOverTheLastAreKept) {
  executor_.workers = 1;
  begin();
  waiting_[kTwoThreads] = 1000;
  for (int i = 0; i < 70; ++i) {
    after(31);
    run_all();
    make_workers();
    after(31);
    end_jobs("TIMEOUT");
    alive_.clear();
    after(31);
  }
  EXPECT_THAT(cluster_.submissions(), SizeIs(testing::Ge(70)));
  EXPECT_THAT(files(), SizeIs(testing::AllOf(testing::Ge(100), testing::Le(104)))) << "a record and a script each";
}

// Time on a busy machine is no measure; a square of 1,000 would be seen all the same.
TEST_F(SlurmTest, AThousandSubmissionsOfAThousandWorkersAreQuick) {
  make_folders(folder_ / "queue/jobs");
  for (int i = 0; i < 1000; ++i) {
    const std::string token = fmt::format("{:08x}", i);
    replace_unsynced(
        folder_ / "queue/jobs" / (token + ".json"),
        sealed({{"executor", "cpu"}, {"gres", ""}, {"count", 1}, {"state", "known"}, {"job", "9"}, {"at", ""}}));
    cluster_.jobs.push_back(
        {.array = "9", .task = 0, .word = "RUNNING", .node = "n1", .name = job_name(token), .reason = "None"});
  }
  executor_.workers = 1000;
  begin();
  make_workers();
  waiting_[kTwoThreads] = 10'000;
  const double before = steady_seconds();
  for (int i = 0; i < 100; ++i) after(1);
  EXPECT_LT(steady_seconds() - before, 50) << "of 500 ticks";
  EXPECT_THAT(cluster_.submissions(), IsEmpty());
}

TEST_F(SlurmTest, AnotherServiceTakesOverWhatWasSubmitted) {
  waiting_[kTwoThreads] = 1000;
  after(1);
  begin();
  after(1);
  EXPECT_THAT(cluster_.submissions(), SizeIs(1));
  for (int i = 0; i < 5; ++i) after(31);
  EXPECT_THAT(cluster_.submissions(), SizeIs(1));
}

TEST_F(SlurmTest, AnotherServiceWaitsForAListBeforeItSubmits) {
  waiting_[kTwoThreads] = 1000;
  after(1);
  cluster_.squeue = {.code = 1};
  begin();
  for (int i = 0; i < 10; ++i) after(31);
  EXPECT_THAT(cluster_.submissions(), SizeIs(1));
}

// A service is killed after each answer of Slurm to a submission, and before the first.
TEST_F(SlurmTest, AServiceThatIsKilledInASubmissionLeavesOne) {
  for (int looks = 1; looks <= 4; ++looks) {
    cluster_ = Cluster();
    fs::remove_all(folder_ / "queue");
    begin();
    waiting_[kTwoThreads] = 4;
    now_ += 1;
    for (int look = 0; look < looks; ++look) slurm_->expect(waiting_, alive_, not_on_);
    begin();
    for (int i = 0; i < 5; ++i) after(31);
    EXPECT_THAT(cluster_.jobs, SizeIs(1)) << looks;
  }
}

TEST_F(SlurmTest, AJobThatAppearsLateIsOneWorkerMore) {
  waiting_[kTwoThreads] = 4;
  cluster_.sbatch = {{.code = 137, .timed_out = true}};
  after(1);
  const std::vector<SlurmJob> late = std::exchange(cluster_.jobs, {});
  after(31);
  after(31);
  after(1);
  ASSERT_THAT(cluster_.submissions(), SizeIs(2));
  cluster_.jobs.insert(cluster_.jobs.end(), late.begin(), late.end());
  for (int i = 0; i < 5; ++i) after(31);
  EXPECT_THAT(cluster_.submissions(), SizeIs(2));
}

TEST_F(SlurmTest, OneSqueueInHalfAMinuteForTwoExecutors) {
  waiting_[kTwoThreads] = 4;
  const auto other = make({.name = "other", .workers = 3});
  for (int second = 0; second < 300; ++second) {
    now_ += 1;
    slurm_->expect(waiting_, alive_, not_on_);
    other->expect({{Needs{}, 3}}, {}, {});
  }
  EXPECT_THAT(cluster_.submissions(), SizeIs(2));
  EXPECT_THAT(cluster_.calls_of("squeue"), SizeIs(testing::AllOf(testing::Ge(9), testing::Le(11))));
}

TEST_F(SlurmTest, PendingJobsAreCancelledWhenNothingWaits) {
  waiting_[kTwoThreads] = 8;
  after(1);
  waiting_[kTwoThreads] = 4;
  cluster_.jobs[0].word = "RUNNING";
  cluster_.jobs[0].node = "n1";
  make_workers();
  after(31);
  waiting_.clear();
  after(30);
  EXPECT_THAT(cluster_.calls_of("scancel"), IsEmpty()) << "something may come";
  after(31);
  after(1);
  ASSERT_THAT(cluster_.calls_of("scancel"), SizeIs(1));
  EXPECT_THAT(cluster_.calls_of("scancel")[0], AllOf(HasSubstr("--state=PENDING "), HasSubstr("--name=tearless-")));
  EXPECT_THAT(cluster_.jobs, SizeIs(1));
  waiting_[kTwoThreads] = 8;
  after(31);
  after(31);
  after(1);
  EXPECT_THAT(cluster_.submissions(), SizeIs(testing::Ge(2))) << "what was cancelled is no reason to wait";
}

TEST_F(SlurmTest, AJobThatSlurmHoldsForEverIsCancelled) {
  waiting_[kTwoThreads] = 4;
  after(1);
  cluster_.jobs[0].reason = "launch failed requeued held";
  after(31);
  after(1);
  ASSERT_THAT(cluster_.calls_of("scancel"), SizeIs(1));
  EXPECT_THAT(cluster_.calls_of("scancel")[0], HasSubstr(" 1_0 "));
}

TEST_F(SlurmTest, AForgottenJobWhoseWorkerLivesCounts) {
  executor_.workers = 1;
  begin();
  have_workers_for(1000);
  cluster_.jobs.clear();
  for (int i = 0; i < 5; ++i) after(31);
  EXPECT_THAT(cluster_.submissions(), SizeIs(1));
  alive_.clear();
  for (int i = 0; i < 3; ++i) after(31);
  EXPECT_THAT(cluster_.submissions(), SizeIs(2));
}

TEST_F(SlurmTest, AStateThatIsNotKnownIsWaitedOut) {
  waiting_[kTwoThreads] = 4;
  after(1);
  end_jobs("HIBERNATING");
  for (int i = 0; i < 5; ++i) after(31);
  EXPECT_THAT(cluster_.submissions(), SizeIs(1));
  EXPECT_EQ(fate(job_of(cluster_.jobs[0])), "");
}

TEST_F(SlurmTest, ANodeThatEndsJobsBeforeTheirWorkersIsLeftOut) {
  waiting_[kTwoThreads] = 4;
  after(1);
  cluster_.jobs[0].reason = "JobLaunchFailure";
  end_jobs("FAILED", "n2");
  after(31);
  after(1);
  ASSERT_THAT(cluster_.submissions(), SizeIs(2));
  EXPECT_EQ(value_in(cluster_.submissions()[1], "--exclude="), "n2");
  cluster_.jobs.clear();
  run_all();
  now_ += 3600;
  after(31);
  after(31);
  after(300);
  after(1);
  EXPECT_EQ(value_in(cluster_.submissions().back(), "--exclude="), "") << "for an hour";
}

TEST_F(SlurmTest, AHostThatOthersBlameIsLeftOutByTheNameThatSlurmHasForIt) {
  have_workers_for(4);
  alive_[0].host = "n1.example.org";
  not_on_ = {"n1.example.org", "n7.example.org"};
  after(1);
  waiting_[kTwoThreads] = 12;
  after(1);
  ASSERT_THAT(cluster_.submissions(), SizeIs(3));
  EXPECT_EQ(value_in(cluster_.submissions()[2], "--exclude="), "n1") << "of the other one no job has told its name";
  not_on_.clear();
  waiting_[kTwoThreads] = 16;
  after(1);
  ASSERT_THAT(cluster_.submissions(), SizeIs(4));
  EXPECT_EQ(value_in(cluster_.submissions()[3], "--exclude="), "");
}

TEST_F(SlurmTest, ANodeThatTheClusterHasNoMoreIsNotLeftOut) {
  have_workers_for(4);
  not_on_ = {"n1"};
  waiting_[kTwoThreads] = 12;
  cluster_.sbatch = {
      {.code = 1, .errors = "sbatch: error: Batch job submission failed: Invalid node name specified\n"}};
  after(1);
  ASSERT_THAT(cluster_.submissions(), SizeIs(3));
  EXPECT_EQ(value_in(cluster_.submissions()[2], "--exclude="), "n1");
  cluster_.jobs.clear();
  alive_.clear();
  after(301);
  after(31);
  ASSERT_THAT(cluster_.submissions(), SizeIs(4));
  EXPECT_EQ(value_in(cluster_.submissions()[3], "--exclude="), "");
}

TEST_F(SlurmTest, JobsThatVanishWithoutWorkersAreNotReplacedAtOnce) {
  waiting_[kTwoThreads] = 4;
  after(1);
  after(31);
  cluster_.jobs.clear();
  after(31);
  after(31);
  after(31);
  EXPECT_THAT(cluster_.submissions(), SizeIs(1));
  EXPECT_THAT(slurm_->why_none(), HasSubstr("job 1_0 has left squeue's list, and its worker was never seen"));
  after(300);
  EXPECT_THAT(cluster_.submissions(), SizeIs(2));
}

TEST_F(SlurmTest, TheEndOfAJobIsTheFateOfItsWorker) {
  have_workers_for(4);
  const std::string job = lose_workers();
  after(1);
  EXPECT_EQ(fate(job), "") << "it runs";
  for (const auto& [word, expected] :
       {std::pair{"PREEMPTED", "stopped: its job 1_0 was preempted (PREEMPTED) on n1"},
        std::pair{"NODE_FAIL", "stopped: its job 1_0 lost its node (NODE_FAIL) on n1"},
        std::pair{"OUT_OF_MEMORY", "out_of_memory: its job 1_0 ran out of memory (OUT_OF_MEMORY) on n1"},
        std::pair{"RUNNING", ""},  // states go backwards
        std::pair{"PENDING", "stopped: its job 1_0 was queued again (PENDING)"}, std::pair{"COMPLETING", ""},
        std::pair{"HIBERNATING", ""},
        std::pair{"TIMEOUT", "stopped: its job 1_0 reached its time limit (TIMEOUT) on n1, all its time"}}) {
    end_jobs(word);
    fate(job);  // asks for a list
    after(31);
    EXPECT_EQ(fate(job), expected) << word;
  }
  cluster_.jobs.clear();
  after(31);
  EXPECT_EQ(fate(job), "stopped: its job 1_0 reached its time limit (TIMEOUT) on n1, all its time")
      << "forgotten since";
}

TEST_F(SlurmTest, NothingIsKnownOfJobsThatAreNotListed) {
  have_workers_for(4);
  const std::string job = lose_workers();
  cluster_.jobs.clear();
  for (int i = 0; i < 10; ++i) after(31);
  EXPECT_EQ(fate(job), "");
  EXPECT_EQ(fate(""), "") << "of a worker that a person has started";
  EXPECT_EQ(fate("17_3@ffffffff"), "");
}

TEST_F(SlurmTest, AnOldListSaysNotThatAJobWasQueuedAgain) {
  waiting_[kTwoThreads] = 4;
  after(1);
  after(31);  // pending
  const std::string job = job_of(cluster_.jobs[0]);
  cluster_.squeue = {.code = 1};
  for (int i = 0; i < 3; ++i) after(31);
  EXPECT_EQ(fate(job), "");
}

TEST_F(SlurmTest, AnIdThatIsUsedAgainIsAnotherJob) {
  have_workers_for(4);
  const std::string job = lose_workers();
  cluster_.jobs[0].name = "tearless-ffffffff";
  cluster_.jobs[0].word = "FAILED";
  for (int i = 0; i < 3; ++i) after(31);
  EXPECT_EQ(fate(job), "");
}

TEST_F(SlurmTest, AnotherWorkerOfTheSameJobMeansThatItWasQueuedAgain) {
  have_workers_for(4);
  const ClusterWorker old{.name = alive_[0].name, .host = "n1", .job = alive_[0].job};
  EXPECT_FALSE(slurm_->fate_of(old)) << "it is that worker";
  alive_[0].name = "another";
  after(1);
  const auto fate = slurm_->fate_of(old);
  ASSERT_TRUE(fate);
  EXPECT_EQ(fate->reason, "its job 1_0 was queued again and has another worker");
}

TEST_F(SlurmTest, AWorkerThatIsNeverSeenIsNamedWithItsJobAndNode) {
  waiting_[kTwoThreads] = 4;
  EXPECT_EQ(slurm_->why_none(), "no worker was asked for yet");
  after(1);
  EXPECT_EQ(slurm_->why_none(), "1 worker asked for");
  run_all();
  after(31);
  EXPECT_EQ(slurm_->why_none(), "1 worker starting");
  after(301);
  EXPECT_THAT(slurm_->why_none(),
              AllOf(HasSubstr("job 1_0 runs on n1, and its worker was not seen for 5 minutes: does n1 see " +
                              folder_.path().string() + "?"),
                    HasSubstr("-0.out")));
}

TEST_F(SlurmTest, AFolderThatSlurmDoesNotTakeIsRefusedAtOnce) {
  const fs::path odd = folder_ / "a\\b";
  EXPECT_THAT(test::error_of([&] {
                Slurm(Workspace(odd), executor_, "/bin/tearless", list_, std::make_unique<FakeCommands>(cluster_),
                      [] { return 0; });
              }),
              HasSubstr("backslash"));
  EXPECT_FALSE(fs::exists(odd));
}

TEST_F(SlurmTest, AFullDiskIsToldAndThenItContinues) {
  waiting_[kTwoThreads] = 4;
  fs::remove_all(folder_ / "queue/jobs");
  test::write_text(folder_ / "queue/jobs", "no folder");
  EXPECT_NE(test::error_of([&] { after(1); }), "");
  fs::remove_all(folder_ / "queue/jobs");
  fs::create_directories(folder_ / "queue/jobs");
  after(1);
  EXPECT_THAT(cluster_.submissions(), SizeIs(1));
}

// --- with the stand-ins ----------------------------------------------------------------------------------------------

class StandInTest : public testing::Test {
 protected:
  explicit StandInTest(Executor executor = {.name = "cpu", .workers = 2}) : executor_(std::move(executor)) {
    // A worker that is there until it is asked to end.
    test::write_text(folder_ / "tearless", "#!/bin/sh\nexec sleep 1000\n");
    fs::permissions(folder_ / "tearless", fs::perms::owner_all);
    const auto now = [this] { return now_; };
    list_ = std::make_shared<JobList>(std::make_unique<SlurmPrograms>(stand_ins_.path(), now), now);
    slurm_ = std::make_unique<Slurm>(Workspace(folder_ / "a folder"), executor_, folder_ / "tearless", list_,
                                     std::make_unique<SlurmPrograms>(stand_ins_.path(), now), now);
    waiting_[Needs{}] = 2;
  }
  // Time passes; then all that is asked is answered, or does not come.
  void after(double seconds) {
    now_ += seconds;
    const auto before = std::pair(list_->answers(), list_->fault());
    for (int look = 0; look < 300 && std::pair(list_->answers(), list_->fault()) == before; ++look) {
      slurm_->expect(waiting_, {}, {});
      ::usleep(10'000);
    }
    slurm_->expect(waiting_, {}, {});
  }
  bool eventually(const std::function<bool()>& holds) {
    return test::eventually([&] {
      now_ += 0.05;
      slurm_->expect(waiting_, {}, {});
      return holds();
    });
  }
  size_t submissions() const {
    const auto calls = stand_ins_.calls("sbatch");
    return static_cast<size_t>(
        std::ranges::count_if(calls, [](const std::string& call) { return call.starts_with("--parsable"); }));
  }

  test::TempFolder folder_;
  StandIns stand_ins_;
  double now_ = 1000;
  Executor executor_;
  std::map<Needs, int64_t> waiting_;
  std::shared_ptr<JobList> list_;
  std::unique_ptr<Slurm> slurm_;
};

TEST_F(StandInTest, WorkersAreSubmittedAndRun) {
  EXPECT_TRUE(eventually([&] { return slurm_->why_none() == "2 workers starting"; })) << slurm_->why_none();
  EXPECT_THAT(stand_ins_.jobs(), SizeIs(2));
  EXPECT_EQ(submissions(), 1U);
}

TEST_F(StandInTest, TheJobOfALostAnswerIsNotSubmittedTwice) {
  stand_ins_.misbehave({StandIns::wrong("sbatch", "lose-answer", {{"skip", 1}, {"seconds", 0}}),
                        StandIns::wrong("squeue", "fail", {{"error", "squeue-no-controller"}}),
                        StandIns::wrong("squeue", "garbage"), StandIns::wrong("squeue", "cut", {{"skip", 1}})});
  EXPECT_TRUE(eventually([&] { return submissions() == 1; }));
  for (int i = 0; i < 6; ++i) after(31);
  EXPECT_TRUE(eventually([&] { return slurm_->why_none() == "2 workers starting"; })) << slurm_->why_none();
  EXPECT_THAT(stand_ins_.jobs(), SizeIs(2));
  EXPECT_EQ(submissions(), 1U);
}

TEST_F(StandInTest, OneThatHangsIsKilledAndItsJobLookedUp) {
  stand_ins_.misbehave({StandIns::wrong("sbatch", "lose-answer", {{"skip", 1}}), StandIns::wrong("squeue", "empty")});
  EXPECT_TRUE(eventually([&] { return stand_ins_.jobs().size() == 2; }));
  now_ += 151;
  EXPECT_TRUE(eventually([&] { return slurm_->why_none().find("did not answer in time") != std::string::npos; }))
      << slurm_->why_none();
  for (int i = 0; i < 3; ++i) after(31);
  EXPECT_EQ(slurm_->why_none(), "2 workers starting") << "an empty list was not enough";
  EXPECT_EQ(submissions(), 1U);
}

TEST_F(StandInTest, AnIdThatIsUsedAgainChangesNothing) {
  stand_ins_.misbehave({StandIns::wrong("sbatch", "reuse-id", {{"skip", 2}, {"id", 2}})});
  EXPECT_TRUE(eventually([&] { return slurm_->why_none() == "2 workers starting"; })) << slurm_->why_none();
  EXPECT_EQ(submissions(), 1U);
}

TEST_F(StandInTest, ForgottenJobsAreReplacedAfterAWhile) {
  EXPECT_TRUE(eventually([&] { return slurm_->why_none() == "2 workers starting"; })) << slurm_->why_none();
  stand_ins_.misbehave({StandIns::wrong("squeue", "forget")});
  after(31);
  after(31);
  after(31);
  EXPECT_EQ(submissions(), 1U);
  EXPECT_THAT(slurm_->why_none(), HasSubstr("has left squeue's list"));
  now_ += 300;
  EXPECT_TRUE(eventually([&] { return submissions() == 2; }));
}

class RefusingTest : public StandInTest {
 protected:
  RefusingTest() : StandInTest({.name = "cpu", .partition = "nosuch", .workers = 2}) {}
};

TEST_F(RefusingTest, APartitionThatDoesNotExistIsSaidBeforeAnythingIsSubmitted) {
  SlurmPrograms commands(stand_ins_.path(), [this] { return now_; });
  EXPECT_EQ(refusal_by_test(commands, Workspace(folder_.path()), executor_),
            "invalid partition specified: nosuch; Invalid partition name specified");
  EXPECT_EQ(refusal_by_test(commands, Workspace(folder_.path()), {.name = "cpu", .partition = "low"}), "");
  EXPECT_TRUE(eventually([&] { return slurm_->why_none().starts_with("sbatch: "); }));
  EXPECT_THAT(slurm_->why_none(), HasSubstr("invalid partition specified: nosuch"));
  EXPECT_THAT(stand_ins_.jobs(), IsEmpty());
}

}  // namespace
}  // namespace tearless::harness::slurm_test
