// `--workspace FILE.tar.gz`: an archive is read from a workspace that it is unpacked into, once, in the user's cache:
// $XDG_CACHE_HOME/tearless/archives/<hash of its bytes> (XDG_CACHE_HOME is ~/.cache if it is not set). That may be
// deleted at any time. Nothing is written to it but by this file: lock_for_writing() refuses it.
#pragma once

#include <filesystem>

namespace tearless::harness {

/// The workspace that `archive` is unpacked into. UserError as of unpack(), and if a run or sweep in it is damaged.
std::filesystem::path open_archive(const std::filesystem::path& archive);

}  // namespace tearless::harness
