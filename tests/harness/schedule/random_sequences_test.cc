// The scheduler under random sequences of requests, ends of attempts, restarts and losses. The test keeps a list of
// what was asked for and of what attempts brought; after each step store, scheduler and launcher must agree with it and
// with each other. How many tries a failure has, and which class an end is: scheduler_test.cc.
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
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/lock_file.h"
#include "base/run_directory.h"
#include "base/sealed_json.h"
#include "harness/folders/rebuild.h"
#include "harness/folders/sweep_directory.h"
#include "harness/runs/policy.h"
#include "harness/schedule/scheduler.h"
#include "harness/store/database.h"
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
const std::vector<std::vector<size_t>> kSweeps = {
    {0, 1, 2}, {2, 3, 4, 0}, {5, 1, 4, 5}};  // their runs; two rows may be one
constexpr int kSlots = 2;                    // for the threads of runs on the CPU; one run has the GPU
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
enum class Ending {
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
  kTakenBack,
};
struct EndRow {
  const char* name;
  int code = 0, signal = 0;  // in exit.json
  bool may_fail = false;     // the run, unless somebody asked the attempt to stop
};
constexpr EndRow kEnds[] = {{"done"},
                            {"diverged", kExitDiverged},
                            {"settings", kExitSettingsRefused, 0, true},
                            {"out of memory", kExitOutOfMemory, 0, true},
                            {"crashed", 1, 0, true},
                            {"killed", 137, SIGKILL},
                            {"machine", kExitMachine},
                            {"preempted", kExitStopped},
                            {"without data", kExitData},
                            {"without trace"},
                            {"unrecorded"},
                            {"not begun"},
                            {"with a fault"},
                            {"taken back"}};
const EndRow& row_of(Ending end) { return kEnds[static_cast<size_t>(end)]; }

// A supervisor and its program. It lives on when the service ends.
struct Process {
  explicit Process(LockFile lock_) : lock(std::move(lock_)) {}

  LockFile lock;
  int64_t attempt = 0;     // 0 until it has written start.json
  std::string asked = {};  // what it was first asked: "stop", "stall"; in exit.json
  bool killed = false;
  // What the present service knows:
  bool watched = false, alone = false;
  std::optional<Stop> stop;
  double asked_at = 0, last_sign = 0;
};

// --- what was asked for, and what attempts brought
// ---------------------------------------------------------------------

struct KnownRun {
  RunState state = RunState::kQueued;  // as the store had it after the last step
  double queued_since = 0;             // at the latest
  std::optional<RunState> asked;       // held or cancelled, by a user
  std::optional<RunState> brought;     // a result, by an attempt
  bool has_folder = true;              // with that result
  bool may_fail = false;               // by the end of its last attempt that had begun
  bool ran_out = false;                // of memory, once: it may have the machine to itself
  double starts_by = 0;                // its next attempt may be delayed until then
  int64_t newest_attempt = 0, checkpoint = 0;
  std::vector<int64_t> attempts;  // that ended, by number
};

struct KnownSweep {
  bool submitted = false;
  bool known = false;  // to the present service
  bool paused = false, cancelled = false;
  int64_t priority = 0;
  int64_t submission = 0, newest = 0;  // that counts in the queue; of all

  bool is_active() const { return known && !paused && !cancelled; }
};

// --- one sequence ----------------------------------------------------------------------------------------------------

// What a step does follows from its numbers.
struct Step {
  size_t act = 0;  // of Trial::acts()
  uint32_t a = 0, b = 0, c = 0;
};
size_t run_of(const Step& step) { return step.a % kRuns.size(); }

class Trial : public Launcher {
 public:
  explicit Trial(const fs::path& folder) : workspace_(folder) {
    make_folders(workspace_.runs());
    open_store();
    open_scheduler();
  }

