// tools/gpu_sweep.sh to its end, with fake GPUs and the fake engine: what a person with a GPU types.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace tearless::harness::gpu_sweep_test {
namespace {

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
  EXPECT_THAT(text, HasSubstr("| up to 2 runs a GPU, killed and resumed |"));
  EXPECT_THAT(text, HasSubstr("| 1000 bytes | 2 KiB |")) << "memory estimated and measured";
  EXPECT_THAT(text, HasSubstr("test.score: mean"));
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
