// `tearless verify-resume RUN…`: trains finished runs again, stops and resumes them on the way, and compares what they
// leave with what an undisturbed training leaves. The trainings are in WORKSPACE/verifying, outside of all sweeps.
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/lock_file.h"
#include "base/time.h"
#include "base/words.h"
#include "harness/cli/columns.h"
#include "harness/cli/control.h"
#include "harness/cli/grid_state.h"
#include "harness/cli/number_option.h"
#include "harness/cli/output.h"
#include "harness/cli/selectors.h"
#include "harness/cli/verified_run.h"
#include "harness/commands/commands.h"
#include "harness/schedule/program.h"
#include "harness/schedule/scratch_folder.h"
#include "harness/schedule/stopped_training.h"
#include "harness/screen/screen.h"

namespace tearless::harness {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct VerifyResumeOptions {
  std::vector<std::string> words;
  int stops = 3;
  int64_t seed = 1;
  std::vector<std::string> settings;  // KEY=VALUE
};

struct VerifyOutcome {
  std::string run;
  std::optional<ResumeCheck> check;
  std::string reason;  // why there is none
};

// --- what is to be verified ------------------------------------------------------------------------------------------

std::vector<std::string> finished_runs(const Store& store, const std::vector<std::string>& words) {
  std::vector<std::string> finished;
  for (const std::string& id : runs_in(store, select(store, words))) {
    const RunState state = store.known_run(id).state;
    if (state == RunState::kDone || state == RunState::kDiverged) finished.push_back(id);
  }
  if (finished.empty()) {
    fail("no run that is meant by \"{}\" has a result yet; verify-resume verifies runs that have ended",
         fmt::join(words, " "));
  }
  return finished;
}

// --- comparing -------------------------------------------------------------------------------------------------------

// What results may depend on beside the settings: build and machine of a run's attempts.
std::set<std::tuple<std::string, int64_t, std::string>> origins_of(const RunDirectory& run) {
  std::set<std::tuple<std::string, int64_t, std::string>> origins;
  for (int64_t number = 1, newest = run.newest_begun_attempt(); number <= newest; ++number) {
    if (!run.has_begun(number)) continue;
    const AttemptRecord attempt = read_attempt(run, number);
    origins.emplace(attempt.version, attempt.numerics, machine_of(attempt));
  }
  return origins;
}

// The part of a line in which it differs from the other.
std::string differing_part(const std::string& line, const std::string& other) {
  constexpr size_t kBefore = 24, kMaxLength = 60;
  const size_t same =
      static_cast<size_t>(std::mismatch(line.begin(), line.end(), other.begin(), other.end()).first - line.begin());
  const size_t begin = same > kBefore ? same - kBefore : 0;
  return (begin > 0 ? "…" : "") + line.substr(begin, kMaxLength) + (line.size() > begin + kMaxLength ? "…" : "");
}

void print_differences(const std::vector<FileDifference>& differences) {
  std::vector<std::vector<std::string>> lines = {{"file", "line", "undisturbed", "resumed"}};
  for (const FileDifference& one : differences) {
    lines.push_back({one.file, one.line > 0 ? std::to_string(one.line) : "", differing_part(one.expected, one.found),
                     differing_part(one.found, one.expected)});
  }
  print_columns(lines);
}

// --- one run after the other -----------------------------------------------------------------------------------------

class ResumeVerification {
 public:
  ResumeVerification(const VerifyResumeOptions& options, const Globals& globals, const Workspace& workspace)
      : options_(options), workspace_(workspace), quiet_(globals.json), screen_(globals.json ? stderr : stdout) {}

  std::vector<VerifyOutcome> verify(const std::vector<VerifiedRun>& runs) {
    std::vector<VerifyOutcome> outcomes;
    const ScratchFolder scratch(workspace_.verifying());
    for (const VerifiedRun& run : runs) {
      position_ = fmt::format("run {} of {}", outcomes.size() + 1, runs.size());
      say(fmt::format("{}  {}", run.id, run.label));
      VerifyOutcome outcome{.run = run.id, .check = {}, .reason = ""};
      try {
        outcome = verify(run, scratch);
      } catch (const UserError& error) {
        outcome.reason = error.what();
      }
      screen_.clear();
      if (interrupted_) {
        scratch.remove(run.id);
        break;
      }
      report(outcome);
      const bool is_different = outcome.check && !outcome.check->is_equal();
      if (is_different) {
        say(fmt::format("  the files of this training stay in {} until the next verify-resume",
                        (workspace_.verifying() / run.id).string()));
      } else {
        scratch.remove(run.id);
      }
      outcomes.push_back(std::move(outcome));
    }
    return outcomes;
  }

  bool interrupted() const { return interrupted_; }

