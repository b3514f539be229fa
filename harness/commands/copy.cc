// `tearless copy TARGET`: copies a workspace, also while a service works in it (store/copy.h).
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/print.h"
#include "base/words.h"
#include "harness/commands/commands.h"
#include "harness/plan/grid_state.h"
#include "harness/store/archive.h"
#include "harness/store/copy.h"
#include "harness/store/selectors.h"

namespace tearless::harness {
namespace {

struct CopyWords {
  std::filesystem::path target;
  std::vector<std::string> sweeps;
  bool results_only = false, small = false;
};

int copy(const CopyWords& words, const Globals& globals) {
  const std::filesystem::path& target = words.target;
  for (const char* ending : {".tgz", ".tar", ".zip", ".gz"}) {
    if (target.extension() == ending && !has_archive_name(target))
      fail("{}: an archive has a name that ends in .tar.gz", target.string());
  }
  CopyOptions options{.results_only = words.results_only || has_archive_name(target), .small = words.small};
  if (options.small && !options.results_only) fail("--small is of a copy of results alone: add --results");
  const std::unique_ptr<const Store> store = require_store(globals);
  if (!words.sweeps.empty()) options.sweeps = whole_sweeps(*store, words.sweeps);
  const CopyReport report = copy_workspace(Workspace(globals.workspace), target, options);
  if (globals.json) {
    print_json(
        {{"target", target.string()}, {"sweeps", report.sweeps}, {"runs", report.runs}, {"in_work", report.in_work}});
    return kOk;
  }
  print("{}: {}, {}\n", target.string(), counted(report.sweeps, "sweep"), counted(report.runs, "run"));
  if (!report.in_work.empty()) {
    print("Left out: {} in work; its sweep asks for it there too\n", counted(std::ssize(report.in_work), "run"));
  }
  print("Next: tearless status --workspace {}\n", shell_word(target.string()));
  return kOk;
}

}  // namespace

Action command_copy(CLI::App& app, const Globals& globals) {
  const auto words = std::make_shared<CopyWords>();
  app.add_option(
         "target", words->target,
         "the folder of the copy, which must not exist, or be empty; or FILE.tar.gz: an archive of results alone")
      ->required();
  app.add_option("what", words->sweeps, "sweeps (ids, names, grid files, last) to copy with their runs; default: all");
  app.add_flag(
      "--results", words->results_only,
      "leave out texts, checkpoints, models and training programs; a file omitted.json in each run lists them");
  app.add_flag("--small", words->small,
               "with --results or FILE.tar.gz: also leave out what only figures of gradient norms and tests over "
               "sentences need");
  return [words, &globals] { return copy(*words, globals); };
}

}  // namespace tearless::harness
