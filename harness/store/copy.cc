#include "harness/store/copy.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "harness/runs/launcher.h"
#include "harness/store/program_copies.h"
#include "harness/store/rebuild.h"

namespace tearless::harness {
namespace fs = std::filesystem;
namespace {

void require_room_for(const Workspace& workspace, const fs::path& target) {
  std::error_code unreachable;
  if (fs::exists(target, unreachable) && !(fs::is_directory(target) && fs::is_empty(target))) {
    fail("{} exists already; name a folder that does not, or an empty one", target.string());
  }
  const fs::path root = fs::weakly_canonical(workspace.root()), place = fs::weakly_canonical(fs::absolute(target));
  if (std::mismatch(root.begin(), root.end(), place.begin(), place.end()).first == root.end()) {
    fail("{} lies in the workspace {}; name a folder outside of it", target.string(), workspace.root().string());
  }
}

void write_copy_of(const fs::path& from, const fs::path& to) {
  const bool is_program = (fs::status(from).permissions() & fs::perms::owner_exec) != fs::perms::none;
  (is_program ? write_program_unsynced : replace_unsynced)(to, read_file(from));
}

// All but locks, which are a process's and not a copy's.
void copy_folder(const fs::path& from, const fs::path& to) {
  if (!fs::exists(from)) return;
  make_folders(to);
  for (const fs::directory_entry& entry : fs::directory_iterator(from)) {
    const fs::path name = entry.path().filename();
    if (entry.is_directory()) {
      copy_folder(entry.path(), to / name);
    } else if (entry.is_regular_file() && name != "lock") {
      write_copy_of(entry.path(), to / name);
    }
  }
}

// False if the run is, or has meanwhile begun to be, trained.
bool copy_run(const RunDirectory& run, const fs::path& to) {
  if (is_alive(run)) return false;
  const int64_t newest = run.newest_attempt();
  try {
    copy_folder(run.root(), to);
  } catch (const std::exception&) {  // such as a checkpoint that a new attempt has removed
    if (!is_alive(run) && run.newest_attempt() == newest) throw;
  }
  const bool is_still = !is_alive(run) && run.newest_attempt() == newest;
  if (!is_still) remove_recursively(to);
  return is_still;
}

void remove_what_is_left_of(const fs::path& copy) {
  try {
    remove_recursively(copy);
  } catch (const std::exception&) {  // the first error is the one to tell
  }
}

CopyReport copy_folders(const Workspace& workspace, const fs::path& to) {
  CopyReport report;
  {
    const LockFile no_submission = lock_programs(workspace);
    copy_folder(workspace.programs(), to / "programs");
    copy_folder(workspace.sweeps(), to / "sweeps");
  }
  for (const std::string& id : folders_in(workspace.runs())) {
    copy_run(workspace.run(id), to / "runs" / id) ? void(++report.runs) : report.in_work.push_back(id);
  }
  return report;
}

}  // namespace

CopyReport copy_workspace(const Workspace& workspace, const fs::path& target) {
  require_room_for(workspace, target);
  const fs::path partial = fs::absolute(target).lexically_normal().string() + ".partial";
  CopyReport report;
  try {
    remove_recursively(partial);
    make_folders(partial);
    report = copy_folders(workspace, partial);
    ::sync();
    rename_file(partial, target);  // in the place of an empty folder, too
  } catch (const std::exception& error) {
    remove_what_is_left_of(partial);
    fail("cannot copy {} to {}: {}", workspace.root().string(), target.string(), error.what());
  }
  report.sweeps = rebuild(Workspace(target)).sweeps;
  return report;
}

}  // namespace tearless::harness