 private:
  void say(const std::string& line) {
    if (!quiet_) screen_.print(line);
  }

  VerifyOutcome verify(const VerifiedRun& run, const ScratchFolder& scratch) {
    VerifyOutcome outcome{.run = run.id, .check = {}, .reason = ""};
    ResumeCheck check{.verified_at = "",
                      .program = run.sweep.program,
                      .version = run.sweep.stamp.value("version", ""),
                      .seed = options_.seed,
                      .stops_requested = options_.stops,
                      .stops = {},
                      .settings = options_.settings,
                      .trained_twice = !options_.settings.empty(),
                      .differences = {}};
    RunDirectory undisturbed = workspace_.run(run.id);
    if (check.trained_twice && !train_undisturbed(run, scratch, undisturbed, outcome.reason)) return outcome;
    const std::vector<TrainingStop> stops = draw_stops(undisturbed, options_.stops, options_.seed);
    if (stops.empty()) {
      outcome.reason = "its metrics name no update before its last at which it could be stopped";
      return outcome;
    }
    announce(stops);
    const RunDirectory resumed =
        scratch.make(fs::path(run.id) / "stopped" / run.trained.id, run.trained.settings, run.trained.local);
    const TrainingEnd end = train(run, resumed, stops);
    outcome.reason = end.failure;
    if (interrupted_ || !end.failure.empty()) return outcome;
    if (end.stops.empty()) {
      outcome.reason = "it ended before the first stop";
      return outcome;
    }
    check.stops = end.stops;
    require_result(run.id);
    check.differences = differences_between(undisturbed, resumed);
    if (!check.is_equal() && !check.trained_twice && origins_of(undisturbed) != origins_of(resumed)) {
      say("  it differs, but it was trained by another build or on another kind of processor or device: once more "
          "without stops");
      check.trained_twice = true;
      if (!train_undisturbed(run, scratch, undisturbed, outcome.reason)) return outcome;
      check.differences = differences_between(undisturbed, resumed);
    }
    check.verified_at = utc_now();
    record(run.id, check);
    outcome.check = std::move(check);
    return outcome;
  }

  void announce(const std::vector<TrainingStop>& stops) {
    std::vector<std::string> texts;
    for (const TrainingStop& stop : stops) texts.push_back(fmt::format("{} ({})", stop.update, signal_name(stop)));
    const std::string fewer = static_cast<int>(stops.size()) < options_.stops
                                  ? fmt::format("; there are no more of the {} requested", options_.stops)
                                  : "";
    say(fmt::format("  stops at update {}, drawn from seed {}{}", fmt::join(texts, ", "), options_.seed, fewer));
  }

  // False, with the reason, if it has no result. Sets `folder` to where it was trained.
  bool train_undisturbed(const VerifiedRun& run, const ScratchFolder& scratch, RunDirectory& folder,
                         std::string& reason) {
    folder = scratch.make(fs::path(run.id) / "undisturbed" / run.trained.id, run.trained.settings, run.trained.local);
    reason = train(run, folder, {}).failure;
    return reason.empty() && !interrupted_;
  }

  TrainingEnd train(const VerifiedRun& run, const RunDirectory& folder, const std::vector<TrainingStop>& stops) {
    const fs::path program = fs::absolute(workspace_.root() / run.sweep.program);
    StoppedTraining training{.launch = {.id = run.trained.id,
                                        .folder = fs::absolute(folder.root()),
                                        .needs = {.device = run.trained.needs.device},
                                        .program = {.path = program,
                                                    .stamp = run.sweep.stamp,
                                                    .grace_seconds = run.sweep.policy.grace_seconds}},
                             .devices = {},
                             .stops = stops,
                             .stall_seconds = run.sweep.policy.stall_seconds,
                             .on_progress = {}};
    if (run.trained.needs.device == "cuda") choose_device(run, training);
    Progress progress;
    progress.id = run.id;
    progress.label = run.label;
    progress.updates = run.trained.updates;
    const double began = steady_seconds();
    double drawn = 0;
    training.on_progress = [&](const std::vector<MetricLine>& lines, size_t made) {
      const double now = steady_seconds();
      progress.take(lines, now);
      if (now - drawn < 0.5) return;
      drawn = now;
      screen_.draw({progress},
                   fmt::format("{} · {} of {} · {} so far", position_, made,
                               counted(static_cast<int64_t>(stops.size()), "stop"), duration_text(now - began)));
    };
    TrainingEnd end = train_with_stops(std::move(training));
    screen_.clear();
    interrupted_ = end.interrupted;
    return end;
  }

