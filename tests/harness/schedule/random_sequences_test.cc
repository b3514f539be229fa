// The scheduler under random sequences of requests, ends of attempts, restarts and losses, beside a reference model
// that says what each run and sweep must be after each step.
//
// A sequence is a list of steps of random numbers. What a step does follows from its numbers and from the state that it
// meets, so a sequence without some of its steps is a sequence too: one that fails is shortened before it is printed.
// Sequence N is always the same. To run it alone:
//   TEARLESS_SEQUENCE=N test_harness_schedule --gtest_filter='RandomSequences.*'
#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/lock_file.h"
#include "base/run_directory.h"
#include "base/sealed_json.h"
#include "harness/schedule/policy.h"
#include "harness/schedule/scheduler.h"
#include "harness/store/database.h"
#include "harness/store/rebuild.h"
#include "harness/store/sweep_directory.h"
#include "tests/support/paths.h"
#include "tests/support/sanitized.h"

namespace tearless::harness::random_sequences_test {
namespace {

namespace fs = std::filesystem;

// --- the small world of all sequences --------------------------------------------------------------------------------

struct KindOfRun {
  std::string device;
  int threads;
  int64_t updates, rank;
};
const std::vector<KindOfRun> kRuns = {{"cpu", 1, 10, 0}, {"cpu", 1, 20, 0},  {"cpu", 1, 10, 1},
                                      {"cpu", 2, 10, 0}, {"cuda", 1, 10, 0}, {"cuda", 1, 10, 1}};
const std::vector<std::vector<size_t>> kSweeps = {{0, 1, 2}, {2, 3, 4, 0}, {5, 1, 4}};  // their runs
constexpr int kSlots = 2;  // for the threads of runs on the CPU; one run has the GPU
constexpr const char* kGridText = "title = \"a random sequence\"\n";
constexpr double kStallSeconds = 1800;
constexpr double kGiveUp = 45;    // seconds after a stop until the launcher kills
constexpr double kMaxDelay = 60;  // seconds; of the next attempt after a quick end

std::string settings_of(size_t run) { return fmt::format("n = {}\n", run); }
const std::string& id_of_run(size_t run) {
  static const std::vector<std::string> ids = [] {
    std::vector<std::string> all;
    for (size_t i = 0; i < kRuns.size(); ++i) all.push_back(run_id(settings_of(i)));
    return all;
  }();
  return ids.at(run);
}
size_t run_with(const std::string& id) {
  size_t run = 0;
  while (id_of_run(run) != id) ++run;
  return run;
}

Sweep request_for(size_t sweep) {
  Sweep request{.id = "",
                .title = "",
                .grid_file = fmt::format("/sweep{}.toml", sweep),
                .submitted_at = "",
                .runs = {},
                .program = "/bin/false",
                .policy = {.stall_seconds = kStallSeconds, .grace_seconds = 30}};
  for (const size_t run : kSweeps[sweep]) {
    request.runs.push_back({.id = id_of_run(run),
                            .settings = settings_of(run),
                            .coordinates = {{"n", std::to_string(run)}},
                            .seed = 1,
                            .rank = kRuns[run].rank,
                            .needs = {.device = kRuns[run].device, .threads = kRuns[run].threads},
                            .updates = kRuns[run].updates});
  }
  request.id = sweep_id(request, kGridText);
  return request;
}
const std::string& id_of_sweep(size_t sweep) {
  static const std::vector<std::string> ids = {request_for(0).id, request_for(1).id, request_for(2).id};
  return ids.at(sweep);
}
size_t sweep_with(const std::string& id) {
  size_t sweep = 0;
  while (id_of_sweep(sweep) != id) ++sweep;
  return sweep;
}

// How an attempt ends: the rows of kEnds.
enum class End {
  kDone,
  kDiverged,
  kSettings,
  kOutOfMemory,
  kCrash,
  kKill,
  kMachine,
  kPreempted,
  kData,        // the program names no files: its run waits for a request, or for the next service
  kNoTrace,     // its supervisor was killed, too: no exit.json
  kUnrecorded,  // the disk was full: no exit.json
  // Before start.json:
  kNeverBegan,
  kFault,
};
struct EndRow {
  const char* name;
  int code, signal;      // in exit.json
  FailureClass failure;  // that its files say
};
constexpr EndRow kEnds[] = {{"done", 0, 0, FailureClass::kNone},
                            {"diverged", kExitDiverged, 0, FailureClass::kNone},
                            {"settings", kExitSettingsRefused, 0, FailureClass::kSettings},
                            {"out of memory", kExitOutOfMemory, 0, FailureClass::kOutOfMemory},
                            {"crashed", 1, 0, FailureClass::kCrashed},
                            {"killed", 137, SIGKILL, FailureClass::kKilled},
                            {"machine", kExitMachine, 0, FailureClass::kMachine},
                            {"preempted", kExitStopped, 0, FailureClass::kStopped},
                            {"without data", kExitData, 0, FailureClass::kData},
                            {"without trace", 0, 0, FailureClass::kLost},
                            {"unrecorded", 0, 0, FailureClass::kLost},
                            {"not begun", 0, 0, FailureClass::kLost},
                            {"with a fault", 0, 0, FailureClass::kLost}};
const EndRow& row_of(End end) { return kEnds[static_cast<size_t>(end)]; }

// A supervisor and its program. It lives on when the service ends.
struct Process {
  explicit Process(LockFile lock_) : lock(std::move(lock_)) {}

