// `tearless copy TARGET`: copies a workspace, also while a service works in it (store/copy.h).
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/print.h"
#include "base/words.h"
#include "harness/commands/commands.h"
#include "harness/plan/grid_state.h"
#include "harness/store/copy.h"

namespace tearless::harness {
namespace {

int copy(const std::filesystem::path& target, const Globals& globals) {
  require_store(globals);
  const CopyReport report = copy_workspace(Workspace(globals.workspace), target);
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
  const auto target = std::make_shared<std::filesystem::path>();
  app.add_option("target", *target, "the folder of the copy; it must not exist, or be empty")->required();
  return [target, &globals] { return copy(*target, globals); };
}

}  // namespace tearless::harness
