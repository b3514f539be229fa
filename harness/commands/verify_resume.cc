// `tearless verify-resume RUN…`: trains finished runs again, stops and resumes them on the way, and compares what they
// leave with what an undisturbed training has left. With --today it stops none, trains with the training program as it
// is now, and says which results have moved. The trainings are in WORKSPACE/verifying, outside of all sweeps.
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
#include "harness/console/columns.h"
#include "harness/console/number_option.h"
#include "harness/folders/program_copies.h"
#include "harness/folders/sweep_directory.h"
#include "harness/launch/local_options.h"
#include "harness/launch/processes.h"
#include "harness/launch/supervisor.h"
#include "harness/plan/grid_state.h"
#include "harness/plan/identity.h"
#include "harness/plan/plan.h"
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
  bool today = false;
};

// A run that has a result, as the newest sweep has it.
struct FinishedRun {
  RunRecord run;
  Sweep sweep;
};

// What a run is trained again with.
struct Trainer {
  fs::path program;
  json stamp;               // for start.json
  std::string cuda_device;  // its UUID; "": the CPU
  std::string local;        // text of local.toml
};

std::vector<FinishedRun> finished_runs(const Store& store, const std::vector<std::string>& words) {
  std::vector<FinishedRun> runs;
  const std::vector<std::string> chosen = runs_in(store, select(store, words));
  for (const std::string& id : chosen) {
    const std::vector<std::string> sweeps = store.sweeps_of(id);
    if (sweeps.empty() || !has_result(store.known_run(id).state)) continue;
    runs.push_back({store.run_of(sweeps.back(), id), *store.sweep(sweeps.back())});
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

// The supervisor of a training in `folder`. It ends with this process.
ChildRequest supervisor_for(const fs::path& folder, const Sweep& sweep, const Trainer& trainer) {
  ChildRequest request{
      .arguments = {fs::read_symlink("/proc/self/exe").string(), "supervise", folder.string(), "--engine",
                    trainer.program.string(), "--stamp", trainer.stamp.dump(), "--grace",
                    std::to_string(sweep.policy.grace_seconds), "--launcher", std::to_string(::getpid()),
                    "--ends-with-launcher"},
      .blocked_signals = {SIGTERM, SIGINT, SIGHUP, kStallSignal},  // until the supervisor is ready to handle them
      .own_session = true};
  if (const auto& environment = sweep.policy.environment) {
    const std::string missing = secrets_not_in(own_variables(), *environment);
    if (!missing.empty()) fail("the run needs {}, whose values are in no file; set them first", missing);
    request.environment = changes_for(*environment, own_variables());
  }
  if (!trainer.cuda_device.empty()) request.environment["CUDA_VISIBLE_DEVICES"] = trainer.cuda_device;
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
}

// Trains a run again, in a folder of its own, which it returns. UserError if that leaves no result.
RunDirectory train_again(const FinishedRun& finished, const Trainer& trainer, const Workspace& workspace,
                         std::vector<TrainingStop>& stops) {
  const RunDirectory again(fs::absolute(workspace.verifying() / finished.run.id));
  make_folders(again.root());
  write_atomically(again.settings(), read_file(workspace.run(finished.run.id).settings()));
  write_atomically(again.local(), trainer.local);
  train(supervisor_for(again.root(), finished.sweep, trainer), again, stops);
  return again;
}

// While it is held, `delete` and `verify` leave the run alone.
LockFile lock_result(const RunDirectory& run) {
  std::optional<LockFile> lock = LockFile::try_acquire(run.lock());
  if (!lock || !fs::exists(run.done())) fail("its folder is in use by another process, or was deleted meanwhile");
  return *std::move(lock);
}

// UserError for a run whose result is damaged.
void require_result(const RunDirectory& run, const Workspace& workspace) {
  const Verdict verdict = verdict_of(run, run.newest_attempt());
  if (verdict.state == RunState::kFailed) {
    fail("{}; to see what to do: tearless verify{}", verdict.reason, workspace_option(workspace.root()));
  }
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
  const RunDirectory run = workspace.run(finished.run.id);
  const fs::path program = fs::absolute(workspace.root() / finished.sweep.program);
  const std::string fault = fault_of_program(workspace, program);
  if (!fault.empty()) {
    fail("{}: tearless submit {}{}", fault, shell_word(finished.sweep.grid_file), workspace_option(workspace.root()));
  }
  for (const auto& [name, file] : read_omitted(run)) require_here(run, name);
  require_result(run, workspace);
  ResumeCheck check{
      .outcome = "", .verified_at = "", .seed = options.seed, .stops = draw_stops(run, options), .differences = {}};
  if (check.stops.empty()) fail("its metrics name no update before its last at which it could be stopped");

  const int64_t newest = run.newest_begun_attempt();  // on whose device it is trained again
  Trainer trainer{program, finished.sweep.stamp, cuda_device_of(run, newest), read_file(run.local())};
  trainer.stamp["device"] = read_attempt(run, newest).device;
  const RunDirectory resumed = train_again(finished, trainer, workspace, check.stops);
  if (check.stops.empty()) fail("it ended before the first stop");

  const LockFile lock = lock_result(run);
  check.differences = differences_between(run, resumed);
  check.outcome = check.differences.empty() ? "equal" : "different";
  if (check.outcome == "different" && origins_of(run) != origins_of(resumed)) {
    fail("it differs, but it was trained by another build or on another kind of processor or device");
  }
  check.verified_at = utc_now();
  write_atomically(run.resume_check(), sealed(check));
  return check;
}

// --- --today ---------------------------------------------------------------------------------------------------------

// A sweep's training program as it is now, and the plan that it makes of the sweep's grid.
struct SweepToday {
  Program program;
  std::vector<PlannedRun> plan;
};
// By the sweep's id: its program is asked once.
using SweepsToday = std::map<std::string, SweepToday>;

const SweepToday& sweep_today(const std::string& sweep, const Workspace& workspace, const fs::path& engine,
                              SweepsToday& sweeps) {
  if (const auto known = sweeps.find(sweep); known != sweeps.end()) return known->second;
  const Grid grid = frozen_grid(workspace, sweep);
  Program program = Program::find(engine, grid.program);
  std::vector<PlannedRun> plan = plan_runs(grid, {}, program);
  return sweeps.emplace(sweep, SweepToday{std::move(program), std::move(plan)}).first->second;
}

// The GPU of this machine for a run: the one that it was trained on, else the first one.
Device gpu_for(const RunDirectory& run) {
  const std::vector<Device> devices = local_options({}).capacity.devices;
  if (devices.empty()) fail("it is trained on a GPU, and this machine has none");
  const auto own = std::ranges::find(devices, cuda_device_of(run, run.newest_begun_attempt()), &Device::uuid);
  return own == devices.end() ? devices.front() : *own;
}

// The training program as it is now, if it takes the run for the same.
Trainer trainer_today(const FinishedRun& finished, const Workspace& workspace, const fs::path& engine,
                      SweepsToday& sweeps) {
  const auto& [program, plan] = sweep_today(finished.sweep.id, workspace, engine, sweeps);
  const std::string identity = identity_in(finished.run.settings);
  if (identity != program.probe().identity) {
    const auto name = [](const std::string& one) { return one.empty() ? "tearless-engine" : one; };
    fail("it is a run of {}, and {} is {}; name that program with --engine", name(identity), program.path().string(),
         name(program.probe().identity));
  }
  const auto planned = std::ranges::find_if(plan, [&](const PlannedRun& one) {
    return one.answer.run.coordinates == finished.run.coordinates && one.answer.run.seed == finished.run.seed;
  });
  if (planned == plan.end()) fail("its grid, read by this build, does not ask for it");
  const CheckAnswer& answer = planned->answer;
  if (!answer.error.empty()) fail("the training program refuses its settings today: {}", answer.error);
  if (!answer.run.waiting_for.empty()) fail("{}", answer.run.waiting_for);
  if (answer.run.id != finished.run.id)
    fail("the training program reads its settings otherwise today: they are run {}", answer.run.id);
  Trainer trainer{program.path(), program.probe().stamp(), "", answer.run.local};
  trainer.stamp["device"] = "cpu";
  if (answer.run.needs.device == "cuda") {
    const Device gpu = gpu_for(workspace.run(finished.run.id));
    trainer.cuda_device = gpu.uuid;
    trainer.stamp["device"] = gpu.name;
  }
  return trainer;
}

// What another training of a run has left otherwise.
struct Moved {
  struct Score {
    std::optional<double> was, is;
  };
  std::vector<std::string> files;  // as of differences_between()
  std::map<std::string, Score> scores;
  std::string trained, trained_today;  // by what and on what

  json to_json() const {
    json all = json::object();
    const auto number = [](const std::optional<double>& value) { return value ? json(*value) : json(); };
    for (const auto& [name, score] : scores) all[name] = {number(score.was), number(score.is)};
    return {{"files", files}, {"scores", std::move(all)}, {"trained", trained}, {"trained_today", trained_today}};
  }

  std::vector<std::vector<std::string>> lines() const {
    std::vector<std::vector<std::string>> lines = {{"  score", "was", "is today", "difference"}};
    for (const auto& [name, score] : scores) {
      const auto text = [](const std::optional<double>& value) { return value ? value_text(*value) : "–"; };
      lines.push_back({"  " + name, text(score.was), text(score.is),
                       score.was && score.is ? fmt::format("{:+.4g}", *score.is - *score.was) : ""});
    }
    return lines;
  }
};

std::string origin_text(const RunDirectory& run) {
  const AttemptRecord attempt = read_attempt(run, run.newest_begun_attempt());
  return fmt::format("{} on {}", program_of(attempt), machine_of(attempt));
}

Moved moved_between(const RunDirectory& run, const RunDirectory& today) {
  const LockFile lock = lock_result(run);
  Moved moved{.files = differences_between(run, today),
              .scores = {},
              .trained = origin_text(run),
              .trained_today = origin_text(today)};
  for (const auto& [name, value] : read_scores(run).numbers) moved.scores[name].was = value;
  for (const auto& [name, value] : read_scores(today).numbers) moved.scores[name].is = value;
  std::erase_if(moved.scores, [](const auto& entry) { return entry.second.was == entry.second.is; });
  return moved;
}

Moved train_today(const FinishedRun& finished, const Workspace& workspace, const fs::path& engine,
                  SweepsToday& sweeps) {
  const RunDirectory run = workspace.run(finished.run.id);
  require_result(run, workspace);
  std::vector<TrainingStop> no_stops;
  return moved_between(run,
                       train_again(finished, trainer_today(finished, workspace, engine, sweeps), workspace, no_stops));
}

// ---------------------------------------------------------------------------------------------------------------------

int verify_resume(const VerifyResumeOptions& options, const Globals& globals) {
  if (!globals.engine.empty() && !options.today) {
    fail("verify-resume trains with the program that a sweep was submitted with; omit --engine, or add --today");
  }
  if (options.words.empty()) fail("name runs or a sweep: tearless verify-resume last");
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
  SweepsToday sweeps;
  for (const FinishedRun& finished : runs) {
    const std::string& id = finished.run.id;
    if (!globals.json) print("{}  {}", id, label_of(finished.run));  // the outcome of an equal run ends the line
    std::fflush(stdout);
    json outcome = {{"run", id}, {"outcome", "not_verified"}, {"reason", ""}, {"resume", json()}};
    try {
      if (options.today) {
        const Moved moved = train_today(finished, workspace, globals.engine, sweeps);
        outcome["outcome"] = moved.files.empty() ? "equal" : "different";
        outcome["today"] = moved.to_json();
        if (moved.files.empty()) {
          say(": the same bytes");
        } else {
          say("");
          say(fmt::format("  trained by {}; today by {}", moved.trained, moved.trained_today));
          say(fmt::format("  moved: {}", fmt::join(moved.files, ", ")));
        }
        if (!moved.scores.empty() && !globals.json) print_columns(moved.lines());
      } else {
        const ResumeCheck check = verify(finished, options, workspace);
        outcome["outcome"] = check.outcome;
        outcome["resume"] = check;
        say("");
        say("  " + sentence_of(check));
      }
    } catch (const UserError& error) {
      outcome["reason"] = error.what();
      say("");
      say(fmt::format("  not verified: {}", error.what()));
    }
    if (g_interrupted || outcome["outcome"] == "equal") remove_recursively(trainings / id);
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
      "finished runs (ids, places, states, axis=label), or all those of sweeps (ids, names, grid files, last, all)");
  CLI::Option* const stops =
      app.add_option("--stops", options->stops, "how often each run is stopped: by SIGTERM and by SIGKILL in turn")
          ->type_name("N")
          ->check(whole_number_from(1))
          ->capture_default_str();
  CLI::Option* const seed = app.add_option("--seed", options->seed, "from which the updates of the stops are drawn")
                                ->type_name("S")
                                ->check(whole_number_from(0))
                                ->capture_default_str();
  app.add_flag("--today", options->today,
               "train once without stops, by the training program as it is now (--engine, else as `run` finds it), and "
               "say which files and scores have moved; the runs stay as they are")
      ->excludes(stops, seed);
  return [options, &globals] { return verify_resume(*options, globals); };
}

}  // namespace tearless::harness
