// What `verify --repair` moves is durable: a power cut right after it does not undo the move.
#include "harness/store/verify.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/files.h"
#include "base/hash.h"
#include "base/run_directory.h"
#include "base/sealed_json.h"
#include "harness/store/rebuild.h"
#include "tests/support/faults.h"
#include "tests/support/paths.h"

namespace tearless::harness::verify_test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSettings = "[model]\n";

RunDirectory run_in(const Workspace& workspace) { return workspace.run(run_id(kSettings)); }

void write_checkpoint(const RunDirectory& run, int64_t step) {
  const fs::path temporary = run.checkpoints() / "tmp";
  make_folders(temporary);
  write_atomically(temporary / "state.bin", "state");
  write_atomically(temporary / "manifest.json", sealed({{"format", 3},
                                                        {"step", step},
                                                        {"state", nlohmann::json::object()},
                                                        {"files", {{"state.bin", sha256("state")}}}}));
  publish_folder(temporary, run.checkpoint(step));
}

// One run with two checkpoints.
RunDirectory write_run(const Workspace& workspace) {
  const RunDirectory run = run_in(workspace);
  make_folders(run.root());
  write_atomically(run.settings(), kSettings);
  write_checkpoint(run, 1);
  write_checkpoint(run, 2);
  rebuild(workspace);
  return run;
}

TEST(Repair, OfACheckpointSurvivesAPowerCut) {
  const test::TempFolder folder;
  const fs::path left = test::after_power_cut(folder.path(), [](const fs::path& root) {
    const Workspace workspace(root);
    test::write_text(write_run(workspace).checkpoint(2) / "state.bin", "other");
    repair(workspace);
  });
  const RunDirectory run = run_in(Workspace(left));
  EXPECT_EQ(run.checkpoint_steps(), std::vector<int64_t>{1});
  EXPECT_TRUE(fs::exists(run.root() / "damaged/step-2/manifest.json"));
}

TEST(Verify, NamesACheckpointWhoseManifestIsDamagedOrMissing) {
  const test::TempFolder folder;
  const Workspace workspace(folder / "results");
  const RunDirectory run = write_run(workspace);
  EXPECT_TRUE(verify(workspace).differences.empty());
  const fs::path manifest = run.checkpoint(2) / "manifest.json";
  test::write_text(manifest, test::read_text(manifest).substr(1));
  ASSERT_EQ(verify(workspace).differences.size(), 1u);
  EXPECT_EQ(verify(workspace).differences[0].what, "checkpoints/step-2: manifest.json is damaged");
  fs::remove(manifest);
  ASSERT_EQ(verify(workspace).differences.size(), 1u);
  EXPECT_EQ(verify(workspace).differences[0].what, "checkpoints/step-2: manifest.json is missing");
}

}  // namespace
}  // namespace tearless::harness::verify_test
