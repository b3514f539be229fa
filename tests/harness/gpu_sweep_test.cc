// tools/gpu_sweep.sh, gpu_packing.py, gpu_gl_en.py and gpu_sanitize.sh to their ends, with fake GPUs and programs: what
// a person with a GPU types.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace tearless::harness::gpu_sweep_test {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

test::Finished gpu_sweep(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), (test::source_root() / "tools/gpu_sweep.sh").string());
  arguments.insert(arguments.end(), {"--bin", test::program("").string()});
  return test::run({.arguments = std::move(arguments), .environment = {{"PYTHONDONTWRITEBYTECODE", "1"}}});
}

TEST(GpuSweep, KilledAndResumedIsEqualToAnUndisturbedOneAndItsPageSaysWhatHappened) {
  const test::TempFolder folder;
  const std::filesystem::path page = folder / "bench/gpu_sweep.md";
  const test::Finished finished = gpu_sweep({"--fake", "--page", page.string()});
  ASSERT_EQ(finished.code, 0) << finished.output << finished.errors;
  const std::string text = test::read_text(page);
  EXPECT_THAT(text, HasSubstr("# A sweep over 2 GPUs, killed and resumed"));
  for (const char* claim : {"the tables are equal", "both have the same runs, all done or diverged",
                            "metrics.jsonl of all 4 runs is equal", "scores.json of all 4 runs is equal"}) {
    EXPECT_THAT(text, HasSubstr("- holds: " + std::string(claim)));
  }
  EXPECT_THAT(text, testing::ContainsRegex("The new daemon adopted [34] runs."));
  EXPECT_THAT(text, testing::ContainsRegex("\\| [0-9a-f]{16} model.kind=., seed . \\| killed \\| [0-9]+ updates, "));
  EXPECT_THAT(text, testing::ContainsRegex("\\| 2 a GPU, killed and resumed \\| 0:[0-9]+ \\| 2 \\|"));
  EXPECT_THAT(text, HasSubstr("| 1000 bytes | 2 KiB |")) << "memory estimated and measured";
  EXPECT_THAT(text, HasSubstr("test.score: mean"));
}

TEST(GpuPacking, CountsTheUpdatesOfRunsThatShareAGpuAndComparesTheirBytes) {
  const test::TempFolder folder;
  const std::filesystem::path page = folder / "packing.md", numbers = folder / "packing.json";
  const auto packing = [&](const std::string& part) {
    return test::run({.arguments = {(test::source_root() / "tools/gpu_packing.py").string(), "--fake", "--part", part,
                                    "--seconds", "1", "--bin", test::program("").string(), "--page", page.string()},
                      .environment = {{"PYTHONDONTWRITEBYTECODE", "1"}}});
  };
  const test::Finished slices = packing("slices");
  ASSERT_EQ(slices.code, 0) << slices.output << slices.errors;
  nlohmann::json rows = nlohmann::json::parse(test::read_text(numbers));
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].at("runs"), 1);
  EXPECT_EQ(rows[1].at("runs"), 4);
  for (const auto& row : rows) {
    EXPECT_GT(row.at("updates_per_second"), 0);
    EXPECT_EQ(row.at("metrics").size(), row.at("runs"));
  }
  const std::string run = rows[0].at("metrics").begin().key();
  EXPECT_EQ(rows[0].at("metrics").at(run), rows[1].at("metrics").at(run)) << "the run of seed 1 is in both";
  rows[0]["metrics"][run] = "of other bytes";
  rows[0]["updates_per_second"] = 100.0;
  rows[1]["updates_per_second"] = 250.0;
  test::write_text(numbers, rows.dump());
  const test::Finished both = packing("mps");
  EXPECT_EQ(both.code, 1);
  EXPECT_THAT(both.output, HasSubstr("BROKEN  run " + run + " has other metrics with d64 × 4, time slices\n"));
  EXPECT_EQ(packing("slices").code, 1) << "both settings are in the file";
  EXPECT_THAT(test::read_text(page), testing::AllOf(HasSubstr("| d64 | 4 | time slices | pinned | 250.0 | 2.50 | – |"),
                                                    HasSubstr("| d64 | 4 | MPS | pinned | ")));
}

TEST(GpuPacking, AMistakeIsOneSentence) {
  const test::Finished finished =
      test::run({.arguments = {(test::source_root() / "tools/gpu_packing.py").string(), "--fake", "--part", "mps"},
                 .environment = {{"PYTHONDONTWRITEBYTECODE", "1"}}});
  EXPECT_EQ(finished.code, 2);
  EXPECT_THAT(finished.errors, HasSubstr("name another file for its page with --page"));
}

