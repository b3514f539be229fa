// `tearless copy TARGET`: copies a workspace, also while a service works in it (archive/copy.h).
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/error.h"
#include "base/print.h"
#include "base/words.h"
#include "harness/archive/archive.h"
#include "harness/archive/copy.h"
#include "harness/commands/commands.h"
#include "harness/commands/copy_report.h"
#include "harness/plan/grid_state.h"
#include "harness/selection/selectors.h"

namespace tearless::harness {
namespace {

struct CopyWords {
  std::filesystem::path target;
  std::vector<std::string> sweeps;
  bool results_only = false, small = false, with_diff = false;
};

bool is_of_another_archive(const std::filesystem::path& target) {
  constexpr std::string_view kEndings[] = {".7z",  ".bz2", ".gz",  ".lz",  ".lz4",  ".lzma", ".rar", ".tar", ".tbz",
                                           ".tb2", ".tgz", ".txz", ".tz2", ".tzst", ".xz",   ".z",   ".zip", ".zst"};
  const std::string ending = lowered(target.extension().string());
  return !has_archive_name(target) && std::ranges::find(kEndings, ending) != std::end(kEndings);
}

int copy(const CopyWords& words, const Globals& globals) {
  const std::filesystem::path& target = words.target;
  if (is_of_another_archive(target)) fail("{}: an archive has a name that ends in .tar.gz", target.string());
  CopyOptions options{.results_only = words.results_only || has_archive_name(target), .with_diff = words.with_diff};
  if (words.small) options.needs = [](const std::string&) { return NeededStatistics(); };
  if (words.small && !options.results_only) fail("--small is of a copy of results alone: add --results");
  const std::unique_ptr<const Store> store = require_store(globals);
  if (!words.sweeps.empty()) options.sweeps = whole_sweeps(*store, words.sweeps);
  const CopyReport report = copy_workspace(Workspace(globals.workspace), target, options);
  report_edited_grids(*store, options.sweeps, globals);
  if (globals.json) {
    print_json({{"target", target.string()},
                {"sweeps", report.sweeps},
                {"runs", report.runs},
                {"in_work", report.in_work},
                {"with_paths", report.with_paths}});
    return kOk;
  }
  print("{}: {}, {}\n", target.string(), counted(report.sweeps, "sweep"), counted(report.runs, "run"));
  print_exceptions(report);
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
  app.add_flag("--with-diff", words->with_diff,
               "with --results or FILE.tar.gz: also what differed from the commits that grids come from (a copy of a "
               "whole workspace has it)");
  return [words, &globals] { return copy(*words, globals); };
}

}  // namespace tearless::harness