  LockFile lock;
  int64_t attempt = 0;     // 0 until it has written start.json
  std::string asked = {};  // what it was first asked: "stop", "stall"
  bool killed = false;
  // What the present service knows:
  bool watched = false, alone = false;
  std::optional<Stop> stop;
  double asked_at = 0, last_sign = 0;
};

// --- the model -------------------------------------------------------------------------------------------------------

struct EndedAttempt {
  int64_t number;
  FailureClass failure;  // kNone: it brought a result
  FailureClass on_disk;  // what its files say; the service that watched it may know more
  int64_t checkpoint;
};

struct ModelRun {
  std::optional<RunState> state;  // unset: no sweep with it was submitted
  RunState result = RunState::kDone;
  FailureClass failure = FailureClass::kNone;  // of its last attempt
  std::optional<RunState> then;                // held or cancelled, as soon as its attempt has stopped
  bool lacks_device = false;                   // it is held for that reason
  bool alone = false;                          // its next attempt has the machine to itself
  double queued_since = 0, starts_by = 0;      // delayed until then at most
  // Of its folder:
  std::vector<EndedAttempt> ended;
  size_t forgiven = 0;  // so many of them do not count as tries
  int64_t newest_attempt = 0, checkpoint = 0;
};

struct ModelSweep {
  bool submitted = false;
  bool known = false;  // to the present service
  bool paused = false, cancelled = false;
  int64_t priority = 0, submission = 0;
};

class Model {
 public:
  std::vector<ModelRun> runs{kRuns.size()};
  std::vector<ModelSweep> sweeps{kSweeps.size()};
  bool has_device = true, stopping = false;
  double now = 1000;
  std::string complaint;  // the first thing that is not as it must be

  void require(bool holds, const std::string& what) {
    if (!holds && complaint.empty()) complaint = what;
  }

  // Sweeps that have the run, and for which `is` holds.
  template <class F>
  std::vector<size_t> sweeps_of(size_t run, const F& is) const {
    std::vector<size_t> found;
    for (size_t s = 0; s < kSweeps.size(); ++s) {
      if (std::count(kSweeps[s].begin(), kSweeps[s].end(), run) > 0 && is(sweeps[s])) found.push_back(s);
    }
    return found;
  }
  bool is_wanted(size_t run) const {
    return !sweeps_of(run, [](const ModelSweep& s) { return s.submitted && !s.cancelled; }).empty();
  }
  std::vector<size_t> active_sweeps_of(size_t run) const {
    return sweeps_of(run, [](const ModelSweep& s) { return s.known && !s.paused && !s.cancelled; });
  }
  bool is_queued(size_t run) const { return runs[run].state == RunState::kQueued; }
  bool waits_for_data(size_t run) const { return runs[run].state == RunState::kWaitingData; }
  bool has_device_for(size_t run) const { return has_device || kRuns[run].device != "cuda"; }
  /// Nothing but a delay or the lack of capacity keeps it from being started.
  bool may_start(size_t run) const { return is_queued(run) && !stopping && !active_sweeps_of(run).empty(); }

  /// True if `a` must be started before `b`; false if that follows from what the model does not know.
  bool goes_first(size_t a, size_t b) const {
    const auto first_sweep = [&](size_t run) {
      std::pair<int64_t, int64_t> first{INT64_MAX, 0};
      for (const size_t s : active_sweeps_of(run)) {
        first = std::min(first, {-sweeps[s].priority, sweeps[s].submission});
      }
      return first;
    };
    const auto within = [](size_t run) { return std::pair(kRuns[run].rank, -kRuns[run].updates); };
    return std::pair(first_sweep(a), within(a)) < std::pair(first_sweep(b), within(b));
  }

  void become(size_t run, RunState to) {
    ModelRun& it = runs[run];
    if (it.state) {
      require(is_legal(*it.state, to), fmt::format("run {} goes from {} to {}", run, name_of(it.state), name_of(to)));
    }
    it.state = to;
    it.lacks_device = false;
    if (to == RunState::kQueued) it.queued_since = now;
  }

  // --- requests

  void submit(size_t sweep, bool retry) {
    ModelSweep& it = sweeps[sweep];
    it = {.submitted = true, .known = true, .priority = it.priority, .submission = ++submissions_};
    for (const size_t run : kSweeps[sweep]) {
      ModelRun& job = runs[run];
      if (!job.state) become(run, RunState::kQueued);
      const bool lost_its_result =
          (job.state == RunState::kDone || job.state == RunState::kDiverged) && job.ended.empty();
      if (lost_its_result || job.state == RunState::kCancelled || (job.state == RunState::kFailed && retry) ||
          (job.state == RunState::kHeld && job.lacks_device)) {
        requeue(run);
      }
      if (job.then == RunState::kCancelled) job.then.reset();
      find_data(run);
      hold_without_device(run);
    }
  }

  /// The service reads a sweep that it had no reason to know.
  void get_to_know(size_t sweep) {
    if (sweeps[sweep].known) return;
    sweeps[sweep].known = true;
    if (sweeps[sweep].cancelled) return;
    for (const size_t run : kSweeps[sweep]) {
      if (!stopping) find_data(run);
      hold_without_device(run);
    }
  }

  void cancel(size_t sweep) {
    sweeps[sweep].cancelled = true;
    finish_cancelling(sweep);
  }

  void hold(size_t run) {
    if (runs[run].state == RunState::kRunning) {
      runs[run].then = RunState::kHeld;
    } else if (is_queued(run)) {
      become(run, RunState::kHeld);
    }
  }

  void cancel_run(size_t run) {
    if (runs[run].state == RunState::kRunning) {
      runs[run].then = RunState::kCancelled;
    } else if (is_queued(run) || waits_for_data(run) || runs[run].state == RunState::kHeld) {
      become(run, RunState::kCancelled);
    }
  }

  void release(size_t run) {
    ModelRun& it = runs[run];
    if (it.then == RunState::kHeld) {
      it.then = is_wanted(run) ? std::nullopt : std::optional(RunState::kCancelled);
    } else if (it.state == RunState::kHeld && is_wanted(run)) {
      requeue(run);
    } else if (it.state == RunState::kHeld) {
      become(run, RunState::kCancelled);
    }
  }

