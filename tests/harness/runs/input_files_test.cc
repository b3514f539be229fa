// What is said of input files that are not what a run was planned with.
#include "harness/runs/input_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/hash.h"
#include "tests/support/error_of.h"
#include "tests/support/paths.h"

namespace tearless::harness::input_files_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

TEST(InputFiles, TheFirstThatIsNotAsPlannedIsNamed) {
  const test::TempFolder folder;
  test::write_text(folder / "a", "of a");
  test::write_text(folder / "b", "of b");
  const std::string a = folder / "a", b = folder / "b";
  const InputFiles files = {{a, sha256("of a")}, {b, sha256("of b")}};
  EXPECT_EQ(fault_of(files), "");
  EXPECT_EQ(fault_of({}), "");
  test::write_text(b, "other");
  EXPECT_EQ(fault_of(files), b + " has the SHA-256 " + sha256("other") + ", but the run was planned with " +
                                 sha256("of b") + "; the run continues when that file is back");
  fs::remove(a);
  EXPECT_EQ(fault_of(files),
            a + " is missing; the run continues when the file with the SHA-256 " + sha256("of a") + " is back");
  fs::create_directory(a);
  EXPECT_EQ(fault_of(files), a + " is not a regular file");
}

}  // namespace
}  // namespace tearless::harness::input_files_test
