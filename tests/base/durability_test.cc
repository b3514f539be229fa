// After a power cut everything that base/files.h made durable is still there, names and bytes. A fault plan
// (base/fault.h) copies all that was synced to a shadow folder, so a missing fsync of a file or folder shows here.
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "base/fault.h"
#include "base/files.h"
#include "base/run_directory.h"
#include "tests/support/faults.h"
#include "tests/support/paths.h"

namespace tearless::durability_test {
namespace {

namespace fs = std::filesystem;
using Files = std::map<std::string, std::string>;  // relative name → bytes; a folder ends with "/"

Files files_in(const fs::path& folder) {
  Files files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string name = fs::relative(entry.path(), folder).string();
    entry.is_directory() ? files[name + "/"] = "" : files[name] = test::read_text(entry.path());
  }
  return files;
}

class DurabilityTest : public testing::Test {
 protected:
  // What a power cut leaves of `root` after `scene`.
  Files after_power_cut(const std::function<void(const fs::path& root)>& scene) {
    return files_in(test::after_power_cut(folder_.path(), scene));
  }

  test::TempFolder folder_;
};

TEST_F(DurabilityTest, AFileThatWasWrittenAtomically) {
  const Files left = after_power_cut([](const fs::path& root) { write_atomically(root / "DONE", "all of it"); });
  EXPECT_EQ(left, (Files{{"DONE", "all of it"}}));
}

TEST_F(DurabilityTest, AFileThatReplacedAnother) {
  const Files left = after_power_cut([](const fs::path& root) {
    write_atomically(root / "local.toml", "old");
    write_atomically(root / "local.toml", "new");
  });
  EXPECT_EQ(left, (Files{{"local.toml", "new"}}));
}

TEST_F(DurabilityTest, FoldersWithinFolders) {
  const Files left = after_power_cut([](const fs::path& root) { make_folders(root / "runs/0123/attempts"); });
  EXPECT_EQ(left, (Files{{"runs/", ""}, {"runs/0123/", ""}, {"runs/0123/attempts/", ""}}));
}

TEST_F(DurabilityTest, AFolderThatWasPublishedWithAllThatIsInIt) {
  const Files left = after_power_cut([](const fs::path& root) {
    make_folders(root / "tmp-3/inner");
    test::write_text(root / "tmp-3/state.bin", "state");
    test::write_text(root / "tmp-3/inner/more", "more");
    publish_folder(root / "tmp-3", root / "step-3");
  });
  EXPECT_EQ(
      left,
      (Files{{"step-3/", ""}, {"step-3/state.bin", "state"}, {"step-3/inner/", ""}, {"step-3/inner/more", "more"}}));
}

TEST_F(DurabilityTest, AppendedLinesUpToTheLastSyncAndNoneBeyond) {
  const Files left = after_power_cut([](const fs::path& root) {
    AppendFile metrics(root / "metrics.jsonl", 0);
    metrics.append("one\n");
    metrics.sync();
    metrics.append("two\n");
  });
  EXPECT_EQ(left, (Files{{"metrics.jsonl", "one\n"}}));
}

TEST_F(DurabilityTest, AnAttemptsNumberAndItsBeginning) {
  const Files left = after_power_cut([](const fs::path& root) {
    const RunDirectory run(root);
    write_start(run, run.make_attempt(), {{"device", "cpu"}});
  });
  ASSERT_TRUE(left.contains("attempts/1/start.json"));
  EXPECT_NE(left.at("attempts/1/start.json").find("\"device\": \"cpu\""), std::string::npos);
}

TEST_F(DurabilityTest, WhatWasNeverSyncedIsGone) {
  const Files left = after_power_cut([](const fs::path& root) {
    write_atomically(root / "synced", "1");
    test::write_text(root / "lost", "2");
    fs::rename(root / "synced", root / "renamed");
  });
  EXPECT_EQ(left, (Files{{"synced", "1"}}));
}

// Whichever call fails, the file has the old bytes or the new ones, never a mixture, and an error is reported.
TEST_F(DurabilityTest, AWriteThatFailsAnywhereLeavesTheOldBytesOrTheNew) {
  const fs::path file = folder_ / "root" / "scores.json";
  fs::create_directories(file.parent_path());
  int64_t failures = 0;
  for (int64_t call = 1; call <= 12; ++call) {
    test::write_text(file, "old");
    test::Faults faults(folder_.path());
    faults.fail(fault::kEveryKind & ~(fault::kRemove | fault::kPhase), ENOSPC, call, call);
    EXPECT_EXIT(
        {
          faults.begin_here();
          try {
            write_atomically(file, "new bytes");
          } catch (const MachineError&) {
            ::_exit(7);
          }
          ::_exit(0);
        },
        [&](int status) {
          failures += WEXITSTATUS(status) == 7;
          return (WEXITSTATUS(status) == 7) == (faults.hits() > 0);
        },
        "");
    const std::string bytes = test::read_text(file);
    EXPECT_TRUE(bytes == "old" || bytes == "new bytes") << call << ": " << bytes;
    EXPECT_TRUE(faults.hits() > 0 || bytes == "new bytes") << call;
    EXPECT_EQ(std::distance(fs::directory_iterator(file.parent_path()), {}), 1)
        << "a temporary file was left, call " << call;
  }
  EXPECT_GE(failures, 5);  // open, two writes and more, fsync, rename, fsync of the folder
}

}  // namespace
}  // namespace tearless::durability_test