test::Finished gpu_gl_en(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), (test::source_root() / "tools/gpu_gl_en.py").string());
  arguments.insert(arguments.end(), {"--bin", test::program("").string()});
  return test::run({.arguments = std::move(arguments), .environment = {{"PYTHONDONTWRITEBYTECODE", "1"}}});
}

/// Of all runs in a workspace.
int attempts_in(const std::filesystem::path& workspace) {
  int count = 0;
  for (const auto& run : std::filesystem::directory_iterator(workspace / "runs")) {
    const std::filesystem::directory_iterator attempts(run.path() / "attempts"), end;
    count += static_cast<int>(std::distance(attempts, end));
  }
  return count;
}

// Fifteen runs that sleep for 0.8 s, two at the same time, take longer than the first call has.
TEST(GpuGlEn, IsFinishedByTheNextCallAndTakesOverTheEndedRunsOfAnArchive) {
  const test::TempFolder folder;
  const std::filesystem::path out = folder / "out", runs = out / "gl_en_runs", page = out / "twt_gl_en.md";
  const auto call = [&](const std::string& minutes) {
    return gpu_gl_en({"--fake", "--out", out.string(), "--runs-per-gpu", "1", "--minutes", minutes});
  };
  const test::Finished stopped = call("0.05");
  ASSERT_EQ(stopped.code, 0) << stopped.output << stopped.errors;
  EXPECT_THAT(stopped.output, testing::ContainsRegex("[0-9]+ of 15 runs are done; the same command resumes\n"));
  const test::Finished finished = call("5");
  ASSERT_EQ(finished.code, 0) << finished.output << finished.errors;
  EXPECT_THAT(finished.output, EndsWith("gpu_gl_en: 15 of 15 runs are done\n"));
  const int attempts = attempts_in(runs);
  EXPECT_LE(attempts, 17) << "two were stopped";
  const std::string text = test::read_text(page);
  EXPECT_THAT(
      text,
      HasSubstr(
          "| (4) Pre + Fix + ScaleNorm | 20.00 ± 0.00 \\[20.91‡\\*, −0.91\\] | 20.00 ± 0.00 \\[22.18, −2.18\\] |"));
  EXPECT_THAT(text, HasSubstr("| T4 ScaleNorm is better than LayerNorm (bleu) | cannot tell: +0.00"));
  EXPECT_THAT(text, HasSubstr("-->15 runs (15 done) took " + std::to_string(attempts) + " attempts"));

  std::filesystem::remove_all(runs);
  test::write_text(page, "Our sentences stay.\n" + text);
  const test::Finished elsewhere = call("5");
  EXPECT_THAT(elsewhere.output, EndsWith("gpu_gl_en: 15 of 15 runs are done\n"));
  EXPECT_EQ(attempts_in(runs), attempts) << "nothing was trained again";
  EXPECT_EQ(test::read_text(page), "Our sentences stay.\n" + text) << "the claims are as old as they were, too";
}

TEST(GpuGlEn, AMistakeIsOneSentence) {
  EXPECT_THAT(gpu_gl_en({"--fake"}).errors,
              EndsWith("gpu_gl_en: --fake measures nothing: name another folder with --out\n"));
  EXPECT_THAT(gpu_gl_en({"--minutes", "0"}).errors, HasSubstr("--minutes is above 0"));
  const test::Finished missing = gpu_gl_en({"--data", "/nowhere"});
  EXPECT_EQ(missing.code, 2);
  EXPECT_THAT(missing.errors, HasSubstr("/nowhere/train.gl is missing: tools/data/get_ted.py gl-en FOLDER makes"));
}

