// The paths inside a workspace (--workspace). It has two roots: the folders of runs, sweeps and programs, which are the
// truth and may lie on a disk that machines share; and their index, the database with its lock, which needs a local
// disk. The index lies beside the folders if these are on a local disk. Creates nothing.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/run_directory.h"

namespace tearless::harness {

class Workspace {
 public:
  explicit Workspace(std::filesystem::path root);

  const std::filesystem::path& root() const { return root_; }
  /// The root itself, or if that is on a network disk, $XDG_STATE_HOME/tearless/<hash of the root's path>
  /// (XDG_STATE_HOME is ~/.local/state if it is not set).
  const std::filesystem::path& index() const { return index_; }
  bool is_apart() const { return index_ != root_; }

  std::filesystem::path database() const { return index_ / "tearless.db"; }
  /// What the single writer of the database locks (store/writer.h).
  std::filesystem::path lock() const { return index_ / "tearless.lock"; }
  std::filesystem::path writer() const { return index_ / "tearless.writer"; }  ///< who that is
  std::filesystem::path runs() const { return root_ / "runs"; }
  std::filesystem::path sweeps() const { return root_ / "sweeps"; }
  /// Copies of training programs (plan/frozen_program.h).
  std::filesystem::path programs() const { return root_ / "programs"; }
  std::filesystem::path programs_lock() const { return root_ / "programs.lock"; }
  std::filesystem::path deleted() const { return root_ / "deleted"; }      ///< what `tearless delete` is removing
  std::filesystem::path verifying() const { return root_ / "verifying"; }  ///< where `tearless verify-resume` trains
  std::filesystem::path verifying_lock() const { return root_ / "verifying.lock"; }
  RunDirectory run(const std::string& id) const { return RunDirectory(runs() / id); }
  std::filesystem::path sweep(const std::string& id) const { return sweeps() / id; }

  /// UserError if a symbolic link leads from this folder, or from one above it, out of the workspace. For folders in
  /// which something is to be deleted: what is elsewhere is not the workspace's.
  void require_inside(const std::filesystem::path& folder) const;

  /// The workspace of `--smoke`, separate so that its runs never mix with real results.
  Workspace smoke() const { return Workspace(root_ / "smoke"); }

 private:
  std::filesystem::path root_, index_;
};

/// The file in the root of a workspace whose index is apart that names this index and its machine.
inline constexpr const char* kIndexClaim = "index.json";
/// The name of this machine, as that file has it.
std::string this_machine();

/// The file in the root of a workspace that an archive was unpacked into (archive/open_archive.h): the archive's path.
inline constexpr const char* kArchiveName = "archive";
/// The archive that a workspace was unpacked from; nullopt for any other workspace.
std::optional<std::filesystem::path> archive_of(const std::filesystem::path& root);

/// True if a folder holds a database or sweeps.
bool is_workspace(const std::filesystem::path& root);

/// The root of the workspace of a command that names none: $TEARLESS_WORKSPACE, else the nearest folder results/, from
/// the current folder upwards, that is a workspace and belongs to the user, else results/ in the current folder.
std::filesystem::path default_workspace();

/// " --workspace elsewhere", or "" for the default workspace; of one that was unpacked, the archive. To be appended to
/// commands in messages.
std::string workspace_option(const std::filesystem::path& root);

/// Prints a line on standard error that says where, for a command that is about to create a workspace.
void announce_if_new(const Workspace& workspace);

/// The names of the folders in `parent`, sorted; empty if `parent` does not exist.
inline std::vector<std::string> folders_in(const std::filesystem::path& parent) {
  std::vector<std::string> names;
  for (const std::filesystem::directory_entry& entry : entries_of(parent)) {
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  }
  return names;
}

}  // namespace tearless::harness
