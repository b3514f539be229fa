// `tearless explain [GRID | SWEEP | RUN …]`: everything known about one run, or about the runs of a cell of a table:
// its state and the reason, each attempt, and what to do next.
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/print.h"
#include "base/words.h"
#include "harness/commands/commands.h"
#include "harness/plan/grid_state.h"
#include "harness/service/client.h"
#include "harness/store/selected_runs.h"
#include "harness/store/writer.h"

namespace tearless::harness {
namespace {

using nlohmann::json;

struct Known {
  RunResult result;
  std::string title;        // "model.placement=pre, seed 2", or ""
  std::string grid;         // the grid file that requested it, or ""
  std::string waiting_for;  // not empty: the missing corpus file
  std::string error;        // not empty: why the training program refuses the settings
  std::string why;          // not empty: why it is queued and not running, or where it runs
  std::vector<AttemptRecord> attempts;
};

std::string advice(const Known& run, const std::string& options) {
  const std::optional<RunState>& state = run.result.state;
  const std::string again = fmt::format("tearless run {}{}", run.grid.empty() ? "GRID" : shell_word(run.grid), options);
  if (!run.error.empty()) return "correct the grid file";
  if (!run.waiting_for.empty()) return "get the file, then: " + again;
  if (state == RunState::kFailed)
    return fmt::format("tearless log {}{}, then: {} --retry", run.result.id, options, again);
  if (state == RunState::kDiverged) return fmt::format("tearless log {}{}", run.result.id, options);
  if (state == RunState::kRunning) return fmt::format("tearless log -f {}{}", run.result.id, options);
  return state == RunState::kDone ? "" : again;
}

std::string state_text(const Known& run) {
  const RunResult& result = run.result;
  if (!run.error.empty()) return "refused: " + run.error;
  if (!run.waiting_for.empty()) return "waiting for data: " + run.waiting_for;
  std::string text(result.state ? name_of(*result.state) : "not started");
  if (result.state == RunState::kDiverged) text += fmt::format(" at update {}", result.diverged_step);
  if (!result.reason.empty()) text += ": " + result.reason;
  if (!run.why.empty()) text += fmt::format("{} {}", result.reason.empty() ? ":" : ";", run.why);
  if (result.stale) text += "; stale: the current training program computes other numbers";
  if (result.trained_on.size() > 1) text += fmt::format("; mixed: trained on {}", fmt::join(result.trained_on, "; "));
  return text;
}

void print_attempt(const AttemptRecord& attempt) {
  print("  attempt {}: {}{}", attempt.number, attempt.outcome.empty() ? "not ended" : attempt.outcome,
        attempt.reason.empty() ? "" : ", " + attempt.reason);
  if (!attempt.started_at.empty())
    print("; {} to {}", attempt.started_at, attempt.ended_at.empty() ? "…" : attempt.ended_at);
  if (!attempt.host.empty()) print("; {}, {}", attempt.host, attempt.device);
  if (attempt.lost && attempt.lost->updates > 0) print("; lost {}", text_of(*attempt.lost));
  print("\n");
}

void print_run(const Known& run, const std::string& options) {
  print("{}{}{}\n", run.result.id, run.title.empty() ? "" : "  ", run.title);
  if (!run.grid.empty()) print("  of {}\n", run.grid);
  print("  {}\n", state_text(run));
  for (const AttemptRecord& attempt : run.attempts) print_attempt(attempt);
  for (const auto& [name, value] : run.result.scores) print("  {} = {:.6g}\n", name, value);
  if (run.result.resume) print("  stopped and resumed: {}\n", sentence_of(*run.result.resume));
  if (const std::string next = advice(run, options); !next.empty()) print("  next: {}\n", next);
}

json run_json(const Known& run) {
  json attempts = json::array();
  for (const AttemptRecord& a : run.attempts) {
    attempts.push_back({{"attempt", a.number},
                        {"outcome", a.outcome},
                        {"reason", a.reason},
                        {"started_at", a.started_at},
                        {"ended_at", a.ended_at},
                        {"host", a.host},
                        {"device", a.device},
                        {"measured", a.measured},
                        {"lost", a.lost ? to_json(*a.lost) : json()}});
  }
  return {{"id", run.result.id},
          {"grid", run.grid},
          {"title", run.title},
          {"state", name_of(run.result.state)},
          {"reason", run.result.reason},
          {"error", run.error},
          {"waiting_for", run.waiting_for},
          {"why", run.why},
          {"stale", run.result.stale},
          {"mixed", run.result.trained_on.size() > 1},
          {"scores", run.result.scores},
          {"resume", run.result.resume ? json(*run.result.resume) : json()},
          {"attempts", std::move(attempts)}};
}

// Of the grid as it is now. `where`: axis=label …
std::vector<Known> runs_of_grid(const std::filesystem::path& grid, std::vector<std::string> where,
                                const Globals& globals) {
  std::erase_if(where, [](const std::string& word) { return !is_label_word(word); });
  const GridState state = look_up(grid, where, globals, WithoutProgram::kUseSweep);
  std::vector<Known> runs;
  for (size_t i = 0; i < state.plan.size(); ++i) {
    const PlannedRun& planned = state.plan[i];
    Known& run = runs.emplace_back();
    run.result = state.results[i];
    run.title = describe_point(state.grid, planned.point);
    if (!planned.decoding.empty()) run.title += fmt::format(", {} {}", kDecodingLabel, planned.decoding);
    run.grid = state.grid.file.string();
    run.waiting_for = planned.answer.run.waiting_for;
    run.error = planned.answer.error;
    if (state.store && !run.result.id.empty()) run.attempts = state.store->attempts_of(run.result.id);
  }
  for_each_cell(state.grid, [&, only = Only(state.grid, where)](const GridPoint& point, const Exclusion* excluded) {
    if (!excluded || !only.admits(point)) return;
    notice(fmt::format("left out: {} ({}): {}", describe_cell(state.grid, point), excluded->location, excluded->why));
  });
  return runs;
}

// As sweeps have them.
std::vector<Known> runs_meant(const std::vector<std::string>& words, const Globals& globals) {
  const auto store = require_store(globals);
  const Selection chosen = select_or_last(*store, words);
  report_missing_grids(words);
  std::vector<Known> runs;
  for (const auto& [sweep, record] : selected_runs(*store, chosen, EachRun::kOnce)) {
    Known& run = runs.emplace_back();
    run.result = store->result_of(record.id, sweep ? numerics_of(*sweep) : std::nullopt);
    run.attempts = store->attempts_of(record.id);
    if (run.result.state == RunState::kWaitingData) run.waiting_for = run.result.reason;
    if (!sweep) continue;
    for (const auto& [axis, label] : record.coordinates) run.title += fmt::format("{}={}, ", axis, label);
    run.title += fmt::format("seed {}", record.seed);
    run.grid = sweep->grid_file;
  }
  return runs;
}

bool is_pending(const std::optional<RunState>& state) {
  return state == RunState::kQueued || state == RunState::kRunning;
}

// Asks the service why the queued runs among `runs` are not running, and where the running ones run.
void ask_why(std::vector<Known>& runs, const Globals& globals) {
  Request request{.name = "why"};
  for (const Known& run : runs) {
    if (is_pending(run.result.state)) request.runs.push_back(run.result.id);
  }
  if (request.runs.empty()) return;
  const Workspace workspace(globals.workspace);
  const std::optional<json> answer = ask_service(workspace, request);
  const std::string unknown = has_writer(workspace) ? "" : "no service is running; `tearless run` starts one";
  for (Known& run : runs) {
    if (!is_pending(run.result.state)) continue;
    run.why = answer ? answer->at("why").value(run.result.id, "") : unknown;
  }
}

int explain(const std::vector<std::string>& words, const Globals& globals) {
  const std::optional<std::filesystem::path> grid = grid_as_it_is_now(words);
  std::vector<Known> runs = grid ? runs_of_grid(*grid, words, globals) : runs_meant(words, globals);
  ask_why(runs, globals);
  if (globals.json) {
    json all = json::array();
    for (const Known& run : runs) all.push_back(run_json(run));
    print_json(all);
  } else {
    for (const Known& run : runs) print_run(run, workspace_option(globals));
  }
  return kOk;
}

}  // namespace

Action command_explain(CLI::App& app, const Globals& globals) {
  const auto words = std::make_shared<std::vector<std::string>>();
  app.add_option("what", *words,
                 "runs (ids, places, states, axis=label) or sweeps (ids, names, last, all); or a grid file, as it is "
                 "now, with axis=label for the runs of a cell of its table; default: last");
  return [words, &globals] { return explain(*words, globals); };
}

}  // namespace tearless::harness
