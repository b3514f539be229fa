// `tearless run GRID`: has the workspace's service train the runs of a grid that have no result yet, and shows how they
// get on.
#include <fmt/format.h>
#include <poll.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/lock_file.h"
#include "base/print.h"
#include "base/time.h"
#include "base/words.h"
#include "harness/commands/commands.h"
#include "harness/commands/submission_options.h"
#include "harness/plan/calibration.h"
#include "harness/plan/grid_state.h"
#include "harness/plan/submission.h"
#include "harness/screen/screen.h"
#include "harness/service/start.h"
#include "harness/service/stop_mark.h"

namespace tearless::harness {
namespace fs = std::filesystem;

namespace {

constexpr size_t kMaxListed = 10;
constexpr double kPlainSummaryEvery = 60;  // seconds, if the output is not a terminal

struct RunOptions {
  std::string grid;
  SubmissionFlags submission;
  bool calibrate = false;  // implies submission.smoke
  bool retry = false;
  ServiceFlags service;
};

// How the work on a sweep ended.
struct Ending {
  bool interrupted = false;  // by Ctrl-C
  int64_t left_to = 0;       // pid of the service that continues the sweep; 0: none does
  std::string paused;        // why the sweep ended early, one sentence; "" if it did not
};

// The display: live lines on a terminal, else events and a summary every minute.
class Display {
 public:
  Display() : screen_(stdout) {}

  void event(const SchedulerEvent& event) { screen_.print(sentence_of(event)); }
  void say(const std::string& line) { screen_.print(line); }

  void show(const SweepFacts& facts) {
    const std::string summary =
        fmt::format("{} · {} so far", summary_of(facts), duration_text(steady_seconds() - began_));
    screen_.draw(facts.attempts, summary);
    if (screen_.is_live() || steady_seconds() - last_summary_ <= kPlainSummaryEvery) return;
    screen_.print(summary);
    last_summary_ = steady_seconds();
  }
  void clear() { screen_.clear(); }

 private:
  Screen screen_;
  double began_ = steady_seconds(), last_summary_ = steady_seconds();
};

// --- watching -------------------------------------------------------------------------------------------------------

volatile std::sig_atomic_t g_interrupts = 0;

// Lines of a sweep's events.jsonl from now on.
class Events {
 public:
  explicit Events(const fs::path& file) : file_(file), seen_(fs::exists(file) ? fs::file_size(file) : 0) {}

  template <class F>
  void each_new(const F& show) {
    std::ifstream in(file_, std::ios::binary);
    in.seekg(static_cast<std::streamoff>(seen_));
    for (std::string line; std::getline(in, line) && !in.eof(); seen_ += line.size() + 1) {
      const nlohmann::json event = nlohmann::json::parse(line, nullptr, false);
      if (event.is_object()) show(event.value("event", ""), event.value("run", ""), event.value("text", ""));
    }
  }

 private:
  fs::path file_;
  uint64_t seen_;
};

// Submits a sweep and shows what becomes of it, until nothing of it runs or will be started. A service that was killed
// is replaced by another one, which continues.
class Watch {
 public:
  Watch(const RunOptions& options, const Globals& globals, const Workspace& workspace, const Submission& submission)
      : options_(options),
        globals_(globals),
        workspace_(workspace),
        sweep_(submission.sweep),
        start_{.engine = globals.engine, .arguments = options.service.arguments()},
        events_(workspace.sweep(sweep_.id) / "events.jsonl") {
    for (const Run& run : sweep_.runs) labels_[run.id] = label_of(run);
  }

  Ending watch() {
    std::signal(SIGINT, [](int) { g_interrupts = g_interrupts + 1; });  // from before the sweep is submitted
    submit();
    const double began = steady_seconds();
    while (!has_ended()) {
      const double rest = std::min(kMaxRest, kRestPart * (steady_seconds() - began));
      ::poll(nullptr, 0, 1 + static_cast<int>(1000 * rest));
    }
    display_.clear();
    std::signal(SIGINT, SIG_DFL);
    return ending_;
  }

 private:
  static constexpr double kMaxRest = 1;      // seconds between two looks
  static constexpr double kSilence = 1;      // seconds without an answer, after which the user is told
  static constexpr double kRestPart = 0.05;  // of the time so far: a short sweep is not made longer by watching it