  void retry(size_t run) {
    const bool ended = runs[run].state == RunState::kFailed || runs[run].state == RunState::kCancelled;
    if (ended && is_wanted(run)) requeue(run);
  }

  // --- attempts

  void start_refused(size_t run) { runs[run].failure = FailureClass::kLost; }

  /// `watched`: by a service.
  void end(size_t run, const Process& process, End how, bool watched) {
    ModelRun& it = runs[run];
    const std::optional<RunState> then = std::exchange(it.then, std::nullopt);
    it.starts_by = now + kMaxDelay;
    if (process.attempt == 0) {
      it.failure = FailureClass::kLost;
      become(run, RunState::kQueued);
      if (then) become(run, *then);
      return;
    }
    const FailureClass on_disk = class_on_disk(process, how);
    it.failure = watched ? class_watched(process, how, on_disk) : on_disk;
    it.ended.push_back({process.attempt, it.failure, on_disk, it.checkpoint});
    if (how == End::kDone || how == End::kDiverged) {
      it.result = how == End::kDone ? RunState::kDone : RunState::kDiverged;
      return become(run, it.result);
    }
    const int tries = policy_of(it.failure).tries;
    if (!then && tries != kNotCounted && tries_of(run) >= tries) return become(run, RunState::kFailed);
    become(run, RunState::kQueued);
    it.alone = it.failure == FailureClass::kOutOfMemory;
    if (!then && it.failure == FailureClass::kData) become(run, RunState::kWaitingData);
    if (then) become(run, *then);
  }

  // --- losses

  void restart(bool with_device) {
    has_device = with_device;
    stopping = false;
    for (ModelSweep& sweep : sweeps) sweep.known = sweep.submitted && !sweep.paused && !sweep.cancelled;
    for (ModelRun& run : runs) {
      run.starts_by = 0;
      run.alone = run.state == RunState::kQueued && run.failure == FailureClass::kOutOfMemory;
    }
    for (size_t s = 0; s < sweeps.size(); ++s) {
      if (sweeps[s].cancelled) finish_cancelling(s);
    }
    for (size_t s = 0; s < sweeps.size(); ++s) {
      if (!sweeps[s].known) continue;
      for (const size_t run : kSweeps[s]) {
        find_data(run);
        hold_without_device(run);
      }
    }
  }

  /// The database was lost; the folders are all there is.
  void rebuild(const std::set<size_t>& alive) {
    for (size_t run = 0; run < runs.size(); ++run) {
      ModelRun& it = runs[run];
      if (!it.state) continue;
      for (EndedAttempt& attempt : it.ended) attempt.failure = attempt.on_disk;
      it.forgiven = 0;
      it.lacks_device = false;
      it.then.reset();
      it.failure = it.ended.empty() ? FailureClass::kNone : it.ended.back().failure;
      const bool has_result = !it.ended.empty() && it.failure == FailureClass::kNone;
      it.state = alive.contains(run)                     ? RunState::kRunning
                 : has_result                            ? it.result
                 : it.failure == FailureClass::kSettings ? RunState::kFailed
                                                         : RunState::kQueued;
      if (alive.contains(run)) it.failure = FailureClass::kNone;
      it.queued_since = now;
    }
  }

  void lose_folder(size_t run) {
    runs[run].ended.clear();
    runs[run].forgiven = 0;
    runs[run].newest_attempt = runs[run].checkpoint = 0;
  }

 private:
  void requeue(size_t run) {
    become(run, RunState::kQueued);
    runs[run].failure = FailureClass::kNone;
    runs[run].alone = false;
    runs[run].starts_by = 0;
    runs[run].forgiven = runs[run].ended.size();
    if (!sweeps_of(run, [](const ModelSweep& s) { return s.known && !s.cancelled; }).empty()) hold_without_device(run);
  }

  void find_data(size_t run) {
    if (waits_for_data(run)) become(run, RunState::kQueued);
  }

  void hold_without_device(size_t run) {
    if (!is_queued(run) || has_device_for(run)) return;
    become(run, RunState::kHeld);
    runs[run].lacks_device = true;
  }

  // The runs that no other sweep wants. One that a user holds stays held.
  void finish_cancelling(size_t sweep) {
    for (const size_t run : kSweeps[sweep]) {
      if (is_wanted(run)) continue;
      if (is_queued(run) || waits_for_data(run)) become(run, RunState::kCancelled);
      if (runs[run].state == RunState::kRunning && runs[run].then != RunState::kHeld)
        runs[run].then = RunState::kCancelled;
    }
  }

  static FailureClass class_on_disk(const Process& process, End how) {
    const FailureClass failure = row_of(how).failure;
    if (failure == FailureClass::kNone || failure == FailureClass::kLost || process.asked.empty()) return failure;
    return process.asked == "stop" ? FailureClass::kStopped : FailureClass::kStalled;
  }
  static FailureClass class_watched(const Process& process, End how, FailureClass on_disk) {
    if (how == End::kUnrecorded) return FailureClass::kMachine;
    if (how != End::kNoTrace || !process.stop) return on_disk;
    return process.stop == Stop::kStalled ? FailureClass::kStalled : FailureClass::kStopped;
  }

  // Failures of the newest class since the last progress, or the last request to try again.
  int tries_of(size_t run) const {
    const ModelRun& it = runs[run];
    int tries = 0;
    for (size_t i = it.forgiven; i < it.ended.size(); ++i) {
      tries += it.ended[i].failure == it.failure && it.ended[i].checkpoint == it.checkpoint;
    }
    return tries;
  }

