// The names of things inside a workspace (--workspace): the database, its lock, the run and the sweep folders. Makes
// nothing.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/run_directory.h"

namespace tearless::harness {

class Workspace {
 public:
  explicit Workspace(std::filesystem::path root) : root_(std::move(root)) {}

  const std::filesystem::path& root() const { return root_; }
  std::filesystem::path database() const { return root_ / "tearless.db"; }
  /// Held by the one writer: the folder itself, since a file in it could be removed while its lock is held.
  std::filesystem::path lock() const { return root_; }
  std::filesystem::path writer() const { return root_ / "tearless.lock"; }  ///< the writer's pid, for people
  std::filesystem::path runs() const { return root_ / "runs"; }
  std::filesystem::path sweeps() const { return root_ / "sweeps"; }
  RunDirectory run(const std::string& id) const { return RunDirectory(runs() / id); }
  std::filesystem::path sweep(const std::string& id) const { return sweeps() / id; }

  /// Where `--smoke` leaves its runs: a workspace of its own, so that they never meet real results.
  Workspace smoke() const { return Workspace(root_ / "smoke"); }

 private:
  std::filesystem::path root_;
};

/// The names of the folders in `parent`, sorted; none where it is not there.
inline std::vector<std::string> folders_in(const std::filesystem::path& parent) {
  std::vector<std::string> names;
  std::error_code absent;
  for (const auto& entry : std::filesystem::directory_iterator(parent, absent)) {
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace tearless::harness