  // The GPU that the run was trained on, else one of its name, else any.
  void choose_device(const VerifiedRun& run, StoppedTraining& training) const {
    const RunDirectory recorded = workspace_.run(run.id);
    const int64_t newest = recorded.newest_begun_attempt();
    const std::string uuid = cuda_device_of(recorded, newest), name = read_attempt(recorded, newest).device;
    for (const ProgramDevice& device : Program(training.launch.program.path).probe().devices) {
      if (device.kind != "cuda") continue;
      std::vector<Device>& chosen = training.devices;
      const bool is_better = chosen.empty() || device.uuid == uuid ||
                             (chosen[0].uuid != uuid && device.name == name && chosen[0].name != name);
      if (is_better) chosen = {{.uuid = device.uuid, .name = device.name, .memory_bytes = device.memory_bytes}};
    }
    if (training.devices.empty()) fail("it needs a GPU, and its training program finds none here");
  }

  void require_result(const std::string& id) const {
    if (!fs::exists(workspace_.run(id).done())) fail("its folder was deleted meanwhile");
  }

  void record(const std::string& id, const ResumeCheck& check) const {
    require_result(id);
    const RunDirectory run = workspace_.run(id);
    const std::optional<LockFile> lock = LockFile::try_acquire(run.lock());  // `forget` and `verify` leave it alone
    if (!lock) fail("its folder is in use by another process; nothing was recorded");
    write_resume_check(run, check);
  }

  void report(const VerifyOutcome& outcome) {
    if (quiet_) return;
    if (!outcome.check) {
      say("  not verified: " + outcome.reason);
      return;
    }
    const ResumeCheck& check = *outcome.check;
    say("  " + sentence_of(check));
    if (static_cast<int64_t>(check.stops.size()) < check.stops_requested) {
      say(fmt::format("  {} of the {} requested: it ended first",
                      counted(static_cast<int64_t>(check.stops.size()), "stop"), check.stops_requested));
    }
    if (!check.is_equal()) print_differences(check.differences);
  }

  const VerifyResumeOptions& options_;
  const Workspace& workspace_;
  bool quiet_;
  Screen screen_;
  std::string position_;  // "run 2 of 24"
  bool interrupted_ = false;
};

json to_json(const std::vector<VerifyOutcome>& outcomes) {
  json list = json::array();
  for (const VerifyOutcome& outcome : outcomes) {
    const std::optional<ResumeCheck>& check = outcome.check;
    list.push_back({{"run", outcome.run},
                    {"outcome", !check              ? "not_verified"
                                : check->is_equal() ? "equal"
                                                    : "different"},
                    {"reason", outcome.reason},
                    {"resume", check ? to_json(*check) : json()}});
  }
  return list;
}

int verify_resume(const VerifyResumeOptions& options, const Globals& globals) {
  if (!globals.engine.empty()) {
    fail("verify-resume trains with the program that a sweep was submitted with; omit --engine");
  }
  const Workspace workspace(globals.workspace);
  std::vector<VerifiedRun> runs;
  {
    const std::unique_ptr<const Store> store = require_store(globals);
    for (const std::string& id : finished_runs(*store, options.words)) {
      runs.push_back(verified_run(*store, workspace, id, options.settings));
    }
  }
  ResumeVerification verification(options, globals, workspace);
  const std::vector<VerifyOutcome> outcomes = verification.verify(runs);
  int64_t equal = 0, different = 0;
  for (const VerifyOutcome& outcome : outcomes) {
    if (outcome.check) ++(outcome.check->is_equal() ? equal : different);
  }
  const auto not_verified = static_cast<int64_t>(runs.size()) - equal - different;
  if (globals.json) {
    print_json(to_json(outcomes));
  } else {
    print("{}: {} equal, {} different, {} not verified{}\n", counted(static_cast<int64_t>(runs.size()), "run"), equal,
          different, not_verified, verification.interrupted() ? " (interrupted)" : "");
  }
  if (verification.interrupted()) return kInterrupted;
  return different + not_verified == 0 ? kOk : kSomethingFailed;
}

}  // namespace

Action command_verify_resume(CLI::App& app, const Globals& globals) {
  const auto options = std::make_shared<VerifyResumeOptions>();
  app.add_option("what", options->words,
                 "finished runs (ids, places, states, axis=label), or all those of sweeps (ids, grid files, last, all)")
      ->required();
  app.add_option("--stops", options->stops, "how often each run is stopped: by SIGTERM and by SIGKILL in turn")
      ->type_name("N")
      ->check(whole_number_from(1))
      ->capture_default_str();
  app.add_option("--seed", options->seed, "from which the updates of the stops are drawn")
      ->type_name("S")
      ->check(whole_number_from(0))
      ->capture_default_str();
  app.add_option("--set", options->settings,
                 "change a setting for this, such as train.max_updates=200; each run is then trained twice, with and "
                 "without stops (repeat for more settings)")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  return [options, &globals] { return verify_resume(*options, globals); };
}

}  // namespace tearless::harness
