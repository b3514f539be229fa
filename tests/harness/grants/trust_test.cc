// Whose files a worker acts on, and a service records.
#include "harness/grants/trust.h"

#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <pwd.h>
#include <unistd.h>

#include <filesystem>

#include "tests/support/paths.h"

namespace tearless::harness::trust_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class TrustTest : public testing::Test {
 protected:
  TrustTest() { test::write_text(file_, ""); }
  std::string with(fs::perms perms) const {
    fs::permissions(file_, perms);
    return distrust({folder_ / "absent", file_});
  }

  test::TempFolder folder_;
  const fs::path file_ = folder_ / "file";
};

TEST_F(TrustTest, WhatOnlyTheUserMayWriteIsTrusted) {
  EXPECT_EQ(with(fs::perms{0644}), "");
  EXPECT_EQ(with(fs::perms{0755}), "");
}

TEST_F(TrustTest, WhatAnybodyMayWriteIsNotButForAFolderInWhichNobodyReplacesFiles) {
  EXPECT_THAT(with(fs::perms{0646}), HasSubstr("file can be written by anybody"));
  EXPECT_THAT(with(fs::perms{0646}), HasSubstr(": chmod o-w " + file_.string()));
  fs::create_directory(folder_ / "like_tmp");
  fs::permissions(folder_ / "like_tmp", fs::perms{01777});
  EXPECT_EQ(distrust({folder_ / "like_tmp"}).empty(), ::geteuid() == 0) << "of root alone";
  fs::permissions(folder_ / "like_tmp", fs::perms{0777});
  EXPECT_NE(distrust({folder_ / "like_tmp"}), "");
}

TEST_F(TrustTest, AGroupMayWriteOnlyIfTheUserIsAloneInIt) {
  // A group that other users have, on any Debian: daemon's is not root's.
  const passwd* const other = ::getpwnam("daemon");
  if (::geteuid() != 0 || !other) GTEST_SKIP() << "needs root, and the user daemon";
  const gid_t theirs = other->pw_gid;
  EXPECT_FALSE(is_alone_in(theirs, ::geteuid()));
  EXPECT_TRUE(is_alone_in(theirs, ::getpwnam("daemon")->pw_uid));
  EXPECT_TRUE(is_alone_in(::getegid(), ::geteuid())) << "root's group on a new Debian";
  EXPECT_FALSE(is_alone_in(4'000'000'000u, ::geteuid())) << "no such group";
  EXPECT_FALSE(is_alone_in(theirs, 4'000'000'000u)) << "no such user";
  EXPECT_EQ(with(fs::perms{0664}), "");
  ASSERT_EQ(::chown(file_.c_str(), ::geteuid(), theirs), 0);
  EXPECT_THAT(with(fs::perms{0664}), HasSubstr("can be written by others of its group"));
  EXPECT_THAT(with(fs::perms{0664}), HasSubstr(": chmod go-w " + file_.string()));
  EXPECT_EQ(with(fs::perms{0644}), "");
}

TEST_F(TrustTest, AnotherUsersFileIsNotTrustedRootsIs) {
  EXPECT_EQ(distrust({"/usr/bin/env"}), "");
  const passwd* const other = ::getpwnam("daemon");
  if (::geteuid() != 0 || !other) GTEST_SKIP() << "needs root, and the user daemon";
  ASSERT_EQ(::chown(file_.c_str(), other->pw_uid, 0), 0);
  EXPECT_THAT(with(fs::perms{0600}), HasSubstr("file belongs to daemon"));
}

}  // namespace
}  // namespace tearless::harness::trust_test
