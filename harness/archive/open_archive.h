// `--workspace FILE.tar.gz`: an archive is read from a workspace that it is unpacked into, once, in the user's cache:
// $XDG_CACHE_HOME/tearless/archives/<hash of its bytes> (XDG_CACHE_HOME is ~/.cache if it is not set). That may be
// deleted at any time. Nothing is written to it but by this file: lock_for_writing() refuses it.
#pragma once

#include <filesystem>
#include <functional>

namespace tearless::harness {

/// Whether it is a file, and so is read as an archive.
bool is_archive(const std::filesystem::path& workspace);

/// A workspace as it was named: a folder is itself, an archive the workspace that it is unpacked into. UserError for an
/// archive that is not there, as of unpack(), and if a run or sweep in it is damaged.
std::filesystem::path open_workspace(const std::filesystem::path& named);

/// Calls `use` with a folder that `archive` is unpacked into, whatever the cache has of it, and then removes that
/// folder. One process does so at a time; others wait. UserError as of unpack().
void with_unpacked(const std::filesystem::path& archive,
                   const std::function<void(const std::filesystem::path& folder)>& use);

}  // namespace tearless::harness
