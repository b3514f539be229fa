// `tearless run GRID`: trains the runs of a grid that have no result yet, and shows how they get on. If the workspace
// has a service, that does the work; else this process is the service for as long as it lives.
#include <fmt/format.h>
#include <poll.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/time.h"
#include "base/words.h"
#include "harness/cli/calibration.h"
#include "harness/cli/control.h"
#include "harness/cli/grid_state.h"
#include "harness/cli/output.h"
#include "harness/cli/submission_options.h"
#include "harness/commands/commands.h"
#include "harness/screen/screen.h"
#include "harness/service/client.h"
#include "harness/service/host.h"
#include "harness/submit/submission.h"

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

// --- as the service -------------------------------------------------------------------------------------------------

Ending serve(const RunOptions& options, const Workspace& workspace, const Submission& submission, Store& store,
             Display& display) {
  const std::string& sweep = submission.sweep.id;
  ServiceHost host(store, workspace, options.service.options("run", submission.program.devices),
                   [&](const SchedulerEvent& event) { display.event(event); });
  Service& service = host.service();
  Scheduler& scheduler = service.scheduler();
  Ending ending;
  bool leave = false;
  const auto interrupted = [&](int times) {
    ending.interrupted = true;
    leave = times > 1;
    if (times > 1) return;
    const int64_t running = scheduler.counts(sweep).running;
    scheduler.pause(sweep, "interrupted", OnPause::kStop);  // before printing: after SIGHUP the terminal is gone
    display.say(
        fmt::format("Stopping {} at their next checkpoint, within {} s (Ctrl-C again: exit, and let them finish)",
                    running, submission.sweep.policy.grace_seconds));
  };
  service.on_tick = [&] {
    const ServiceFacts facts = service.facts();
    if (const SweepFacts* shown = facts.sweep(sweep)) display.show(*shown);
  };
  service.begin();
  service.submit(submission.sweep, options.retry ? Scheduler::Add::kRetry : Scheduler::Add::kSubmit);
  if (options.submission.priority) {
    service.answer({.verb = Verb::kPriority, .sweeps = {sweep}, .priority = *options.submission.priority});
  }
  service.on_tick();
  host.run([&] { return leave || scheduler.idle(sweep) || service.asked_to_end(); }, interrupted);
  display.clear();
  ending.paused = scheduler.paused(sweep);
  if (service.asked_to_end() && ending.paused.empty() && !scheduler.idle(sweep)) ending.paused = "stopped on request";
  return ending;
}

// --- through a service ----------------------------------------------------------------------------------------------

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

// nullopt if the service ended meanwhile.
std::optional<Ending> watch(const RunOptions& options, const Workspace& workspace, const Submission& submission,
                            bool submit, Display& display) {
  const std::string& sweep = submission.sweep.id;
  Events events(workspace.sweep(sweep) / "events.jsonl");
  std::map<std::string, std::string> labels;
  for (const Run& run : submission.sweep.runs) labels[run.id] = label_of(run);
  if (submit && options.service.is_given()) {
    notice(
        "--jobs, --runs-per-gpu, --pin, --devices and --on-end have no effect here: another tearless does the work "
        "and decides that");
  }
  const Request request{.verb = options.retry ? Verb::kRetry : Verb::kSubmit, .sweeps = {sweep}};
  if (submit && !ask_service(workspace, request)) return std::nullopt;
  if (submit && options.submission.priority) {
    ask_service(workspace, {.verb = Verb::kPriority, .sweeps = {sweep}, .priority = *options.submission.priority});
  }

  const auto old_handler = std::signal(SIGINT, [](int) { g_interrupts = g_interrupts + 1; });
  std::optional<Ending> ending;
  while (true) {
    const std::optional<nlohmann::json> answer = ask_service(workspace, {.verb = Verb::kStatus});
    if (!answer) break;
    const ServiceFacts facts = service_facts_from(*answer);
    const SweepFacts* shown = facts.sweep(sweep);
    events.each_new([&](const std::string& what, const std::string& id, const std::string& text) {
      if (what != "submitted") display.event({.what = what, .id = id, .label = labels[id], .text = text, .sweeps = {}});
    });
    if (!shown || shown->idle()) {
      ending = Ending{.paused = shown ? shown->reason : ""};
      break;
    }
    display.show(*shown);
    if (g_interrupts > 0) {
      ending = Ending{.interrupted = true, .left_to = facts.pid, .paused = ""};
      break;
    }
    ::poll(nullptr, 0, 1000);
  }
  std::signal(SIGINT, old_handler);
  display.clear();
  return ending;
}

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
  const std::string place = workspace_option(seen);
  const std::string again = fmt::format("tearless run {}{}{}", options.grid, workspace_option(globals),
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

  print_failures(failed, fmt::format("tearless status {}{}", options.grid, place));
  for (const std::string& sentence : waiting_for) print("  waiting for data: {}\n", sentence);

  if (ending.left_to != 0) {
    print("The sweep continues in process {}. To see it: tearless run {}. To stop it: tearless pause {}{}\n",
          ending.left_to, options.grid, sweep.id, place);
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
      print("Next, with an estimate of the time: tearless plan {}{}\n", options.grid, workspace_option(globals));
    } else if (!options.submission.smoke) {
      print("Next: tearless table {}{}\n", options.grid, place);
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
          options.grid, workspace_option(globals));
    return kOk;
  }
  const Workspace workspace =
      options.submission.smoke ? Workspace(globals.workspace).smoke() : Workspace(globals.workspace);
  std::unique_ptr<Store> store = open_unless_served(workspace);
  write_submission(workspace, submission);
  Display display;
  std::optional<Ending> ending;
  for (bool submit = true; !ending; submit = false) {
    if (!store && !submit) store = open_unless_served(workspace);  // the service has ended: its work is taken over
    ending = store ? serve(options, workspace, submission, *store, display)
                   : watch(options, workspace, submission, submit, display);
  }
  if (store) return conclude(*store, submission.sweep, globals, options, *ending);
  return conclude(*Store::open_reader(workspace), submission.sweep, globals, options, *ending);
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
