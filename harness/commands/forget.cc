// `tearless forget SWEEP…`: deletes sweeps, and the runs that no other sweep has (store/forget.h).
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/words.h"
#include "harness/cli/grid_state.h"
#include "harness/cli/output.h"
#include "harness/cli/selectors.h"
#include "harness/commands/commands.h"
#include "harness/service/start.h"
#include "harness/store/forget.h"

namespace tearless::harness {
namespace {

namespace fs = std::filesystem;

struct ForgetOptions {
  std::vector<std::string> words;
  bool yes = false;
  bool keep_results = false;
};

// What would go.
struct Doomed {
  std::vector<std::string> sweeps;
  std::vector<std::string> runs;
  int64_t results = 0;  // of the runs
  int64_t shared = 0;   // runs that stay, because other sweeps have them
  int64_t bytes = 0;
};

std::vector<std::string> chosen_sweeps(const Store& store, const Workspace& workspace,
                                       const std::vector<std::string>& words) {
  std::vector<std::string> sweeps, others;
  for (const std::string& word : words) {
    // A sweep that is gone from the database while its files are not: the last step was interrupted.
    const std::vector<std::string> begun = folders_in(workspace.forgotten());
    const bool is_left = !store.sweep(word) && std::find(begun.begin(), begun.end(), word) != begun.end();
    (is_left ? sweeps : others).push_back(word);
  }
  const Selection chosen = select(store, others);
  if (!chosen.runs.empty()) fail("forget takes whole sweeps, not runs: tearless forget SWEEP");
  sweeps.insert(sweeps.end(), chosen.sweeps.begin(), chosen.sweeps.end());
  std::sort(sweeps.begin(), sweeps.end());
  sweeps.erase(std::unique(sweeps.begin(), sweeps.end()), sweeps.end());
  return sweeps;
}

Doomed doomed_by(const Store& store, const Workspace& workspace, const ForgetOptions& options) {
  Doomed doomed{.sweeps = chosen_sweeps(store, workspace, options.words), .runs = {}};
  std::vector<std::string> own = runs_of_no_other(store, doomed.sweeps);
  std::set<std::string> all;
  for (const std::string& sweep : doomed.sweeps) {
    for (const RunRecord& run : store.runs_of(sweep)) all.insert(run.id);
    doomed.bytes += bytes_in(workspace.sweep(sweep)) + bytes_in(workspace.forgotten() / sweep);
  }
  doomed.shared = static_cast<int64_t>(all.size() - own.size());
  for (std::string& id : own) {
    if (options.keep_results && fs::exists(workspace.run(id).root())) continue;
    const RunState state = store.known_run(id).state;
    doomed.results += state == RunState::kDone || state == RunState::kDiverged;
    doomed.bytes += bytes_in(workspace.run(id).root());
    doomed.runs.push_back(std::move(id));
  }
  return doomed;
}

void describe_doomed(const Doomed& doomed, const ForgetOptions& options) {
  print("To be deleted, {}:\n", bytes_text(doomed.bytes));
  print("  {}: {}\n", counted(static_cast<int64_t>(doomed.sweeps.size()), "sweep"),
        fmt::format("{}", fmt::join(doomed.sweeps, ", ")));
  print("  {}, {} of them with a result\n", counted(static_cast<int64_t>(doomed.runs.size()), "run"), doomed.results);
  if (doomed.shared > 0) print("{} of other sweeps too: these stay.\n", counted(doomed.shared, "run"));
  if (options.keep_results) print("Runs that have begun stay (--keep-results).\n");
}

bool confirmed() {
  print("Delete? [y/N] ");
  std::fflush(stdout);
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

int forget(const ForgetOptions& options, const Globals& globals) {
  const Workspace workspace(globals.workspace);
  std::unique_ptr<const Store> store = require_store(globals);
  const Doomed doomed = doomed_by(*store, workspace, options);
  require_nothing_running(*store, workspace, doomed.sweeps);
  if (!globals.json) describe_doomed(doomed, options);
  if (!options.yes) {
    if (globals.json || !::isatty(STDIN_FILENO) || !::isatty(STDOUT_FILENO)) {
      fail("nothing was deleted; to delete this without a question: tearless forget --yes {}{}",
           fmt::join(doomed.sweeps, " "), workspace_option(globals));
    }
    if (!confirmed()) {
      print("Nothing was deleted.\n");
      return kOk;
    }
  }
  store.reset();
  Request forget{.name = "forget", .sweeps = doomed.sweeps};
  if (options.keep_results) forget.flags = {"keep_results"};
  request(workspace, forget, {.engine = globals.engine});
  store = require_store(globals);  // as it is now
  remove_forgotten(*store, workspace);
  if (globals.json) {
    print_json({{"sweeps", doomed.sweeps}, {"runs", doomed.runs}, {"bytes", doomed.bytes}});
  } else {
    print("Deleted.\n");
  }
  return kOk;
}

}  // namespace

Action command_forget(CLI::App& app, const Globals& globals) {
  const auto options = std::make_shared<ForgetOptions>();
  app.add_option("what", options->words, "sweeps: ids, grid files, last, all")->required();
  app.add_flag("--yes", options->yes, "do not ask");
  app.add_flag("--keep-results", options->keep_results,
               "delete the sweep only; its runs stay, and a grid that has them need not train them again");
  return [options, &globals] { return forget(*options, globals); };
}

}  // namespace tearless::harness
