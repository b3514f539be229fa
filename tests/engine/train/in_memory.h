// Temporary folders in memory: what syncs or writes small files by the thousand then takes milliseconds.
#pragma once

#include <stdlib.h>

#include <filesystem>

namespace tearless::engine::test {

/// To be there before the first temporary folder: a base of a fixture, or a local variable of its set-up.
struct InMemory {
  InMemory() {
    if (std::filesystem::is_directory("/dev/shm")) ::setenv("TMPDIR", "/dev/shm", /*overwrite=*/0);
  }
};

}  // namespace tearless::engine::test