  struct Act {
    const char* name;
    uint32_t weight;  // how often it is drawn
    std::function<void(Trial&, const Step&)> take;
  };
  static const std::vector<Act>& acts() {
    static const std::vector<Act> all = {
        {"submit a sweep", 6, [](Trial& t, const Step& step) { t.submit(step); }},
        {"submit a sweep with --retry", 1, &Trial::submit_again},
        {"pause a sweep", 3, &Trial::pause},
        {"resume a sweep", 5, &Trial::resume},
        {"cancel a sweep", 2, &Trial::cancel},
        {"another priority of a sweep", 2, &Trial::set_priority},
        {"hold a run", 2, &Trial::hold},
        {"release a run", 3, &Trial::release},
        {"retry a run", 2, &Trial::retry},
        {"cancel a run", 2, &Trial::cancel_run},
        {"tick", 10, &Trial::tick},
        {"the clock moves", 8, &Trial::move_clock},
        {"launched attempts begin", 12, &Trial::begin_some},
        {"an attempt works", 5, &Trial::work},
        {"an attempt ends", 18, &Trial::end_one},
        {"the service is killed and starts again", 4, &Trial::restart_service},
        {"the database is lost and rebuilt", 1, &Trial::lose_database},
        {"the folder of a run is removed", 2, &Trial::remove_folder},
        {"processes can be started no more, or again", 1, [](Trial& t, const Step&) { t.refuse_ = !t.refuse_; }},
        {"stop --now", 1, &Trial::stop_all}};
    return all;
  }

  /// What is not as it must be; "" if all is well.
  std::string play(const std::vector<Step>& steps) {
    for (const Step& step : steps) {
      guarded([&] { take(step); });
      if (!complaint_.empty()) return complaint_;
    }
    guarded([&] { end_everything(); });
    return complaint_;
  }
  const std::string& story() const { return story_; }
  const std::map<std::string, int>& happened() const { return happened_; }

  // --- the launcher that the scheduler sees

  std::optional<Refusal> refusal_of(const Needs& needs) const override {
    if (needs.device == "cuda" && !has_device_) return Refusal{.why = "no GPU", .for_good = true};
    return fits(needs) ? std::nullopt : std::optional<Refusal>({.why = "no room"});
  }

  void start(const Launch& launch) override {
    const size_t run = run_with(launch.id);
    KnownRun& it = runs_[run];
    require(!processes_.contains(run), fmt::format("run {} is started while an attempt of it is alive", run));
    require(!stopping_ && !active_sweeps_of(run).empty(), fmt::format("run {} is started, and nobody wants it", run));
    require(!it.asked, fmt::format("run {} is started, and a user has put it aside", run));
    require(!it.brought || !it.has_folder, fmt::format("run {} is trained twice", run));
    require(!launch.needs.alone || it.ran_out, fmt::format("run {} is started alone", run));
    require(!refusal_of(launch.needs), fmt::format("run {} is started without capacity", run));
    for (size_t other = 0; other < kRuns.size(); ++other) {
      const bool same_needs = kRuns[other].device == kRuns[run].device && kRuns[other].threads == kRuns[run].threads &&
                              !runs_[other].ran_out && !launch.needs.alone;
      if (other == run || !same_needs || state_of(other) != RunState::kQueued || !is_due(other)) continue;
      require(place_of(run) <= place_of(other), fmt::format("run {} is started before run {}", run, other));
    }
    if (refuse_) throw UserError("no process can be started");
    it.brought.reset();
    std::optional<LockFile> lock = LockFile::try_acquire(workspace_.run(launch.id).lock());
    require(lock.has_value(), fmt::format("run {} is started while its lock is held", run));
    if (!lock) return;
    watch(processes_.emplace(run, std::move(*lock)).first->second, launch.needs);
    note("starts", run);
  }

  bool adopt(const std::string& id, const fs::path&, const Needs& needs) override {
    const auto found = processes_.find(run_with(id));
    if (found == processes_.end()) return false;
    require(!found->second.watched, "an attempt is adopted twice");
    watch(found->second, needs);
    note("adopted", found->first);
    return true;
  }

  void stop(const std::string& id, Stop how, int) override {
    const size_t run = run_with(id);
    Process& process = processes_.at(run);
    require(process.watched, "an attempt of another service is stopped");
    if (how == Stop::kStalled) {
      require(now_ - process.last_sign > kStallSeconds, fmt::format("run {} did not stall", run));
    } else {
      require(runs_[run].asked || stopping_ || active_sweeps_of(run).empty(),
              fmt::format("run {} is stopped, and nobody asked for it", run));
    }
    process.stop = how;
    process.asked_at = now_;
    if (process.asked.empty()) process.asked = how == Stop::kStalled ? "stall" : "stop";
    note(how == Stop::kStalled ? "stalls" : "is asked to stop", run);
  }

