// `tearless delete WORD…`: deletes sweeps with the runs that no other sweep has, or what single runs have left
// (folders/delete.h).
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/print.h"
#include "base/words.h"
#include "harness/commands/commands.h"
#include "harness/folders/delete.h"
#include "harness/plan/grid_state.h"
#include "harness/selection/selectors.h"
#include "harness/service/start.h"

namespace tearless::harness {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct DeleteOptions {
  std::vector<std::string> words;
  bool yes = false;
  bool dry_run = false;
  bool keep_results = false;
};

struct Doomed {
  std::set<std::string> sweeps;
  std::vector<std::string> runs;
  int64_t shared = 0;  // runs of the sweeps that stay, because other sweeps have them too
  int64_t bytes = 0;
};

bool confirmed() {
  print("Delete? [y/N] ");
  std::fflush(stdout);
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

Doomed doomed_with(const Store& store, const Workspace& workspace, const std::vector<std::string>& sweeps,
                   bool keep_results) {
  Doomed doomed{.sweeps = {sweeps.begin(), sweeps.end()}, .runs = runs_of_no_other(store, sweeps)};
  std::set<std::string> all;
  for (const std::string& sweep : doomed.sweeps) {
    for (const RunRecord& run : store.runs_of(sweep)) all.insert(run.id);
    doomed.bytes += bytes_in(workspace.sweep(sweep)) + bytes_in(workspace.deleted() / sweep);
  }
  doomed.shared = std::ssize(all) - std::ssize(doomed.runs);
  if (keep_results) {
    std::erase_if(doomed.runs, [&](const std::string& id) { return fs::exists(workspace.run(id).root()); });
  }
  return doomed;
}

void tell(const Doomed& doomed, const Store& store, bool keep_results) {
  int64_t results = 0;
  for (const std::string& id : doomed.runs) results += has_result(store.known_run(id).state);
  print("To be deleted, {}:\n", bytes_text(doomed.bytes));
  if (!doomed.sweeps.empty()) {
    print("  {}: {}\n", counted(std::ssize(doomed.sweeps), "sweep"), fmt::format("{}", fmt::join(doomed.sweeps, ", ")));
  }
  print("  {}, {} of them with a result\n", counted(std::ssize(doomed.runs), "run"), results);
  if (doomed.shared > 0) print("{} of other sweeps too: these stay.\n", counted(doomed.shared, "run"));
  if (keep_results) print("Runs that have begun stay (--keep-results).\n");
  if (doomed.sweeps.empty()) print("Their sweeps have them still: `tearless run` of the grid trains them again.\n");
}

int delete_named(const DeleteOptions& options, const Globals& globals) {
  if (options.words.empty()) {
    fail("name the sweeps or runs to delete; to delete checkpoints that nothing needs: tearless clean{}",
         options_again(globals));
  }
  const Workspace workspace(globals.workspace);
  std::unique_ptr<const Store> store = require_store(globals);
  if (!options.dry_run) remove_deleted(*store, workspace);  // of a sweep whose deletion was interrupted at the end
  const Selection named = select(*store, options.words);
  if (named.is_empty()) {
    globals.json ? print_json({{"sweeps", json::array()}, {"runs", json::array()}, {"bytes", 0}})
                 : print("Nothing to do.\n");
    return kOk;
  }
  if (named.sweeps.empty() && options.keep_results) {
    fail("--keep-results is for sweeps: {} names runs", fmt::join(options.words, " "));
  }
  Doomed doomed = doomed_with(*store, workspace, named.sweeps, options.keep_results);
  doomed.runs.insert(doomed.runs.end(), named.runs.begin(), named.runs.end());
  for (const std::string& id : doomed.runs) doomed.bytes += bytes_in(workspace.run(id).root());
  require_deletable(*store, workspace, runs_of_no_other(*store, named.sweeps));
  require_deletable(*store, workspace, named.runs);
  if (!globals.json) tell(doomed, *store, options.keep_results);
  if (!options.yes && !options.dry_run) {
    if (globals.json || !::isatty(STDIN_FILENO) || !::isatty(STDOUT_FILENO)) {
      fail("nothing was deleted; to delete this without a question: tearless delete --yes {}{}",
           shell_words(named.sweeps.empty() ? options.words : named.sweeps), options_again(globals));
    }
    if (!confirmed()) {
      print("Nothing was deleted.\n");
      return kOk;
    }
  }
  store.reset();
  Request drop{.name = "delete", .sweeps = {doomed.sweeps.begin(), doomed.sweeps.end()}, .runs = named.runs};
  if (options.keep_results) drop.flags = {"keep_results"};
  if (!options.dry_run) {
    request(workspace, drop, {});
    remove_deleted(*require_store(globals), workspace);
  }
  if (globals.json) {
    print_json({{"sweeps", doomed.sweeps}, {"runs", doomed.runs}, {"bytes", doomed.bytes}});
  } else if (!options.dry_run) {
    print("Deleted.\n");
  }
  return kOk;
}

}  // namespace

Action command_delete(CLI::App& app, const Globals& globals) {
  const auto options = std::make_shared<DeleteOptions>();
  app.add_option("what", options->words,
                 "sweeps (ids, names, grid files, last, all), or runs (ids, places, states, axis=label)");
  app.add_flag("--yes", options->yes, "do not ask");
  app.add_flag("--keep-results", options->keep_results,
               "delete the sweep only; its runs stay, and a grid that has them need not train them again");
  app.add_flag("--dry-run", options->dry_run, "print what would be deleted, and delete nothing");
  return [options, &globals] { return delete_named(*options, globals); };
}

}  // namespace tearless::harness
