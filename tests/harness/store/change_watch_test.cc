#include "harness/store/change_watch.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>

#include "harness/store/store.h"
#include "tests/support/paths.h"

namespace tearless::harness {
namespace {

namespace fs = std::filesystem;

class ChangeWatchTest : public testing::Test {
 public:
  void write(Store& store, const std::string& resource_class) {
    store.in_transaction([&] { store.put_memory_peak(resource_class, 1); });
  }

  test::TempFolder folder_;
  Workspace workspace_{folder_ / "results"};
};

TEST_F(ChangeWatchTest, SeesEachWriteOfAnotherConnectionOnce) {
  const auto store = Store::open_writer(workspace_);
  ChangeWatch watch(workspace_);
  EXPECT_TRUE(watch.has_changed()) << "the first time";
  EXPECT_FALSE(watch.has_changed());
  for (const char* name : {"a", "b"}) {
    write(*store, name);
    EXPECT_TRUE(watch.has_changed());
    EXPECT_FALSE(watch.has_changed());
  }
}

TEST_F(ChangeWatchTest, ReadingIsNoChange) {
  Store::open_writer(workspace_);
  ChangeWatch watch(workspace_);
  watch.has_changed();
  Store::open_reader(workspace_)->sweeps();
  EXPECT_FALSE(watch.has_changed());
}

TEST_F(ChangeWatchTest, SeesADatabaseThatIsMadeDeletedAndReplaced) {
  ChangeWatch watch(workspace_);
  EXPECT_FALSE(watch.has_changed()) << "there is none";
  Store::open_writer(workspace_);
  EXPECT_TRUE(watch.has_changed()) << "made";
  EXPECT_FALSE(watch.has_changed());
  fs::rename(workspace_.database(), folder_ / "old.db");
  EXPECT_TRUE(watch.has_changed()) << "deleted";
  EXPECT_FALSE(watch.has_changed());
  fs::rename(folder_ / "old.db", workspace_.database());
  EXPECT_TRUE(watch.has_changed()) << "there again";
  fs::copy_file(workspace_.database(), folder_ / "copy.db");
  fs::rename(folder_ / "copy.db", workspace_.database());
  EXPECT_TRUE(watch.has_changed()) << "replaced by a copy";
  write(*Store::open_writer(workspace_), "a");
  EXPECT_TRUE(watch.has_changed()) << "the copy is what is watched now";
}

TEST_F(ChangeWatchTest, AFileThatIsNoDatabaseIsNoChangeAndNoError) {
  fs::create_directories(workspace_.root());
  test::write_text(workspace_.database(),
                   "this is no database, and longer than the header of one would have to be, that is a hundred bytes");
  ChangeWatch watch(workspace_);
  EXPECT_NO_THROW(watch.has_changed());
  EXPECT_FALSE(watch.has_changed());
}

}  // namespace
}  // namespace tearless::harness