  // What does not react for long is killed, as a launcher must.
  void poll() override {
    for (auto& [run, process] : processes_) {
      if (!process.stop || process.killed || now_ - process.asked_at <= kGiveUp) continue;
      process.killed = true;
      note("is killed", run);
    }
  }

  std::string where(const std::string&) const override { return "in a slot"; }

 private:
  template <class F>
  void guarded(const F& act) {
    changed_on_request_.clear();
    try {
      act();
      if (complaint_.empty()) compare();
    } catch (const std::exception& error) {
      require(false, std::string("exception: ") + error.what());
    }
  }

  void require(bool holds, const std::string& what) {
    if (!holds && complaint_.empty()) complaint_ = what;
  }
  void note(const std::string& what, size_t run) {
    story_ += fmt::format("    run {} {}\n", run, what);
    ++happened_[what];
  }

  // --- the service, as harness/service does it

  void open_store() { store_ = std::make_unique<Store>(open_for_writing(":memory:"), std::nullopt); }

  void open_scheduler() {
    scheduler_ = std::make_unique<Scheduler>(
        *store_, workspace_, *this, [this] { return now_; },
        [this](const SchedulerEvent& event) {
          for (const std::string& sweep : event.sweeps) {
            log_event(workspace_, sweep, event.what, {{"run", event.id}, {"text", event.text}});
          }
          if (event.what == "paused") sweeps_[sweep_with(event.sweeps.at(0))].paused = true;
        });
  }

  void submit(const Step& step) { submit(step.a % kSweeps.size(), Scheduler::Add::kSubmit); }
  void submit_again(const Step& step) {
    for_sweep(step,
              [&](size_t sweep, const KnownSweep&, const std::string&) { submit(sweep, Scheduler::Add::kRetry); });
  }
  void submit(size_t sweep, Scheduler::Add how) {
    Sweep request = request_for(sweep);
    request.submitted_at = fmt::format("{:09}", 999'999'999 - ++submissions_);  // by a clock that is set back each time
    freeze_sweep(workspace_, request, kGridText);
    const KnownSweep before = sweeps_[sweep];
    const bool keeps_its_place = before.submitted && !before.cancelled && is_unfinished(sweep);
    submit_sweep(*store_, workspace_, request.id);
    sweeps_[sweep] = {.submitted = true,
                      .known = true,
                      .priority = before.priority,
                      .submission = keeps_its_place ? before.submission : submissions_,
                      .newest = submissions_};
    for (const size_t run : kSweeps[sweep]) {
      changed_on_request_.insert(run);
      if (runs_[run].asked == RunState::kCancelled) runs_[run].asked.reset();
    }
    scheduler_->add(request.id, how);
  }

  void restart(bool with_device) {
    has_device_ = with_device;
    stopping_ = false;
    for (auto& [run, process] : processes_) {
      process.watched = process.alone = false;
      process.stop.reset();
    }
    for (KnownSweep& sweep : sweeps_) sweep.known = sweep.submitted && !sweep.paused && !sweep.cancelled;
    for (KnownRun& run : runs_) run.starts_by = 0;
    for (size_t sweep = 0; sweep < kSweeps.size(); ++sweep) {
      if (sweeps_[sweep].cancelled) cancel_unwanted(sweep);
    }
    open_scheduler();
    scheduler_->begin();
    scheduler_->add_active();
  }

  // --- requests

  void cancel_unwanted(size_t sweep) {
    for (const size_t run : kSweeps[sweep]) {
      const RunState state = state_of(run);
      const bool is_open = state == RunState::kQueued || state == RunState::kWaitingData || state == RunState::kRunning;
      if (is_open && !is_wanted(run) && runs_[run].asked != RunState::kHeld) runs_[run].asked = RunState::kCancelled;
    }
  }

  // --- processes

