// The lock is held by processes: it is released when the last holder ends, and is_held() changes nothing.
#include "base/lock_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <thread>
#include <utility>

#include "base/error.h"
#include "tests/support/paths.h"
#include "tests/support/privileges.h"

namespace tearless::lock_file_test {
namespace {

using test::TempFolder;
namespace fs = std::filesystem;

/// A child process that ends when its pipe is closed.
class Child {
 public:
  template <class Body>
  explicit Child(Body&& body) {
    int ready[2], stop[2];
    EXPECT_EQ(::pipe(ready), 0);
    EXPECT_EQ(::pipe(stop), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(stop[1]);
      body();
      char byte = 0;
      [[maybe_unused]] ssize_t n = ::write(ready[1], &byte, 1);
      n = ::read(stop[0], &byte, 1);  // until the parent closes its end
      ::_exit(0);
    }
    ::close(ready[1]);
    ::close(stop[0]);
    char byte = 0;
    EXPECT_EQ(::read(ready[0], &byte, 1), 1);
    ::close(ready[0]);
    stop_ = stop[1];
  }
  ~Child() { end(); }
  void end() {
    if (stop_ < 0) return;
    ::close(stop_);
    stop_ = -1;
    ::waitpid(pid_, nullptr, 0);
  }

 private:
  pid_t pid_ = 0;
  int stop_ = -1;
};

TEST(LockFile, RefusesASecondHolder) {
  const TempFolder folder;
  const auto held = LockFile::try_acquire(folder / "lock");
  ASSERT_TRUE(held);
  EXPECT_FALSE(LockFile::try_acquire(folder / "lock"));
  EXPECT_TRUE(LockFile::is_held(folder / "lock"));
}

// A process that tests the lock holds it for an instant. Here for 10 ms, a fifth of what try_acquire waits; a busy
// more of it now and then, not each time.
TEST(LockFile, WaitsForAProcessThatOnlyTestsTheLock) {
  const TempFolder folder;
  int acquired = 0;
  for (int round = 0; round < 20 && acquired == 0; ++round) {
    auto looking = LockFile::try_acquire(folder / "lock");
    ASSERT_TRUE(looking);
    std::jthread looks([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      looking.reset();
    });
    acquired += LockFile::try_acquire(folder / "lock").has_value();
  }
  EXPECT_EQ(acquired, 1);
}

TEST(LockFile, IsFreeAfterItsHolderEnds) {
  const TempFolder folder;
  { const auto held = LockFile::try_acquire(folder / "lock"); }
  EXPECT_FALSE(LockFile::is_held(folder / "lock"));
  EXPECT_TRUE(LockFile::try_acquire(folder / "lock"));
}

TEST(LockFile, IsFreeAfterItsProcessDies) {
  const TempFolder folder;
  Child child([&] { static auto held = LockFile::try_acquire(folder / "lock"); });
  EXPECT_TRUE(LockFile::is_held(folder / "lock"));
  child.end();
  EXPECT_FALSE(LockFile::is_held(folder / "lock"));
}

TEST(LockFile, StaysHeldWhileAChildThatInheritedItLives) {
  const TempFolder folder;
  auto held = LockFile::try_acquire(folder / "lock");
  ASSERT_TRUE(held);
  held->share_with_children();
  Child child([] {});
  held.reset();
  EXPECT_TRUE(LockFile::is_held(folder / "lock"));
  child.end();
  EXPECT_FALSE(LockFile::is_held(folder / "lock"));
}

TEST(LockFile, StaysHeldWhenMoved) {
  const TempFolder folder;
  LockFile first = LockFile::acquire(folder / "lock");
  const LockFile second = std::move(first);
  EXPECT_TRUE(LockFile::is_held(folder / "lock"));
}

TEST(LockFile, IsHeldCreatesNoFile) {
  const TempFolder folder;
  EXPECT_FALSE(LockFile::is_held(folder / "lock"));
  EXPECT_FALSE(std::filesystem::exists(folder / "lock"));
}

TEST(LockFile, LetsNoOtherUserHoldItAndTellsHimWhetherItIsHeld) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const TempFolder folder;
  fs::permissions(folder.path(), fs::perms::all);
  { const LockFile first = LockFile::acquire(folder / "lock"); }
  fs::permissions(folder / "lock", fs::perms::all);  // as after `chmod -R`
  Child child([&] { static auto held = LockFile::try_acquire(folder / "lock"); });
  EXPECT_EQ(fs::status(folder / "lock").permissions(), fs::perms::owner_read | fs::perms::owner_write);
  const test::WithoutRoot somebody_else;
  EXPECT_TRUE(LockFile::is_held(folder / "lock"));
  EXPECT_LT(::open((folder / "lock").c_str(), O_RDONLY | O_CLOEXEC), 0);
  child.end();
  EXPECT_FALSE(LockFile::is_held(folder / "lock"));
  EXPECT_THROW(LockFile::try_acquire(folder / "lock"), UserError);
}

TEST(LockFile, IsTakenAgainWhereItWasRemovedMeanwhile) {
  const TempFolder folder;
  auto held = std::make_optional(LockFile::acquire(folder / "lock"));
  std::thread waiting([&] {
    const LockFile lock = LockFile::acquire(folder / "lock");
    EXPECT_TRUE(lock.is_of(folder / "lock"));
  });
  fs::remove(folder / "lock");
  held.reset();
  waiting.join();
}

TEST(LockFile, LeavesADescriptorOpenThatHoldsAnotherLock) {
  const TempFolder folder;
  const int other = ::open((folder / "other").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  const LockFile held = LockFile::acquire(folder / "lock");
  EXPECT_FALSE(LockFile::inherited(other, folder / "lock"));
  EXPECT_EQ(::close(other), 0);
}

TEST(LockFile, NamesAMissingFolder) {
  const TempFolder folder;
  EXPECT_THROW(LockFile::try_acquire(folder / "none/lock"), UserError);
}

}  // namespace
}  // namespace tearless::lock_file_test
