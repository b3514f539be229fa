// `tearless plan GRID`: counts the runs of a grid by state, before anything runs. Changes nothing.
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
#include "harness/commands/commands.h"
#include "harness/launch/machine.h"
#include "harness/plan/calibration.h"
#include "harness/plan/estimate.h"
#include "harness/plan/grid_state.h"
#include "harness/plan/submission.h"
#include "harness/table/table.h"

namespace tearless::harness {
namespace {

using nlohmann::json;

struct PlanOptions {
  std::string grid;
  std::vector<std::string> only;
};

/// The states that the plan counts, in the order of its columns.
enum Kind : size_t { kToRun, kRunning, kDone, kDiverged, kFailed, kWaiting, kRefused, kLeftOut, kKinds };
constexpr std::array<const char*, kKinds> kKindNames = {"to_run", "running",          "done",    "diverged",
                                                        "failed", "waiting_for_data", "refused", "left_out"};
using Counts = std::array<int64_t, kKinds>;

Kind kind_of(const Row& row) {
  const std::optional<RunState>& state = row.result.state;
  if (!row.refusal.empty()) return kRefused;
  if (row.result.is_due) return kToRun;
  if (state == RunState::kRunning) return kRunning;
  if (state == RunState::kDone) return kDone;
  if (state == RunState::kDiverged) return kDiverged;
  if (state == RunState::kFailed) return kFailed;
  if (state == RunState::kWaitingData) return kWaiting;
  return kToRun;
}

/// The runs of one derivation.
struct DerivedTally {
  Counts counts{};
  std::vector<Run> to_run;
  Estimate estimate;  // of these
};

/// An axis, or the seeds: how many runs of each of its points are of which kind.
struct AxisTally {
  std::string name;
  std::vector<std::pair<std::string, Counts>> points;  // label → counts, in the grid's order

  void count(const std::string& label, Kind kind) {
    const auto point = std::ranges::find(points, label, &std::pair<std::string, Counts>::first);
    if (point != points.end()) ++point->second[kind];
  }
};

struct Tally {
  std::vector<AxisTally> axes;  // the seeds are the last
  Counts all{};
  std::map<const Exclusion*, int64_t> excluded;  // exclusion → number of its combinations
  int64_t updates = 0;                           // maximum number that the runs in kToRun make
  int64_t of_unknown_length = 0;                 // those of them whose maximum is not known
  int64_t shared = 0;                            // rows with the same run as another row
  std::map<std::string, int64_t> waiting_for;    // missing file, one sentence → number of runs
  Estimate estimate;                             // of the runs in kToRun
  std::optional<int64_t> disk_bytes;             // that the runs in kToRun need, by disk_estimate()
  std::vector<DerivedTally> derived;             // of each derivation; not in the numbers above
  int64_t to_derive = 0;                         // their runs in kToRun