  void begin_attempt(size_t run, Process& process) {
    const RunDirectory folder = workspace_.run(id_of_run(run));
    process.attempt = folder.make_attempt();
    write_start(folder, process.attempt, {{"device", kRuns[run].device}, {"numerics", 1}});
    require(process.attempt > runs_[run].newest_attempt, "the numbers of attempts do not grow");
    runs_[run].newest_attempt = process.attempt;
    runs_[run].has_folder = true;
    note("begins", run);
  }

  void make_progress(size_t run, Process& process, bool checkpoint) {
    const RunDirectory folder = workspace_.run(id_of_run(run));
    if (checkpoint) make_folders(folder.checkpoint(++runs_[run].checkpoint));
    AppendFile(folder.metrics(), fs::exists(folder.metrics()) ? fs::file_size(folder.metrics()) : 0)
        .append("{\"step\": 1, \"name\": \"train.loss\", \"value\": 1}\n");
    process.last_sign = now_;
    note(checkpoint ? "writes a checkpoint" : "writes metrics", run);
  }

  static Ending chosen_end(const Process& process, uint32_t number) {
    if (process.attempt == 0) {
      const std::array others = {Ending::kFault, Ending::kFault, Ending::kTakenBack, Ending::kTakenBack};
      return process.killed || number % 8 >= others.size() ? Ending::kNeverBegan : others.at(number % 8);
    }
    if (process.killed) return Ending::kNoTrace;
    return number % 16 >= 11 ? Ending::kDone : static_cast<Ending>(number % 16);
  }

  // Writes what it leaves, ends the process and returns what its launcher knows.
  std::string end_process(size_t run, Ending how, uint32_t number) {
    const RunDirectory folder = workspace_.run(id_of_run(run));
    const auto node = processes_.extract(run);
    const Process& process = node.mapped();
    KnownRun& it = runs_[run];
    if (process.attempt == 0 && how == Ending::kNeverBegan && number % 2 == 0)
      it.newest_attempt = folder.make_attempt();
    if (process.attempt > 0) {
      it.attempts.push_back(process.attempt);
      it.may_fail = process.asked == "stall" || (row_of(how).may_fail && process.asked.empty());
      leave_files(folder, process, how, number);
    }
    if (how == Ending::kDone || how == Ending::kDiverged) {
      it.brought = how == Ending::kDone ? RunState::kDone : RunState::kDiverged;
    }
    it.ran_out = it.ran_out || how == Ending::kOutOfMemory;
    it.starts_by = now_ + kMaxDelay;
    note(fmt::format("ends: {}", row_of(how).name), run);
    return how == Ending::kFault || how == Ending::kUnrecorded ? "a fault" : "";
  }

  static void leave_files(const RunDirectory& folder, const Process& process, Ending how, uint32_t number) {
    if (how == Ending::kNoTrace || how == Ending::kUnrecorded) return;
    if (how == Ending::kDone) {
      test::write_text(folder.scores(), R"({"test.bleu": 20})");
      write_done(folder, "done", 10, "max_updates", {"scores.json"});
    }
    if (how == Ending::kDiverged) write_done(folder, "diverged", 4, "loss is not finite", {});
    const fs::path attempt = folder.attempt(process.attempt);
    test::write_text(attempt / "log.txt", number % 32 < 16 ? "out of beans" : "out of rice");
    test::write_text(attempt / "exit.json",
                     sealed({{"code", row_of(how).code}, {"signal", row_of(how).signal}, {"asked", process.asked}}));
  }

  void end_attempt(size_t run, Ending how, uint32_t number) {
    const std::string fault = end_process(run, how, number);
    on_end(id_of_run(run), {.fault = fault, .never_began = how == Ending::kTakenBack});
  }

  // What becomes of the processes while there is no service.
  void pass_time_without_service(uint32_t number) {
    scheduler_.reset();
    for (const size_t run : alive()) {
      Process& process = processes_.at(run);
      process.watched = false;
      const uint32_t fate = (number >> (4 * run)) % 8;
      if (process.attempt == 0 && fate < 3) begin_attempt(run, process);
      if (process.killed || fate > 4) end_process(run, chosen_end(process, number >> run), number >> run);
    }
  }