  void submit() {
    notice_if_without_effect(options_.service, require_service(workspace_, start_), globals_);
    Request submit{.name = "submit", .sweeps = {sweep_.id}, .priority = options_.submission.priority};
    if (options_.retry) submit.flags = {"retry"};
    request(workspace_, submit, start_);
  }

  // Looks once, shows what is new, and does what Ctrl-C asks for.
  bool has_ended() {
    const std::optional<ServiceFacts> facts = facts_of_service(workspace_);
    show_events();
    if (!facts) return has_ended_without_service();
    silent_since_.reset();
    const SweepFacts* sweep = facts->sweep(sweep_.id);
    if (!sweep || sweep->idle()) {
      if (sweep) ending_.paused = sweep->reason;
      return true;
    }
    display_.show(*sweep);
    if (g_interrupts == 0) return false;
    const bool was_interrupted = std::exchange(ending_.interrupted, true);
    if (facts->stays || g_interrupts > 1) {
      ending_.left_to = facts->pid;
      return true;
    }
    if (!was_interrupted) pause(sweep->running);
    return false;
  }

  void pause(int64_t running) {
    display_.say(
        fmt::format("Stopping {} at their next checkpoint, within {} s (Ctrl-C again: exit, and let them finish)",
                    running, sweep_.policy.grace_seconds));
    request(workspace_, {.name = "pause", .sweeps = {sweep_.id}}, start_);
  }

  bool has_ended_without_service() {
    if (LockFile::is_held(workspace_.lock())) {  // it starts or ends, or waits for a full disk
      if (!is_silent() || g_interrupts == 0) return false;
      ending_.interrupted = true;
      return true;
    }
    const std::unique_ptr<const Store> store = Store::open_reader(workspace_);
    const std::optional<Sweep> sweep = store ? store->sweep(sweep_.id) : std::nullopt;
    if (!sweep) return true;
    StateCounts counts = store->counts_of(sweep_.id);
    if (counts[RunState::kQueued] + counts[RunState::kRunning] == 0) return true;
    if (sweep->state != SweepState::kActive && counts[RunState::kRunning] == 0) {
      ending_.paused = sweep->reason;
      return true;
    }
    if (was_stopped(workspace_)) {
      ending_.paused = "the service was stopped on request";
      return true;
    }
    display_.say("The service has ended before its work; another one takes over");
    require_service(workspace_, start_);
    return false;
  }

  // Says why, once.
  bool is_silent() {
    if (!silent_since_) silent_since_ = steady_seconds();
    if (steady_seconds() - *silent_since_ < kSilence) return false;
    std::string last;
    std::ifstream log(service_log(workspace_));
    for (std::string line; std::getline(log, line);) last = line;
    if (std::exchange(told_, last) != last) display_.say("The service does not answer. Its log: " + last);
    return true;
  }

  void show_events() {
    events_.each_new([&](const std::string& what, const std::string& id, const std::string& text) {
      if (what == "submitted") return;
      display_.event({.what = what, .id = id, .label = labels_[id], .text = text, .sweeps = {}});
    });
  }