  explicit Tally(const Grid& grid) : derived(grid.derivations.size()) {
    for (const Axis& axis : grid.axes) {
      AxisTally& tally = axes.emplace_back(AxisTally{.name = axis.name, .points = {}});
      for (const AxisPoint& point : axis.points) tally.points.emplace_back(point.label, Counts{});
    }
    AxisTally& seeds = axes.emplace_back(AxisTally{.name = "seed", .points = {}});
    for (const int64_t seed : grid.seeds) seeds.points.emplace_back(std::to_string(seed), Counts{});
  }
};

void count_row(const Row& row, Kind kind, Tally& tally) {
  ++tally.all[kind];
  for (AxisTally& axis : tally.axes) axis.count(label_on(row.run.coordinates, axis.name), kind);
  tally.axes.back().count(std::to_string(row.run.seed), kind);
}

void count_excluded(const Grid& grid, const Only& only, Tally& tally) {
  for_each_combination(grid, [&](const Combination& combination, const Exclusion* excluded) {
    if (!excluded || !only.admits(combination)) return;
    ++tally.excluded[excluded];
    ++tally.all[kLeftOut];
    for (size_t axis = 0; axis < grid.axes.size(); ++axis) {
      ++tally.axes[axis].points[combination.index[axis]].second[kLeftOut];
    }
    const auto seed = std::ranges::find(grid.seeds, combination.seed) - grid.seeds.begin();
    ++tally.axes.back().points[static_cast<size_t>(seed)].second[kLeftOut];
  });
}

Tally tally_of(const GridState& state, const Only& only, const Workspace& workspace) {
  const Grid& grid = state.grid;
  Tally tally(grid);
  std::set<std::string> seen;
  std::vector<Run> untrained;
  for (const Row& row : state.results.rows) {
    const Kind kind = kind_of(row);
    if (!row.is_trained()) {
      DerivedTally& own =
          tally.derived[static_cast<size_t>(&grid.derivation(row.derivation) - grid.derivations.data())];
      ++own.counts[kind];
      if (kind == kToRun && seen.insert(row.run.id).second) own.to_run.push_back(row.run);
      continue;
    }
    count_row(row, kind, tally);
    if (kind == kWaiting) ++tally.waiting_for[row.run.waiting_for];
    if (row.refusal.empty() && !seen.insert(row.run.id).second) {
      ++tally.shared;
    } else if (kind == kToRun) {
      tally.updates += row.run.updates;
      tally.of_unknown_length += row.run.updates == 0;
      untrained.push_back(row.run);
    }
  }
  for (const DerivedTally& own : tally.derived) tally.to_derive += own.counts[kToRun];
  if (!untrained.empty() || tally.to_derive > 0) {
    const std::vector<Timing> ended = state.results.store ? state.results.store->timings() : std::vector<Timing>();
    for (DerivedTally& own : tally.derived) own.estimate = estimate_of(own.to_run, ended);
    tally.estimate = estimate_of(untrained, ended, calibrations_in(workspace));
    tally.disk_bytes =
        disk_estimate(untrained, ended, [&](const std::string& id) { return bytes_in(workspace.run(id).root()); });
  }
  count_excluded(grid, only, tally);
  return tally;
}

// --- text output ----------------------------------------------------------------------------------------------------

std::string heading_of(size_t kind) {
  std::string name = kKindNames[kind];
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
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
  const auto print_line = [&](const std::string& axis, const std::string& label, auto&& number_of) {
    std::string line = fmt::format("{:<{}}  {:<{}}", printable(axis), axis_width, printable(label), label_width);
    for (size_t kind = 0; kind < kKinds; ++kind) {
      if (tally.all[kind] > 0)
        line += fmt::format("  {:>{}}", number_of(kind), std::max<size_t>(6, heading_of(kind).size()));
    }
    print("{}\n", line);
  };
  print_line("", "", heading_of);
  for (const AxisTally& axis : tally.axes) {
    bool first = true;
    for (const auto& [label, counts] : axis.points) {
      if (std::ranges::all_of(counts, [](int64_t n) { return n == 0; })) continue;  // not in --only
      print_line(first ? axis.name : "", label,
                 [&counts = counts](size_t kind) { return std::to_string(counts[kind]); });
      first = false;
    }
  }
  print_line("all", "", [&](size_t kind) { return std::to_string(tally.all[kind]); });
}

std::string sizes_text(const GridState& state) {
  std::optional<int64_t> least, most;
  for (const Row& row : state.results.rows) {
    const std::optional<int64_t> size = row.run.parameters;
    if (!size) continue;
    least = std::min(least.value_or(*size), *size);
    most = std::max(most.value_or(*size), *size);
  }
  if (!least) return "parameters: pending until the data are prepared";
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

void print_plan(const GridState& state, const Tally& tally, const Globals& globals) {
  const Grid& grid = state.grid;
  const std::string target = shell_word(grid.file.string()) + options_again(globals);
  print("{}\n\n", grid.title);
  print_counts(tally);
  print("\n");
  for (const auto& [exclusion, count] : tally.excluded) {
    print("{} left out ({}): {}\n", counted(count, "run"), exclusion->location, exclusion->why);
  }
  for (const auto& [sentence, count] : tally.waiting_for) print("{} waiting: {}\n", counted(count, "run"), sentence);
  if (tally.shared > 0) print("{} equal to another run of this grid: trained once\n", counted(tally.shared, "run"));
  if (tally.all[kFailed] > 0) {
    print("{} failed; tearless explain {} says why\n", counted(tally.all[kFailed], "run"), target);
  }
  if (tally.all[kToRun] > 0) {
    const std::string unknown =
        tally.of_unknown_length == 0
            ? ""
            : fmt::format(", without {} whose updates are not known yet", counted(tally.of_unknown_length, "run"));
    print("To run: {}, {} updates at most{}; {}\n", counted(tally.all[kToRun], "run"), tally.updates, unknown,
          sizes_text(state));
    const std::vector<std::string> time =
        estimate_lines(tally.estimate, static_cast<int>(cores_of_process().size()), /*gpus=*/0,
                       fmt::format("tearless run {} --calibrate", target));
    print("Time: {}\n", fmt::join(time, "\n      "));
    if (tally.disk_bytes) print("Disk: {}\n", disk_text(*tally.disk_bytes, globals.workspace));
  }
  for (size_t i = 0; i < tally.derived.size(); ++i) {
    print("Derived {}\n", derived_text(grid.derivations[i], tally.derived[i]));
  }
  if (!state.errors.empty()) return;  // the caller prints the errors; they must be corrected first
  const char* next = tally.all[kToRun] + tally.to_derive > 0 ? "Next: tearless run"
                     : tally.all[kWaiting] > 0 ? "Nothing can run yet. Next: add the missing files, then tearless plan"
                                               : "Nothing to run. Next: tearless table";
  print("{} {}\n", next, target);
}

// --- JSON output ----------------------------------------------------------------------------------------------------

json counts_json(const Counts& counts) {
  json object = json::object();
  for (size_t kind = 0; kind < kKinds; ++kind) object[kKindNames[kind]] = counts[kind];
  return object;
}

json plan_json(const GridState& state, const Tally& tally) {
  const Grid& grid = state.grid;
  json plan = {{"title", grid.title},
               {"file", grid.file.string()},
               {"counts", counts_json(tally.all)},
               {"errors", state.errors}};
  plan["updates"] = tally.updates;
  plan["estimate"] = {{"runs", tally.estimate.known},
                      {"runs_without", tally.estimate.unknown},
                      {"calibrated_runs", tally.estimate.calibrated},
                      {"ended_runs", tally.estimate.ended},
                      {"cpu_seconds", tally.estimate.cpu_seconds},
                      {"gpu_seconds", tally.estimate.gpu_seconds},
                      {"error", tally.estimate.error},
                      {"disk_bytes", tally.disk_bytes ? json(*tally.disk_bytes) : json()}};
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
  plan["left_out"] = json::array();
  for (const auto& [exclusion, count] : tally.excluded) {
    plan["left_out"].push_back({{"why", exclusion->why}, {"place", exclusion->location}, {"runs", count}});
  }
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

int plan(const PlanOptions& options, const Globals& globals) {
  const GridState state = look_up(options.grid, options.only, globals, WithoutProgram::kRefuse);
  const Tally tally = tally_of(state, Only(state.grid, options.only), Workspace(globals.workspace));
  if (globals.json) {
    print_json(plan_json(state, tally));
  } else {
    print_plan(state, tally, globals);
  }
  for (const std::string& error : state.errors) notice(error);
  return state.errors.empty() ? kOk : kUsage;
}

}  // namespace

Action command_plan(CLI::App& app, const Globals& globals) {
  const auto options = std::make_shared<PlanOptions>();
  app.add_option("grid", options->grid, "the grid file")->required();
  app.add_option("--only", options->only, "axis=label: these runs only (repeat for more labels and axes; seed=N too)");
  return [options, &globals] { return plan(*options, globals); };
}

}  // namespace tearless::harness
