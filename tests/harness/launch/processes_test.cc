// Which processes descend from which, and which have a file open, from a made-up /proc and from the real one.
#include "harness/launch/processes.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>

#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace tearless::harness::processes_test {
namespace {

namespace fs = std::filesystem;
using test::TempFolder;
using test::write_text;

TEST(ProcessTree, FindsDescendantsInAnySessionWhateverTheirNames) {
  const TempFolder folder;
  write_text(folder / "proc/10/stat", "10 (tearless) S 1 10 10 0 -1\n");
  write_text(folder / "proc/11/stat", "11 (a) name (x) R 10 11 10 0 -1\n");
  write_text(folder / "proc/12/stat", "12 (own session) S 11 12 12 0 -1\n");
  write_text(folder / "proc/13/stat", "");  // has just ended
  write_text(folder / "proc/14/stat", "14 (ended) Z 10 11 10 0 -1\n");
  write_text(folder / "proc/15/stat", "15 (other) R 1 15 15 0 -1\n");
  write_text(folder / "proc/self/stat", "15 (other) R 1 15 15 0 -1\n");
  const ProcessTree tree(folder / "proc");
  EXPECT_EQ(tree.below(10), (std::set<int64_t>{11, 12}));
  EXPECT_EQ(tree.below(12), std::set<int64_t>());
  EXPECT_EQ(tree.below(1), (std::set<int64_t>{10, 11, 12, 15}));
}

TEST(ProcessTree, FindsAChildOfThisProcess) {
  const test::Background child({.arguments = {"/bin/sleep", "100"}});
  EXPECT_TRUE(ProcessTree().below(::getpid()).contains(child.pid()));
}

TEST(Processes, WhoOnlyReadsAFileIsNoWriterOfIt) {
  const TempFolder folder;
  test::write_text(folder / "lock", "");
  const std::string lock = (folder / "lock").string();
  const test::Background reader({.arguments = {"/bin/sh", "-c", "exec sleep 100 < " + lock}});
  const test::Background writer({.arguments = {"/bin/sh", "-c", "exec sleep 100 7>> " + lock}});
  EXPECT_TRUE(test::eventually([&] { return writers_of(lock) == std::vector<int64_t>{writer.pid()}; }));
  EXPECT_TRUE(test::eventually([&] { return command_of(reader.pid()) == "sleep 100"; }));
  EXPECT_EQ(writers_of(lock), std::vector<int64_t>{writer.pid()});
  EXPECT_EQ(writers_of(folder / "absent"), std::vector<int64_t>());
}

TEST(Processes, AreNamedByTheirCommandsCutToAReadableLength) {
  const TempFolder folder;
  write_text(folder / "proc/10/cmdline", std::string("sleep\0a\nb\0", 10));
  write_text(folder / "proc/11/cmdline", "");
  write_text(folder / "proc/11/comm", "kworker\n");
  write_text(folder / "proc/12/cmdline", std::string(1000, 'x'));
  EXPECT_EQ(command_of(10, folder / "proc"), "sleep a\\nb");
  EXPECT_EQ(command_of(11, folder / "proc"), "kworker");
  EXPECT_EQ(command_of(12, folder / "proc"), std::string(99, 'x') + "…");
  EXPECT_EQ(command_of(13, folder / "proc"), "");
  const test::Background one({.arguments = {"/bin/sleep", "101"}}), other({.arguments = {"/bin/sleep", "102"}});
  ASSERT_TRUE(test::eventually([&] { return command_of(other.pid()) == "/bin/sleep 102"; }));
  const std::string first = std::to_string(one.pid()), second = std::to_string(other.pid());
  EXPECT_EQ(names_of({one.pid()}), "process " + first + " (/bin/sleep 101)");
  EXPECT_EQ(names_of({one.pid(), other.pid()}),
            "processes " + first + " (/bin/sleep 101), " + second + " (/bin/sleep 102)");
  EXPECT_EQ(names_of({1 << 22}), "");
}

}  // namespace
}  // namespace tearless::harness::processes_test
