// `tearless status [SWEEP …]`: prints the state, once or again each second, of the sweeps of a workspace.
// Changes nothing.
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/print.h"
#include "base/time.h"
#include "base/words.h"
#include "harness/commands/commands.h"
#include "harness/commands/sweep_watch.h"
#include "harness/plan/earlier_results.h"
#include "harness/results/result_set.h"
#include "harness/runs/progress.h"
#include "harness/screen/screen.h"
#include "harness/service/start.h"
#include "harness/store/selectors.h"
#include "harness/store/store.h"
#include "harness/store/writer.h"

namespace tearless::harness {
using nlohmann::json;

namespace {

constexpr size_t kIndent = 4;     // of lines below a sweep
constexpr size_t kUncut = 10000;  // characters of a line that goes to no terminal

struct StatusOptions {
  std::vector<std::string> words;  // these sweeps only; empty: all
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
  for (const Row& row : rows_of(store, newest, Read::kStates)) {
    const RunState state = *row.result.state;
    const bool started = state == RunState::kRunning || has_result(state) || state == RunState::kFailed;
    if (!started) not_started.push_back(row.run);
  }
  report_earlier_results(store, newest.grid_file, not_started, globals);
}

json to_json(const Store& store, const std::vector<Sweep>& sweeps, bool watched,
             const std::optional<ServiceFacts>& facts) {
  json list = json::array();
  for (const Sweep& sweep : sweeps) {
    json runs = json::array();
    for (const Row& row : rows_of(store, sweep, Read::kStates)) {
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
                    {"grid_file", sweep.grid_file},
                    {"submitted_at", sweep.submitted_at},
                    {"state", name_of(sweep.state)},
                    {"reason", sweep.reason},
                    {"priority", sweep.priority},
                    {"lost", to_json(store.lost_in(sweep.id))},
                    {"live", facts && facts->sweep(sweep.id) ? json(*facts->sweep(sweep.id)) : json()},
                    {"runs", runs}});
  }
  return {{"watched", watched}, {"sweeps", list}};
}

// What the database knows of the running runs, where no service says more.
std::vector<Progress> recorded_progress(const Store& store, const Sweep& sweep) {
  std::vector<Progress> running;
  const std::string axes = store.label_axes_of(sweep.id);
  for (const Row& row : rows_of(store, sweep, Read::kStates, {RunState::kRunning})) {
    Progress& progress = running.emplace_back();
    progress.id = row.run.id;
    progress.label = label_of(row.run);
    progress.axes = axes;
    progress.updates = row.run.updates;
    progress.take(store.metrics_of(row.run.id), 0);
  }
  return running;
}

// `facts`: what the service says of it; null if it does not work on it. `columns`: of a line of a running run.
void print_sweep(std::FILE* out, const Store& store, const Sweep& sweep, const SweepFacts* facts, size_t columns) {
  StateCounts in;
  std::vector<Row> listed;
  LostWork lost;
  std::vector<Progress> running;
  store.in_snapshot([&] {
    in = store.counts_of(sweep.id);
    listed = stuck_rows_of(store, sweep);
    lost = store.lost_in(sweep.id);
    running = facts ? facts->attempts : recorded_progress(store, sweep);
  });
  print_to(out, "{}  {}\n  {}  submitted {}{}\n  {}\n", sweep.id, sweep.name, sweep.grid_file,
           local_time(sweep.submitted_at), sweep.priority == 0 ? "" : fmt::format(", priority {}", sweep.priority),
           text_of(in));
  if (facts && facts->ended() < facts->total) print_to(out, "  {}\n", summary_of(*facts));
  if (lost.updates > 0) print_to(out, "  lost: {}\n", text_of(lost));
  const bool unfinished = in.contains(RunState::kQueued) || in.contains(RunState::kRunning);
  if (unfinished && sweep.state != SweepState::kActive) {
    print_to(out, "  {}{}\n", name_of(sweep.state), sweep.reason.empty() ? "" : ": " + sweep.reason);
  }
  for (const std::string& line : reason_lines(listed)) print_to(out, "  {}\n", line);
  if (running.empty()) return;
  for (const std::string& line : progress_lines(running, columns - kIndent)) print_to(out, "    {}\n", line);
}

// A sentence about the process that holds the workspace.
std::string who_works(const std::optional<ServiceFacts>& facts) {
  if (!facts) return "Another tearless is writing to this workspace.";
  std::string text = fmt::format("A tearless {} works here (process {}, since {}).",
                                 facts->stays ? "daemon" : "service", facts->pid, local_time(facts->started_at));
  for (const DeviceFacts& device : facts->devices) text += "\n  " + summary_of(device);
  return text;
}

void print_sweeps(std::FILE* out, const StatusOptions& options, const Workspace& workspace) {
  const auto store = Store::open_reader(workspace);
  const bool watched = has_writer(workspace);
  if (!store) {
    print_to(out, "Nothing has been run in {} yet. Next: tearless run GRID{}\n", workspace.root().string(),
             workspace_option(workspace.root()));
    return;
  }
  std::optional<ServiceFacts> facts;
  std::string who;
  try {
    facts = watched ? facts_of_service(workspace) : std::nullopt;
    who = who_works(facts);
  } catch (const UserError& error) {  // what is recorded is shown all the same
    who = error.what();
  }
  const std::vector<Sweep> sweeps = sweeps_of(*store, options);
  const size_t columns = ::isatty(STDOUT_FILENO) ? terminal_size(stdout).columns : kUncut;
  for (const Sweep& sweep : sweeps) {
    print_sweep(out, *store, sweep, facts ? facts->sweep(sweep.id) : nullptr, columns);
  }
  if (sweeps.empty()) {
    print_to(out, "There is no sweep in {}. Next: tearless run GRID{}\n", workspace.root().string(),
             workspace_option(workspace.root()));
  }
  if (watched) {
    print_to(out, "{}\n", who);
  } else if (const size_t running = store->ids_in(RunState::kRunning).size(); running > 0) {
    print_to(out,
             "No tearless works here; the next run, submit or daemon takes over what is recorded as running ({}).\n",
             counted(static_cast<int64_t>(running), "run"));
  }
}

void print_sweeps_as_json(const StatusOptions& options, const Workspace& workspace) {
  const auto store = Store::open_reader(workspace);
  const bool watched = has_writer(workspace);
  const std::optional<ServiceFacts> facts = watched ? facts_of_service(workspace) : std::nullopt;
  print_json(store ? to_json(*store, sweeps_of(*store, options), watched, facts)
                   : json{{"watched", watched}, {"sweeps", json::array()}});
}

// --- status --watch --------------------------------------------------------------------------------------------------

constexpr int kBetweenFrames = 1000;  // milliseconds

volatile std::sig_atomic_t g_watch_ends = 0;

std::string text_of_sweeps(const StatusOptions& options, const Workspace& workspace) {
  char* bytes = nullptr;
  size_t size = 0;
  std::FILE* out = ::open_memstream(&bytes, &size);
  const std::unique_ptr<char*, void (*)(char**)> owner(&bytes, [](char** buffer) { std::free(*buffer); });
  try {
    print_sweeps(out, options, workspace);
  } catch (...) {
    std::fclose(out);
    throw;
  }
  std::fclose(out);
  return {bytes, size};
}

// From the top of the screen: what fits of the text, each line cut by the terminal.
void draw_frame(const std::string& text, size_t rows, const std::string& place) {
  const std::vector<std::string_view> lines = split_lines(text);
  const bool fits = lines.size() < rows;
  const size_t shown = fits ? lines.size() : std::max<size_t>(rows, 3) - 2;
  std::string frame = "\033[H";
  for (size_t i = 0; i < shown; ++i) frame += fmt::format("{}\033[K\n", lines[i]);
  if (!fits) frame += fmt::format("… {} more lines: tearless status{}\033[K\n", lines.size() - shown, place);
  fmt::print("{}\033[J", frame);
  std::fflush(stdout);
}

// Long lines are cut by the terminal while this lives, not continued in the next.
struct CutLines {
  CutLines() { fmt::print("\033[?7l\033[2J"); }
  ~CutLines() { fmt::print("\033[?7h"); }
};

int watch_sweeps(const StatusOptions& options, const Globals& globals) {
  if (globals.json) fail("--watch prints no JSON; omit one of the two options");
  if (!is_live(stdout)) {
    fail("--watch redraws a terminal, and the output is none; to print the state once: tearless status{}",
         workspace_option(globals.workspace));
  }
  const Workspace workspace(globals.workspace);
  std::string text = text_of_sweeps(options, workspace);  // a mistake is reported before the screen changes
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, [](int) { g_watch_ends = 1; });
  const CutLines while_watching;
  while (true) {
    draw_frame(text, terminal_size(stdout).rows, workspace_option(workspace.root()));
    ::poll(nullptr, 0, kBetweenFrames);
    if (g_watch_ends) return kOk;
    text = text_of_sweeps(options, workspace);
  }
}

// ---------------------------------------------------------------------------------------------------------------------

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
    print_sweeps(stdout, options, workspace);
  }
  return kOk;
}

}  // namespace

Action command_status(CLI::App& app, const Globals& globals) {
  const auto options = std::make_shared<StatusOptions>();
  app.add_option("what", options->words, "these sweeps only: ids, names, grid files, last");
  app.add_flag("-w,--watch", options->watch, "show the state on the terminal again each second, until Ctrl-C");
  return [options, &globals] { return show(*options, globals); };
}

}  // namespace tearless::harness
