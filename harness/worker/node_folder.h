// A folder for locks and caches on a disk of this machine: locks on a disk that machines share mean nothing.
#pragma once

#include <filesystem>

namespace tearless::harness {

/// $TEARLESS_NODE_DIR, else a private folder in the first of $TMPDIR, /tmp and /dev/shm that is on a disk of this
/// machine. Made if it is not there. UserError if none is.
std::filesystem::path node_folder();

}  // namespace tearless::harness
