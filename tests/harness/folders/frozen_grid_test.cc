// merged.toml of a sweep: what it says is what was submitted, or it is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/folders/sweep_directory.h"
#include "tests/support/error_of.h"
#include "tests/support/paths.h"

namespace tearless::harness::frozen_grid_test {
namespace {

using test::error_of;
using testing::HasSubstr;
namespace fs = std::filesystem;

class FrozenGrid : public testing::Test {
 protected:
  FrozenGrid() : workspace_(folder_ / "results") {
    test::write_text(folder_ / "grid.toml", "[axis]\na = [1, 2]\n[[exclude]]\nwhen = { a = 2 }\nwhy = \"w\"\n");
    grid_ = load_grid(folder_ / "grid.toml");
    freeze_grid(workspace_, "one", grid_);
  }
  fs::path file(const char* sweep = "one") const { return workspace_.sweep(sweep) / "merged.toml"; }

  test::TempFolder folder_;
  Workspace workspace_;
  Grid grid_;
};

TEST_F(FrozenGrid, IsReadAsItWasWritten) {
  fs::remove(folder_ / "grid.toml");
  const Grid read = frozen_grid(workspace_, "one");
  EXPECT_EQ(read.merged, grid_.merged);
  EXPECT_EQ(read.file, grid_.file);
  EXPECT_EQ(read.folder, grid_.folder);
}

TEST_F(FrozenGrid, AMissingFileIsNamed) {
  EXPECT_THAT(error_of([&] { frozen_grid(workspace_, "two"); }), HasSubstr(file("two").string()));
}

TEST_F(FrozenGrid, ANewSubmissionReplacesIt) {
  test::write_text(folder_ / "grid.toml", "title = \"another\"\n[axis]\na = [1]\n");
  freeze_grid(workspace_, "one", load_grid(folder_ / "grid.toml"));
  EXPECT_EQ(frozen_grid(workspace_, "one").title, "another");
}

TEST_F(FrozenGrid, AnyChangedByteIsNoticed) {
  const std::string whole = test::read_text(file());
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string changed = whole;
    changed[at] = changed[at] == '7' ? '8' : '7';
    test::write_text(file(), changed);
    ASSERT_THAT(error_of([&] { frozen_grid(workspace_, "one"); }), HasSubstr("submit the sweep's grid again")) << at;
  }
  for (const size_t length : {size_t{0}, size_t{1}, whole.size() / 2, whole.size() - 1}) {
    test::write_text(file(), whole.substr(0, length));
    EXPECT_THAT(error_of([&] { frozen_grid(workspace_, "one"); }), HasSubstr("merged.toml is damaged, was changed"));
  }
}

TEST_F(FrozenGrid, OfAnotherSweepIsRefused) {
  fs::create_directories(workspace_.sweep("two"));
  fs::copy_file(file(), file("two"));
  EXPECT_THAT(error_of([&] { frozen_grid(workspace_, "two"); }),
              HasSubstr("is of another sweep; submit the sweep's grid again"));
}

}  // namespace
}  // namespace tearless::harness::frozen_grid_test
