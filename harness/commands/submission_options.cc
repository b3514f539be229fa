#include "harness/commands/submission_options.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/memory_size.h"
#include "base/print.h"
#include "base/sealed_json.h"
#include "base/time.h"
#include "base/words.h"
#include "harness/console/number_option.h"
#include "harness/folders/delete.h"
#include "harness/grants/worker_file.h"
#include "harness/grid/paper.h"
#include "harness/plan/grid_state.h"
#include "harness/runs/environment.h"
#include "harness/selection/selectors.h"
#include "harness/slurm/executor.h"
#include "harness/slurm/slurm.h"
#include "harness/store/writer.h"

namespace tearless::harness {

namespace fs = std::filesystem;
namespace {

constexpr const char* kLimitsFile = "limits.json";

/// Takes away the results of those of the submission's runs that `flags` ask to train again. Tells how many.
void discard_results(const Workspace& workspace, const Submission& submission, const SubmissionFlags& flags,
                     const ServiceStart& start) {
  if (flags.again.empty() && !flags.retrain_stale) return;
  const bool all = flags.again == std::vector<std::string>{"all"};
  const Only again(submission.grid, all ? std::vector<std::string>() : flags.again, "--again");
  const std::unique_ptr<const Store> store = Store::open_reader(workspace);
  std::vector<std::string> ids;
  std::set<std::string> seen;  // two rows of a grid may be one run
  for (const Run& run : submission.sweep.runs) {
    if (!store || !store->run(run.id) || seen.contains(run.id)) continue;
    const bool named = !flags.again.empty() && again.admits(run.coordinates, run.seed);
    const bool stale = flags.retrain_stale && !store->result_of(run.id, submission.now).stale.empty();
    if (!named && !stale) continue;
    seen.insert(run.id);
    ids.push_back(run.id);
  }
  if (ids.empty()) return notice("no run is to be trained once more: none is meant, or none has been trained");
  request(workspace, {.name = "delete", .runs = ids}, start);
  remove_deleted(*store, workspace);
  notice(fmt::format("{} to be trained again", counted(std::ssize(ids), "run")));
}

/// If the service was started with other values of variables that runs have from it.
void notice_other_environment(const SweepPolicy& policy, const ServiceFacts& service) {
  constexpr size_t kMaxNamed = 5;
  const Variables theirs = variables_of(service.pid);
  if (theirs.empty() || !policy.environment) return;
  std::vector<std::string> names = not_taken(*policy.environment, own_variables(), theirs);
  if (names.empty()) return;
  const size_t others = names.size() - std::min(names.size(), kMaxNamed);
  names.resize(names.size() - others);
  notice(
      fmt::format("runs have {}{} from the service (process {}), which was started with other values; to hand them "
                  "on, name them in [policy] environment of the grid",
                  fmt::join(names, ", "), others == 0 ? "" : fmt::format(" and {} others", others), service.pid));
}

}  // namespace

void add_part_option(CLI::App& app, std::vector<std::string>& parts) {
  app.add_option("--part", parts, "of a file that lists grids: these only, as in --part table2 (repeat for more)");
}

void add_set_option(CLI::App& app, std::vector<std::string>& set) {
  app.add_option("--set", set,
                 "key=value: a setting that wins over the grid's [set] and base files, written as there (repeat for "
                 "more)");
}

void SubmissionFlags::add_to(CLI::App& app) {
  app.add_option("--only", only, "axis=label: these runs only (repeat for more labels and axes; seed=N too)");
  add_part_option(app, parts);
  add_set_option(app, set);
  app.add_option("--tag", tags, "a word by which `status` and `runs --where tag=…` find the sweep (repeat for more)");
  app.add_option("--note", note, "a line about the sweep, for `status` and `runs`");
  app.add_option("--name", name,
                 "the sweep's name, a word for it in other commands (default: its previous name, else the title)")
      ->each(require_sweep_name);
  app.add_flag(
      "--smoke", smoke,
      "train one seed of every cell for a few updates only, to check that the grid works (in WORKSPACE/smoke)");
  app.add_flag("--retry", retry, "try failed runs again");
  app.add_option("--again", again,
                 "axis=label: train these runs again, although they have a result (repeat for more labels and axes; "
                 "seed=N, all)");
  app.add_flag("--retrain-stale", retrain_stale,
               "train stale runs again: another version or file of the training program has made them");
  CLI::Option* const until = app.add_flag(
      "--until-decided", until_decided,
      "train the seeds of the first look of the grid's [claims], and those of the next ones only of cells whose claims "
      "are not decided yet (docs/claims.md)");
  app.add_option("--max-hours", max_hours,
                 "with --until-decided: no look asks for more runs so many hours after this submission")
      ->check(number_from(0))
      ->needs(until);
  app.add_option("--priority", priority, "sweeps of higher priority go first (default: its previous priority, else 0)")
      ->check(whole_number());
  app.add_option("--stall-timeout", stall_minutes,
                 "minutes without new output or metrics after which a run is stopped (0: never; default: the grid's "
                 "[policy], else 30)")
      ->check(number_from(0));
  app.add_option("--grace", grace_seconds,
                 "seconds that a run has to write a checkpoint and exit when it is asked to stop; then it is killed "
                 "(default: the grid's [policy], else 30)")
      ->check(whole_number_from(0));
  app.add_option(
      "--memory", memory,
      "memory that each run needs, of its GPU or of the machine, such as 8GiB (default: the grid's [policy], "
      "else an estimate at first, then what was measured)");
  executor.add_to(app,
                  "whose machines train the runs: a section of executors.toml, workers, which people start "
                  "(docs/slurm.md), or none, which is this machine (default: its previous executor, else none)");
  app.add_option("--max-gpu-hours", max_gpu_hours,
                 "with --executor: submit no further workers once its jobs, of all sweeps of the workspace, have used "
                 "so many GPU hours (default: no limit)")
      ->check(number_from(0));
}

void ExecutorFlags::add_to(CLI::App& app, const char* meaning) {
  app.add_option("--executor", name, meaning);
  app.add_option("--executor-file", file, "in place of ~/.config/tearless/executors.toml");
}

std::optional<Executor> ExecutorFlags::executor() const {
  const bool is_section = !name.empty() && name != kNoExecutor && name != kWorkers;
  if (!file.empty() && !is_section) {
    fail("--executor-file {} has no effect: name one of its sections with --executor, too", shell_word(file));
  }
  if (name.empty() || name == kNoExecutor) return std::nullopt;
  return find_executor(name, file.empty() && name != kWorkers ? default_executor_file() : fs::path(file));
}

std::string SubmissionFlags::words() const {
  return option_words("--part", parts) + option_words("--set", set) + executor.words();
}

std::string ExecutorFlags::words() const {
  const auto one = [](const char* option, const std::string& value) {
    return value.empty() ? "" : option_words(option, {value});
  };
  return one("--executor", name) + one("--executor-file", file);
}

Workspace SubmissionFlags::workspace(const Globals& globals) const {
  const Workspace workspace(globals.workspace);
  return smoke ? workspace.smoke() : workspace;
}

SubmissionOptions SubmissionFlags::options() const {
  SubmissionOptions options{.only = only,
                            .set = set,
                            .tags = tags,
                            .note = note,
                            .name = name,
                            .smoke = smoke,
                            .until_decided = until_decided,
                            .max_hours = max_hours,
                            .stall_minutes = stall_minutes,
                            .grace_seconds = grace_seconds};
  if (until_decided && smoke) fail("--until-decided has no effect with --smoke, which trains one seed of each cell");
  if (until_decided && !only.empty()) fail("--until-decided: claims need all of their cells; leave out --only");
  options.executor = executor.name;
  std::optional<Executor> section = executor.executor();
  const bool is_cluster = section && section->slurm;
  if (max_gpu_hours && !is_cluster) {
    fail("--max-gpu-hours limits the jobs of a cluster: name its section of executors.toml with --executor, too");
  }
  if (max_gpu_hours) {
    if (const std::string why = never_fits(*section, {.device = "cuda"}); !why.empty()) {
      fail("--max-gpu-hours has no effect: {}", why);
    }
    section->max_gpu_hours = max_gpu_hours;
  }
  if (is_cluster) options.executor_section = *section;
  if (!memory.empty()) {
    options.memory_bytes = parse_memory(memory);
    if (!options.memory_bytes) fail("--memory \"{}\" is not a size such as 8GiB", memory);
  }
  return options;
}

void ServiceFlags::add_limits_to(CLI::App& app) {
  const auto note = [this](const std::string&) { is_typed_ = true; };
  CLI::Option* const jobs =
      app.add_option("--jobs", limits.jobs,
                     "runs at the same time on the CPU (default: as many as the cores allow for their threads); kept "
                     "for the workspace, with --runs-per-gpu and --pin, until one of them is typed again")
          ->check(whole_number_from(1))
          ->each(note);
  app.add_option("--runs-per-gpu", limits.runs_per_gpu,
                 "runs at the same time on each GPU, as far as its memory allows (default: 1); results do not depend "
                 "on it")
      ->check(whole_number_from(1))
      ->each(note);
  app.add_flag("--pin", limits.pin,
               "bind each run on the CPU to cores of its own, as many as their threads take; only where nothing else "
               "runs on the machine")
      ->excludes(jobs)
      ->each(note);
}

void ServiceFlags::keep_in(const Workspace& workspace) {
  const fs::path file = workspace.root() / kLimitsFile;
  const nlohmann::json typed = {{"jobs", limits.jobs}, {"runs_per_gpu", limits.runs_per_gpu}, {"pin", limits.pin}};
  const std::optional<nlohmann::json> read = read_sealed(file);
  if (!read && !is_typed_ && fs::exists(file)) fail("{} is damaged; delete it", file.string());
  const nlohmann::json kept = read.value_or(nlohmann::json::object());
  if (is_typed_ && typed != kept) {
    make_folders(workspace.root());
    write_atomically(file, sealed(typed));
  }
  if (is_typed_) return;
  try {
    limits.jobs = kept.value("jobs", 0);
    limits.runs_per_gpu = kept.value("runs_per_gpu", 0);
    limits.pin = kept.value("pin", false);
  } catch (const nlohmann::json::exception&) {
    fail("{} is damaged; delete it", file.string());
  }
}

void ServiceFlags::add_to(CLI::App& app) {
  add_limits_to(app);
  app.add_option(
      "--on-end", on_end,
      "a shell command that is run when a run or a sweep ends, with TEARLESS_EVENT, TEARLESS_ID and others in "
      "its environment (docs/daemon.md)");
}

std::vector<std::string> ServiceFlags::arguments() const {
  std::vector<std::string> arguments;
  if (limits.jobs > 0) arguments.insert(arguments.end(), {"--jobs", std::to_string(limits.jobs)});
  if (limits.runs_per_gpu > 0)
    arguments.insert(arguments.end(), {"--runs-per-gpu", std::to_string(limits.runs_per_gpu)});
  if (limits.pin) arguments.emplace_back("--pin");
  if (!on_end.empty()) arguments.insert(arguments.end(), {"--on-end", on_end});
  return arguments;
}

void notice_if_without_effect(const ServiceFlags& flags, const ServiceFacts& service, const Globals& globals) {
  if (!flags.are_typed() || flags.arguments() == service.arguments) return;
  notice(
      fmt::format("--jobs, --runs-per-gpu, --pin and --on-end have no effect here: the service (process {}) "
                  "was started with others; the next one has --jobs, --runs-per-gpu and --pin. To change them now: "
                  "tearless stop{}, then this command again",
                  service.pid, options_again(globals)));
}

namespace {

// For a service that this command is to start: its environment is this one.
void require_secrets(const fs::path& grid, const SweepPolicy& policy) {
  const bool is_here = policy.executor.empty() || policy.executor == kNoExecutor;
  const std::string missing = is_here && policy.environment ? secrets_not_in(own_variables(), *policy.environment) : "";
  if (missing.empty()) return;
  fail("{}: its runs need {} of [policy] environment, whose values are in no file; set them, then this command again",
       grid.string(), missing);
}

/// UserError if the cluster would refuse workers of the executor.
void require_willing_cluster(const Workspace& workspace, const SubmissionOptions& wanted) {
  if (wanted.executor_section.is_null()) return;
  SlurmPrograms commands(steady_seconds);
  const std::string why = refusal_by_test(commands, workspace, wanted.executor_section.get<Executor>());
  if (!why.empty()) fail("--executor {}: {}", wanted.executor, why);
}

}  // namespace

std::vector<Submission> prepare_submissions(const std::vector<std::string>& files, const SubmissionFlags& flags,
                                            const SubmissionOptions& wanted, const Globals& globals) {
  std::vector<fs::path> grids;
  for (const std::string& file : files) {
    const std::vector<fs::path> in_file = grids_in(file, flags.parts);
    grids.insert(grids.end(), in_file.begin(), in_file.end());
  }
  if (grids.size() > 1 && !flags.name.empty()) {
    fail("--name \"{}\" names one sweep, and {} grids are submitted; submit them one by one", flags.name, grids.size());
  }
  require_willing_cluster(flags.workspace(globals), wanted);
  std::vector<Submission> submissions;
  const Workspace workspace = flags.workspace(globals);
  const bool is_served = has_writer(workspace);  // by a service that may have been given secrets
  for (const fs::path& grid : grids) {
    SubmissionOptions options = wanted;
    fs::path engine = globals.engine;
    options.priority = flags.priority;
    if (const std::string taken = take_typed_before(workspace, grid, options, engine); !taken.empty()) {
      notice(fmt::format("{}: {}, as it was typed for its last sweep{}", grid.string(), taken,
                         flags.executor.name.empty() && !options.executor.empty() ? " (--executor none ends it)" : ""));
    }
    if (flags.priority) options.priority.reset();  // the request has it
    Sweep& sweep = submissions.emplace_back(prepare_submission(grid, engine, options)).sweep;
    keep_secrets_before(workspace, sweep);
    if (!is_served) require_secrets(grid, sweep.policy);
  }
  return submissions;
}

nlohmann::json hand_over(const Workspace& workspace, const std::vector<Submission>& submissions,
                         const SubmissionFlags& flags, const ServiceFlags& service, const Globals& globals) {
  const ServiceStart start{.arguments = service.arguments()};
  const ServiceFacts working = require_service(workspace, start);
  notice_if_without_effect(service, working, globals);
  Request submit{.name = "submit", .priority = flags.priority};
  if (flags.retry) submit.flags.insert("retry");
  if (flags.replace) submit.flags.insert("replace");
  for (const Submission& submission : submissions) {
    notice_other_environment(submission.sweep.policy, working);
    discard_results(workspace, submission, flags, start);
    if (const auto& environment = submission.sweep.policy.environment) {
      submit.secrets.merge(secrets_in(own_variables(), *environment));
    }
    submit.sweeps.push_back(submission.sweep.id);
  }
  return request(workspace, submit, start).at("submitted");
}

}  // namespace tearless::harness
