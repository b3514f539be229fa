// A write either completes or leaves the file as it was; every error names the path.
#include "base/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/error.h"
#include "tests/support/error_of.h"
#include "tests/support/paths.h"
#include "tests/support/privileges.h"

namespace tearless::files_test {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::read_text;
using test::TempFolder;
using test::write_text;

size_t entries_in(const fs::path& folder) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST(WriteAtomically, ReplacesAFileAndLeavesNoTemporaryFile) {
  const TempFolder folder;
  write_atomically(folder / "a", "old");
  write_atomically(folder / "a", std::string("new\0bytes", 9));
  EXPECT_EQ(read_file(folder / "a"), std::string("new\0bytes", 9));
  EXPECT_EQ(entries_in(folder.path()), 1u);
}

TEST(WriteAtomically, LeavesTheOldFileIfTheNewOneDoesNotFit) {
  const TempFolder folder;
  write_text(folder / "a", "old");
  const pid_t child = ::fork();
  if (child == 0) {  // a file size limit simulates a full disk
    const rlimit limit{100, 100};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    ::signal(SIGXFSZ, SIG_IGN);
    const std::string error = error_of([&] { write_atomically(folder / "a", std::string(1000, 'x')); });
    ::_exit(error.find((folder / "a").string()) != std::string::npos ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0) << "the failure must name the file";
  EXPECT_EQ(read_text(folder / "a"), "old");
  EXPECT_EQ(entries_in(folder.path()), 1u);
}

TEST(WriteAtomically, SaysWhyAFolderCannotBeWritten) {
  const TempFolder folder;
  fs::permissions(folder.path(), fs::perms::owner_read | fs::perms::owner_exec | fs::perms::others_exec);
  {
    const test::WithoutRoot dropped;
    EXPECT_EQ(error_of([&] { write_atomically(folder / "a", "x"); }),
              "cannot write " + (folder / "a").string() + ": Permission denied; check the folder's permissions");
  }
  fs::permissions(folder.path(), fs::perms::owner_all);
}

TEST(FailErrno, DistinguishesMachineErrorsAndSaysWhatToDo) {
  struct Case {
    int error;
    bool of_the_machine;
    const char* hint;
  };
  for (const auto& [error, of_the_machine, hint] :
       {Case{ENOSPC, true, "; free some space and try again"}, Case{EDQUOT, true, "; free some space and try again"},
        Case{EACCES, false, "; check the folder's permissions"},
        Case{EROFS, true, "; choose a folder that can be written (--workspace)"},
        Case{ELOOP, false, "; a symbolic link there leads back to itself: remove it"}, Case{EIO, true, ""},
        Case{EMFILE, true, ""}, Case{ENFILE, true, ""}, Case{ENOMEM, true, ""}, Case{ESTALE, true, ""},
        Case{ENODEV, true, ""}, Case{ENXIO, true, ""}, Case{ENOENT, false, ""}, Case{EFBIG, false, ""}}) {
    const std::string expected = "cannot write x: " + std::string(std::strerror(error)) + hint;
    try {
      fail_errno("write", "x", error);
      FAIL();
    } catch (const MachineError& said) {
      EXPECT_TRUE(of_the_machine) << said.what();
      EXPECT_EQ(said.what(), expected);
    } catch (const UserError& said) {
      EXPECT_FALSE(of_the_machine) << said.what();
      EXPECT_EQ(said.what(), expected);
    }
  }
}

TEST(ReplaceUnsynced, ReplacesAFileAndLeavesNoTemporaryFile) {
  const TempFolder folder;
  replace_unsynced(folder / "a", "old");
  replace_unsynced(folder / "a", "new");
  EXPECT_EQ(read_file(folder / "a"), "new");
  EXPECT_EQ(entries_in(folder.path()), 1u);
}

TEST(WriteAtomically, ThatCannotRenameLeavesNoTemporaryFile) {
  const TempFolder folder;
  fs::create_directories(folder / "taken" / "inside");
  EXPECT_THAT(error_of([&] { write_atomically(folder / "taken", "x"); }), testing::HasSubstr("cannot write"));
  EXPECT_EQ(entries_in(folder.path()), 1u);
}

TEST(ReadFile, NamesTheFileThatItCannotRead) {
  const TempFolder folder;
  EXPECT_EQ(error_of([&] { read_file(folder / "none"); }),
            "cannot read " + (folder / "none").string() + ": No such file or directory");
  EXPECT_EQ(error_of([&] { read_file(folder.path()); }), "cannot read " + folder.path().string() + ": Is a directory");
}

TEST(ReadFile, ReadsFilesWhoseSizeIsReportedAsZero) { EXPECT_FALSE(read_file("/proc/self/stat").empty()); }

TEST(ReadRegularFile, RefusesDevicesPipesAndFolders) {
  const TempFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  fs::create_symlink("loop", folder / "loop");
  const auto error = [](const fs::path& file) { return error_of([&] { read_regular_file(file, 100); }); };
  EXPECT_EQ(error("/dev/zero"), "cannot read /dev/zero: it is a pipe or a device; name a regular file");
  EXPECT_THAT(error(folder / "pipe"), testing::EndsWith(": it is a pipe or a device; name a regular file"));
  EXPECT_THAT(error(folder.path()), testing::EndsWith(": it is a folder; name a regular file"));
  EXPECT_THAT(error(folder / "loop"), testing::EndsWith("a symbolic link there leads back to itself: remove it"));
}

TEST(ReadRegularFile, ReadsUpToItsLimit) {
  const TempFolder folder;
  write_text(folder / "a", std::string(100, 'x'));
  EXPECT_EQ(read_regular_file(folder / "a", 100).size(), 100u);
  EXPECT_THAT(
      error_of([&] { read_regular_file(folder / "a", 99); }),
      testing::EndsWith("it is larger than 99 bytes, the limit for such a file; check that it is the right one"));
}

TEST(MakeFolders, NamesAFileThatHasTheNameOfTheFolder) {
  const TempFolder folder;
  write_text(folder / "a", "");
  EXPECT_THAT(error_of([&] { make_folders(folder / "a/b"); }), testing::StartsWith("cannot create the folder "));
}

TEST(EntriesOf, AFolderAreSortedAndThoseOfNoFolderNone) {
  const TempFolder folder;
  for (const char* name : {"b", "c", "a"}) write_text(folder / name, "");
  std::vector<std::string> names;
  for (const fs::path& entry : entries_of(folder.path())) names.push_back(entry.filename());
  EXPECT_EQ(names, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_TRUE(entries_of(folder / "no").empty());
  EXPECT_TRUE(entries_of(folder / "a").empty());
  fs::create_symlink("loop", folder / "loop");
  EXPECT_EQ(error_of([&] { entries_of(folder / "loop"); }).find("cannot list " + (folder / "loop").string()), 0u);
}

TEST(RemoveRecursively, IgnoresAMissingPathAndReportsAnUnreadableOne) {
  const TempFolder folder;
  write_text(folder / "file", "");
  EXPECT_EQ(error_of([&] { remove_recursively(folder / "absent"); }), "");
  EXPECT_EQ(error_of([&] { remove_recursively(folder / "file/inside"); }), "");
  fs::create_symlink("loop", folder / "loop");
  EXPECT_THAT(error_of([&] { remove_recursively(folder / "loop/inside"); }), testing::StartsWith("cannot remove "));
}

TEST(PublishFolder, MovesAFinishedFolderUnderItsName) {
  const TempFolder folder;
  make_folders(folder / "step.tmp/inner");
  write_text(folder / "step.tmp/inner/state", "bytes");
  publish_folder(folder / "step.tmp", folder / "step");
  EXPECT_EQ(read_text(folder / "step/inner/state"), "bytes");
  EXPECT_FALSE(fs::exists(folder / "step.tmp"));
}

TEST(PublishFolder, TakesANameInTheCurrentFolder) {
  const TempFolder folder;
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  make_folders("step.tmp");
  EXPECT_EQ(error_of([] { publish_folder("step.tmp", "step"); }), "");
  fs::current_path(before);
}

TEST(AppendFile, TruncatesToTheRecordedLength) {
  const TempFolder folder;
  write_text(folder / "metrics", "kept\nlost\n");
  {
    AppendFile file(folder / "metrics", 5);
    EXPECT_EQ(file.size(), 5u);
    file.append("new\n");
    EXPECT_EQ(read_text(folder / "metrics"), "kept\nnew\n");  // visible before any sync
    file.sync();
  }
  EXPECT_EQ(read_text(folder / "metrics"), "kept\nnew\n");
}

TEST(AppendFile, RefusesAFileThatIsShorterThanWasRecorded) {
  const TempFolder folder;
  write_text(folder / "metrics", "1234");
  EXPECT_THAT(error_of([&] { AppendFile(folder / "metrics", 5); }),
              testing::HasSubstr("has 4 bytes where its checkpoint recorded 5"));
  EXPECT_EQ(read_text(folder / "metrics"), "1234");
}

}  // namespace
}  // namespace tearless::files_test
