#include "harness/schedule/scratch_folder.h"

#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "harness/runs/workspace.h"

namespace tearless::harness {
namespace fs = std::filesystem;
namespace {

LockFile take_folder(const fs::path& folder) {
  while (true) {
    make_folders(folder);
    std::optional<LockFile> lock = LockFile::try_acquire(folder);
    if (!lock) fail("another process uses {}; wait until it has ended", folder.string());
    if (lock->is_of(folder)) return std::move(*lock);  // else that other process has just removed the folder
  }
}

}  // namespace

ScratchFolder::ScratchFolder(fs::path folder) : folder_(std::move(folder)), lock_(take_folder(folder_)) {
  for (const std::string& left : folders_in(folder_)) remove(left);
}

ScratchFolder::~ScratchFolder() {
  try {
    if (folders_in(folder_).empty()) remove_recursively(folder_);
  } catch (const UserError&) {  // the next one removes it
  }
}

RunDirectory ScratchFolder::make(const fs::path& name, const std::string& settings, const std::string& local) const {
  RunDirectory run(folder_ / name);
  make_folders(run.root());
  write_atomically(run.settings(), settings);
  write_atomically(run.local(), local);
  return run;
}

void ScratchFolder::remove(const std::string& name) const {
  std::error_code absent;
  for (const auto& entry : fs::recursive_directory_iterator(folder_ / name, absent)) {
    // The program of a process that was killed a moment ago still ends.
    if (entry.path().filename() == "lock" && LockFile::is_held(entry.path())) LockFile::acquire(entry.path());
  }
  remove_recursively(folder_ / name);
}

}  // namespace tearless::harness