  int64_t submissions_ = 0;
};

// --- one sequence ----------------------------------------------------------------------------------------------------

enum class Act {
  kSubmit,
  kRetrySweep,
  kPause,
  kResume,
  kCancel,
  kPriority,
  kHold,
  kRelease,
  kRetry,
  kCancelRun,
  kTick,
  kClock,
  kBegin,
  kProgress,
  kEnd,
  kRestart,
  kRebuild,
  kRemoveFolder,
  kRefuse,
  kStop,
};
struct Step {
  Act act;
  uint32_t a, b, c;
};

std::vector<Step> steps_of(uint32_t sequence) {
  static constexpr std::pair<Act, uint32_t> kWeights[] = {
      {Act::kSubmit, 6},   {Act::kRetrySweep, 1}, {Act::kPause, 3},        {Act::kResume, 5},   {Act::kCancel, 2},
      {Act::kPriority, 2}, {Act::kHold, 2},       {Act::kRelease, 3},      {Act::kRetry, 2},    {Act::kCancelRun, 2},
      {Act::kTick, 10},    {Act::kClock, 8},      {Act::kBegin, 12},       {Act::kProgress, 5}, {Act::kEnd, 18},
      {Act::kRestart, 4},  {Act::kRebuild, 1},    {Act::kRemoveFolder, 2}, {Act::kRefuse, 1},   {Act::kStop, 1}};
  std::mt19937 random(sequence);
  const auto draw = [&] { return static_cast<uint32_t>(random()) >> 4; };
  uint32_t all = 0;
  for (const auto& [act, weight] : kWeights) all += weight;
  std::vector<Step> steps(30 + draw() % 30);
  for (Step& step : steps) {
    uint32_t drawn = draw() % all;
    size_t chosen = 0;
    while (drawn >= kWeights[chosen].second) drawn -= kWeights[chosen++].second;
    step = {kWeights[chosen].first, draw(), draw(), draw()};
  }
  steps[0].act = steps[1].act = Act::kSubmit;
  return steps;
}

struct RunVerb {
  const char* name;
  void (Model::*in_model)(size_t);
  bool (Scheduler::*in_scheduler)(const std::string&);
};
const std::map<Act, RunVerb> kRunVerbs = {{Act::kHold, {"hold", &Model::hold, &Scheduler::hold}},
                                          {Act::kRelease, {"release", &Model::release, &Scheduler::release}},
                                          {Act::kRetry, {"retry", &Model::retry, &Scheduler::retry}},
                                          {Act::kCancelRun, {"cancel", &Model::cancel_run, &Scheduler::cancel_run}}};

class Trial : public Launcher {
 public:
  explicit Trial(const fs::path& folder) : workspace_(folder) {
    make_folders(workspace_.runs());
    open_store();
    open_scheduler();
  }

  /// What is not as it must be; "" if all is well.
  std::string play(const std::vector<Step>& steps) {
    for (const Step& step : steps) {
      guarded([&] { take(step); });
      if (!model_.complaint.empty()) return model_.complaint;
    }
    guarded([&] { end_everything(); });
    return model_.complaint;
  }
  const std::string& story() const { return story_; }
  const std::map<std::string, int>& happened() const { return happened_; }

  // --- the launcher that the scheduler sees

  std::optional<Refusal> refusal_of(const Needs& needs) const override {
    if (needs.device == "cuda" && !model_.has_device) return Refusal{.why = "no GPU", .for_good = true};
    return fits(needs) ? std::nullopt : std::optional<Refusal>({.why = "no room"});
  }

  void start(const Launch& launch) override {
    const size_t run = run_with(launch.id);
    may_pause_ = may_pause_ || refuse_;
    check_start(run, launch.needs);
    if (refuse_) {
      refused_.insert(run);
      model_.start_refused(run);
      throw UserError("no process can be started");
    }
    model_.become(run, RunState::kRunning);
    std::optional<LockFile> lock = LockFile::try_acquire(workspace_.run(launch.id).lock());
    model_.require(lock.has_value(), fmt::format("run {} is started while its lock is held", run));
    if (!lock) return;
    watch(processes_.emplace(run, std::move(*lock)).first->second, launch.needs);
    note("starts", run);
  }

  bool adopt(const std::string& id, const fs::path&, const Needs& needs) override {
    const auto found = processes_.find(run_with(id));
    if (found == processes_.end()) return false;
    model_.require(!found->second.watched, "an attempt is adopted twice");
    model_.require(needs.alone == (model_.runs[found->first].failure == FailureClass::kOutOfMemory),
                   "an attempt is adopted as one that is alone, or not as one");
    watch(found->second, needs);
    note("adopted", found->first);
    return true;
  }

  void stop(const std::string& id, Stop how, int) override {
    const size_t run = run_with(id);
    Process& process = processes_.at(run);
    model_.require(process.watched, "an attempt of another service is stopped");
    if (how == Stop::kStalled) {
      model_.require(model_.now - process.last_sign > kStallSeconds, fmt::format("run {} did not stall", run));
    } else {
      model_.require(model_.runs[run].then || model_.stopping || model_.active_sweeps_of(run).empty(),
                     fmt::format("run {} is stopped, and nobody asked for it", run));
    }
    process.stop = how;
    process.asked_at = model_.now;
    if (process.asked.empty()) process.asked = how == Stop::kStalled ? "stall" : "stop";
    note(how == Stop::kStalled ? "stalls" : "is asked to stop", run);
  }

  // What does not react for long is killed, as a launcher must.
  void poll() override {
    for (auto& [run, process] : processes_) {
      if (!process.stop || process.killed || model_.now - process.asked_at <= kGiveUp) continue;
      process.killed = true;
      note("is killed", run);
    }
  }

  std::string where(const std::string&) const override { return "in a slot"; }

