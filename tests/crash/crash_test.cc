// The crash matrix. A sweep passes some hundreds of points: its calls that change something outside the process, in the
// command, the service, its supervisors and the training program, numbered by one counter (base/fault.h). At each point
// each choice of victims is killed; the same command is then run again. Afterwards the table, every scores.json and
// metrics.jsonl must have the bytes of an undisturbed sweep, no attempt may count as a try, and no process may be
// alive.
//
// `make test-crash` tries all of it, `make test` a sample by a printed seed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <string>
#include <vector>

#include "base/fault.h"
#include "tests/crash/sweep.h"

namespace tearless::crash::crash_test {
namespace {

struct Victims {
  const char* name;
  uint32_t mask;
};
constexpr Victims kVictims[] = {{"who is there", fault::kCallingProcess}, {"all", fault::kEverybody},
                                {"the command", fault::kHarness},         {"the service", fault::kDaemon},
                                {"supervisors", fault::kSupervisor},      {"programs", fault::kProgram}};

struct Trial {
  int64_t point;
  Victims victims;
};

// Classes that count against a run: none may come from a kill.
bool is_charged(const std::string& outcome) {
  return outcome == "crashed" || outcome == "settings" || outcome == "stalled" || outcome == "out_of_memory";
}

// True where the point was reached: the harness ticks by the clock, so not every sweep passes as many.
bool try_one(Engine engine, const Trial& trial) {
  const std::string where = std::string("killed: ") + trial.victims.name + ", at point " + std::to_string(trial.point);
  const Sweep sweep(engine);
  test::Faults faults(sweep.folder());
  faults.plan().roles = roles_of(engine);
  faults.kill_at(trial.point, trial.victims.mask);
  const test::Finished first = sweep.run(&faults, {"--jobs", "1"});
  sweep.run_to_the_end(4);
  EXPECT_EQ(difference(sweep.result(), undisturbed(engine)), "") << where << "\n" << first.output << first.errors;
  for (const auto& [run, outcomes] : sweep.outcomes()) {
    for (const std::string& outcome : outcomes)
      EXPECT_FALSE(is_charged(outcome)) << where << ": " << run << " " << outcome;
  }
  test::eventually([&] { return faults.alive().empty(); });
  EXPECT_THAT(faults.alive(), testing::IsEmpty()) << where;
  faults.kill_all();
  return faults.hits() > 0;
}

void try_all(Engine engine, const std::vector<Victims>& victims, int64_t sample) {
  const int64_t points = undisturbed_points(engine);
  std::vector<Trial> trials;
  for (size_t v = 0; v < victims.size(); ++v) {
    for (const int64_t point : chosen_points(points, sample, static_cast<uint32_t>(v))) {
      trials.push_back({point, victims[v]});
    }
  }
  std::printf("crash matrix, %s engine: %ld points x %zu choices of victims, %zu tried (seed %u%s)\n",
              engine == Engine::kFake   ? "fake"
              : engine == Engine::kReal ? "real"
                                        : "fake (with looks)",
              static_cast<long>(points), victims.size(), trials.size(), seed(), asked_for_all() ? ", all" : "");
  std::atomic<size_t> happened = 0;
  in_parallel(trials.size(), [&](size_t i) { happened += try_one(engine, trials[i]); });
  std::printf("killed at %zu of %zu\n", happened.load(), trials.size());
  EXPECT_GT(happened.load() * 10, trials.size() * 9);
}

TEST(CrashMatrix, AKillBetweenAnyTwoCallsLeavesTheSameTable) {
  try_all(Engine::kFake, {std::begin(kVictims), std::end(kVictims)}, 8);
}

// The looks, the runs that they asked for and the verdicts are those of a sweep that nobody killed.
TEST(CrashMatrix, AKillBetweenTwoLooksTakesTheSameLooks) {
  ASSERT_EQ(std::ranges::count_if(undisturbed(Engine::kLooks).files,
                                  [](const auto& file) { return file.first.find(" at look ") != std::string::npos; }),
            6)
      << "a look at one claim, two and three at the others";
  try_all(Engine::kLooks, {kVictims[0], kVictims[1], kVictims[3]}, 6);
}

TEST(CrashMatrix, ARebuildKilledBetweenAnyTwoCallsLosesNothing) {
  const Sweep sweep(Engine::kFake);
  ASSERT_EQ(sweep.run().code, 0);
  sweep.wait_until_unserved();
  const Result expected = sweep.result();
  const auto rebuild = [&sweep](const test::Faults& faults) {
    test::Command command = sweep.command(&faults);
    command.arguments = {test::program("tearless").string(), "rebuild"};
    return test::run(command);
  };
  int64_t all = 0;
  {
    const test::Faults count(sweep.folder());
    ASSERT_EQ(rebuild(count).code, 0);
    all = count.points();
  }
  int64_t killed = 0;
  const std::vector<int64_t> points = chosen_points(all, 20, 88);
  for (const int64_t point : points) {
    test::Faults faults(sweep.folder());
    faults.kill_at(point, fault::kEverybody);
    rebuild(faults);
    killed += faults.hits();
    EXPECT_THAT(sweep.result().table, testing::AnyOf(expected.table, "")) << "killed at point " << point;
    const test::Finished run = sweep.run();
    sweep.wait_until_unserved();
    EXPECT_EQ(run.code, 0) << "point " << point << "\n" << run.output << run.errors;
    EXPECT_EQ(run.output.find("started"), std::string::npos) << "point " << point << " lost a run\n" << run.output;
    EXPECT_EQ(difference(sweep.result(), expected), "") << "killed at point " << point;
  }
  std::printf("rebuild killed at %ld of %ld points\n", static_cast<long>(killed), static_cast<long>(all));
  EXPECT_EQ(killed, static_cast<int64_t>(points.size()));
}

TEST(CrashMatrix, AKillOfTheRealEngineLeavesTheSameBytes) {
  if (!has(Engine::kReal)) GTEST_SKIP() << "needs tearless-engine, without sanitizers";
  try_all(Engine::kReal, {kVictims[0], kVictims[1], kVictims[3], kVictims[4]}, 2);
}

}  // namespace
}  // namespace tearless::crash::crash_test