  std::set<size_t> alive() const {
    std::set<size_t> all;
    for (const auto& [run, process] : processes_) all.insert(run);
    return all;
  }

  // --- who wants a run, capacity and order

  RunState state_of(size_t run) const {
    const std::optional<RunRecord> record = store_->run(id_of_run(run));
    return record ? record->state : RunState::kQueued;
  }

  // Sweeps that have the run, and for which `is` holds.
  template <class F>
  std::vector<size_t> sweeps_of(size_t run, const F& is) const {
    std::vector<size_t> found;
    for (size_t s = 0; s < kSweeps.size(); ++s) {
      if (std::count(kSweeps[s].begin(), kSweeps[s].end(), run) > 0 && is(sweeps_[s])) found.push_back(s);
    }
    return found;
  }
  // A run of it is queued, running, held or waiting for its data.
  bool is_unfinished(size_t sweep) const {
    return std::any_of(kSweeps[sweep].begin(), kSweeps[sweep].end(), [&](size_t run) {
      const RunState state = state_of(run);
      return !is_inactive(state) || state == RunState::kHeld;
    });
  }
  bool is_known(size_t run) const {
    return !sweeps_of(run, [](const KnownSweep& s) { return s.submitted; }).empty();
  }
  bool is_wanted(size_t run) const {
    return !sweeps_of(run, [](const KnownSweep& s) { return s.submitted && !s.cancelled; }).empty();
  }
  std::vector<size_t> active_sweeps_of(size_t run) const {
    return sweeps_of(run, [](const KnownSweep& s) { return s.is_active(); });
  }
  // Of two runs of the same needs the one with the lesser place goes first.
  std::tuple<int64_t, int64_t, int64_t, int64_t> place_of(size_t run) const {
    std::pair<int64_t, int64_t> first{INT64_MAX, 0};
    for (const size_t s : active_sweeps_of(run)) first = std::min(first, {-sweeps_[s].priority, sweeps_[s].submission});
    return {first.first, first.second, kRuns[run].rank, -kRuns[run].updates};
  }

  void watch(Process& process, const Needs& needs) const {
    process.watched = true;
    process.alone = needs.alone;
    process.last_sign = now_;
  }

  bool fits(const Needs& needs) const {
    int slots = 0, on_gpu = 0;
    for (const auto& [run, process] : processes_) {
      if (!process.watched) continue;
      if (process.alone || needs.alone) return false;
      (kRuns[run].device == "cuda" ? on_gpu : slots) += kRuns[run].threads;
    }
    return needs.device == "cuda" ? has_device_ && on_gpu == 0 : slots + needs.threads <= kSlots;
  }
  // A queued run may be started: an active sweep wants it, and it cannot be delayed any more.
  bool is_due(size_t run) const { return !stopping_ && !active_sweeps_of(run).empty() && now_ >= runs_[run].starts_by; }

  // After a tick nothing waits that fits, unless a run that was skipped for long blocks it.
  void check_that_nothing_fits() {
    std::vector<size_t> fitting;
    for (size_t run = 0; run < kRuns.size(); ++run) {
      if (!is_known(run) || state_of(run) != RunState::kQueued || !is_due(run)) continue;
      const KindOfRun& kind = kRuns[run];
      if (fits({.device = kind.device, .threads = kind.threads, .alone = runs_[run].ran_out})) {
        fitting.push_back(run);
      } else if (now_ - runs_[run].queued_since >= JobQueue::kPatience) {
        return;
      }
    }
    for (const size_t run : fitting) require(false, fmt::format("run {} fits and is not started", run));
  }

  // After a pause or a cancel: what no active sweep wants is asked to stop.
  void check_that_it_stops(size_t sweep) {
    for (const size_t run : kSweeps[sweep]) {
      const auto process = processes_.find(run);
      require(process == processes_.end() || process->second.stop || !active_sweeps_of(run).empty(),
              fmt::format("run {} is not stopped", run));
    }
  }

  // --- the state after each step

