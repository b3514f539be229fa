// `tearless verify-resume RUN…`: trains finished runs again, stops and resumes them on the way, and compares what they
// leave with what an undisturbed training has left. The trainings are in WORKSPACE/verifying, outside of all sweeps.
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/lock_file.h"
#include "base/omitted.h"
#include "base/print.h"
#include "base/sealed_json.h"
#include "base/sys.h"
#include "base/time.h"
#include "base/words.h"
#include "harness/children/child.h"
#include "harness/commands/commands.h"
#include "harness/console/number_option.h"
#include "harness/folders/program_copies.h"
#include "harness/launch/processes.h"
#include "harness/launch/supervisor.h"
#include "harness/plan/grid_state.h"
#include "harness/runs/resume_check.h"
#include "harness/runs/verdict.h"
#include "harness/selection/selectors.h"

namespace tearless::harness {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

volatile std::sig_atomic_t g_interrupted = 0;

struct VerifyResumeOptions {
  std::vector<std::string> words;
  int stops = 3;
  int64_t seed = 1;
};

// A run that has a result, with the newest sweep that has it.
struct FinishedRun {
  std::string id, label;
  Sweep sweep;
};

std::vector<FinishedRun> finished_runs(const Store& store, const std::vector<std::string>& words) {
  std::vector<FinishedRun> runs;
  const std::vector<std::string> chosen = runs_in(store, select(store, words));
  for (const std::string& id : chosen) {
    const std::vector<std::string> sweeps = store.sweeps_of(id);
    if (sweeps.empty() || !has_result(store.known_run(id).state)) continue;
    runs.push_back({id, label_of(store.run_of(sweeps.back(), id)), *store.sweep(sweeps.back())});
  }
  if (runs.empty() && !chosen.empty()) {
    fail("no run of a sweep that is meant by \"{}\" has a result", fmt::join(words, " "));
  }
  return runs;
}

std::string signal_of_stop(size_t number) { return number % 2 == 0 ? "SIGTERM" : "SIGKILL"; }

// A derived run makes no update: it is stopped as soon as it has begun, and begins again.
std::vector<TrainingStop> stops_at_the_start(int64_t count) {
  std::vector<TrainingStop> stops;
  while (std::ssize(stops) < count) stops.push_back({.update = 0, .signal = signal_of_stop(stops.size())});
  return stops;
}

// Draws some of the updates that the metrics of a finished run name, except the last: the run is over then. The same
// run and seed give the same stops on any machine.
std::vector<TrainingStop> draw_stops(const RunDirectory& run, const VerifyResumeOptions& options) {
  std::set<int64_t> steps, drawn;
  if (!derived_from(read_file(run.settings())).empty()) return stops_at_the_start(options.stops);
  for (const MetricLine& line : read_metrics(run, 0).lines) steps.insert(line.step);
  steps.erase(0);
  if (!steps.empty()) steps.erase(std::prev(steps.end()));
  const std::vector<int64_t> updates(steps.begin(), steps.end());
  std::mt19937_64 random(static_cast<uint64_t>(options.seed) ^ fnv1a32(run.id()));
  const size_t count = std::min(updates.size(), static_cast<size_t>(options.stops));
  while (drawn.size() < count) drawn.insert(updates[random() % updates.size()]);
  std::vector<TrainingStop> stops;
  for (const int64_t update : drawn) {
    stops.push_back({.update = update, .signal = signal_of_stop(stops.size())});
  }
  return stops;
}

// The supervisor of a training in `folder`, on the device that the run was trained on. It ends with this process.
ChildRequest supervisor_for(const fs::path& folder, const RunDirectory& run, const Sweep& sweep,
                            const fs::path& program) {
  const int64_t newest = run.newest_begun_attempt();
  const std::string cuda_device = cuda_device_of(run, newest);
  json stamp = sweep.stamp;
  stamp["device"] = read_attempt(run, newest).device;
  ChildRequest request{
      .arguments = {fs::read_symlink("/proc/self/exe").string(), "supervise", folder.string(), "--engine",
                    program.string(), "--stamp", stamp.dump(), "--grace", std::to_string(sweep.policy.grace_seconds),
                    "--launcher", std::to_string(::getpid()), "--ends-with-launcher"},
      .blocked_signals = {SIGTERM, SIGINT, SIGHUP, kStallSignal},  // until the supervisor is ready to handle them
      .own_session = true};
  if (const auto& environment = sweep.policy.environment) {
    const std::string missing = secrets_not_in(own_variables(), *environment);
    if (!missing.empty()) fail("the run needs {}, whose values are in no file; set them first", missing);
    request.environment = changes_for(*environment, own_variables());
  }
  if (!cuda_device.empty()) request.environment["CUDA_VISIBLE_DEVICES"] = cuda_device;
  return request;
}

// Makes one attempt on the run, and stops it when its metrics reach the update of `stop`, if that is not null. True if
// it was stopped.
bool make_attempt(const ChildRequest& request, const RunDirectory& run, const TrainingStop* stop) {
  // A killed attempt leaves metrics that this one makes again: only a later update shows how far this one is.
  const int64_t reached_before = work_done(run).step, begun_before = run.newest_begun_attempt();
  bool stopped = false;
  int status = 0;
  const pid_t supervisor = spawn(request);
  while (sys::waitpid(supervisor, &status, WNOHANG) == 0) {
    const int64_t reached = work_done(run).step;
    const bool is_there = stop && (stop->update == 0 ? run.newest_begun_attempt() > begun_before
                                                     : reached >= stop->update && reached > reached_before);
    const bool is_due = is_there && !stopped;
    if (g_interrupted || (is_due && stop->signal == "SIGKILL")) {
      const std::set<int64_t> below = ProcessTree().below(supervisor);
      sys::kill(supervisor, SIGKILL);
      for (const int64_t pid : below) sys::kill(static_cast<pid_t>(pid), SIGKILL);
    } else if (is_due) {
      sys::kill(supervisor, SIGTERM);
    }
    stopped |= is_due;
    ::poll(nullptr, 0, 5);  // milliseconds
  }
  LockFile::acquire(run.lock());  // what was killed ends a moment later
  if (g_interrupted) fail("interrupted");
  return stopped;
}

// Trains to the end. Leaves in `stops` those that happened: fewer if the run ended before. UserError if there is no
// result.
void train(const ChildRequest& request, const RunDirectory& run, std::vector<TrainingStop>& stops) {
  size_t made = 0;
  while (make_attempt(request, run, made < stops.size() ? &stops[made] : nullptr) && !fs::exists(run.done())) {
    stops[made++].resumed_from = run.newest_checkpoint();
  }
  stops.resize(made);
  const Verdict verdict = verdict_of(run, run.newest_attempt());
  if (verdict.state == RunState::kFailed) fail("{}", verdict.reason);
  if (stops.empty()) fail("it ended before the first stop");
}

std::set<std::string> origins_of(const RunDirectory& run) {
  std::set<std::string> origins;
  for (int64_t number = 1, newest = run.newest_begun_attempt(); number <= newest; ++number) {
    if (run.has_begun(number)) origins.insert(origin_of(read_attempt(run, number)));
  }
  return origins;
}

// UserError if the run cannot be verified.
ResumeCheck verify(const FinishedRun& finished, const VerifyResumeOptions& options, const Workspace& workspace) {
  const RunDirectory run = workspace.run(finished.id);
  for (const auto& [name, file] : read_omitted(run)) require_here(run, name);
  const fs::path program = fs::absolute(workspace.root() / finished.sweep.program);
  const std::string fault = fault_of_program(workspace, program);
  if (!fault.empty()) {
    fail("{}: tearless submit {}{}", fault, shell_word(finished.sweep.grid_file), workspace_option(workspace.root()));
  }
  const Verdict verdict = verdict_of(run, run.newest_attempt());
  if (verdict.state == RunState::kFailed) {
    fail("{}; to see what to do: tearless verify{}", verdict.reason, workspace_option(workspace.root()));
  }
  ResumeCheck check{
      .outcome = "", .verified_at = "", .seed = options.seed, .stops = draw_stops(run, options), .differences = {}};
  if (check.stops.empty()) fail("its metrics name no update before its last at which it could be stopped");

  const RunDirectory resumed(fs::absolute(workspace.verifying() / finished.id));
  make_folders(resumed.root());
  write_atomically(resumed.settings(), read_file(run.settings()));
  write_atomically(resumed.local(), read_file(run.local()));
  train(supervisor_for(resumed.root(), run, finished.sweep, program), resumed, check.stops);

  const std::optional<LockFile> lock = LockFile::try_acquire(run.lock());  // `delete` and `verify` leave it alone
  if (!lock || !fs::exists(run.done())) fail("its folder is in use by another process, or was deleted meanwhile");
  check.differences = differences_between(run, resumed);
  check.outcome = check.differences.empty() ? "equal" : "different";
  if (check.outcome == "different" && origins_of(run) != origins_of(resumed)) {
    fail("it differs, but it was trained by another build or on another kind of processor or device");
  }
  check.verified_at = utc_now();
  write_atomically(run.resume_check(), sealed(check));
  return check;
}

int verify_resume(const VerifyResumeOptions& options, const Globals& globals) {
  if (!globals.engine.empty()) {
    fail("verify-resume trains with the program that a sweep was submitted with; omit --engine");
  }
  const Workspace workspace(globals.workspace);
  const std::vector<FinishedRun> runs = finished_runs(*require_store(globals), options.words);
  if (runs.empty()) {
    globals.json ? print_json(json::array()) : print("Nothing to do.\n");
    return kOk;
  }
  const fs::path trainings = workspace.verifying();
  workspace.require_inside(trainings);
  make_folders(trainings);
  const std::optional<LockFile> lock = LockFile::try_acquire(workspace.verifying_lock());
  if (!lock) fail("another process uses {}; wait until it has ended", trainings.string());
  for (const std::string& left : folders_in(trainings)) remove_recursively(trainings / left);
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, [](int) { g_interrupted = 1; });

