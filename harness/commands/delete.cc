// `tearless delete SWEEP…`: deletes sweeps, and the runs that no other sweep has (store/delete.h).
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
#include "harness/plan/grid_state.h"
#include "harness/service/start.h"
#include "harness/store/delete.h"
#include "harness/store/selectors.h"

namespace tearless::harness {
namespace {

namespace fs = std::filesystem;

struct DeleteOptions {
  std::vector<std::string> words;
  bool yes = false;
  bool dry_run = false;
  bool keep_results = false;
};

bool confirmed() {
  print("Delete? [y/N] ");
  std::fflush(stdout);
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

int delete_sweeps(const DeleteOptions& options, const Globals& globals) {
  if (options.words.empty()) {
    fail("name the sweeps to delete; to delete checkpoints that nothing needs: tearless clean{}",
         workspace_option(globals));
  }
  const Workspace workspace(globals.workspace);
  std::unique_ptr<const Store> store = require_store(globals);
  if (!options.dry_run) remove_deleted(*store, workspace);  // of a sweep whose deletion was interrupted at the end
  const std::vector<std::string> named = whole_sweeps(*store, options.words);
  const std::set<std::string> sweeps(named.begin(), named.end());
  if (sweeps.empty()) {
    globals.json ? print_json({{"sweeps", sweeps}, {"runs", sweeps}, {"bytes", 0}}) : print("Nothing to do.\n");
    return kOk;
  }
  require_deletable(*store, workspace, named);

  std::set<std::string> all;
  int64_t bytes = 0, results = 0;
  for (const std::string& sweep : sweeps) {
    for (const RunRecord& run : store->runs_of(sweep)) all.insert(run.id);
    bytes += bytes_in(workspace.sweep(sweep)) + bytes_in(workspace.deleted() / sweep);
  }
  std::vector<std::string> runs = runs_of_no_other(*store, named);
  const auto shared = static_cast<int64_t>(all.size() - runs.size());
  if (options.keep_results) {
    std::erase_if(runs, [&](const std::string& id) { return fs::exists(workspace.run(id).root()); });
  }
  for (const std::string& id : runs) {
    bytes += bytes_in(workspace.run(id).root());
    results += has_result(store->known_run(id).state);
  }
  if (!globals.json) {
    print("To be deleted, {}:\n", bytes_text(bytes));
    print("  {}: {}\n", counted(std::ssize(sweeps), "sweep"), fmt::format("{}", fmt::join(sweeps, ", ")));
    print("  {}, {} of them with a result\n", counted(std::ssize(runs), "run"), results);
    if (shared > 0) print("{} of other sweeps too: these stay.\n", counted(shared, "run"));
    if (options.keep_results) print("Runs that have begun stay (--keep-results).\n");
  }
  if (!options.yes && !options.dry_run) {
    if (globals.json || !::isatty(STDIN_FILENO) || !::isatty(STDOUT_FILENO)) {
      fail("nothing was deleted; to delete this without a question: tearless delete --yes {}{}", fmt::join(sweeps, " "),
           workspace_option(globals));
    }
    if (!confirmed()) {
      print("Nothing was deleted.\n");
      return kOk;
    }
  }
  store.reset();
  Request drop{.name = "delete", .sweeps = {sweeps.begin(), sweeps.end()}};
  if (options.keep_results) drop.flags = {"keep_results"};
  if (!options.dry_run) {
    request(workspace, drop, {});
    remove_deleted(*require_store(globals), workspace);
  }
  if (globals.json) {
    print_json({{"sweeps", sweeps}, {"runs", runs}, {"bytes", bytes}});
  } else if (!options.dry_run) {
    print("Deleted.\n");
  }
  return kOk;
}

}  // namespace

Action command_delete(CLI::App& app, const Globals& globals) {
  const auto options = std::make_shared<DeleteOptions>();
  app.add_option("what", options->words, "sweeps: ids, names, grid files, last, all");
  app.add_flag("--yes", options->yes, "do not ask");
  app.add_flag("--keep-results", options->keep_results,
               "delete the sweep only; its runs stay, and a grid that has them need not train them again");
  app.add_flag("--dry-run", options->dry_run, "print what would be deleted, and delete nothing");
  return [options, &globals] { return delete_sweeps(*options, globals); };
}

}  // namespace tearless::harness
