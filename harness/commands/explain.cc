// `tearless explain [GRID | SWEEP | RUN …]`: everything known about one run, or about the runs of a cell of a table:
// its state and the reason, each attempt, and what to do next.
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <map>
#include <memory>

#include "base/error.h"
#include "base/omitted.h"
#include "base/print.h"
#include "base/time.h"
#include "base/utf8.h"
#include "base/words.h"
#include "harness/commands/commands.h"
#include "harness/commands/texts.h"
#include "harness/console/columns.h"
#include "harness/folders/sweep_directory.h"
#include "harness/plan/grid_state.h"
#include "harness/results/result_set.h"
#include "harness/runs/attempt_files.h"
#include "harness/schedule/scheduler.h"
#include "harness/service/client.h"
#include "harness/store/writer.h"

namespace tearless::harness {
namespace {

using nlohmann::json;

constexpr size_t kMaxOmitted = 4;
constexpr size_t kCommitDigits = 12;
constexpr size_t kMaxVariable = 60;  // columns of a name and its value

struct Explained {
  Row row;
  std::string title;                      // "model.placement=pre, seed 2", or ""
  std::string grid;                       // the grid file that requested it, or ""
  std::string set = {};                   // " --set key=value …" of its submission
  json commit = {};                       // that its grid comes from (plan/commit.h), or null
  bool has_diff = false;                  // and what differed from it is here
  std::vector<std::string> unread = {};   // sentences of unread_metrics()
  std::vector<std::string> omitted = {};  // files that the copy lacks (base/omitted.h)
  std::string why = {};                   // not empty: why it is queued and not running, or where it runs
  bool is_served = false;                 // a service works here
  SubmittedEnvironment environment = {};  // that its newest attempt has from its submission, without the usual ones
};

std::string advice(const Explained& run, const std::string& options) {
  const std::optional<RunState>& state = run.row.result.state;
  const std::string again =
      fmt::format("tearless run {}{}{}", run.grid.empty() ? "GRID" : shell_word(run.grid), run.set, options);
  if (!run.row.refusal.empty()) return "correct the grid file";
  if (!run.row.run.waiting_for.empty()) return "get the file, then: " + again;
  if (run.row.result.is_due) return again;
  const auto of_run = [&](std::string_view command) {
    return fmt::format("tearless {} {}{}", command, run.row.result.id, options);
  };
  if (state == RunState::kFailed) return fmt::format("{}, then: {}", of_run("log"), of_run("retry"));
  if (state == RunState::kHeld) return run.row.result.reason == kHeldOnRequest ? of_run("resume") : again;
  if (state == RunState::kDiverged) return of_run("log");
  if (state == RunState::kRunning) return of_run("log -f");
  if (state == RunState::kQueued && run.is_served) return "";
  if (!run.row.result.stale.empty()) return again + " --retrain-stale";
  return state == RunState::kDone ? "" : again;
}

std::string state_text(const Explained& run) {
  const RunResult& result = run.row.result;
  if (!run.row.refusal.empty()) return "refused: " + run.row.refusal;
  if (!run.row.run.waiting_for.empty()) return "waiting for data: " + run.row.run.waiting_for;
  std::string text(result.state ? name_of(*result.state) : "not started");
  if (result.state == RunState::kDiverged) text += fmt::format(" at update {}", result.step.value_or(0));
  if (!result.reason.empty()) text += ": " + result.reason;
  if (!run.why.empty()) text += fmt::format("{} {}", result.reason.empty() ? ":" : ";", run.why);
  if (!result.stale.empty()) text += "; stale: " + result.stale;
  if (kinds_in(result.trained_on) > 1)
    text += fmt::format("; mixed: trained on {}", fmt::join(result.trained_on, "; "));
  if (result.trained_by.size() > 1) text += fmt::format("; mixed: trained by {}", fmt::join(result.trained_by, "; "));
  return text;
}

void add_attempt(std::string& text, const AttemptRecord& attempt, const RunDirectory& run) {
  print_into(text, "  attempt {}: {}{}", attempt.number, attempt.outcome.empty() ? "not ended" : attempt.outcome,
             attempt.reason.empty() ? "" : ", " + attempt.reason);
  if (!attempt.started_at.empty())
    print_into(text, "; {} to {}", local_time(attempt.started_at),
               attempt.ended_at.empty() ? "…" : local_time(attempt.ended_at));
  if (!attempt.host.empty()) print_into(text, "; {}, {}", attempt.host, attempt.device);
  if (const std::string program = program_of(attempt); !program.empty()) print_into(text, "; {}", program);
  if (attempt.lost && attempt.lost->updates > 0) print_into(text, "; lost {}", text_of(*attempt.lost));
  const std::filesystem::path log = run.attempt(attempt.number) / "log.txt";
  if (std::filesystem::exists(log)) print_into(text, "; {}", log.string());
  print_into(text, "\n");
}

// "0123456789ab, clean".
std::string commit_text(const Explained& run, const Workspace& workspace) {
  std::string text = printable(run.commit["id"].get<std::string>().substr(0, kCommitDigits));
  if (!run.commit.contains("clean")) {
    text += ", and git did not say whether its tree was clean";
  } else if (run.commit["clean"] == true) {
    text += ", clean";
  } else if (!run.commit.contains("diff")) {
    text += ", changed: the diff is larger than 1 MiB and was not kept";
  } else {
    const json& diff = run.commit["diff"];
    text += fmt::format(", changed: {} of diff", counted(diff["lines"].get<int64_t>(), "line"));
    text += run.has_diff
                ? fmt::format(" in {}", (workspace.sweep(run.row.sweep->id) / kDiffFile).string())
                : fmt::format(", which are not here, SHA-256 {}", printable(diff["sha256"].get<std::string>()));
  }
  return text + (run.commit["tracked"] == true ? "" : "; the grid file is untracked");
}

std::string text_of(const Explained& run, const Workspace& workspace, const std::string& options) {
  std::string text;
  print_into(text, "{}{}{}\n", run.row.result.id, run.title.empty() ? "" : "  ", run.title);
  if (!run.grid.empty()) print_into(text, "  of {}{}\n", run.grid, run.set);
  if (!run.commit.is_null()) print_into(text, "  at commit {}\n", commit_text(run, workspace));
  print_into(text, "  {}\n", state_text(run));
  for (const AttemptRecord& attempt : run.row.result.attempts) {
    add_attempt(text, attempt, workspace.run(run.row.result.id));
  }
  std::vector<std::string> variables;
  for (const auto& [name, value] : run.environment.variables) {
    variables.push_back(fitted(printable(fmt::format("{}={}", name, value)), kMaxVariable));
  }
  for (const std::string& name : run.environment.secrets) variables.push_back(name + " (secret)");
  if (!variables.empty()) {
    print_into(text, "  environment of its submission: {}, and the usual variables\n",
               fmt::format("{}", fmt::join(variables, ", ")));
  }
  for (const auto& [name, value] : run.row.result.scores) print_into(text, "  {} = {}\n", name, value_text(value, 6));
  for (const auto& [name, value] : run.row.result.measured) print_into(text, "  {} = {}\n", name, value_text(value, 6));
  for (const auto& [name, instead] : run.row.result.no_numbers) {
    print_into(text, "  {}: no score, scores.json has {}\n", name, instead);
  }
  for (const std::string& sentence : run.unread) print_into(text, "  {}\n", printable(sentence));
  if (!run.omitted.empty()) {
    print_into(text, "  not here, in a copy of results alone: {}\n",
               printable(some_of(run.omitted, kMaxOmitted, ", ")));
  }
  if (run.row.result.resume) print_into(text, "  stopped and resumed: {}\n", sentence_of(*run.row.result.resume));
  const std::string next = archive_of(workspace.root()) ? "" : advice(run, options);  // of which nothing is trained
  if (!next.empty()) print_into(text, "  next: {}\n", next);
  return text;
}

json run_json(const Explained& run) {
  json attempts = json::array();
  for (const AttemptRecord& a : run.row.result.attempts) {
    attempts.push_back({{"attempt", a.number},
                        {"outcome", a.outcome},
                        {"reason", a.reason},
                        {"started_at", a.started_at},
                        {"ended_at", a.ended_at},
                        {"host", a.host},
                        {"device", a.device},
                        {"version", a.version},
                        {"program_file", a.program_file},
                        {"measured", a.measured},
                        {"lost", a.lost ? to_json(*a.lost) : json()}});
  }
  return {{"id", run.row.result.id},
          {"grid", run.grid},
          {"commit", run.commit},
          {"title", run.title},
          {"state", name_of(run.row.result.state)},
          {"reason", run.row.result.reason},
          {"error", run.row.refusal},
          {"waiting_for", run.row.run.waiting_for},
          {"why", run.why},
          {"stale", run.row.result.stale},
          {"mixed", run.row.result.is_mixed()},
          {"scores", run.row.result.scores},
          {"measured", run.row.result.measured},
          {"no_numbers", run.row.result.no_numbers},
          {"unread", run.unread},
          {"omitted", run.omitted},
          {"environment", run.environment.variables},
          {"secrets", run.environment.secrets},
          {"resume", run.row.result.resume ? json(*run.row.result.resume) : json()},
          {"attempts", std::move(attempts)}};
}

// The labels, then the seed. Of a run of a grid as it is now the derivation comes last.
std::string title_of(Labels labels, int64_t seed, const std::string& derivation) {
  if (!derivation.empty()) labels.pop_back();
  std::string title;
  for (const auto& [axis, label] : labels) title += fmt::format("{}={}, ", axis, label);
  title += fmt::format("seed {}", seed);
  return derivation.empty() ? title : title + fmt::format(", {} {}", kDerivedLabel, derivation);
}

// Of the grid as it is now. `where`: axis=label …
std::vector<Explained> runs_of_grid(const std::filesystem::path& grid, std::vector<std::string> where,
                                    const Globals& globals) {
  std::erase_if(where, [](const std::string& word) { return !is_label_word(word); });
  GridState state = look_up(grid, where, globals, WithoutProgram::kUseSweep);
  std::vector<Explained> runs;
  for (Row& row : state.results.rows) {
    std::string title = title_of(row.run.coordinates, row.run.seed, row.derivation);
    runs.push_back({.row = std::move(row), .title = std::move(title), .grid = state.grid.file.string()});
  }
  for_each_cell(state.grid, [&, only = Only(state.grid, where)](const Combination& cell, const Exclusion* excluded) {
    if (!excluded || !only.admits(state.grid, cell)) return;
    notice(fmt::format("left out: {} ({}): {}", describe_cell(state.grid, cell), excluded->location, excluded->why));
  });
  return runs;
}

// " --set key=value" for each that the sweep was submitted with.
std::string set_options_of(const Globals& globals, const Sweep& sweep) {
  try {
    return option_words("--set", frozen_grid(Workspace(globals.workspace), sweep.id).set_options);
  } catch (const UserError&) {  // `verify` says what is wrong with the sweep's folder
    return "";
  }
}

// As sweeps have them.
std::vector<Explained> runs_meant(const std::vector<std::string>& words, const Globals& globals) {
  std::unique_ptr<const Store> store = require_store(globals);
  const Selection chosen = select_or_last(*store, words);
  report_missing_grids(words);
  std::vector<Explained> runs;
  std::map<std::string, Explained> of_sweeps;  // what the runs of one have in common
  for (Row& row : selected_rows(std::move(store), chosen, Duplicates::kNewest, Read::kResults).rows) {
    Explained& run = runs.emplace_back(Explained{.row = std::move(row), .title = "", .grid = ""});
    const Sweep* const sweep = run.row.sweep.get();
    if (!sweep) continue;
    run.title = title_of(run.row.run.coordinates, run.row.run.seed, "");
    run.grid = sweep->grid_file;
    const auto [of_sweep, is_new] = of_sweeps.try_emplace(sweep->id);
    Explained& common = of_sweep->second;
    if (is_new) {
      const Workspace workspace(globals.workspace);
      common.set = set_options_of(globals, *sweep);
      common.commit = commit_of(workspace, sweep->id);
      common.has_diff = diff_of(workspace, sweep->id, common.commit).has_value();
    }
    run.set = common.set;
    run.commit = common.commit;
    run.has_diff = common.has_diff;
  }
  return runs;
}

bool is_pending(const std::optional<RunState>& state) {
  return state == RunState::kQueued || state == RunState::kRunning;
}

// Asks the service why the queued runs among `runs` are not running, and where the running ones run.
void ask_why(std::vector<Explained>& runs, const Globals& globals) {
  Request request{.name = "why"};
  for (const Explained& run : runs) {
    if (is_pending(run.row.result.state)) request.runs.push_back(run.row.result.id);
  }
  if (request.runs.empty()) return;
  const Workspace workspace(globals.workspace);
  const std::optional<json> answer = ask_service(workspace, request);
  const bool is_served = has_writer(workspace);
  const std::string unknown = is_served ? "" : "no service is running; `tearless run` starts one";
  for (Explained& run : runs) {
    if (!is_pending(run.row.result.state)) continue;
    run.is_served = is_served;
    run.why = answer ? answer->at("why").value(run.row.result.id, "") : unknown;
  }
}

std::vector<Explained> explained(const std::vector<std::string>& words, const Globals& globals) {
  const std::optional<std::filesystem::path> grid = grid_as_it_is_now(words);
  std::vector<Explained> runs = grid ? runs_of_grid(*grid, words, globals) : runs_meant(words, globals);
  ask_why(runs, globals);
  for (Explained& run : runs) {
    const RunDirectory folder = Workspace(globals.workspace).run(run.row.result.id);
    run.unread = unread_metrics(folder);
    for (const auto& [name, file] : read_omitted(folder)) run.omitted.push_back(name);
    run.environment = environment_of(folder, folder.newest_begun_attempt());
    run.environment.variables = named_only(run.environment.variables);
  }
  return runs;
}

int explain(const std::vector<std::string>& words, const Globals& globals) {
  if (globals.json) {
    json all = json::array();
    for (const Explained& run : explained(words, globals)) all.push_back(run_json(run));
    print_json(all);
  } else {
    fmt::print("{}", explanation_of(words, globals));
  }
  return kOk;
}

}  // namespace

std::string explanation_of(const std::vector<std::string>& words, const Globals& globals) {
  std::string text;
  for (const Explained& run : explained(words, globals)) {
    text += text_of(run, Workspace(globals.workspace), options_again(globals));
  }
  return text;
}

Action command_explain(CLI::App& app, const Globals& globals) {
  const auto words = std::make_shared<std::vector<std::string>>();
  app.add_option("what", *words,
                 "runs (ids, places, states, axis=label) or sweeps (ids, names, last, all); or a grid file, as it is "
                 "now, with axis=label for the runs of a cell of its table; default: last");
  return [words, &globals] { return explain(*words, globals); };
}

}  // namespace tearless::harness
