// The copy of the program that jobs become.
#include "harness/slurm/worker_program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/files.h"
#include "tests/support/paths.h"

namespace tearless::harness::worker_program_test {
namespace {

namespace fs = std::filesystem;

TEST(WorkerProgram, IsCopiedOnce) {
  const test::TempFolder folder;
  const Workspace workspace(folder.path());
  const fs::path copy = worker_program(workspace);
  EXPECT_EQ(read_file(copy), read_file("/proc/self/exe"));
  const fs::file_time_type written = fs::last_write_time(copy);
  EXPECT_EQ(worker_program(workspace), copy);
  EXPECT_EQ(fs::last_write_time(copy), written);
}

TEST(WorkerProgram, ThatNoJobCanBecomeAnyMoreGoesWhenThereIsANewOne) {
  const test::TempFolder folder;
  const Workspace workspace(folder.path());
  const fs::path copies = folder / "queue/bin", jobs = folder / "queue/jobs";
  for (const char* build : {"0123456789abcdef", "fedcba9876543210", ".fedcba9876543210.4711"})
    make_folders(copies / build);
  make_folders(jobs);
  test::write_text(jobs / "1a2b3c4d.sh", "exec " + (copies / "0123456789abcdef/tearless worker").string() + "\n");
  const fs::path copy = worker_program(workspace);
  std::vector<fs::path> left;
  for (const fs::path& entry : entries_of(copies)) left.push_back(entry);
  std::vector<fs::path> expected = {copies / "0123456789abcdef", copy.parent_path()};
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(left, expected);
}

}  // namespace
}  // namespace tearless::harness::worker_program_test
