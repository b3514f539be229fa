#include <gtest/gtest.h>

#include "tests/fuzz/replay.h"
#include "tests/fuzz/targets.h"

namespace tearless::fuzz {
namespace {

TEST(Fuzz, GridFiles) { replay("grid", fuzz_grid); }
TEST(Fuzz, Settings) { replay("settings", fuzz_settings); }
TEST(Fuzz, RunFolders) { replay("run_folder", fuzz_run_folder); }

}  // namespace
}  // namespace tearless::fuzz