  void compare() {
    std::map<std::string, Sweep> sweeps;
    for (const Sweep& sweep : store_->sweeps()) sweeps[sweep.id] = sweep;
    const int64_t watched =
        std::count_if(processes_.begin(), processes_.end(), [](const auto& each) { return each.second.watched; });
    require(static_cast<int64_t>(scheduler_->progress().size()) == watched,
            "the scheduler does not watch the live attempts");
    for (size_t run = 0; run < kRuns.size(); ++run) {
      if (is_known(run)) compare_run(run);
    }
    for (size_t sweep = 0; sweep < kSweeps.size(); ++sweep) {
      if (sweeps_[sweep].submitted) compare_sweep(sweep, sweeps.at(id_of_sweep(sweep)));
    }
  }

  void compare_run(size_t run) {
    KnownRun& it = runs_[run];
    const RunState before = std::exchange(it.state, state_of(run)), state = it.state;
    const bool runs = processes_.contains(run) && processes_.at(run).watched;
    const auto must = [&](bool holds, std::string_view what) {
      require(holds, fmt::format("run {} is {}: {}", run, name_of(state), what));
    };
    must((state == RunState::kRunning) == runs, "an attempt of it is alive, or none is");
    const bool has_result = state == RunState::kDone || state == RunState::kDiverged;
    if (has_result) it.asked.reset();
    must(!has_result || it.brought == state, "no attempt brought that result");
    must(!it.brought || !it.has_folder || runs || it.brought == state, "its result is not recorded");
    must(is_wanted(run) || (state != RunState::kQueued && state != RunState::kWaitingData), "nobody wants it");
    must(!it.asked || (runs ? processes_.at(run).stop.has_value() : it.asked == state), "a user has put it aside");
    must(state != RunState::kHeld || it.asked || kRuns[run].device == "cuda", "nobody holds it");
    must(state != RunState::kFailed || it.may_fail, "how its attempt ended is no reason to fail");
    const bool was_over = is_inactive(before) || before == RunState::kHeld;
    must(before == state || !was_over || changed_on_request_.contains(run),
         fmt::format("it was {}, and nobody asked for a change", name_of(before)));
    if (state != before || state != RunState::kQueued) it.queued_since = now_;
    const std::string why = scheduler_->why({id_of_run(run)}).at(id_of_run(run));
    must(why.empty() != (state == RunState::kQueued || state == RunState::kRunning), "the reason is: " + why);
  }

  void compare_sweep(size_t sweep, const Sweep& stored) {
    const KnownSweep& it = sweeps_[sweep];
    const std::string& id = id_of_sweep(sweep);
    const auto must = [&](bool holds, const char* what) { require(holds, fmt::format("sweep {}: {}", sweep, what)); };
    must(stored.priority == it.priority, "its priority in the store");
    must(stored.submission.queued == it.submission && stored.submission.newest == it.newest, "its submissions");
    must(stored.state == (it.cancelled ? SweepState::kCancelled
                          : it.paused  ? SweepState::kPaused
                                       : SweepState::kActive),
         "its state in the store");
    must(scheduler_->knows(id) == it.known, "known");
    if (!it.known) return must(scheduler_->idle(id), "idle, for it is not known");
    must(scheduler_->paused(id).empty() == (!it.paused && !it.cancelled), "paused");
    const SweepCounts counts = scheduler_->counts(id);
    int64_t running = 0, waiting = 0, without_data = 0, held = 0;
    bool idle = true;
    const std::set<size_t> runs(kSweeps[sweep].begin(), kSweeps[sweep].end());
    for (const size_t run : runs) {
      const RunState state = runs_[run].state;
      running += state == RunState::kRunning;
      waiting += state == RunState::kQueued;
      held += state == RunState::kHeld;
      without_data += state == RunState::kWaitingData;
      const bool may_start = state == RunState::kQueued && !stopping_ && !active_sweeps_of(run).empty();
      idle &= state != RunState::kRunning && !may_start;
    }
    must(counts.total == std::ssize(runs) - without_data, "total");
    must(counts.held == held, "held");
    if (it.cancelled && running > 0) return;  // its own last attempts, or those of other sweeps
    must(counts.running == running, "running");
    must(counts.waiting == (it.cancelled ? 0 : waiting), "waiting");
    must(scheduler_->idle(id) == (it.cancelled || idle), "idle");
  }

  // --- steps