 private:
  template <class F>
  void guarded(const F& act) {
    may_pause_ = false;
    refused_.clear();
    try {
      act();
      if (model_.complaint.empty()) compare();
    } catch (const std::exception& error) {
      model_.require(false, std::string("exception: ") + error.what());
    }
  }

  void note(const std::string& what) {
    story_ += "    " + what + "\n";
    ++happened_[what];
  }
  void note(const std::string& what, size_t run) {
    story_ += fmt::format("    run {} {}\n", run, what);
    ++happened_[what];
  }

  // --- the service, as harness/service does it

  void open_store() { store_ = std::make_unique<Store>(open_for_writing(":memory:"), std::nullopt); }

  void open_scheduler() {
    scheduler_ = std::make_unique<Scheduler>(
        *store_, workspace_, *this, [this] { return model_.now; },
        [this](const SchedulerEvent& event) { hear(event); });
  }

  void hear(const SchedulerEvent& event) {
    for (const std::string& sweep : event.sweeps) {
      log_event(workspace_, sweep, event.what, {{"run", event.id}, {"text", event.text}});
    }
    if (event.what != "paused") return;
    ModelSweep& sweep = model_.sweeps[sweep_with(event.sweeps.at(0))];
    if (sweep.paused) return;  // on request
    model_.require(may_pause_, "a sweep is paused without a reason: " + event.text);
    sweep.paused = true;
    note("a sweep is paused by the scheduler");
  }

  void submit(size_t sweep, Scheduler::Add how) {
    Sweep request = request_for(sweep);
    request.submitted_at = fmt::format("{:09}", ++submissions_);
    freeze_sweep(workspace_, request, kGridText);
    log_event(workspace_, request.id, "submitted");
    store_->submit(read_sweep(workspace_, request.id));
    model_.submit(sweep, how == Scheduler::Add::kRetry);
    scheduler_->add(request.id, how);
  }

  void get_to_know(size_t sweep) {
    if (model_.sweeps[sweep].known) return;
    model_.get_to_know(sweep);
    scheduler_->add(id_of_sweep(sweep), Scheduler::Add::kRestart);
  }

  void restart(bool with_device) {
    for (auto& [run, process] : processes_) {
      process.watched = process.alone = false;
      process.stop.reset();
    }
    model_.restart(with_device);
    open_scheduler();
    scheduler_->begin();
    scheduler_->add_active();
  }

  // --- processes

  void begin_attempt(size_t run, Process& process) {
    const RunDirectory folder = workspace_.run(id_of_run(run));
    process.attempt = folder.make_attempt();
    write_start(folder, process.attempt, {{"device", kRuns[run].device}, {"numerics", 1}});
    ModelRun& model = model_.runs[run];
    model_.require(process.attempt > model.newest_attempt, "the numbers of attempts do not grow");
    model.newest_attempt = process.attempt;
    note("begins", run);
  }

  void make_progress(size_t run, Process& process, bool checkpoint) {
    const RunDirectory folder = workspace_.run(id_of_run(run));
    ModelRun& model = model_.runs[run];
    if (checkpoint) make_folders(folder.checkpoint(++model.checkpoint));
    AppendFile(folder.metrics(), fs::exists(folder.metrics()) ? fs::file_size(folder.metrics()) : 0)
        .append("{\"step\": 1, \"name\": \"train.loss\", \"value\": 1}\n");
    process.last_sign = model_.now;
    note(checkpoint ? "writes a checkpoint" : "writes metrics", run);
  }

  End chosen_end(const Process& process, uint32_t number) const {
    if (process.attempt == 0) {
      return process.killed || number % 8 > 1 ? End::kNeverBegan : End::kFault;
    }
    if (process.killed) return End::kNoTrace;
    return number % 16 >= 11 ? End::kDone : static_cast<End>(number % 16);
  }

  // Writes what it leaves, ends the process and returns what its launcher knows.
  std::string end_process(size_t run, End how, uint32_t number) {
    const RunDirectory folder = workspace_.run(id_of_run(run));
    const auto node = processes_.extract(run);
    const Process& process = node.mapped();
    if (process.attempt == 0 && how == End::kNeverBegan && number % 2 == 0) {
      model_.runs[run].newest_attempt = folder.make_attempt();
    }
    if (process.attempt > 0) leave_files(folder, process, how, number);
    model_.end(run, process, how, process.watched);
    may_pause_ = true;
    note(fmt::format("ends: {}", row_of(how).name), run);
    return how == End::kFault || how == End::kUnrecorded ? "a fault" : "";
  }

  static void leave_files(const RunDirectory& folder, const Process& process, End how, uint32_t number) {
    if (how == End::kNoTrace || how == End::kUnrecorded) return;
    if (how == End::kDone) {
      test::write_text(folder.scores(), R"({"test.bleu": 20})");
      write_done(folder, "done", 10, "max_updates", {"scores.json"});
    }
    if (how == End::kDiverged) write_done(folder, "diverged", 4, "loss is not finite", {});
    const fs::path attempt = folder.attempt(process.attempt);
    test::write_text(attempt / "log.txt", number % 32 < 16 ? "out of beans" : "out of rice");
    test::write_text(attempt / "exit.json",
                     sealed({{"code", row_of(how).code}, {"signal", row_of(how).signal}, {"asked", process.asked}}));
  }

  void end_attempt(size_t run, End how, uint32_t number) {
    const std::string fault = end_process(run, how, number);
    const bool pauses = !fault.empty() && model_.is_queued(run) && !model_.stopping;
    on_end(id_of_run(run), fault);
    if (pauses) refused_.insert(run);
  }

