// What `verify` says beside a service, and that what `verify --repair` moves is durable: a power cut right after it
// does not undo the move.
#include "harness/folders/verify.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/files.h"
#include "base/hash.h"
#include "base/run_directory.h"
#include "base/sealed_json.h"
#include "harness/folders/program_copies.h"
#include "harness/folders/rebuild.h"
#include "harness/store/store.h"
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

// --- model.safetensors -----------------------------------------------------------------------------------------------

std::string model_of(const std::string& header, const std::string& tensors) {
  const uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + header + tensors;
}

std::vector<std::string> said_of_model(const std::string& bytes) {
  const test::TempFolder folder;
  const Workspace workspace(folder.path());
  const RunDirectory run = write_run(workspace);
  test::write_text(run.model(), bytes);
  std::vector<std::string> said;
  for (const Difference& difference : verify(workspace).differences) {
    EXPECT_THAT(difference.todo, testing::HasSubstr("tearless delete " + run.id())) << difference.what;
    said.push_back(difference.what);
  }
  return said;
}

TEST(Verify, FindsChangesOfAModel) {
  const std::string header = R"({"__metadata__": {"sha256": ")" + sha256("tensors") + R"("}, "w": {}})";
  const testing::Matcher<std::vector<std::string>> changed =
      testing::ElementsAre("model.safetensors: its tensors are not what was written");
  EXPECT_THAT(said_of_model(model_of(header, "tensors")), testing::IsEmpty());
  EXPECT_THAT(said_of_model(model_of(header, "tensorz")), changed);
  EXPECT_THAT(said_of_model(model_of(header, "tensor")), changed) << "cut off";
  EXPECT_THAT(said_of_model(model_of(header, "tensors ")), changed);
  EXPECT_THAT(said_of_model(model_of(R"({"w": {}})", "anything")), testing::IsEmpty()) << "another program's";
  for (const std::string& other : {std::string(), std::string("abc"), model_of("{", ""), std::string(200, '\xff')}) {
    EXPECT_THAT(said_of_model(other), testing::IsEmpty()) << "of another form";
  }
}

TEST(Verify, ReadsAModelLargerThanItsBuffer) {
  const std::string tensors(3 << 20, 'x');
  const std::string header = R"({"__metadata__": {"sha256": ")" + sha256(tensors) + R"("}})";
  EXPECT_THAT(said_of_model(model_of(header, tensors)), testing::IsEmpty());
  EXPECT_THAT(said_of_model(model_of(header, tensors + "x")), testing::SizeIs(1));
}

// --- repair ----------------------------------------------------------------------------------------------------------

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

TEST(Verify, NamesACheckpointWhoseContinuedFilesDoNotBeginAsItRecorded) {
  const test::TempFolder folder;
  const Workspace workspace(folder / "results");
  const RunDirectory run = write_run(workspace);
  const std::string norms("\0\0\200?\0\0\0@", 8);
  test::write_text(run.gradient_norms(), norms + "more");
  const fs::path manifest = run.checkpoint(2) / "manifest.json";
  nlohmann::json record = read_sealed(manifest).value();
  record["state"] = {{"gradient_norms_bytes", norms.size()}, {"gradient_norms_sha256", sha256(norms)}};
  test::write_text(manifest, sealed(record));
  const auto said = [&] {
    std::string all;
    for (const Difference& difference : verify(workspace).differences) all += difference.what;
    return all;
  };
  EXPECT_EQ(said(), "");
  test::write_text(run.gradient_norms(), norms.substr(0, 7));
  EXPECT_EQ(said(), "checkpoints/step-2: gradient_norms.f32 is shorter than it was");
  test::write_text(run.gradient_norms(), "x" + norms);
  EXPECT_EQ(said(), "checkpoints/step-2: the beginning of gradient_norms.f32 is not what was written");
  std::filesystem::remove(run.gradient_norms());
  EXPECT_EQ(said(), "checkpoints/step-2: gradient_norms.f32 is shorter than it was");
}

// --- beside a service ------------------------------------------------------------------------------------------------

std::vector<std::string> advice(const Workspace& workspace) {
  std::vector<std::string> all;
  for (const Difference& difference : verify(workspace).differences) all.push_back(difference.todo);
  return all;
}

TEST(VerifyBesideAService, SaysNothingOfARunThatIsBeingStarted) {
  const test::TempFolder folder;
  const Workspace workspace(folder / "results");
  const RunDirectory run = run_in(workspace);
  std::unique_ptr<Store> service = Store::open_writer(workspace);
  service->put_run({.id = run.id(), .settings = kSettings});
  service->move(run.id(), RunState::kQueued, RunState::kRunning);
  make_folders(run.attempt(1));  // there is no run.toml
  EXPECT_THAT(advice(workspace), testing::IsEmpty());
  service->move(run.id(), RunState::kRunning, RunState::kQueued);
  const std::string remove = "rm -r " + run.root().string() + "; tearless run GRID --workspace ";
  EXPECT_THAT(advice(workspace), testing::ElementsAre(testing::HasSubstr("again: tearless stop --workspace " +
                                                                         workspace.root().string() + "; " + remove)))
      << "it may start the run at any moment";
  service.reset();
  EXPECT_THAT(advice(workspace), testing::ElementsAre(testing::HasSubstr("again: " + remove)));
}

TEST(VerifyBesideAService, SaysNothingOfARunThatWasStartedDuringTheCheck) {
  const test::TempFolder folder;
  const Workspace workspace(folder / "results");
  const RunDirectory run = write_run(workspace);
  make_folders(run.attempt(1));
  test::write_text(run.settings(), "[other]\n");
  const fs::path record = run.attempt(1) / "measured.json";
  ASSERT_EQ(::mkfifo(record.c_str(), 0600), 0);
  std::optional<LockFile> lock;
  // Opening the pipe waits until `verify`, which has seen run.toml before, reads this file.
  std::thread supervisor([&] {
    const std::ofstream pipe(record);
    lock = claim(run);
    make_folders(run.attempt(2));
  });
  EXPECT_THAT(advice(workspace), testing::IsEmpty());
  ::close(::open(record.c_str(), O_RDONLY | O_NONBLOCK));  // if it does not read it
  supervisor.join();
  lock.reset();
  fs::remove(record);
  EXPECT_THAT(advice(workspace), testing::Contains(testing::HasSubstr("rm -r " + run.root().string())));
}

TEST(VerifyBesideAService, SaysNothingOfASweepThatIsBeingSubmitted) {
  const test::TempFolder folder;
  const Workspace workspace(folder / "results");
  write_run(workspace);
  const fs::path sweep = workspace.sweep("norm-0123abcd");
  make_folders(sweep);
  {
    const LockFile submission = lock_programs(workspace);
    EXPECT_THAT(advice(workspace), testing::IsEmpty());
  }
  EXPECT_THAT(advice(workspace), testing::ElementsAre(testing::StartsWith("rm -r " + sweep.string())))
      << "it was killed";
}

}  // namespace
}  // namespace tearless::harness::verify_test
