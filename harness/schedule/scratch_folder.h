// A folder for trainings outside of any sweep, which belongs to one process at a time.
#pragma once

#include <filesystem>
#include <string>

#include "base/lock_file.h"
#include "base/run_directory.h"

namespace tearless::harness {

class ScratchFolder {
 public:
  /// Makes the folder, or empties what an earlier process left. UserError if another process uses it.
  explicit ScratchFolder(std::filesystem::path folder);
  /// Removes the folder if it is empty.
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  /// Makes a run directory in it, with run.toml and local.toml.
  RunDirectory make(const std::filesystem::path& name, const std::string& settings, const std::string& local) const;

  /// Removes a folder in it, once no process works on a run in there any more.
  void remove(const std::string& name) const;

 private:
  std::filesystem::path folder_;
  LockFile lock_;
};

}  // namespace tearless::harness
