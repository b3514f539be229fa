// What this process may use: the affinity mask, and the least limit of its control groups.
#include "harness/launch/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "tests/support/paths.h"

namespace tearless::harness::machine_test {
namespace {

namespace fs = std::filesystem;
using test::TempFolder;
using test::write_text;

TEST(Machine, CoresAreThoseOfTheAffinityMask) {
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  const std::vector<int> all = cores_of_process();
  EXPECT_EQ(all.size(), static_cast<size_t>(CPU_COUNT(&before)));

  cpu_set_t last;
  CPU_ZERO(&last);
  CPU_SET(all.back(), &last);
  ASSERT_EQ(::sched_setaffinity(0, sizeof last, &last), 0);
  const std::vector<int> one = cores_of_process();
  ASSERT_EQ(::sched_setaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(one, std::vector<int>{all.back()});
}

TEST(Machine, PrivateMemoryOfProcessesLeavesOutWhatFilesShare) {
  const TempFolder folder;
  write_text(folder / "proc/10/status",
             "Name:\ta\nVmRSS:\t  900 kB\nRssAnon:\t  100 kB\nRssFile:\t 700 kB\nRssShmem:\t 4 kB\n");
  write_text(folder / "proc/11/status", "Name:\tb\nRssAnon:\t  20 kB\n");
  EXPECT_EQ(private_memory_of({10, 11, 12}, folder / "proc"), 124 * 1024);
  const std::vector<char> own(8 << 20, 'x');
  EXPECT_GE(private_memory_of({::getpid()}), std::ssize(own));
  EXPECT_EQ(std::ranges::count(own, 'x'), std::ssize(own));  // a compiler may leave out what nothing reads
}

TEST(Machine, MemoryIsThatOfTheMachineWithoutALimit) {
  const TempFolder folder;
  write_text(folder / "proc/meminfo", "MemFree:   1 kB\nMemTotal:       65739132 kB\nMemAvailable:   2 kB\n");
  EXPECT_EQ(memory_of_process(folder / "proc", folder / "cgroups"), int64_t{65739132} * 1024);
  write_text(folder / "proc/self/cgroup", "0::/user.slice/one.scope\n");
  write_text(folder / "cgroups/user.slice/one.scope/memory.max", "max\n");
  EXPECT_EQ(memory_of_process(folder / "proc", folder / "cgroups"), int64_t{65739132} * 1024);
}

TEST(Machine, TheLeastLimitOfTheGroupsAboveCounts) {
  const TempFolder folder;
  write_text(folder / "proc/meminfo", "MemTotal: 65739132 kB\n");
  write_text(folder / "proc/self/cgroup", "0::/a.slice/b.scope\n");
  write_text(folder / "cgroups/a.slice/b.scope/memory.max", "9000000\n");
  EXPECT_EQ(memory_of_process(folder / "proc", folder / "cgroups"), 9000000);
  write_text(folder / "cgroups/a.slice/memory.max", "8000000\n");
  EXPECT_EQ(memory_of_process(folder / "proc", folder / "cgroups"), 8000000);
  write_text(folder / "cgroups/memory.max", "7000000\n");
  EXPECT_EQ(memory_of_process(folder / "proc", folder / "cgroups"), 7000000) << "a container's own group";
}

TEST(Machine, ALimitOfTheFirstVersionOfControlGroupsCountsToo) {
  const TempFolder folder;
  write_text(folder / "proc/meminfo", "MemTotal: 65739132 kB\n");
  write_text(folder / "proc/self/cgroup", "12:cpu,cpuacct:/x\n4:memory:/docker/abc\n");
  write_text(folder / "cgroups/memory/docker/abc/memory.limit_in_bytes", "6000000\n");
  EXPECT_EQ(memory_of_process(folder / "proc", folder / "cgroups"), 6000000);
}

TEST(Machine, MemoryIsZeroWhereNothingCanBeRead) {
  const TempFolder folder;
  EXPECT_EQ(memory_of_process(folder / "proc", folder / "cgroups"), 0);
}

}  // namespace
}  // namespace tearless::harness::machine_test