  const auto say = [&](const std::string& line) {
    if (globals.json) return;
    print("{}\n", line);
    std::fflush(stdout);
  };
  std::map<std::string, int64_t> counts;
  json outcomes = json::array();
  for (const FinishedRun& run : runs) {
    say(fmt::format("{}  {}", run.id, run.label));
    json outcome = {{"run", run.id}, {"outcome", "not_verified"}, {"reason", ""}, {"resume", json()}};
    try {
      const ResumeCheck check = verify(run, options, workspace);
      outcome["outcome"] = check.outcome;
      outcome["resume"] = check;
      say("  " + sentence_of(check));
    } catch (const UserError& error) {
      outcome["reason"] = error.what();
      say(fmt::format("  not verified: {}", error.what()));
    }
    if (g_interrupted || outcome["outcome"] == "equal") remove_recursively(trainings / run.id);
    if (g_interrupted) break;
    ++counts[outcome["outcome"]];
    outcomes.push_back(std::move(outcome));
  }
  if (folders_in(trainings).empty()) {
    remove_recursively(trainings);
  } else {
    say(fmt::format("What was not equal stays in {} until the next verify-resume.", trainings.string()));
  }
  if (globals.json) print_json(outcomes);
  const int64_t equal = counts["equal"], different = counts["different"], all = std::ssize(runs);
  say(fmt::format("{}: {} equal, {} different, {} not verified{}", counted(all, "run"), equal, different,
                  all - equal - different, g_interrupted ? " (interrupted)" : ""));
  return g_interrupted ? kInterrupted : equal == all ? kOk : kSomethingFailed;
}

}  // namespace

Action command_verify_resume(CLI::App& app, const Globals& globals) {
  const auto options = std::make_shared<VerifyResumeOptions>();
  app.add_option(
         "what", options->words,
         "finished runs (ids, places, states, axis=label), or all those of sweeps (ids, names, grid files, last, all)")
      ->required();
  app.add_option("--stops", options->stops, "how often each run is stopped: by SIGTERM and by SIGKILL in turn")
      ->type_name("N")
      ->check(whole_number_from(1))
      ->capture_default_str();
  app.add_option("--seed", options->seed, "from which the updates of the stops are drawn")
      ->type_name("S")
      ->check(whole_number_from(0))
      ->capture_default_str();
  return [options, &globals] { return verify_resume(*options, globals); };
}

}  // namespace tearless::harness
