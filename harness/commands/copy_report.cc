#include "harness/commands/copy_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/print.h"
#include "base/words.h"
#include "harness/folders/sweep_directory.h"
#include "harness/plan/grid_state.h"

namespace tearless::harness {

void report_edited_grids(const Store& store, const std::vector<std::string>& sweeps, const Globals& globals) {
  std::set<std::string> files;
  for (const Sweep& sweep : store.sweeps()) {  // newest first
    const std::filesystem::path file = sweep.grid_file;
    if (!sweeps.empty() && std::ranges::find(sweeps, sweep.id) == sweeps.end()) continue;
    if (!file.is_absolute() || !std::filesystem::exists(file) || !files.insert(sweep.grid_file).second) continue;
    std::vector<std::string> set;
    try {
      const Grid frozen = frozen_grid(Workspace(globals.workspace), sweep.id);
      set = frozen.set_options;
      if (load_grid(file, set).merged == frozen.merged) continue;
    } catch (const UserError&) {  // it was edited, and is not finished
    }
    notice(fmt::format(
        "{} or one of its base files was edited since sweep {} was submitted, and the copy has tables, "
        "figures and claims as they were then; to have them as they are now, copy again after: "
        "tearless submit {}{}{}",
        sweep.grid_file, sweep.id, shell_word(sweep.grid_file), option_words("--set", set), options_again(globals)));
  }
}

void print_exceptions(const CopyReport& report) {
  constexpr size_t kMaxNamed = 4;
  if (!report.in_work.empty()) {
    print("Left out: {} in work; its sweep asks for it there too\n", counted(std::ssize(report.in_work), "run"));
  }
  if (!report.with_paths.empty()) {
    print("Absolute paths stay as they were written, since ids are made of them, in {}\n",
          printable(some_of(report.with_paths, kMaxNamed, ", ")));
  }
}

}  // namespace tearless::harness
