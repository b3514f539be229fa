// Whether a folder lies on a disk that other machines may use too: locks and shared memory are not reliable there.
#pragma once

#include <filesystem>

namespace tearless {

/// By the kind of its file system, or of that of the first folder above it that exists. True for what
/// $TEARLESS_NETWORK_DISKS names, too: folders separated by colons, for file systems that are not known here.
bool is_on_network(const std::filesystem::path& folder);

}  // namespace tearless
