// Power cuts: all processes end at once, and only synced names and bytes are left of the files (base/fault.h copies
// them to a shadow folder). The same command, run again, must end with the same bytes and must not train again what was
// reported as done.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "base/fault.h"
#include "tests/crash/sweep.h"

namespace tearless::crash::power_cut_test {
namespace {

namespace fs = std::filesystem;

// The runs of which a line of the output says `what`, by the beginning of their ids.
std::set<std::string> runs_that(const std::string& what, const std::string& output) {
  std::set<std::string> runs;
  static const std::regex kLine(R"((?:^|\n)([0-9a-f]{8})  [^\n]*  (started|adopted|done)(?=[:\n]))");
  for (std::sregex_iterator line(output.begin(), output.end(), kLine), end; line != end; ++line) {
    if ((*line)[2] == what) runs.insert((*line)[1]);
  }
  return runs;
}

// True where the power failed at the point. The harness ticks by the clock, so not every sweep passes as many: where
// the last ones were not reached, the power fails when the first command has ended.
bool try_one(Engine engine, int64_t point) {
  const std::string where = "the power failed at point " + std::to_string(point);
  const Sweep sweep(engine);
  test::Faults faults(sweep.folder());
  faults.plan().roles = roles_of(engine);
  const fs::path shadow = sweep.folder() / "shadow";
  faults.keep_shadow(shadow);
  faults.kill_at(point, fault::kEverybody);
  const test::Finished first = sweep.run(&faults, {"--jobs", "1"});
  test::eventually([&] { return faults.alive().empty(); });
  EXPECT_THAT(faults.alive(), testing::IsEmpty()) << where;
  for (const fs::path& folder : {sweep.workspace(), sweep.cache()}) {
    if (!fs::exists(folder)) continue;
    const fs::path before = folder.string() + ".before";
    fs::rename(folder, before);
    fault::power_cut(shadow, before, folder);
  }
  EXPECT_TRUE(faults.hits() == 1 || first.code == 0) << where << "\n" << first.output << first.errors;
  const test::Finished second = sweep.run();
  EXPECT_EQ(second.code, 0) << where << "\n" << second.output << second.errors;
  EXPECT_EQ(difference(sweep.result(), undisturbed(engine)), "") << where << "\n" << first.output << second.output;
  const std::set<std::string> again = runs_that("started", second.output);
  for (const std::string& run : runs_that("done", first.output)) {
    EXPECT_FALSE(again.contains(run)) << where << ": " << run << " was reported as done, and was lost";
  }
  return faults.hits() > 0;
}

void try_all(Engine engine, int64_t sample) {
  const std::vector<int64_t> points = chosen_points(undisturbed_points(engine), sample, 77);
  std::printf("power cuts, %s engine: %zu of %ld points (seed %u%s)\n", engine == Engine::kFake ? "fake" : "real",
              points.size(), static_cast<long>(undisturbed_points(engine)), seed(), asked_for_all() ? ", all" : "");
  std::atomic<size_t> happened = 0;
  in_parallel(points.size(), [&](size_t i) { happened += try_one(engine, points[i]); });
  std::printf("the power failed at %zu of %zu\n", happened.load(), points.size());
  EXPECT_GT(happened.load() * 10, points.size() * 8);
}

TEST(PowerCut, LosesNothingThatWasReported) { try_all(Engine::kFake, 20); }

TEST(PowerCut, LosesNothingOfTheRealEngineEither) {
  if (!has(Engine::kReal)) GTEST_SKIP() << "needs tearless-engine, without sanitizers";
  try_all(Engine::kReal, 3);
}

}  // namespace
}  // namespace tearless::crash::power_cut_test
