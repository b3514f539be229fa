// When runs that wait for their files are tried again.
#include "harness/schedule/data_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/paths.h"

namespace tearless::harness::data_watch_test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

class DataWatchTest : public testing::Test {
 protected:
  DataWatchTest() { test::write_text(file_, "wrong"); }
  void refuse(const std::vector<std::string>& runs) { watch_.add(files_, stamps_of(files_), runs); }

  test::TempFolder folder_;
  std::string file_ = folder_ / "a";
  InputFiles files_ = {{file_, "12"}};
  DataWatch watch_;
};

TEST_F(DataWatchTest, NotWhileNothingChanges) {
  refuse({"r"});
  for (int look = 0; look < 5; ++look) EXPECT_THAT(watch_.changed(), IsEmpty());
  fs::remove(file_);
  EXPECT_THAT(watch_.changed(), IsEmpty());
  EXPECT_THAT(watch_.changed(), ElementsAre("r")) << "the program may have the data elsewhere";
  EXPECT_THAT(watch_.changed(), IsEmpty()) << "once";
}

TEST_F(DataWatchTest, NotWhileAFileIsBeingWritten) {
  refuse({"r", "s"});
  for (const char* bytes : {"1", "12", "123"}) {
    test::write_text(file_, bytes);
    EXPECT_THAT(watch_.changed(), IsEmpty());
  }
  EXPECT_THAT(watch_.changed(), ElementsAre("r", "s"));
}

TEST_F(DataWatchTest, OnceAMissingFileIsThere) {
  fs::rename(file_, folder_ / "elsewhere");
  refuse({"r"});
  EXPECT_THAT(watch_.changed(), IsEmpty());
  fs::rename(folder_ / "elsewhere", file_);
  EXPECT_THAT(watch_.changed(), IsEmpty());
  EXPECT_THAT(watch_.changed(), ElementsAre("r"));
}

TEST_F(DataWatchTest, AChangeDuringTheAttemptCounts) {
  const FileStamps before = stamps_of(files_);
  test::write_text(file_, "the right bytes");
  watch_.add(files_, before, {"r"});
  EXPECT_THAT(watch_.changed(), IsEmpty());
  EXPECT_THAT(watch_.changed(), ElementsAre("r"));
}

TEST_F(DataWatchTest, RunsOfOtherFilesWaitForThose) {
  test::write_text(folder_ / "b", "wrong");
  const InputFiles others = {{folder_ / "b", "34"}};
  refuse({"r"});
  watch_.add(others, stamps_of(others), {"s"});
  watch_.add({}, {}, {"t"});
  fs::remove(folder_ / "b");
  watch_.changed();
  EXPECT_THAT(watch_.changed(), ElementsAre("s"));
}

}  // namespace
}  // namespace tearless::harness::data_watch_test
