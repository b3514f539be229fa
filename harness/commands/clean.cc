// `tearless clean`: deletes what no result, resume or decoding needs, in the whole workspace (folders/delete.h).
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/print.h"
#include "base/words.h"
#include "harness/commands/commands.h"
#include "harness/folders/delete.h"
#include "harness/plan/grid_state.h"
#include "harness/service/start.h"

namespace tearless::harness {
namespace {

struct CleanOptions {
  bool all = false;
  bool dry_run = false;
};

int clean(const CleanOptions& options, const Globals& globals) {
  const Workspace workspace(globals.workspace);
  const std::unique_ptr<const Store> store = require_store(globals);
  Freed freed;
  if (options.dry_run) {
    freed = free_unneeded(*store, workspace, {.all = options.all, .dry_run = true});
  } else {
    Request wanted{.name = "clean"};
    if (options.all) wanted.flags = {"all"};
    freed = request(workspace, wanted, {}).get<Freed>();
    remove_deleted(*require_store(globals), workspace);
  }
  for (const std::string& sentence : freed.skipped) notice(fmt::format("skipped: {}", sentence));
  if (globals.json) {
    print_json(freed);
  } else {
    print("{} {}: {} of {}, {} that no sweep needs\n", options.dry_run ? "Would free" : "Freed",
          bytes_text(freed.bytes), counted(freed.checkpoints, "checkpoint"), counted(freed.runs, "run"),
          counted(freed.programs, "program"));
  }
  return freed.skipped.empty() ? kOk : kSomethingFailed;
}

}  // namespace

Action command_clean(CLI::App& app, const Globals& globals) {
  const auto options = std::make_shared<CleanOptions>();
  app.add_flag("--all", options->all, "delete the trained models, too");
  app.add_flag("--dry-run", options->dry_run, "print what would be deleted, and delete nothing");
  return [options, &globals] { return clean(*options, globals); };
}

}  // namespace tearless::harness