  void take(const Step& step) {
    const Act& act = acts()[step.act];
    story_ += fmt::format("{} (run {}, sweep {})\n", act.name, run_of(step), step.a % kSweeps.size());
    act.take(*this, step);
  }

  // Of a sweep that was submitted. `verb` is not given those that the service had no reason to know before.
  template <class F>
  void for_sweep(const Step& step, const F& verb) {
    const size_t sweep = step.a % kSweeps.size();
    if (!sweeps_[sweep].submitted) return;
    if (!std::exchange(sweeps_[sweep].known, true)) scheduler_->add(id_of_sweep(sweep), Scheduler::Add::kRestart);
    verb(sweep, sweeps_[sweep], id_of_sweep(sweep));
  }
  void pause(const Step& step) {
    for_sweep(step, [&](size_t sweep, KnownSweep& it, const std::string& id) {
      it.paused = it.paused || !it.cancelled;
      scheduler_->pause(id, "paused on request", OnPause::kStop);
      if (!it.cancelled) check_that_it_stops(sweep);
    });
  }
  void resume(const Step& step) {
    for_sweep(step, [&](size_t, KnownSweep& it, const std::string& id) {
      it.paused = it.paused && it.cancelled;
      scheduler_->resume(id);
    });
  }
  void cancel(const Step& step) {
    for_sweep(step, [&](size_t sweep, KnownSweep& it, const std::string& id) {
      const bool is_new = !std::exchange(it.cancelled, true);
      cancel_unwanted(sweep);
      scheduler_->cancel(id);
      if (is_new) check_that_it_stops(sweep);
    });
  }
  void set_priority(const Step& step) {
    for_sweep(step, [&](size_t, KnownSweep& it, const std::string& id) {
      it.priority = step.b % 3;
      log_event(workspace_, id, "priority", {{"priority", it.priority}});
      scheduler_->set_priority(id, it.priority);
    });
  }
  void hold(const Step& step) {
    ask(run_of(step), &Scheduler::hold, {RunState::kQueued, RunState::kRunning}, RunState::kHeld);
  }
  void release(const Step& step) {
    const size_t run = run_of(step);
    const auto then = is_wanted(run) ? std::nullopt : std::optional(RunState::kCancelled);
    if (runs_[run].asked == RunState::kHeld) runs_[run].asked = then;
    ask(run, &Scheduler::release, {RunState::kHeld}, then);
  }
  void retry(const Step& step) {
    const size_t run = run_of(step);
    ask(run, &Scheduler::retry, is_wanted(run) ? std::set{RunState::kCancelled} : std::set<RunState>(), std::nullopt);
  }
  void cancel_run(const Step& step) {
    ask(run_of(step), &Scheduler::cancel_run,
        {RunState::kQueued, RunState::kRunning, RunState::kWaitingData, RunState::kHeld}, RunState::kCancelled);
  }
  // Asks the scheduler for something that takes effect where the run is in one of these states.
  void ask(size_t run, bool (Scheduler::*verb)(const std::string&), const std::set<RunState>& in,
           std::optional<RunState> asked) {
    if (!is_known(run)) return;
    changed_on_request_.insert(run);
    if (in.contains(state_of(run))) runs_[run].asked = asked;
    (*scheduler_.*verb)(id_of_run(run));
  }