  const RunOptions& options_;
  const Globals& globals_;
  const Workspace& workspace_;
  const Sweep& sweep_;
  ServiceStart start_;
  Display display_;
  Events events_;
  std::map<std::string, std::string> labels_;  // run → label
  std::optional<double> silent_since_;         // the service does not answer
  std::string told_;                           // the line of its log that was shown
  Ending ending_;
};

// --- the end --------------------------------------------------------------------------------------------------------

// Prints one line for each reason, because a mistake in the grid or a fault of the machine usually affects many runs.
// `failed` maps runs to reasons.
void print_failures(const std::map<std::string, std::string>& failed, const std::string& all_of_them) {
  std::map<std::string, std::vector<std::string>> runs_of;  // reason → runs
  for (const auto& [id, reason] : failed) runs_of[reason].push_back(id);
  size_t listed = 0;
  for (const auto& [reason, runs] : runs_of) {
    if (++listed > kMaxListed) continue;
    const std::string others = runs.size() > 1 ? fmt::format(" and {} more", runs.size() - 1) : "";
    print("  {}{}: {}\n", runs.front(), others, reason);
  }
  if (listed > kMaxListed) print("  … and {} more reasons ({})\n", listed - kMaxListed, all_of_them);
}

// Prints the state of the sweep, the failures with their reasons, and the next command. Returns the exit code.
int conclude(const Store& store, const Sweep& sweep, const Globals& globals, const RunOptions& options,
             const Ending& ending) {
  // With --smoke the runs are in another workspace, which commands that read must name. `run --smoke` finds it itself.
  Globals seen = globals;
  if (options.submission.smoke) seen.workspace = Workspace(globals.workspace).smoke().root();
  const std::string place = workspace_option(seen), grid = shell_word(options.grid);
  const std::string again = fmt::format("tearless run {}{}{}", grid, workspace_option(globals),
                                        options.calibrate          ? " --calibrate"
                                        : options.submission.smoke ? " --smoke"
                                                                   : "");
  StateCounts counts;
  std::map<std::string, std::string> failed;  // run → reason
  std::set<std::string> waiting_for;
  store.in_snapshot([&] {
    counts = store.counts_of(sweep.id);
    for (const RunRecord& run : store.runs_of(sweep.id, {RunState::kFailed, RunState::kHeld, RunState::kWaitingData})) {
      if (run.state == RunState::kWaitingData) {
        waiting_for.insert(run.reason);
      } else {
        failed.emplace(run.id, run.reason);
      }
    }
  });
  print("{}: {}\n", counted(static_cast<int64_t>(sweep.runs.size()), "run"), text_of(counts));

  print_failures(failed, fmt::format("tearless status {}{}", grid, place));
  for (const std::string& sentence : waiting_for) print("  waiting for data: {}\n", sentence);

  if (ending.left_to != 0) {
    print("The sweep continues in process {}. To see it: {}. To stop it: tearless pause {}{}\n", ending.left_to, again,
          sweep.id, place);
    return kInterrupted;
  }
  if (ending.interrupted) {
    print("Interrupted; nothing is lost. To continue: {}\n", again);
    return kInterrupted;
  }
  if (!ending.paused.empty()) {
    print("Ended early: {}. To continue: {}\n", ending.paused, again);
    return kSomethingFailed;
  }
  if (!failed.empty()) {
    print("To see why: tearless log {}{}. To try failed runs again: {} --retry\n", failed.begin()->first, place, again);
  }
  if (counts[RunState::kDone] > 0) {
    if (options.calibrate) {
      print("Next, with an estimate of the time: tearless plan {}{}\n", grid, workspace_option(globals));
    } else if (!options.submission.smoke) {
      print("Next: tearless table {}{}\n", grid, place);
    }
  }
  const bool all_ended =
      counts[RunState::kDone] + counts[RunState::kDiverged] == static_cast<int64_t>(sweep.runs.size());
  return all_ended ? kOk : kSomethingFailed;
}

int run(const RunOptions& options, const Globals& globals) {
  SubmissionOptions wanted = options.submission.options();
  if (options.calibrate) wanted.calibrated = timed_classes(Workspace(globals.workspace));
  Submission submission = prepare_submission(options.grid, globals.engine, wanted);
  if (options.calibrate && submission.sweep.runs.empty()) {
    print("Nothing to calibrate: runs like these have been timed, or wait for their data. Next: tearless plan {}{}\n",
          shell_word(options.grid), workspace_option(globals));
    return kOk;
  }
  const Workspace workspace =
      options.submission.smoke ? Workspace(globals.workspace).smoke() : Workspace(globals.workspace);
  write_submission(workspace, submission);
  const Ending ending = Watch(options, globals, workspace, submission).watch();
  return conclude(*Store::open_reader(workspace), submission.sweep, globals, options, ending);
}

}  // namespace

Action command_run(CLI::App& app, const Globals& globals) {
  const auto options = std::make_shared<RunOptions>();
  app.add_option("grid", options->grid, "the grid file")->required();
  options->submission.add_to(app);
  options->service.add_to(app);
  app.add_flag("--retry", options->retry, "try failed runs again");
  app.add_flag(
      "--calibrate", options->calibrate,
      "as --smoke, but only one run of each resource class that has not been timed: `tearless plan` then estimates how "
      "long the grid takes");
  return [options, &globals] {
    options->submission.smoke |= options->calibrate;
    return run(*options, globals);
  };
}

}  // namespace tearless::harness
