#include "harness/folders/delete.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/lock_file.h"
#include "base/sys.h"
#include "harness/folders/program_copies.h"
#include "harness/folders/sweep_directory.h"
#include "harness/runs/launcher.h"
#include "harness/runs/verdict.h"

namespace tearless::harness {
namespace fs = std::filesystem;
namespace {

// There may be something at `to`, from an earlier deletion.
void move_aside(const fs::path& from, const fs::path& to) {
  if (!fs::exists(from)) return;
  make_folders(to.parent_path());
  remove_recursively(to);
  rename_file(from, to);
}

// The folders of programs that a sweep names: one of the database, or one that has a folder only. A folder without
// sweep.json is of a submission that was killed, unless the database knows the sweep. UserError if one cannot be read.
std::set<fs::path> needed_programs(const Store& store, const Workspace& workspace) {
  std::set<std::string> sweeps;
  for (const Sweep& sweep : store.sweeps()) sweeps.insert(sweep.id);
  for (const std::string& id : folders_in(workspace.sweeps())) {
    if (fs::exists(workspace.sweep(id) / "sweep.json")) sweeps.insert(id);
  }
  std::set<fs::path> needed;
  for (const std::string& id : sweeps) {
    needed.insert((workspace.root() / read_sweep_head(workspace, id).program).parent_path());
  }
  return needed;
}

// Of the run's checkpoints and its model those that nothing needs. UserError if there are some, and they are out of the
// workspace, or the run is in use or damaged.
std::vector<fs::path> unneeded_checkpoints(const Workspace& workspace, const RunDirectory& run, bool all) {
  std::vector<fs::path> unneeded;
  std::string selected;  // the model of a run that has none as a file of its own
  if (const auto scores = read_scores(run).numbers; scores.contains("selected_step") && !fs::exists(run.model())) {
    selected = fmt::format("step-{}", static_cast<int64_t>(scores.at("selected_step")));
  }
  for (const std::string& name : folders_in(run.checkpoints())) {
    const bool is_one = name.starts_with("step-") || name.starts_with("tmp-");  // tmp-: of interrupted writers
    if (is_one && (all || name != selected)) unneeded.push_back(run.checkpoints() / name);
  }
  if (all && fs::exists(run.model())) unneeded.push_back(run.model());
  if (unneeded.empty()) return unneeded;
  workspace.require_inside(run.checkpoints());
  if (is_alive(run)) fail("it is in use by another process");
  const Verdict verdict = verdict_of(run, run.newest_attempt());
  if (verdict.state == RunState::kFailed) {
    fail("{}; its checkpoints stay until that is repaired: tearless verify", verdict.reason);
  }
  return unneeded;
}

}  // namespace

std::vector<std::string> runs_of_no_other(const Store& store, const std::vector<std::string>& sweeps) {
  const std::set<std::string> chosen(sweeps.begin(), sweeps.end());
  std::set<std::string> runs;
  for (const std::string& sweep : chosen) {
    for (const RunRecord& run : store.runs_of(sweep)) {
      const std::vector<std::string> having = store.sweeps_of(run.id);
      if (std::ranges::all_of(having, [&](const auto& id) { return chosen.contains(id); })) runs.insert(run.id);
    }
  }
  return {runs.begin(), runs.end()};
}

void require_deletable(const Store& store, const Workspace& workspace, const std::vector<std::string>& runs) {
  for (const fs::path& folder : {workspace.deleted(), workspace.runs(), workspace.sweeps()}) {
    workspace.require_inside(folder);
  }
  for (const std::string& id : runs) {
    if (store.known_run(id).state == RunState::kRunning || is_alive(workspace.run(id))) {
      fail("run {} is being trained; wait for it, or cancel it first: tearless cancel {}{}", id, id,
           workspace_option(workspace.root()));
    }
  }
}

void take_folder_away(const Workspace& workspace, const std::string& run) {
  const fs::path deleted = workspace.deleted() / "again";
  if (!fs::exists(workspace.run(run).root())) return;
  move_aside(workspace.run(run).root(), deleted / run);
  for (const fs::path& folder : {deleted, workspace.runs()}) sync_folder(folder);
}

void delete_sweep(Store& store, const Workspace& workspace, const std::string& sweep, bool keep_results) {
  const std::optional<Sweep> record = store.sweep(sweep);
  if (!record) return;
  if (record->state != SweepState::kCancelled) {
    // In the sweep's folder too: a database that is rebuilt before step 2 has ended must not start its runs.
    if (fs::exists(workspace.sweep(sweep))) log_event(workspace, sweep, "cancelled");
    store.set_sweep_state(sweep, SweepState::kCancelled, "");
  }
  std::vector<std::string> doomed, kept;
  for (const std::string& id : runs_of_no_other(store, {sweep})) {
    (keep_results && fs::exists(workspace.run(id).root()) ? kept : doomed).push_back(id);
  }
  const fs::path deleted = workspace.deleted() / sweep;
  for (const std::string& id : doomed) move_aside(workspace.run(id).root(), deleted / id);
  move_aside(workspace.sweep(sweep), deleted / "sweep");
  // After a power cut each folder must be found in one of the two places: the new one is synced first.
  for (const fs::path& folder : {deleted, workspace.runs(), workspace.sweeps()}) {
    if (fs::exists(folder)) sync_folder(folder);
  }
  store.in_transaction([&] {
    for (const std::string& id : kept) {
      const RunState state = store.known_run(id).state;
      if (state == RunState::kQueued || state == RunState::kWaitingData) {
        store.move(id, state, RunState::kCancelled, FailureClass::kNone, "its sweep was deleted");
      }
    }
    store.forget(sweep, doomed);
  });
}

Freed free_unneeded(const Store& store, const Workspace& workspace, FreeOptions options) {
  workspace.require_inside(workspace.deleted());
  Freed freed;
  const auto free = [&](const fs::path& from, const std::string& name) {
    freed.bytes += bytes_in(from);
    if (!options.dry_run) move_aside(from, workspace.deleted() / "unneeded" / name);
  };
  for (const std::string& name : folders_in(workspace.deleted())) {
    if (!store.sweep(name)) freed.bytes += bytes_in(workspace.deleted() / name);
  }
  for (const std::string& id : folders_in(workspace.runs())) {
    const std::optional<RunRecord> known = store.run(id);
    if (!known || !has_result(known->state)) continue;
    const RunDirectory run = workspace.run(id);
    try {
      const std::vector<fs::path> unneeded = unneeded_checkpoints(workspace, run, options.all);
      for (const fs::path& path : unneeded) free(path, id + "-" + path.filename().string());
      freed.runs += !unneeded.empty();
      freed.checkpoints += std::ssize(unneeded);
    } catch (const UserError& error) {
      freed.skipped.push_back(fmt::format("run {}: {}", id, error.what()));
    }
  }
  try {
    workspace.require_inside(workspace.programs());
    const std::optional<LockFile> lock = try_lock_programs(workspace);
    if (!lock) fail("a grid is being submitted; repeat this command afterwards");
    const std::set<fs::path> needed = needed_programs(store, workspace);
    for (const std::string& name : folders_in(workspace.programs())) {
      if (needed.contains(workspace.programs() / name)) continue;
      free(workspace.programs() / name, name);
      ++freed.programs;
    }
  } catch (const UserError& error) {
    freed.skipped.push_back(fmt::format("programs: {}", error.what()));
  }
  return freed;
}

void remove_deleted(const Store& store, const Workspace& workspace) {
  workspace.require_inside(workspace.deleted());
  for (const std::string& name : folders_in(workspace.deleted())) {
    if (!store.sweep(name)) remove_recursively(workspace.deleted() / name);
  }
  sys::rmdir(workspace.deleted().c_str());  // if nothing is left in it
}

}  // namespace tearless::harness
