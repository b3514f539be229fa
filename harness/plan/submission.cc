#include "harness/plan/submission.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <tuple>

#include "base/error.h"
#include "base/files.h"
#include "base/sealed_json.h"
#include "base/time.h"
#include "base/words.h"
#include "harness/folders/looks.h"
#include "harness/folders/program_copies.h"
#include "harness/folders/sweep_directory.h"
#include "harness/plan/commit.h"
#include "harness/plan/frozen_program.h"
#include "harness/plan/grid_state.h"
#include "harness/plan/plan.h"
#include "harness/plan/score_names.h"
#include "harness/results/result_set.h"
#include "harness/runs/environment.h"
#include "harness/selection/selectors.h"
#include "harness/store/workspace_format.h"
#include "harness/views/layout.h"

namespace tearless::harness {
namespace fs = std::filesystem;
namespace {

SweepPolicy policy_of(const SubmissionOptions& asked, const GridPolicy& of_grid) {
  SweepPolicy policy;
  const auto first = [](const auto& a, const auto& b) { return a ? a : b; };
  if (const auto minutes = first(asked.stall_minutes, of_grid.stall_minutes)) policy.stall_seconds = 60 * *minutes;
  policy.grace_seconds = first(asked.grace_seconds, of_grid.grace_seconds).value_or(policy.grace_seconds);
  policy.memory_bytes = first(asked.memory_bytes, of_grid.memory_bytes).value_or(policy.memory_bytes);
  policy.tries = of_grid.tries;
  policy.same_device = of_grid.same_device;
  policy.executor = asked.executor;
  policy.executor_section = asked.executor_section;
  policy.environment = submitted_environment(own_variables(), of_grid.environment);
  return policy;
}

UntilDecided until_decided(const Grid& grid, std::optional<double> max_hours) {
  if (grid.claims.looks.empty()) {
    fail(
        "--until-decided: {} does not say after how many seeds its claims are decided; write, for example, seeds = 12, "
        "and a section [claims] with looks = [3, 5, 8, 12]",
        grid.file.string());
  }
  const auto first = grid.seeds.begin(), last = first + static_cast<ptrdiff_t>(grid.claims.looks.front());
  return {.first_seeds = {first, last}, .max_hours = max_hours};
}

// When the claims were first submitted with a sweep of this grid file, also where its results came here as an archive.
std::map<std::string, std::string> first_declared(const Workspace& workspace, const Store* store,
                                                  const Submission& submission) {
  std::map<std::string, std::string> declared;
  for (const View& view : submission.views) {
    if (const auto* claim = std::get_if<ClaimSpec>(&view.spec)) declared[claim->hash] = submission.sweep.submitted_at;
  }
  for (const Sweep& other : store ? store->sweeps() : std::vector<Sweep>()) {
    if (declared.empty() || !is_of_grid(other, submission.sweep.grid_file)) continue;
    for (const auto& [hash, time] : declarations_of(workspace, other.id)) {
      if (const auto own = declared.find(hash); own != declared.end()) own->second = std::min(own->second, time);
    }
  }
  return declared;
}

// Looks that were taken at other numbers of seeds have spent a part of the level.
void require_same_looks(const Workspace& workspace, const Store& store, const Submission& submission) {
  for (const Sweep& other : store.sweeps()) {
    if (other.grid_file != submission.sweep.grid_file || other.id == submission.sweep.id) continue;
    const std::vector<LookTaken> taken = read_looks(workspace, other.id);
    if (taken.empty()) continue;
    const Grid before = frozen_grid(workspace, other.id);
    const Grid& now = submission.grid;
    if (before.claims.looks == now.claims.looks && before.claims.level == now.claims.level && before.seeds == now.seeds)
      continue;
    const auto words = [](const Grid& grid) {
      return fmt::format("looks = [{}], level = {} and seeds = [{}]", fmt::join(grid.claims.looks, ", "),
                         grid.claims.level, fmt::join(grid.seeds, ", "));
    };
    fail(
        "{}: it had {} when the first look was taken, on {} (sweep {}), and has {} now: write them as they were, or "
        "give the grid file another name, which begins a new test",
        now.file.string(), words(before), local_time(taken.front().at), other.id, words(now));
  }
}

// Every cell once, in the order of the rows of the first table, then again with the next seed: a whole table stands
// after the first of n seeds.
std::vector<Run> runs_in_ranks(const Grid& grid, const std::vector<View>& views, std::vector<PlannedRun>& plan) {
  const auto view =
      std::ranges::find_if(views, [](const View& one) { return std::holds_alternative<TableSpec>(one.spec); });
  const Arrangement table = view == views.end() ? Arrangement() : view->table().arrangement;
  const std::vector<Coordinates> rows = layout_of(grid, table).rows;
  std::vector<Run> runs;
  for (PlannedRun& planned : plan) {
    Run& run = runs.emplace_back(std::move(planned.answer.run));
    const auto seed = std::ranges::find(grid.seeds, planned.combination.seed) - grid.seeds.begin();
    const auto row = std::ranges::lower_bound(rows, project(planned.combination, table.rows)) - rows.begin();
    run.rank = seed * std::ssize(rows) + row;
  }
  return runs;
}

bool is_derived(const PlannedRun& planned) { return !planned.derivation.empty(); }

// A run that was cut down is as fast, and needs as much memory, as the whole run.
void take_classes(std::vector<PlannedRun>& cut_down, const std::vector<PlannedRun>& whole) {
  for (size_t i = 0; i < cut_down.size(); ++i) {
    cut_down[i].answer.run.needs.resource_class = whole[i].answer.run.needs.resource_class;
  }
}

void keep_one_of_each_class(std::vector<PlannedRun>& plan, std::set<std::string> seen) {
  std::erase_if(plan, [&](const PlannedRun& planned) {
    const Run& run = planned.answer.run;
    const std::string& resource_class = run.needs.resource_class;
    return is_derived(planned) || run.settings.empty() || resource_class.empty() || !seen.insert(resource_class).second;
  });
}

// The seeds of a cell are neighbours in a plan, also those that one derivation makes of them.
void keep_one_seed_of_each_cell(std::vector<PlannedRun>& plan) {
  const auto cell_of = [](const PlannedRun& planned) {
    return std::tie(planned.derivation, planned.combination.index);
  };
  const auto same_cell = [&](const PlannedRun& a, const PlannedRun& b) { return cell_of(a) == cell_of(b); };
  plan.erase(std::unique(plan.begin(), plan.end(), same_cell), plan.end());
}

// Nullopt for a sweep that is new, and for one whose folder is damaged: it is written again.
std::optional<std::string> name_before(const Workspace& workspace, const std::string& sweep) {
  const std::optional<nlohmann::json> about = read_sealed(workspace.sweep(sweep) / "sweep.json");
  const nlohmann::json name = about ? about->value("name", nlohmann::json()) : nlohmann::json();
  return name.is_string() ? std::optional(name.get<std::string>()) : std::nullopt;
}

// A name that means something else already could not be typed.
void require_free_name(const Store& store, const Sweep& sweep) {
  if (sweep.name.empty()) return;
  const auto refuse = [&](const std::string& what) { fail("--name \"{}\" {}; choose another one", sweep.name, what); };
  for (const Sweep& other : store.sweeps()) {
    if (other.id == sweep.id) continue;
    if (other.name == sweep.name) refuse(fmt::format("is the name of the sweep {}", other.id));
    if (other.id == sweep.name) refuse("is the id of another sweep");
  }
  if (const std::vector<std::string> runs = store.ids_starting_with(sweep.name); !runs.empty()) {
    refuse(fmt::format("is the beginning of the id of the run {}", runs.front()));
  }
}

// For a program that does not say which scores its runs will have: those that are done show it.
void require_seen_scores(const Store& store, const Submission& submission) {
  std::vector<Row> rows;
  for (const Run& run : submission.sweep.runs) rows.push_back({.run = run, .derivation = derivation_of(run)});
  try {
    read_results(&store, rows);
  } catch (const UserError&) {  // a damaged result: the service says so, and trains the others
    return;
  }
  if (!have_all_labels(submission.grid, rows)) return;
  if (const auto errors = errors_of_scores(submission.grid, submission.views, std::nullopt, rows); !errors.empty()) {
    fail("{}\nNothing was started: correct the grid first", fmt::join(errors, "\n"));
  }
}

// The sweep's id is made of it: the same grid with other settings is another sweep.
std::string submitted_text(std::string text, const std::vector<std::string>& set) {
  if (!set.empty() && !text.ends_with('\n')) text += '\n';
  for (const std::string& option : set) text += fmt::format("# --set {}\n", option);
  return text;
}

std::vector<std::string> all_tags(std::vector<std::string> tags, const std::vector<std::string>& more) {
  for (const std::string& tag : more) {
    require_tag(tag, "--tag");
    if (std::ranges::find(tags, tag) == tags.end()) tags.push_back(tag);
  }
  return tags;
}

// Null if there is none, or if it is damaged: the service rebuilds it, or says what is wrong.
std::unique_ptr<const Store> sound_store(const Workspace& workspace) {
  try {
    return Store::open_reader(workspace);
  } catch (const UserError&) {
    return nullptr;
  }
}

}  // namespace

std::string take_typed_before(const Workspace& workspace, const fs::path& grid_file, SubmissionOptions& options,
                              fs::path& engine) {
  const std::unique_ptr<const Store> store = sound_store(workspace);
  std::optional<Sweep> newest;
  for (const Sweep& sweep : store ? store->sweeps() : std::vector<Sweep>()) {
    const bool is_later = !newest || sweep.submission.newest > newest->submission.newest;
    if (is_of_grid(sweep, grid_file) && is_later) newest = sweep;
  }
  const auto keep_engine = [&] {
    options.engine = engine.empty() ? "" : fs::absolute(engine).lexically_normal().string();
  };
  keep_engine();
  if (!newest) return "";
  std::string taken;
  if (options.executor.empty() && !newest->policy.executor.empty()) {
    options.executor = newest->policy.executor;
    options.executor_section = newest->policy.executor_section;
    taken += " --executor " + shell_word(options.executor);
    if (const auto hours = options.executor_section.find("max_gpu_hours"); hours != options.executor_section.end()) {
      taken += fmt::format(" --max-gpu-hours {}", hours->get<double>());
    }
  }
  const std::string before = typed_engine_of(workspace, newest->id);
  if (engine.empty() && !before.empty()) {
    engine = before;
    taken += " --engine " + shell_word(before);
    keep_engine();
  }
  if (!options.priority && newest->priority != 0) {
    options.priority = newest->priority;
    taken += fmt::format(" --priority {}", newest->priority);
  }
  return taken.empty() ? "" : taken.substr(1);
}

Submission prepare_submission(const fs::path& grid_file, const fs::path& engine, const SubmissionOptions& options) {
  Submission submission{.grid = load_grid(grid_file, options.set),
                        .grid_text = submitted_text(read_file(grid_file), options.set),
                        .program = {},
                        .sweep = {}};
  const Grid& grid = submission.grid;
  const std::vector<View>& views = submission.views = views_of(grid);
  const Program program = Program::find(engine, grid.program);
  const Only only(grid, options.only);
  std::vector<PlannedRun> plan = plan_runs(grid, only, program, options.smoke);
  const std::optional<std::vector<std::string>> scores = scores_of(plan), windows = windows_of(plan);
  std::vector<std::string> errors = errors_of(grid, plan);
  if (errors.empty()) {
    std::vector<PlannedRun> copy = plan;
    const std::vector<Row> rows = take_rows(copy);
    errors = errors_of_names(grid, views, plan, rows);
    if (errors.empty() && !options.smoke) errors = errors_of_parts(grid, plan, rows);
  }
  if (!errors.empty()) {
    fail("{}\nNothing was started: correct the grid first", fmt::join(errors, "\n"));
  }
  if (options.smoke) take_classes(plan, plan_runs(grid, only, program));
  if (options.calibrated) {
    keep_one_of_each_class(plan, *options.calibrated);
  } else if (options.smoke) {
    keep_one_seed_of_each_cell(plan);
  }
  const Probe& probe = submission.program = program.probe();
  Sweep& sweep = submission.sweep;
  sweep = {.id = "",
           .title = grid.title,
           .name = options.name,
           .grid_file = fs::absolute(grid.file).string(),
           .submitted_at = utc_now(),
           .runs = runs_in_ranks(grid, views, plan),
           .program = program.path().string(),
           .stamp = probe.stamp(),
           .policy = policy_of(options, grid.policy),
           .scores = scores,
           .windows = windows,
           .tags = all_tags(grid.tags, options.tags),
           .note = options.note.empty() ? grid.note : options.note,
           .engine = options.engine};
  submission.now = program.now();
  submission.priority = options.priority;
  if (options.until_decided) sweep.policy.until_decided = until_decided(grid, options.max_hours);
  sweep.id = sweep_id(sweep, submission.grid_text);
  return submission;
}

void keep_secrets_before(const Workspace& workspace, Sweep& sweep) {
  std::optional<SubmittedEnvironment>& environment = sweep.policy.environment;
  if (!environment || !fs::exists(workspace.sweep(sweep.id) / "sweep.json")) return;
  for (const std::string& name : secrets_of(workspace, sweep.id)) {
    if (takes(environment->names, name)) environment->secrets.insert(name);
  }
}

void write_submission(const Workspace& workspace, Submission& submission) {
  require_usable(workspace);
  const std::unique_ptr<const Store> store = sound_store(workspace);
  if (store) {
    if (!submission.sweep.scores) require_seen_scores(*store, submission);
    require_free_name(*store, submission.sweep);
    require_same_looks(workspace, *store, submission);
  }
  submission.sweep.declared = first_declared(workspace, store.get(), submission);
  announce_if_new(workspace);
  Sweep& sweep = submission.sweep;
  if (sweep.name.empty()) sweep.name = name_before(workspace, sweep.id).value_or(sweep.title);
  if (sweep.policy.executor == kNoExecutor) sweep.policy.executor.clear();
  const GridCommit from = commit_holding(submission.grid.file);
  sweep.commit = from.record;
  const LockFile lock = lock_programs(workspace);
  sweep.program = freeze_program(workspace, Program(sweep.program), submission.program).string();
  freeze_grid(workspace, sweep.id, submission.grid);
  const bool is_new = !std::filesystem::exists(workspace.sweep(sweep.id) / "sweep.json");
  freeze_sweep(workspace, sweep, submission.grid_text, from.diff);
  if (is_new && submission.priority) {
    log_event(workspace, sweep.id, "priority",
              {{"priority", *submission.priority}, {"text", std::to_string(*submission.priority)}});
  }
}

}  // namespace tearless::harness