  void tick(const Step&) {
    scheduler_->tick();
    check_that_nothing_fits();
  }
  void move_clock(const Step& step) { now_ += std::array{0.5, 5.0, 61.0, 61.0, 700.0, 2000.0}.at(step.a % 6); }
  void begin_some(const Step& step) {
    for (auto& [run, process] : processes_) {
      if (process.attempt == 0 && !process.killed && (step.a >> run) % 4 != 0) begin_attempt(run, process);
    }
  }
  void work(const Step& step) {
    if (processes_.empty()) return;
    auto& [run, process] = *std::next(processes_.begin(), static_cast<ptrdiff_t>(step.a % processes_.size()));
    if (process.attempt > 0 && !process.killed) make_progress(run, process, step.b % 2 == 0);
  }
  void end_one(const Step& step) {
    if (processes_.empty()) return;
    auto& [run, process] = *std::next(processes_.begin(), static_cast<ptrdiff_t>(step.a % processes_.size()));
    end_attempt(run, chosen_end(process, step.b), step.b);
  }
  void restart_service(const Step& step) {
    pass_time_without_service(step.b);
    restart(step.c % 4 != 0);
  }
  // The folders are all there is, and requests for single runs are forgotten.
  void lose_database(const Step& step) {
    pass_time_without_service(step.b);
    for (auto& [run, process] : processes_) {
      if (process.attempt == 0) begin_attempt(run, process);
    }
    open_store();
    require(restore(*store_, workspace_).passed_over.empty(), "the rebuild passes something over");
    for (size_t run = 0; run < kRuns.size(); ++run) {
      changed_on_request_.insert(run);
      runs_[run].asked.reset();
    }
    restart(step.c % 4 != 0);
  }
  void remove_folder(const Step& step) {
    const size_t run = run_of(step);
    if (processes_.contains(run)) return;
    fs::remove_all(workspace_.run(id_of_run(run)).root());
    KnownRun& it = runs_[run];
    it.attempts.clear();
    it.has_folder = false;
    it.newest_attempt = it.checkpoint = 0;
  }
  void stop_all(const Step&) {
    stopping_ = true;
    scheduler_->stop();
  }

  // From any state: if everything is let go and all attempts succeed, every run comes to its end.
  void end_everything() {
    story_ += "everything is let go, and all attempts succeed\n";
    refuse_ = false;
    scheduler_.reset();
    restart(/*with_device=*/true);
    for (uint32_t run = 0; run < kRuns.size(); ++run) release({.a = run});
    for (int round = 0; round < 30 && complaint_.empty(); ++round) {
      for (const size_t run : alive()) {
        Process& process = processes_.at(run);
        if (process.attempt == 0 && !process.killed) begin_attempt(run, process);
        end_attempt(run, process.killed ? chosen_end(process, 0) : Ending::kDone, 0);
      }
      for (uint32_t sweep = 0; sweep < kSweeps.size(); ++sweep) resume({.a = sweep});  // an end may have paused it
      now_ += kMaxDelay + 1;
      tick({});
      if (processes_.empty()) break;
    }
    for (size_t run = 0; run < kRuns.size(); ++run) {
      require(!is_known(run) || is_inactive(state_of(run)), fmt::format("run {} never ends", run));
      check_attempts(run);
    }
  }

  // The store knows the attempts of a run that the folder holds.
  void check_attempts(size_t run) {
    if (!fs::exists(workspace_.run(id_of_run(run)).root())) return;  // the store keeps what the folder held
    std::vector<int64_t> stored;
    for (const AttemptRecord& attempt : store_->attempts_of(id_of_run(run))) stored.push_back(attempt.number);
    require(stored == runs_[run].attempts, fmt::format("the store does not have the attempts of run {}", run));
  }

  Workspace workspace_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Scheduler> scheduler_;
  std::vector<KnownRun> runs_{kRuns.size()};
  std::vector<KnownSweep> sweeps_{kSweeps.size()};
  std::map<size_t, Process> processes_;  // by run
  std::set<size_t> changed_on_request_;  // runs that this step may have changed though they were over
  bool has_device_ = true, stopping_ = false, refuse_ = false;
  double now_ = 1000;
  int64_t submissions_ = 0;
  std::string complaint_;  // the first thing that is not as it must be
  std::string story_;
  std::map<std::string, int> happened_;
};

std::vector<Step> steps_of(uint32_t sequence) {
  std::mt19937 random(sequence);
  const auto draw = [&] { return static_cast<uint32_t>(random()) >> 4; };
  uint32_t all = 0;
  for (const Trial::Act& act : Trial::acts()) all += act.weight;
  std::vector<Step> steps(30 + draw() % 30);
  for (Step& step : steps) {
    uint32_t drawn = draw() % all;
    while (drawn >= Trial::acts()[step.act].weight) drawn -= Trial::acts()[step.act++].weight;
    step.a = draw(), step.b = draw(), step.c = draw();
  }
  steps[0].act = steps[1].act = 0;
  return steps;
}

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
  constexpr uint32_t kSequences = test::kSanitized ? 50 : 250;
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
