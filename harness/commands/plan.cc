// `tearless plan GRID`: counts the runs of a grid, or of the grids of a paper, by state, before anything runs. Changes
// nothing.
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <span>

#include "base/files.h"
#include "base/print.h"
#include "base/utf8.h"
#include "base/words.h"
#include "harness/commands/cluster_plan.h"
#include "harness/commands/commands.h"
#include "harness/commands/plan_seeds.h"
#include "harness/commands/plan_tally.h"
#include "harness/commands/submission_options.h"
#include "harness/grid/paper.h"
#include "harness/launch/machine.h"
#include "harness/plan/estimate.h"
#include "harness/table/table.h"

namespace tearless::harness {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

struct PlanOptions {
  std::string grid;
  std::vector<std::string> parts, only, set;
  fs::path like;
  ExecutorFlags executor;
};

/// Unset without --executor.
std::optional<ClusterPlan> cluster_plan_of(const PlanOptions& options, const Work& work) {
  const std::optional<Executor> executor = options.executor.executor();
  if (!executor) return std::nullopt;
  return harness::cluster_plan_of(*executor, work.runs, work.estimate);
}

// --- text output ----------------------------------------------------------------------------------------------------

std::string heading_of(size_t kind) {
  std::string name = kKindNames[kind];
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

/// A column for each kind that occurs in `all`, with its heading or, with `counts`, its number.
std::string columns_of(const Counts& all, const Counts* counts = nullptr) {
  std::string columns;
  for (size_t kind = 0; kind < kKinds; ++kind) {
    const std::string heading = heading_of(kind);
    if (all[kind] == 0) continue;
    const std::string text = counts ? std::to_string((*counts)[kind]) : heading;
    columns += fmt::format("  {:>{}}", text, std::max<size_t>(6, heading.size()));
  }
  return columns;
}

/// Prints one line for each point of each axis, with a column for each kind that occurs.
void print_counts(const Tally& tally) {
  size_t axis_width = 0, label_width = 3;
  for (const AxisTally& axis : tally.axes) {
    axis_width = std::max(axis_width, display_width(printable(axis.name)));
    if (&axis == &tally.axes.back()) break;  // seeds are short
    for (const auto& [label, counts] : axis.points) {
      label_width = std::max(label_width, display_width(printable(label)));
    }
  }
  const auto print_line = [&](const std::string& axis, const std::string& label, const Counts* counts) {
    print("{:<{}}  {:<{}}{}\n", printable(axis), axis_width, printable(label), label_width,
          columns_of(tally.all, counts));
  };
  print_line("", "", nullptr);
  for (const AxisTally& axis : tally.axes) {
    bool first = true;
    for (const auto& [label, counts] : axis.points) {
      if (std::ranges::all_of(counts, [](int64_t n) { return n == 0; })) continue;  // not in --only
      print_line(first ? axis.name : "", label, &counts);
      first = false;
    }
  }
  print_line("all", "", &tally.all);
}

std::string sizes_text(std::span<const GridState> states) {
  std::optional<int64_t> least, most;
  bool is_pending = false;
  for (const GridState& state : states) {
    for (const Row& row : state.results.rows) {
      is_pending |= (row.run.data && !row.run.data->empty()) || !row.run.waiting_for.empty();
      const std::optional<int64_t> size = row.run.parameters;
      if (!size) continue;
      least = std::min(least.value_or(*size), *size);
      most = std::max(most.value_or(*size), *size);
    }
  }
  if (!least)
    return is_pending ? "parameters: pending until the data are prepared" : "parameters: not told by the program";
  const std::string from = short_count(*least);
  const std::string to = short_count(*most);
  return "parameters: " + (from == to ? from : from + " to " + to);
}

std::string disk_text(int64_t bytes, const std::filesystem::path& workspace) {
  std::error_code unknown;
  const std::filesystem::space_info space = std::filesystem::space(workspace, unknown);
  if (unknown) return "about " + bytes_text(bytes);
  const auto available = static_cast<int64_t>(space.available);
  return fmt::format("about {}; {} are free{}", bytes_text(bytes), bytes_text(available),
                     bytes < available ? ""
                                       : fmt::format(": tearless clean{} frees checkpoints of runs that have a result",
                                                     workspace_option(workspace)));
}

/// "beam8: 3 to run, 1 done; about 0:12 on 2 cores, from 1 ended run of the same resource classes".
std::string derived_text(const Derivation& derivation, const DerivedTally& tally) {
  std::vector<std::string> parts;
  for (size_t kind = 0; kind < kKinds; ++kind) {
    if (tally.counts[kind] > 0) parts.push_back(fmt::format("{} {}", tally.counts[kind], heading_of(kind)));
  }
  std::string text = fmt::format("{}: {}", derivation.name, fmt::join(parts, ", "));
  if (tally.estimate.known == 0 && tally.counts[kToRun] > 0) {
    text += "; not timed yet";
  } else if (tally.estimate.known > 0) {
    text += "; " + estimate_lines(tally.estimate, static_cast<int>(cores_of_process().size()), /*gpus=*/0, "").front();
  }
  return text;
}

void print_next(const Counts& counts, int64_t to_derive, const std::string& target, const ExecutorFlags& executor) {
  const bool runs = counts[kToRun] + to_derive > 0;
  const char* const next = runs ? "Next: tearless run"
                           : counts[kWaiting] > 0
                               ? "Nothing can run yet. Next: add the missing files, then tearless plan"
                               : "Nothing to run. Next: tearless table";
  print("{} {}{}\n", next, target, runs ? executor.words() : "");
}

/// Of grids with looks: the runs of the first one that are to be trained, each once.
Work first_look_of(std::span<const GridState> states, const Workspace& workspace) {
  Work work;
  std::set<std::string> seen;
  for (const GridState& state : states) {
    if (state.grid.claims.looks.empty()) continue;
    const std::span seeds = std::span(state.grid.seeds).first(state.grid.claims.looks.front());
    for (const Row& row : state.results.rows) {
      const bool is_of_look = row.is_trained() && std::ranges::find(seeds, row.run.seed) != seeds.end();
      if (is_of_look && kind_of(row) == kToRun && seen.insert(row.run.id).second) work.add(row.run);
    }
  }
  work.estimate_with(states.front().results.store.get(), workspace);
  return work;
}

/// What runs that are to be trained cost; nothing if there are none. `target` names them in a command.
void print_work(const Work& work, const Work& first_look, const std::string& sizes, const std::string& target,
                const Globals& globals) {
  if (work.runs.empty()) return;
  const std::string unknown = work.of_unknown_length == 0 ? ""
                                                          : fmt::format(", without {} whose updates are not known yet",
                                                                        counted(work.of_unknown_length, "run"));
  print("To run: {}, {} updates at most{}; {}\n", counted(std::ssize(work.runs), "run"), work.updates, unknown, sizes);
  const auto time_of = [&](const Work& of) {
    return estimate_lines(of.estimate, static_cast<int>(cores_of_process().size()), /*gpus=*/0,
                          fmt::format("tearless run {} --calibrate", target));
  };
  print("Time: {}\n", fmt::join(time_of(work), "\n      "));
  if (!first_look.runs.empty()) {
    print("First look, with --until-decided: {}; {}\n", counted(std::ssize(first_look.runs), "run"),
          fmt::join(time_of(first_look), "; "));
  }
  if (work.disk_bytes) print("Disk: {}\n", disk_text(*work.disk_bytes, globals.workspace));
}

void print_cluster_plan(const std::optional<ClusterPlan>& plan) {
  if (!plan) return;
  for (const std::string& line : lines_of(*plan)) print("{}\n", line);
}

void print_seeds(const SeedsPlan& seeds, const GridState& state, const Globals& globals) {
  const std::string target = state.grid.words() + options_again(globals);
  for (const std::string& line : lines_of(seeds, state.views, fmt::format("tearless run {} --calibrate", target)))
    print("{}\n", line);
}

void print_plan(const GridState& state, const Tally& tally, const SeedsPlan& seeds,
                const std::optional<ClusterPlan>& cluster, const ExecutorFlags& executor, const Globals& globals) {
  const Grid& grid = state.grid;
  const std::string target = grid.words() + options_again(globals);
  print("{}\n\n", grid.title);
  print_counts(tally);
  print("\n");
  for (const auto& [exclusion, count] : tally.excluded) {
    print("{} left out ({}): {}\n", counted(count, "run"), exclusion->location, exclusion->why);
  }
  if (grid.sample) print("Sample: {}\n", drawn_text(*grid.sample));
  for (const auto& [sentence, count] : tally.waiting_for) print("{} waiting: {}\n", counted(count, "run"), sentence);
  if (tally.shared > 0)
    print("{} rows are {}: each is trained once\n", tally.rows, counted(tally.rows - tally.shared, "run"));
  for (const NoEffect& one : tally.no_effect) print("Without effect: {}\n", text_of(one));
  for (const std::string& warning : tally.warnings) print("Warning: {}\n", warning);
  if (tally.all[kFailed] > 0) {
    print("{} failed; tearless explain {} says why\n", counted(tally.all[kFailed], "run"), target);
  }
  print_work(tally.work, first_look_of({&state, 1}, Workspace(globals.workspace)), sizes_text({&state, 1}), target,
             globals);
  print_cluster_plan(cluster);
  for (size_t i = 0; i < tally.derived.size(); ++i) {
    print("Derived {}\n", derived_text(grid.derivations[i], tally.derived[i]));
  }
  if (!state.errors.empty()) return;  // the caller prints the errors; they must be corrected first
  print_seeds(seeds, state, globals);
  print_next(tally.all, tally.to_derive, target, executor);
}

// --- JSON output ----------------------------------------------------------------------------------------------------

json counts_json(const Counts& counts) {
  json object = json::object();
  for (size_t kind = 0; kind < kKinds; ++kind) object[kKindNames[kind]] = counts[kind];
  return object;
}

json estimate_json(const Work& work) {
  return {{"runs", work.estimate.known},
          {"runs_without", work.estimate.unknown},
          {"calibrated_runs", work.estimate.calibrated},
          {"ended_runs", work.estimate.ended},
          {"cpu_seconds", work.estimate.cpu_seconds},
          {"gpu_seconds", work.estimate.gpu_seconds},
          {"error", work.estimate.error},
          {"disk_bytes", work.disk_bytes ? json(*work.disk_bytes) : json()}};
}

/// null: no grid has looks.
json first_look_json(std::span<const GridState> states, const Workspace& workspace) {
  if (std::ranges::all_of(states, [](const GridState& state) { return state.grid.claims.looks.empty(); })) return {};
  return estimate_json(first_look_of(states, workspace));
}

json plan_json(const GridState& state, const Tally& tally, const SeedsPlan& seeds, const Workspace& workspace) {
  const Grid& grid = state.grid;
  json plan = {{"title", grid.title},
               {"file", grid.file.string()},
               {"counts", counts_json(tally.all)},
               {"errors", state.errors}};
  plan["updates"] = tally.work.updates;
  plan["estimate"] = estimate_json(tally.work);
  plan["first_look"] = first_look_json({&state, 1}, workspace);
  plan["axes"] = json::array();
  for (const AxisTally& axis : std::span(tally.axes).first(grid.axes.size())) {
    json points = json::array();
    for (const auto& [label, counts] : axis.points)
      points.push_back({{"label", label}, {"counts", counts_json(counts)}});
    plan["axes"].push_back({{"name", axis.name}, {"points", points}});
  }
  plan["derived"] = json::array();
  for (size_t i = 0; i < grid.derivations.size(); ++i) {
    const DerivedTally& own = tally.derived[i];
    plan["derived"].push_back({{"name", grid.derivations[i].name},
                               {"counts", counts_json(own.counts)},
                               {"cpu_seconds", own.estimate.cpu_seconds},
                               {"gpu_seconds", own.estimate.gpu_seconds},
                               {"runs_without", own.estimate.unknown}});
  }
  plan["no_effect"] = json::array();
  for (const NoEffect& one : tally.no_effect) {
    plan["no_effect"].push_back(
        {{"axis", one.axis}, {"labels", one.labels}, {"rows", one.rows}, {"runs", one.runs}, {"because", one.because}});
  }
  plan["seeds_needed"] = seeds.claims.empty() ? json() : to_json(seeds, state.views);
  plan["warnings"] = tally.warnings;
  plan["left_out"] = json::array();
  for (const auto& [exclusion, count] : tally.excluded) {
    plan["left_out"].push_back({{"why", exclusion->why}, {"place", exclusion->location}, {"runs", count}});
  }
  if (grid.sample)
    plan["sample"] = {{"count", grid.sample->count},
                      {"seed", grid.sample->seed},
                      {"of", grid.sample->of > 0 ? json(grid.sample->of) : json()}};
  plan["runs"] = json::array();
  for (const Row& row : state.results.rows) {
    json entry = {
        {"id", row.run.id},     {"state", name_of(row.result.state)}, {"coordinates", to_json(row.run.coordinates)},
        {"seed", row.run.seed}, {"updates", row.run.updates},         {"plan", kKindNames[kind_of(row)]}};
    if (row.run.parameters) entry["parameters"] = *row.run.parameters;
    if (!row.run.waiting_for.empty()) entry["waiting_for"] = row.run.waiting_for;
    if (!row.refusal.empty()) entry["error"] = row.refusal;
    plan["runs"].push_back(std::move(entry));
  }
  return plan;
}

int plan_grid(const fs::path& grid, const PlanOptions& options, const Globals& globals) {
  GridState state = look_up(grid, options.only, globals, WithoutProgram::kRefuse, options.set);
  const Tally tally = tally_of(state, Only(state.grid, options.only), Workspace(globals.workspace));
  const SeedsPlan seeds = seeds_plan_of(state, options.like, globals);
  const std::optional<ClusterPlan> cluster = cluster_plan_of(options, tally.work);
  if (globals.json) {
    json printed = plan_json(state, tally, seeds, Workspace(globals.workspace));
    if (cluster) printed["executor"] = to_json(*cluster);
    print_json(printed);
  } else {
    print_plan(state, tally, seeds, cluster, options.executor, globals);
  }
  for (const std::string& error : state.errors) notice(error);
  return state.errors.empty() ? kOk : kUsage;
}

// --- papers ---------------------------------------------------------------------------------------------------------

/// The grids of a paper with their runs.
struct PaperPlan {
  std::string title;
  std::vector<std::string> names;  // of the parts
  std::vector<GridState> states;
  std::vector<Tally> tallies;
  std::vector<SeedsPlan> seeds;
  Counts all{};                                        // each run once, whichever parts have it
  std::map<std::vector<std::string>, int64_t> shared;  // parts → runs that exactly these have
  std::map<std::string, int64_t> waiting_for;          // missing file, one sentence → runs
  int64_t to_derive = 0;
  Work work;

  void count(const Workspace& workspace) {
    std::map<std::string, std::vector<std::string>> parts;  // run → the parts that have it
    for (size_t i = 0; i < states.size(); ++i) {
      all[kLeftOut] += tallies[i].all[kLeftOut];
      to_derive += tallies[i].to_derive;
      for (const Row& row : states[i].results.rows) {
        if (!row.is_trained()) continue;
        const Kind kind = kind_of(row);
        if (kind == kRefused) {
          ++all[kind];
          continue;
        }
        std::vector<std::string>& of_run = parts[row.run.id];
        if (of_run.empty()) {
          ++all[kind];
          if (kind == kToRun) work.add(row.run);
          if (kind == kWaiting) ++waiting_for[row.run.waiting_for];
        }
        if (of_run.empty() || of_run.back() != names[i]) of_run.push_back(names[i]);
      }
    }
    for (const auto& [run, of_run] : parts) {
      if (of_run.size() > 1) ++shared[of_run];
    }
    work.estimate_with(states.front().results.store.get(), workspace);
  }
};

void print_paper_counts(const PaperPlan& plan) {
  size_t width = 3;
  for (const std::string& name : plan.names) width = std::max(width, display_width(printable(name)));
  print("{:<{}}{}\n", "", width, columns_of(plan.all));
  for (size_t i = 0; i < plan.names.size(); ++i) {
    print("{:<{}}{}  {}\n", printable(plan.names[i]), width, columns_of(plan.all, &plan.tallies[i].all),
          printable(plan.states[i].grid.title));
  }
  print("{:<{}}{}\n", "all", width, columns_of(plan.all, &plan.all));
}

void print_paper(const PaperPlan& plan, const std::optional<ClusterPlan>& cluster, const PlanOptions& options,
                 const Globals& globals) {
  const std::string target = shell_word(options.grid) + option_words("--part", options.parts) +
                             option_words("--set", options.set) + options_again(globals);
  print("{}\n\n", plan.title);
  print_paper_counts(plan);
  print("\n");
  for (const auto& [parts, runs] : plan.shared) {
    print("{} of {}: trained once\n", counted(runs, "run"), fmt::join(parts, ", "));
  }
  for (size_t i = 0; i < plan.states.size(); ++i) {
    const Grid& grid = plan.states[i].grid;
    if (grid.sample) print("Sample of {}: {}\n", plan.names[i], drawn_text(*grid.sample));
    for (const auto& [exclusion, count] : plan.tallies[i].excluded) {
      print("{} left out of {} ({}): {}\n", counted(count, "run"), plan.names[i], exclusion->location, exclusion->why);
    }
    for (const NoEffect& one : plan.tallies[i].no_effect)
      print("Without effect in {}: {}\n", plan.names[i], text_of(one));
    for (const std::string& warning : plan.tallies[i].warnings) print("Warning in {}: {}\n", plan.names[i], warning);
  }
  for (const auto& [sentence, count] : plan.waiting_for) print("{} waiting: {}\n", counted(count, "run"), sentence);
  print_work(plan.work, first_look_of(plan.states, Workspace(globals.workspace)), sizes_text(plan.states), target,
             globals);
  print_cluster_plan(cluster);
  if (plan.all[kRefused] > 0) return;  // the caller prints the errors; they must be corrected first
  for (size_t i = 0; i < plan.states.size(); ++i) {
    if (!plan.seeds[i].claims.empty()) print("{}\n", printable(plan.states[i].grid.title));
    print_seeds(plan.seeds[i], plan.states[i], globals);
  }
  print_next(plan.all, plan.to_derive, target, options.executor);
}

json paper_json(const PaperPlan& plan, const PlanOptions& options, const Workspace& workspace) {
  json parts = json::array(), shared = json::array();
  for (size_t i = 0; i < plan.states.size(); ++i) {
    parts.push_back(plan_json(plan.states[i], plan.tallies[i], plan.seeds[i], workspace));
    parts.back()["part"] = plan.names[i];
  }
  for (const auto& [names, runs] : plan.shared) shared.push_back({{"parts", names}, {"runs", runs}});
  return {{"title", plan.title},
          {"file", options.grid},
          {"counts", counts_json(plan.all)},
          {"updates", plan.work.updates},
          {"estimate", estimate_json(plan.work)},
          {"first_look", first_look_json(plan.states, workspace)},
          {"shared", shared},
          {"parts", parts}};
}

int plan_paper(const Paper& paper, const std::vector<fs::path>& grids, const PlanOptions& options,
               const Globals& globals) {
  const Workspace workspace(globals.workspace);
  PaperPlan plan;
  plan.title = paper.title;
  std::vector<std::string> errors;
  plan.states = look_up_all(grids, options.only, globals, WithoutProgram::kRefuse, options.set);
  for (GridState& state : plan.states) {
    errors.insert(errors.end(), state.errors.begin(), state.errors.end());
    plan.names.push_back(part_name(paper, state.grid.file));
    plan.tallies.push_back(tally_of(state, Only(state.grid, options.only), workspace));
    plan.seeds.push_back(seeds_plan_of(state, options.like, globals));
  }
  plan.count(workspace);
  const std::optional<ClusterPlan> cluster = cluster_plan_of(options, plan.work);
  if (globals.json) {
    json printed = paper_json(plan, options, workspace);
    if (cluster) printed["executor"] = to_json(*cluster);
    print_json(printed);
  } else {
    print_paper(plan, cluster, options, globals);
  }
  for (const std::string& error : errors) notice(error);
  return errors.empty() ? kOk : kUsage;
}

int plan(const PlanOptions& options, const Globals& globals) {
  const std::vector<fs::path> grids = grids_in(options.grid, options.parts);
  const std::optional<Paper> paper = load_paper(options.grid);
  return paper && grids.size() > 1 ? plan_paper(*paper, grids, options, globals)
                                   : plan_grid(grids.front(), options, globals);
}

}  // namespace

Action command_plan(CLI::App& app, const Globals& globals) {
  const auto options = std::make_shared<PlanOptions>();
  app.add_option("grid", options->grid, "the grid file, or a file that lists grids")->required();
  add_part_option(app, options->parts);
  app.add_option("--only", options->only, "axis=label: these runs only (repeat for more labels and axes; seed=N too)");
  add_set_option(app, options->set);
  app.add_option("--like", options->like,
                 "an archive of `tearless copy` with runs of such a grid: how many seeds the claims need goes by their "
                 "spread (docs/claims.md)")
      ->type_name("FILE.tar.gz");
  options->executor.add_to(app,
                           "also say what these runs ask of an executor: a section of executors.toml "
                           "(docs/slurm.md), or workers");
  return [options, &globals] { return plan(*options, globals); };
}

}  // namespace tearless::harness
