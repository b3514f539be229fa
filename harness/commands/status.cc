// `tearless status [SWEEP …]`: prints the state, once or again each second, of the sweeps of a workspace.
// Changes nothing.
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/print.h"
#include "base/time.h"
#include "base/utf8.h"
#include "base/words.h"
#include "harness/commands/commands.h"
#include "harness/commands/submission_options.h"
#include "harness/commands/sweep_watch.h"
#include "harness/console/screen.h"
#include "harness/folders/sweep_directory.h"
#include "harness/grid/paper.h"
#include "harness/plan/earlier_results.h"
#include "harness/results/result_set.h"
#include "harness/runs/progress.h"
#include "harness/selection/selectors.h"
#include "harness/service/start.h"
#include "harness/store/store.h"
#include "harness/store/writer.h"

namespace tearless::harness {
using nlohmann::json;

namespace {

constexpr size_t kIndent = 4;     // of lines below a sweep
constexpr size_t kUncut = 10000;  // characters of a line that goes to no terminal

struct StatusOptions {
  std::vector<std::string> words;  // these sweeps only; empty: all
  std::vector<std::string> parts;  // of a file that lists grids
  bool watch = false;
};

std::vector<Sweep> sweeps_of(const Store& store, const StatusOptions& options) {
  if (options.words.empty()) return store.sweeps();
  std::vector<Sweep> sweeps;
  for (const std::string& id : whole_sweeps(store, options.words)) sweeps.push_back(*store.sweep(id));
  return sweeps;
}

// For the runs of the newest sweep of a grid file that were not started.
void report_superseded_results(const Store& store, const Sweep& newest, const Globals& globals) {
  std::vector<Run> not_started;
  for (const Row& row : rows_of(store, newest)) {
    const RunState state = *row.result.state;
    const bool started = state == RunState::kRunning || has_result(state) || state == RunState::kFailed;
    if (!started) not_started.push_back(row.run);
  }
  report_earlier_results(store, newest.grid_file, not_started, globals);
}

// With the grids of the parts in place of the file that lists them.
std::vector<std::string> with_parts(const std::vector<std::string>& words, const std::vector<std::string>& parts) {
  if (parts.empty()) return words;
  std::vector<std::string> all;
  for (const std::string& word : words) {
    for (const std::filesystem::path& grid : grids_in(word, parts)) all.push_back(grid.string());
  }
  if (all.empty()) fail("--part {}: name the file that lists the grids, too", parts.front());
  return all;
}

json to_json(const Store& store, const std::vector<Sweep>& sweeps, bool watched,
             const std::optional<ServiceFacts>& facts) {
  json list = json::array();
  for (const Sweep& sweep : sweeps) {
    const SweepWords words = read_words(Workspace(store.root()), sweep.id);
    json runs = json::array();
    for (const Row& row : rows_of(store, sweep)) {
      runs.push_back({{"id", row.run.id},
                      {"state", name_of(row.result.state)},
                      {"class", name_of(row.result.failure)},
                      {"reason", row.result.reason},
                      {"coordinates", harness::to_json(row.run.coordinates)},
                      {"seed", row.run.seed}});
    }
    list.push_back({{"id", sweep.id},
                    {"title", sweep.title},
                    {"name", sweep.name},
                    {"tags", words.tags},
                    {"note", words.note},
                    {"grid_file", sweep.grid_file},
                    {"submitted_at", sweep.submitted_at},
                    {"state", name_of(sweep.state)},
                    {"reason", sweep.reason},
                    {"priority", sweep.priority},
                    {"lost", to_json(store.lost_in(sweep.id))},
                    {"restarts", store.restarts_in(sweep.id)},
                    {"live", facts && facts->sweep(sweep.id) ? json(*facts->sweep(sweep.id)) : json()},
                    {"runs", runs}});
  }
  return {{"watched", watched}, {"notes", facts ? json(facts->notes) : json::array()}, {"sweeps", list}};
}

// What the database knows of the running runs, where no service says more.
std::vector<Progress> recorded_progress(const Store& store, const Sweep& sweep) {
  std::vector<Progress> running;
  const std::string axes = store.label_axes_of(sweep.id);
  for (const Row& row : rows_of(store, sweep, {RunState::kRunning})) {
    Progress& progress = running.emplace_back();
    progress.id = row.run.id;
    progress.label = label_of(row.run);
    progress.axes = axes;
    progress.updates = row.run.updates;
    progress.take(store.metrics_of(row.run.id), 0);
  }
  return running;
}

using Lines = std::vector<std::string>;

// `facts`: what the service says of it; null if it does not work on it. `columns`: of a line of a running run.
void add_sweep(Lines& lines, const Store& store, const Sweep& sweep, const SweepFacts* facts, size_t columns) {
  StateCounts in;
  std::vector<Row> listed;
  LostWork lost;
  int64_t restarts = 0;
  std::vector<Progress> running;
  store.in_snapshot([&] {
    in = store.counts_of(sweep.id);
    listed = stuck_rows_of(store, sweep);
    lost = store.lost_in(sweep.id);
    restarts = store.restarts_in(sweep.id);
    running = facts ? facts->attempts : recorded_progress(store, sweep);
  });
  lines.push_back(fmt::format("{}  {}", sweep.id, sweep.name));
  lines.push_back(fmt::format("  {}  submitted {}{}", sweep.grid_file, local_time(sweep.submitted_at),
                              sweep.priority == 0 ? "" : fmt::format(", priority {}", sweep.priority)));
  const auto [tags, note] = read_words(Workspace(store.root()), sweep.id);
  if (!tags.empty() || !note.empty()) {
    const char* const between = tags.empty() || note.empty() ? "" : ": ";
    lines.push_back(fmt::format("  {}{}{}", fmt::join(tags, ", "), between, printable(note)));
  }
  // The database has them as running.
  std::string states = text_of(in);
  if (facts && facts->granted + facts->silent > 0) {
    in[RunState::kRunning] -= facts->granted + facts->silent;
    if (in[RunState::kRunning] <= 0) in.erase(RunState::kRunning);
    states = text_of(in);
    for (const auto& [runs, what] : {std::pair(facts->granted, "granted"), {facts->silent, "silent"}}) {
      if (runs > 0) states += fmt::format("{}{} {}", states.empty() ? "" : ", ", runs, what);
    }
  }
  lines.push_back("  " + states);
  if (facts && facts->ended() < facts->total) lines.push_back("  " + summary_of(*facts));
  if (lost.updates > 0) lines.push_back("  lost: " + text_of(lost));
  if (restarts > 0)
    lines.push_back(
        fmt::format("  to start again from the beginning, without a checkpoint: {}", counted(restarts, "run")));
  const bool unfinished = in.contains(RunState::kQueued) || !running.empty();
  if (unfinished && sweep.state != SweepState::kActive) {
    lines.push_back(fmt::format("  {}{}", name_of(sweep.state), sweep.reason.empty() ? "" : ": " + sweep.reason));
  } else if (facts && !facts->reason.empty()) {
    lines.push_back("  waiting: " + facts->reason);
  }
  for (const std::string& line : reason_lines(listed)) lines.push_back("  " + line);
  if (running.empty()) return;
  for (const std::string& line : progress_lines(running, columns - std::min(columns, kIndent))) {
    lines.push_back(std::string(kIndent, ' ') + line);
  }
  for (const Progress& run : running) {
    if (!run.waits_for.empty() && run.phase != Phase::kGranted)
      lines.push_back(fmt::format("    {}: {}", run.id.substr(0, 8), run.waits_for));
  }
}

// About the process that holds the workspace.
Lines who_works(const std::optional<ServiceFacts>& facts) {
  if (!facts) return {"Another tearless is writing to this workspace."};
  Lines lines = {fmt::format("A tearless {} works here (process {}, since {}){}.", facts->stays ? "daemon" : "service",
                             facts->pid, local_time(facts->started_at),
                             facts->arguments.empty() ? "" : " with " + shell_words(facts->arguments))};
  for (const DeviceFacts& device : facts->devices) lines.push_back("  " + summary_of(device));
  for (const std::string& note : facts->notes) lines.push_back("  " + note);
  return lines;
}

Lines lines_of_sweeps(const StatusOptions& options, const Workspace& workspace) {
  const auto store = Store::open_reader(workspace);
  const bool watched = has_writer(workspace);
  const std::string place = workspace.root().string(),
                    next = "Next: tearless run GRID" + workspace_option(workspace.root());
  if (!store) return {fmt::format("Nothing has been run in {} yet. {}", place, next)};
  std::optional<ServiceFacts> facts;
  Lines who;
  try {
    facts = watched ? facts_of_service(workspace) : std::nullopt;
    who = who_works(facts);
  } catch (const UserError& error) {  // what is recorded is shown all the same
    who = {error.what()};
  }
  const size_t columns = ::isatty(STDOUT_FILENO) ? terminal_size(stdout).columns : kUncut;
  Lines lines;
  const std::vector<Sweep> sweeps = sweeps_of(*store, options);
  for (const Sweep& sweep : sweeps) {
    add_sweep(lines, *store, sweep, facts ? facts->sweep(sweep.id) : nullptr, columns);
  }
  if (sweeps.empty()) lines.push_back(fmt::format("There is no sweep in {}. {}", place, next));
  if (watched) {
    lines.insert(lines.end(), who.begin(), who.end());
  } else if (const size_t running = store->ids_in(RunState::kRunning).size(); running > 0) {
    lines.push_back(fmt::format(
        "No tearless works here; the next run, submit or daemon takes over what is recorded as running ({}).",
        counted(static_cast<int64_t>(running), "run")));
  }
  return lines;
}

void print_sweeps(const StatusOptions& options, const Workspace& workspace) {
  for (const std::string& line : lines_of_sweeps(options, workspace)) print("{}\n", line);
}

void print_sweeps_as_json(const StatusOptions& options, const Workspace& workspace) {
  const auto store = Store::open_reader(workspace);
  const bool watched = has_writer(workspace);
  const std::optional<ServiceFacts> facts = watched ? facts_of_service(workspace) : std::nullopt;
  print_json(store ? to_json(*store, sweeps_of(*store, options), watched, facts)
                   : json{{"watched", watched}, {"notes", json::array()}, {"sweeps", json::array()}});
}

int watch_sweeps(const StatusOptions& options, const Globals& globals) {
  if (globals.json) fail("--watch prints no JSON; omit one of the two options");
  Screen screen(stdout);
  if (!screen.is_live()) {
    fail("--watch redraws a terminal, and the output is not a terminal; to print the state once: tearless status{}",
         workspace_option(globals.workspace));
  }
  const Workspace workspace(globals.workspace);
  screen.follow([&] {
    screen.draw({.lines = lines_of_sweeps(options, workspace),
                 .more = " lines: tearless status" + workspace_option(workspace.root())});
    return screen.interrupts() == 0;
  });
  print_sweeps(options, workspace);
  return kOk;
}

int show(const StatusOptions& options, const Globals& globals) {
  if (options.watch) return watch_sweeps(options, globals);
  const Workspace workspace(globals.workspace);
  const bool is_of_a_grid = options.words.size() == 1 && is_grid_word(options.words.front());
  if (const auto store = is_of_a_grid ? Store::open_reader(workspace) : nullptr) {
    report_superseded_results(*store, sweeps_of(*store, options).front(), globals);
  }
  if (globals.json) {
    print_sweeps_as_json(options, workspace);
  } else {
    print_sweeps(options, workspace);
  }
  return kOk;
}

}  // namespace

Action command_status(CLI::App& app, const Globals& globals) {
  const auto options = std::make_shared<StatusOptions>();
  app.add_option("what", options->words, "these sweeps only: ids, names, grid files, files that list grids, last");
  add_part_option(app, options->parts);
  app.add_flag("-w,--watch", options->watch, "show the state on the terminal again each second, until Ctrl-C");
  return [options, &globals] {
    options->words = with_parts(options->words, options->parts);
    return show(*options, globals);
  };
}

}  // namespace tearless::harness