// With a stand-in for NVIDIA's program, and less patience where it hangs.
TEST(GpuPacking, ThatMpsDoesNotStartIsOneSentenceAndLeavesNothingRunning) {
  const test::TempFolder folder;
  const auto begin_mps = [&](const std::string& control, const std::string& patience = "30") {
    test::write_text(folder / "nvidia-cuda-mps-control", "#!/bin/sh\n" + control);
    std::filesystem::permissions(folder / "nvidia-cuda-mps-control", std::filesystem::perms::owner_all);
    return test::run({.arguments = {"/usr/bin/env", "python3", "-c",
                                    "import pathlib, sys; sys.argv[0] = 'tools/gpu_packing.py'\n"
                                    "import gpu_packing as it; it.MPS_PATIENCE = " +
                                        patience + "\nwith it.Mps(pathlib.Path('.')): print('begun')"},
                      .environment = {{"PYTHONDONTWRITEBYTECODE", "1"},
                                      {"PYTHONPATH", test::source_root() / "tools"},
                                      {"PATH", folder.path().string() + ":" + std::getenv("PATH")}},
                      .folder = folder.path()});
  };
  const std::string sentence = "gpu_packing: MPS does not start: ", instead = "; without it: --part slices\n";
  const test::Finished fails = begin_mps("echo An instance of this daemon\necho is already running\nexit 1\n");
  EXPECT_EQ(fails.code, 2);
  EXPECT_EQ(fails.errors, sentence + "An instance of this daemon is already running" + instead);
  const test::Finished hangs = begin_mps("sleep 1000 &\necho $! >> pids\nwait\n", "3");
  EXPECT_EQ(hangs.code, 2);
  EXPECT_EQ(hangs.errors, sentence + "nvidia-cuda-mps-control has not answered for 3 s" + instead);
  std::istringstream pids(test::read_text(folder / "pids"));
  int left = 0;
  for (pid_t pid = 0; pids >> pid; ++left) EXPECT_TRUE(test::eventually([&] { return ::kill(pid, 0) != 0; })) << pid;
  EXPECT_EQ(left, 2) << "it was asked to begin, then to end";
  EXPECT_EQ(begin_mps("exit 3\n").errors, sentence + "exit code 3" + instead);
  const test::Finished stays = begin_mps("[ \"$1\" ] || exit 1\n");
  EXPECT_EQ(stays.output, "begun\n");
  EXPECT_THAT(stays.errors, HasSubstr("MPS does not end (exit code 1)"));
}

// With stand-ins for the GPU machine's programs: racecheck finds something.
TEST(GpuSanitize, ThePageCountsTestsAndHasWhatEachToolSaid) {
  const test::TempFolder folder;
  const auto program = [&](const std::string& name, const std::string& text) {
    std::filesystem::create_directories((folder / name).parent_path());
    test::write_text(folder / name, "#!/bin/sh\n" + text);
    std::filesystem::permissions(folder / name, std::filesystem::perms::owner_all);
  };
  std::filesystem::create_directories(folder / "portable/lib");
  for (const char* name : {"tearless-engine", "test_engine", "test_engine_cuda"}) {
    program("portable/bin/" + std::string(name), "echo '[       OK ] A.a'\necho '[       OK ] A.b'\n");
  }
  program("bin/nvidia-smi", "echo H200\n");
  program("bin/python3", "echo /torch\n");
  const auto sanitize = [&] {
    return test::run({.arguments = {(test::source_root() / "tools/gpu_sanitize.sh").string(), folder / "portable",
                                    folder / "results", folder / "bin/python3"},
                      .environment = {{"PATH", (folder / "bin").string() + ":/usr/bin:/bin"}}});
  };
  const test::Finished absent = sanitize();
  EXPECT_EQ(absent.code, 2);
  EXPECT_EQ(absent.errors, "gpu_sanitize: compute-sanitizer is not on PATH: it is a part of the CUDA toolkit\n");

  program("bin/compute-sanitizer",
          "\"$5\" \"$6\"\n[ $2 = racecheck ] || { echo '========= ERROR SUMMARY: 0 errors'; exit 0; }\n"
          "echo '========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)'\nexit 99\n");
  const test::Finished finished = sanitize();
  EXPECT_EQ(finished.code, 1) << finished.output << finished.errors;
  EXPECT_THAT(test::read_text(folder / "results/sanitizer.md"),
              testing::AllOf(HasSubstr("| memcheck | single kernels | 2 | ERROR SUMMARY: 0 errors | finished |"),
                             HasSubstr("| racecheck | single kernels | 2 | RACECHECK SUMMARY: 1 hazard displayed (1 "
                                       "error, 0 warnings) | finished |")));
}

TEST(GpuSweep, AMistakeIsOneSentence) {
  EXPECT_THAT(gpu_sweep({"--fake"}).errors, HasSubstr("name another file for its page with --page"));
  EXPECT_THAT(gpu_sweep({"--updates", "15"}).errors, HasSubstr("--updates 15 is not a multiple of 10"));
  const test::Finished absent = gpu_sweep({"--fake", "--page", "/dev/null", "--seeds", "0"});
  EXPECT_EQ(absent.code, 2);
  EXPECT_THAT(absent.errors, HasSubstr("--seeds 0 is not a number from 1"));
  EXPECT_THAT(absent.errors, Not(HasSubstr("Traceback")));
}

}  // namespace
}  // namespace tearless::harness::gpu_sweep_test