  // What becomes of the processes while there is no service.
  void pass_time_without_service(uint32_t number) {
    std::set<size_t> all;
    for (const auto& [run, process] : processes_) all.insert(run);
    for (const size_t run : all) {
      Process& process = processes_.at(run);
      process.watched = false;
      const uint32_t fate = (number >> (4 * run)) % 8;
      if (process.attempt == 0 && fate < 3) begin_attempt(run, process);
      if (process.killed || fate > 4) end_process(run, chosen_end(process, number >> run), number >> run);
    }
  }

  // --- capacity and order

  void watch(Process& process, const Needs& needs) {
    process.watched = true;
    process.alone = needs.alone;
    process.last_sign = model_.now;
  }

  bool fits(const Needs& needs) const {
    int slots = 0, on_gpu = 0;
    for (const auto& [run, process] : processes_) {
      if (!process.watched) continue;
      if (process.alone || needs.alone) return false;
      (kRuns[run].device == "cuda" ? on_gpu : slots) += kRuns[run].threads;
    }
    return needs.device == "cuda" ? on_gpu == 0 : slots + needs.threads <= kSlots;
  }
  // As the model knows the run.
  bool fits(size_t run) const {
    const auto& [device, threads, updates, rank] = kRuns[run];
    return model_.has_device_for(run) && fits({.device = device, .threads = threads, .alone = model_.runs[run].alone});
  }
  // It may be delayed otherwise.
  bool is_due(size_t run) const { return model_.may_start(run) && model_.now >= model_.runs[run].starts_by; }

  void check_start(size_t run, const Needs& needs) {
    model_.require(!processes_.contains(run), fmt::format("run {} is started while an attempt of it is alive", run));
    model_.require(model_.may_start(run),
                   fmt::format("run {} is started, but it is {}", run, name_of(model_.runs[run].state)));
    model_.require(needs.alone == model_.runs[run].alone, fmt::format("run {} is started with wrong needs", run));
    model_.require(fits(run), fmt::format("run {} is started without capacity", run));
    for (size_t other = 0; other < kRuns.size(); ++other) {
      if (other == run || !is_due(other)) continue;
      const bool same_needs = kRuns[other].device == kRuns[run].device && kRuns[other].threads == kRuns[run].threads &&
                              model_.runs[other].alone == model_.runs[run].alone;
      model_.require(!same_needs || !model_.goes_first(other, run),
                     fmt::format("run {} is started before run {}", run, other));
    }
  }

  // After a tick nothing waits that fits, unless a run that was skipped for long blocks it.
  void check_that_nothing_fits() {
    for (size_t run = 0; run < kRuns.size(); ++run) {
      if (is_due(run) && !fits(run) && model_.now - model_.runs[run].queued_since >= JobQueue::kPatience) return;
    }
    for (size_t run = 0; run < kRuns.size(); ++run) {
      model_.require(!is_due(run) || !fits(run), fmt::format("run {} fits and is not started", run));
    }
  }

  // After a pause or a cancel: what no active sweep wants is asked to stop.
  void check_that_it_stops(size_t sweep) {
    for (const size_t run : kSweeps[sweep]) {
      const auto process = processes_.find(run);
      if (process == processes_.end() || !model_.active_sweeps_of(run).empty()) continue;
      model_.require(process->second.stop.has_value(), fmt::format("run {} is not stopped", run));
    }
  }

  // --- the state after each step

  void compare() {
    size_t watched = 0;
    for (const auto& [run, process] : processes_) {
      watched += process.watched;
      model_.require(!process.watched || !model_.runs[run].then || process.stop,
                     fmt::format("run {} was not asked to stop", run));
    }
    model_.require(scheduler_->progress().size() == watched, "the scheduler does not watch the live attempts");
    std::map<std::string, std::string> states;  // as the store has them
    for (const auto& row : store_->query("SELECT id, state FROM runs").rows) states[row.at(0)] = row.at(1);
    for (size_t run = 0; run < kRuns.size(); ++run) compare_run(run, states[id_of_run(run)]);
    std::map<std::string, Sweep> sweeps;
    for (const Sweep& sweep : store_->sweeps()) sweeps[sweep.id] = sweep;
    for (size_t sweep = 0; sweep < kSweeps.size(); ++sweep) {
      if (model_.sweeps[sweep].submitted) compare_sweep(sweep, sweeps.at(id_of_sweep(sweep)));
    }
    for (const size_t run : refused_) {
      model_.require(model_.active_sweeps_of(run).empty(), fmt::format("a sweep of run {} should be paused", run));
    }
  }

  void compare_run(size_t run, const std::string& stored) {
    const std::string_view expected = name_of(model_.runs[run].state);
    model_.require(stored == expected, fmt::format("run {} is '{}', and must be '{}'", run, stored, expected));
    const std::string why = scheduler_->why(id_of_run(run));
    model_.require(why.empty() != (model_.is_queued(run) || stored == name_of(RunState::kRunning)),
                   fmt::format("run {} is {}, and the reason is: '{}'", run, stored, why));
  }

  void compare_sweep(size_t sweep, const Sweep& stored) {
    const ModelSweep& model = model_.sweeps[sweep];
    const std::string& id = id_of_sweep(sweep);
    const auto must = [&](bool holds, const char* what) {
      model_.require(holds, fmt::format("sweep {}: {}", sweep, what));
    };
    must(stored.priority == model.priority, "its priority in the store");
    must(stored.state == (model.cancelled ? SweepState::kCancelled
                          : model.paused  ? SweepState::kPaused
                                          : SweepState::kActive),
         "its state in the store");
    must(scheduler_->knows(id) == model.known, "known");
    if (!model.known) return must(scheduler_->idle(id), "idle, for it is not known");
    must(scheduler_->paused(id).empty() == (!model.paused && !model.cancelled), "paused");
    const SweepCounts counts = scheduler_->counts(id);
    int64_t running = 0, waiting = 0, without_data = 0;
    bool idle = true;
    for (const size_t run : kSweeps[sweep]) {
      const bool live = processes_.contains(run) && processes_.at(run).watched;
      running += live;
      waiting += model_.is_queued(run);
      without_data += model_.waits_for_data(run);
      idle &= !live && !model_.may_start(run);
    }
    must(counts.total == static_cast<int64_t>(kSweeps[sweep].size()) - without_data, "total");
    if (model.cancelled && running > 0) return;  // its own last attempts, or those of other sweeps
    must(counts.running == running, "running");
    must(counts.waiting == (model.cancelled ? 0 : waiting), "waiting");
    must(scheduler_->idle(id) == (model.cancelled || idle), "idle");
  }

