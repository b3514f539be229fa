#include "harness/store/kept_files.h"

#include <set>

#include "base/files.h"
#include "harness/store/sweep_directory.h"

namespace tearless::harness {
namespace fs = std::filesystem;
namespace {

/// The sweeps of the database and those that have a folder only. A folder without sweep.json is of a submission that
/// was killed, unless the database knows the sweep.
std::set<std::string> all_sweeps(const Store& store, const Workspace& workspace) {
  std::set<std::string> sweeps;
  for (const Sweep& sweep : store.sweeps()) sweeps.insert(sweep.id);
  for (const std::string& id : folders_in(workspace.sweeps())) {
    if (fs::exists(workspace.sweep(id) / "sweep.json")) sweeps.insert(id);
  }
  return sweeps;
}

bool is_partial(const fs::path& path) { return path.filename().string().starts_with('.'); }

}  // namespace

LockFile lock_for_submission(const Workspace& workspace) {
  make_folders(workspace.sweeps());
  return LockFile::acquire_shared(workspace.sweeps());
}

std::optional<LockFile> lock_out_submissions(const Workspace& workspace) {
  make_folders(workspace.sweeps());
  return LockFile::try_acquire(workspace.sweeps());
}

bool may_train(const Store& store, const std::string& sweep) {
  return !store.sweep(sweep) || store.has_unfinished(sweep);
}

UnneededFiles unneeded_files(const Store& store, const Workspace& workspace) {
  std::set<fs::path> needed;  // files, and the folders that they are in
  const auto need = [&](const fs::path& file) {
    needed.insert(workspace.root() / file);
    needed.insert((workspace.root() / file).parent_path());
  };
  for (const std::string& id : all_sweeps(store, workspace)) {
    const Sweep sweep = read_sweep_head(workspace, id);
    need(sweep.program);
    if (sweep.data.empty() || !may_train(store, id)) continue;
    for (const KeptFile& file : sweep.data) need(file.copy);
  }

  UnneededFiles unneeded;
  for (const std::string& name : folders_in(workspace.programs())) {
    const fs::path folder = workspace.programs() / name;
    if (!needed.contains(folder)) (is_partial(folder) ? unneeded.partial : unneeded.programs).push_back(folder);
  }
  for (const std::string& name : folders_in(workspace.data())) {
    const fs::path folder = workspace.data() / name;
    if (!needed.contains(folder)) {
      unneeded.data.push_back(folder);
      continue;
    }
    std::error_code unreadable;
    for (const auto& entry : fs::directory_iterator(folder, unreadable)) {
      if (is_partial(entry.path()) && !needed.contains(entry.path())) unneeded.partial.push_back(entry.path());
    }
  }
  return unneeded;
}

}  // namespace tearless::harness
