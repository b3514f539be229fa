#include "harness/store/forget.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/lock_file.h"
#include "harness/store/sweep_directory.h"

namespace tearless::harness {
namespace fs = std::filesystem;
namespace {

void require_free(const Workspace& workspace, const std::string& id) {
  if (!LockFile::is_held(workspace.run(id).lock())) return;
  fail("run {} is being trained (its lock {} is held); wait for it, or cancel it first: tearless cancel {}", id,
       workspace.run(id).lock().string(), id);
}

// A folder of that name may be there already, from an earlier attempt to forget the sweep.
void move_to_forgotten(const fs::path& from, const fs::path& to) {
  if (!fs::exists(from)) return;
  remove_recursively(to);
  rename_file(from, to);
}

}  // namespace

std::vector<std::string> runs_of_no_other(const Store& store, const std::vector<std::string>& sweeps) {
  const std::set<std::string> chosen(sweeps.begin(), sweeps.end());
  std::set<std::string> seen;
  std::vector<std::string> runs;
  for (const std::string& sweep : chosen) {
    for (const RunRecord& run : store.runs_of(sweep)) {
      if (!seen.insert(run.id).second) continue;
      const std::vector<std::string> having = store.sweeps_of(run.id);
      if (std::all_of(having.begin(), having.end(), [&](const std::string& id) { return chosen.contains(id); })) {
        runs.push_back(run.id);
      }
    }
  }
  return runs;
}

void require_nothing_running(const Store& store, const Workspace& workspace, const std::vector<std::string>& sweeps) {
  for (const std::string& id : runs_of_no_other(store, sweeps)) {
    if (store.known_run(id).state == RunState::kRunning) {
      fail("run {} is running; wait for it, or cancel it first: tearless cancel {}", id, id);
    }
    require_free(workspace, id);
  }
}

void forget_sweep(Store& store, const Workspace& workspace, const std::string& sweep, Results results) {
  const std::optional<Sweep> record = store.sweep(sweep);
  if (!record) return;
  const fs::path forgotten = workspace.forgotten() / sweep;
  make_folders(forgotten);
  if (record->state != SweepState::kCancelled) {
    // In the sweep's folder too: a database that is rebuilt before step 2 has ended must not start its runs.
    if (fs::exists(workspace.sweep(sweep))) log_event(workspace, sweep, "cancelled");
    store.set_sweep_state(sweep, SweepState::kCancelled, "");
  }
  std::vector<std::string> runs = runs_of_no_other(store, {sweep});
  std::vector<std::string> kept;
  if (results == Results::kKeep) {
    const auto has_folder = [&](const std::string& id) { return fs::exists(workspace.run(id).root()); };
    const auto first_kept =
        std::stable_partition(runs.begin(), runs.end(), [&](const auto& id) { return !has_folder(id); });
    kept.assign(first_kept, runs.end());
    runs.erase(first_kept, runs.end());
  }
  for (const std::string& id : runs) {
    require_free(workspace, id);
    move_to_forgotten(workspace.run(id).root(), forgotten / id);
  }
  move_to_forgotten(workspace.sweep(sweep), forgotten / "sweep");
  sync_folder(forgotten);  // first: after a power cut each folder must be found in one of the two places
  if (fs::exists(workspace.runs())) sync_folder(workspace.runs());
  if (fs::exists(workspace.sweeps())) sync_folder(workspace.sweeps());
  store.in_transaction([&] {
    for (const std::string& id : kept) {
      const RunState state = store.known_run(id).state;
      if (state == RunState::kQueued || state == RunState::kWaitingData) {
        store.move(id, state, RunState::kCancelled, FailureClass::kNone, "its sweep was forgotten");
      }
    }
    store.forget(sweep, runs);
  });
}

void remove_forgotten(const Store& store, const Workspace& workspace) {
  bool all = true;
  for (const std::string& sweep : folders_in(workspace.forgotten())) {
    if (store.sweep(sweep)) {
      all = false;  // step 3 is missing: the sweep's runs are still in the database
    } else {
      remove_recursively(workspace.forgotten() / sweep);
    }
  }
  if (all) remove_recursively(workspace.forgotten());
}

}  // namespace tearless::harness
