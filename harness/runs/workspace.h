// The names of things inside a workspace (--workspace): the database, its lock, the run and the sweep folders. Makes
// nothing.
#pragma once

#include <filesystem>
#include <string>
#include <utility>

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

}  // namespace tearless::harness