  // --- steps

  void take(const Step& step) {
    const size_t sweep = step.a % kSweeps.size(), run = step.a % kRuns.size();
    const bool is_submitted = model_.sweeps[sweep].submitted;
    const bool was_cancelled = model_.sweeps[sweep].cancelled;
    const auto say = [&](const std::string& what) {
      story_ += what + "\n";
      ++happened_[what.substr(0, what.find_first_of("0123456789"))];
    };
    const auto for_sweep = [&](const char* verb) {
      if (is_submitted) say(fmt::format("{} sweep {}", verb, sweep));
      if (is_submitted) get_to_know(sweep);
      return is_submitted;
    };
    const std::string& sweep_name = id_of_sweep(sweep);
    switch (step.act) {
      case Act::kSubmit:
        say(fmt::format("submit sweep {}", sweep));
        return submit(sweep, Scheduler::Add::kSubmit);
      case Act::kRetrySweep:
        if (!is_submitted) return;
        say(fmt::format("retry sweep {}", sweep));
        return submit(sweep, Scheduler::Add::kRetry);
      case Act::kPause:
        if (!for_sweep("pause")) return;
        if (!was_cancelled) model_.sweeps[sweep].paused = true;
        scheduler_->pause(sweep_name, "paused on request", OnPause::kStop);
        return was_cancelled ? void() : check_that_it_stops(sweep);
      case Act::kResume:
        if (!for_sweep("resume")) return;
        if (!was_cancelled) model_.sweeps[sweep].paused = false;
        return scheduler_->resume(sweep_name);
      case Act::kCancel:
        if (!for_sweep("cancel")) return;
        model_.cancel(sweep);
        scheduler_->cancel(sweep_name);
        return was_cancelled ? void() : check_that_it_stops(sweep);
      case Act::kPriority:
        if (!for_sweep("priority of")) return;
        model_.sweeps[sweep].priority = step.b % 3;
        log_event(workspace_, sweep_name, "priority", {{"priority", step.b % 3}});
        return scheduler_->set_priority(sweep_name, step.b % 3);
      case Act::kHold:
      case Act::kRelease:
      case Act::kRetry:
      case Act::kCancelRun: {
        const auto& [name, in_model, in_scheduler] = kRunVerbs.at(step.act);
        if (!model_.runs[run].state) return;
        say(fmt::format("{} run {}", name, run));
        (model_.*in_model)(run);
        (*scheduler_.*in_scheduler)(id_of_run(run));
        return;
      }
      case Act::kTick:
        say("tick");
        scheduler_->tick();
        return check_that_nothing_fits();
      case Act::kClock: {
        const double seconds = std::array{0.5, 5.0, 61.0, 61.0, 700.0, 2000.0}.at(step.a % 6);
        say(fmt::format("the clock moves by {} s", seconds));
        model_.now += seconds;
        return;
      }
      case Act::kBegin:
        say("launched attempts begin");
        for (auto& [one, process] : processes_) {
          if (process.attempt == 0 && !process.killed && (step.a >> one) % 4 != 0) begin_attempt(one, process);
        }
        return;
      case Act::kProgress:
      case Act::kEnd: {
        if (processes_.empty()) return;
        const auto chosen = std::next(processes_.begin(), static_cast<ptrdiff_t>(step.a % processes_.size()));
        auto& [one, process] = *chosen;
        if (step.act == Act::kEnd) {
          say("an attempt ends");
          return end_attempt(one, chosen_end(process, step.b), step.b);
        }
        if (process.attempt == 0 || process.killed) return;
        say("an attempt works");
        return make_progress(one, process, step.b % 2 == 0);
      }
      case Act::kRestart:
        say("the service is killed and starts again");
        scheduler_.reset();
        pass_time_without_service(step.b);
        return restart(step.c % 4 != 0);
      case Act::kRebuild: {
        say("the database is lost and rebuilt");
        scheduler_.reset();
        for (auto& [one, process] : processes_) {
          if (process.attempt == 0 && !process.killed) begin_attempt(one, process);
        }
        pass_time_without_service(step.b);
        std::set<size_t> alive;
        for (const auto& [one, process] : processes_) alive.insert(one);
        open_store();
        const RebuildReport report = restore(*store_, workspace_);
        model_.require(report.passed_over.empty(), "the rebuild passes something over");
        model_.rebuild(alive);
        return restart(step.c % 4 != 0);
      }
      case Act::kRemoveFolder:
        if (processes_.contains(run) || !fs::exists(workspace_.run(id_of_run(run)).root())) return;
        say(fmt::format("the folder of run {} is removed", run));
        fs::remove_all(workspace_.run(id_of_run(run)).root());
        return model_.lose_folder(run);
      case Act::kRefuse:
        refuse_ = !refuse_;
        return say(refuse_ ? "no process can be started from now on" : "processes can be started again");
      case Act::kStop:
        model_.stopping = true;
        say("stop --now");
        return scheduler_->stop();
    }
  }

