// `tearless gc [SWEEP | RUN …]`: deletes checkpoints of runs that have ended with a result, and copies of
// programs that no sweep needs. It needs no service: nobody resumes such a run, and locks keep others out meanwhile.
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/lock_file.h"
#include "base/words.h"
#include "harness/cli/grid_state.h"
#include "harness/cli/number_option.h"
#include "harness/cli/output.h"
#include "harness/cli/selectors.h"
#include "harness/commands/commands.h"
#include "harness/runs/old_checkpoints.h"
#include "harness/runs/verdict.h"
#include "harness/store/program_copies.h"

namespace tearless::harness {
namespace {

namespace fs = std::filesystem;

struct GcOptions {
  std::vector<std::string> words;
  int keep = 0;
  bool all = false;
  bool dry_run = false;
};

struct Freed {
  int64_t runs = 0, checkpoints = 0, bytes = 0;
  int64_t selected_bytes = 0;         // of selected checkpoints that stay
  int64_t unfinished = 0;             // runs without a result
  int64_t programs = 0, partial = 0;  // copies that no sweep needs
  int64_t copied_bytes = 0;           // of these
  std::vector<std::string> skipped;   // one sentence for each thing that could not be cleaned
};

std::vector<std::string> chosen_runs(const Store& store, const std::vector<std::string>& words) {
  if (words.empty() && store.sweeps().empty()) return {};
  return runs_in(store, select_or_last(store, words));
}

void clean(const RunDirectory& run, const GcOptions& options, Freed& freed) {
  if (!fs::exists(run.checkpoints())) return;
  const std::optional<LockFile> lock = LockFile::try_acquire(run.lock());
  if (!lock) {
    freed.skipped.push_back(fmt::format("run {} is in use by another process", run.id()));
    return;
  }
  const std::optional<Verdict> done = verdict_of_done(run);
  if (!done || done->state == RunState::kFailed) {
    freed.skipped.push_back(fmt::format("run {}: {}; its checkpoints stay until that is repaired: tearless verify",
                                        run.id(), done ? done->reason : "its folder has no DONE"));
    return;
  }
  const OldCheckpoints old = old_checkpoints(run, {.newest = options.keep, .selected = !options.all});
  freed.selected_bytes += old.selected_bytes;
  if (old.folders.empty()) return;
  if (!options.dry_run) remove_checkpoints(old);
  ++freed.runs;
  freed.checkpoints += static_cast<int64_t>(old.folders.size());
  freed.bytes += old.bytes;
}

void delete_copies(const Store& store, const Workspace& workspace, const GcOptions& options, Freed& freed) {
  const std::optional<LockFile> lock = try_lock_programs(workspace);
  if (!lock) {
    freed.skipped.emplace_back("programs: a grid is being submitted; repeat this command afterwards");
    return;
  }
  try {
    const UnneededPrograms unneeded = unneeded_programs(store, workspace);
    const auto delete_all = [&](const std::vector<fs::path>& paths, int64_t& count) {
      for (const fs::path& path : paths) {
        freed.copied_bytes += bytes_in(path);
        if (!options.dry_run) remove_recursively(path);
        ++count;
      }
    };
    delete_all(unneeded.programs, freed.programs);
    delete_all(unneeded.partial, freed.partial);
  } catch (const UserError& error) {
    freed.skipped.push_back(fmt::format("programs: {}", error.what()));
  }
}

void print_copies(const char* verb, const Freed& freed) {
  std::vector<std::string> parts;
  if (freed.programs > 0) parts.push_back(counted(freed.programs, "program"));
  if (freed.partial > 0) parts.push_back(counted(freed.partial, "unfinished program"));
  if (parts.empty()) return;
  print("{} {}: {} that no sweep needs\n", verb, bytes_text(freed.copied_bytes),
        fmt::format("{}", fmt::join(parts, ", ")));
}

int collect(const GcOptions& options, const Globals& globals) {
  const Workspace workspace(globals.workspace);
  const std::unique_ptr<const Store> store = require_store(globals);
  Freed freed;
  for (const std::string& id : chosen_runs(*store, options.words)) {
    const RunState state = store->known_run(id).state;
    if (state == RunState::kDone || state == RunState::kDiverged) {
      clean(workspace.run(id), options, freed);
    } else {
      ++freed.unfinished;
    }
  }
  delete_copies(*store, workspace, options, freed);
  for (const std::string& sentence : freed.skipped) notice(fmt::format("skipped: {}", sentence));
  const int code = freed.skipped.empty() ? kOk : kSomethingFailed;
  if (globals.json) {
    print_json({{"dry_run", options.dry_run},
                {"runs", freed.runs},
                {"checkpoints", freed.checkpoints},
                {"bytes", freed.bytes},
                {"selected_bytes", freed.selected_bytes},
                {"programs", freed.programs},
                {"unfinished", freed.partial},
                {"copied_bytes", freed.copied_bytes},
                {"skipped", freed.skipped}});
    return code;
  }
  const char* const verb = options.dry_run ? "Would free" : "Freed";
  print("{} {}: {} of {}\n", verb, bytes_text(freed.bytes), counted(freed.checkpoints, "checkpoint"),
        counted(freed.runs, "run"));
  if (freed.selected_bytes > 0) {
    print("The selected checkpoints stay ({}): tearless-engine decode reads them. --all deletes them too.\n",
          bytes_text(freed.selected_bytes));
  }
  if (freed.unfinished > 0) print("Not touched: {} without a result.\n", counted(freed.unfinished, "run"));
  print_copies(verb, freed);
  return code;
}

}  // namespace

Action command_gc(CLI::App& app, const Globals& globals) {
  const auto options = std::make_shared<GcOptions>();
  app.add_option("what", options->words,
                 "sweeps (ids, grid files, last, all) or runs (ids, places, states, axis=label); default: last");
  app.add_option("--keep", options->keep, "the newest N checkpoints of each run stay")
      ->type_name("N")
      ->check(whole_number_from(0))
      ->capture_default_str();
  app.add_flag("--all", options->all, "delete the selected checkpoints too, the trained models");
  app.add_flag("--dry-run", options->dry_run, "print what would be freed, and delete nothing");
  return [options, &globals] { return collect(*options, globals); };
}

}  // namespace tearless::harness