  // From any state: if everything is let go and all attempts succeed, every run comes to its end.
  void end_everything() {
    story_ += "everything is let go, and all attempts succeed\n";
    refuse_ = false;
    scheduler_.reset();
    restart(/*with_device=*/true);
    for (size_t run = 0; run < kRuns.size(); ++run) {
      model_.release(run);
      scheduler_->release(id_of_run(run));
    }
    for (size_t sweep = 0; sweep < kSweeps.size(); ++sweep) {
      if (!model_.sweeps[sweep].submitted) continue;
      get_to_know(sweep);
      model_.sweeps[sweep].paused = false;
      scheduler_->resume(id_of_sweep(sweep));
    }
    for (int round = 0; round < 30 && model_.complaint.empty(); ++round) {
      std::set<size_t> alive;
      for (auto& [run, process] : processes_) alive.insert(run);
      for (const size_t run : alive) {
        Process& process = processes_.at(run);
        if (process.attempt == 0 && !process.killed) begin_attempt(run, process);
        end_attempt(run, process.killed ? chosen_end(process, 0) : End::kDone, 0);
      }
      for (size_t sweep = 0; sweep < kSweeps.size(); ++sweep) {  // what ended before may have paused it
        if (model_.sweeps[sweep].submitted) model_.sweeps[sweep].paused = false;
        if (model_.sweeps[sweep].submitted) scheduler_->resume(id_of_sweep(sweep));
      }
      model_.now += 61;
      scheduler_->tick();
      check_that_nothing_fits();
      if (processes_.empty()) break;
    }
    for (size_t run = 0; run < kRuns.size(); ++run) {
      const std::optional<RunState> state = model_.runs[run].state;
      model_.require(!state || is_inactive(*state), fmt::format("run {} never ends", run));
      check_attempts(run);
    }
  }

  // The store knows the attempts of a run that the folder holds, and how they ended.
  void check_attempts(size_t run) {
    std::vector<int64_t> stored, expected;
    for (const AttemptRecord& attempt : store_->attempts_of(id_of_run(run))) stored.push_back(attempt.number);
    for (const EndedAttempt& attempt : model_.runs[run].ended) expected.push_back(attempt.number);
    if (!fs::exists(workspace_.run(id_of_run(run)).root())) return;  // the store keeps what the folder held
    model_.require(stored == expected,
                   fmt::format("the store does not have the {} attempts of run {}", expected.size(), run));
  }

  Workspace workspace_;
  Model model_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Scheduler> scheduler_;
  std::map<size_t, Process> processes_;  // by run
  bool refuse_ = false;
  bool may_pause_ = false;    // something happened in this step that may pause a sweep
  std::set<size_t> refused_;  // runs whose sweeps must be paused after this step
  int64_t submissions_ = 0;
  std::string story_;
  std::map<std::string, int> happened_;
};

struct Outcome {
  std::string complaint, story;
  std::map<std::string, int> happened;
};

Outcome outcome_of(const std::vector<Step>& steps) {
  const test::TempFolder folder;
  Trial trial(folder / "results");
  std::string complaint = trial.play(steps);
  return {std::move(complaint), trial.story(), trial.happened()};
}

// A complaint without its numbers: which run it is does not matter.
std::string kind_of(std::string complaint) {
  std::erase_if(complaint, [](unsigned char c) { return std::isdigit(c); });
  return complaint;
}

// Leaves out steps for as long as the rest fails in the same way.
std::vector<Step> shortened(std::vector<Step> steps, const std::string& kind) {
  for (size_t size = steps.size() / 2; size > 0; size /= 2) {
    for (size_t from = 0; from + size <= steps.size();) {
      std::vector<Step> fewer = steps;
      fewer.erase(fewer.begin() + static_cast<ptrdiff_t>(from), fewer.begin() + static_cast<ptrdiff_t>(from + size));
      if (kind_of(outcome_of(fewer).complaint) == kind) {
        steps = std::move(fewer);
      } else {
        from += size;
      }
    }
  }
  return steps;
}

uint32_t number_or(const char* variable, uint32_t otherwise) {
  const char* text = std::getenv(variable);
  return text ? static_cast<uint32_t>(std::stoul(text)) : otherwise;
}

TEST(RandomSequences, LeaveEveryRunAndSweepAsTheModelSays) {
  constexpr uint32_t kSequences = test::kSanitized ? 50 : 500;
  const bool only_one = std::getenv("TEARLESS_SEQUENCE") != nullptr;
  const uint32_t first = number_or("TEARLESS_SEQUENCE", number_or("TEARLESS_SEED", 1) * 1'000'000);
  const uint32_t count = only_one ? 1 : number_or("TEARLESS_SEQUENCES", kSequences);
  std::printf("random sequences %u to %u\n", first, first + count - 1);
  std::map<std::string, int> happened;
  std::set<std::string> kinds;  // of failures: one of each is enough
  for (uint32_t sequence = first; sequence < first + count; ++sequence) {
    const std::vector<Step> steps = steps_of(sequence);
    const Outcome outcome = outcome_of(steps);
    for (const auto& [what, times] : outcome.happened) happened[what] += times;
    if (outcome.complaint.empty()) continue;
    if (!kinds.insert(kind_of(outcome.complaint)).second) continue;
    const Outcome shortest = outcome_of(shortened(steps, kind_of(outcome.complaint)));
    ADD_FAILURE() << "sequence " << sequence << ": " << outcome.complaint << "\nshortened:\n"
                  << shortest.story << shortest.complaint << "\nto run it alone: TEARLESS_SEQUENCE=" << sequence;
  }
  if (only_one) return;
  for (const auto& [what, times] : happened) std::printf("%7d  %s\n", times, what.c_str());
}

}  // namespace
}  // namespace tearless::harness::random_sequences_test
