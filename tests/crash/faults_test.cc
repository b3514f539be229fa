// Calls that fail: each kind of call, at each point, once or until the disk has space again. Nothing may be lost and no
// attempt may count as a try. A service waits for a full disk, and continues by itself; where it could not be started,
// the same command must end with the same bytes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "base/fault.h"
#include "tests/crash/sweep.h"

namespace tearless::crash::faults_test {
namespace {

struct Failing {
  const char* name;
  uint32_t kinds;
  int error;
  bool for_good;  // from that call on, until the service waits for the disk, or the command has ended
};
constexpr uint32_t kDisk =
    fault::kOpen | fault::kWrite | fault::kSync | fault::kRename | fault::kMakeFolder | fault::kCut;
constexpr Failing kFailings[] = {{"a write: no space", fault::kWrite, ENOSPC, false},
                                 {"an fsync: I/O error", fault::kSync, EIO, false},
                                 {"a rename: no space", fault::kRename, ENOSPC, false},
                                 {"a folder: no space", fault::kMakeFolder, ENOSPC, false},
                                 {"an open: no descriptors", fault::kOpen, EMFILE, false},
                                 {"a fork: no memory", fault::kFork, EAGAIN, false},
                                 {"a commit", fault::kCommit, ENOSPC, false},
                                 {"the disk is full from there on", kDisk, ENOSPC, true}};

int64_t calls(Engine engine, uint32_t kinds) {
  const Sweep sweep(engine);
  test::Faults faults(sweep.folder());
  faults.plan().roles = roles_of(engine);
  faults.plan().kinds = kinds;
  EXPECT_EQ(sweep.run(&faults, {"--jobs", "1"}).code, 0);
  return faults.points();
}

// True where the call was made: the harness ticks by the clock, so not every sweep makes as many.
bool try_one(Engine engine, const Failing& failing, int64_t call) {
  const std::string where = std::string(failing.name) + ", call " + std::to_string(call);
  const Sweep sweep(engine);
  test::Faults faults(sweep.folder());
  faults.plan().roles = roles_of(engine);
  faults.fail(failing.kinds, failing.error, call, failing.for_good ? std::numeric_limits<int64_t>::max() : call);
  test::Background command(sweep.command(&faults, {"--jobs", "1"}));
  if (failing.for_good) {
    test::eventually(
        [&] { return command.has_ended() || command.output().find("tries again in") != std::string::npos; });
    faults.end();
  }
  const test::Finished first = command.wait();
  test::eventually([&] { return faults.alive().empty(); });
  EXPECT_THAT(faults.alive(), testing::IsEmpty()) << where;
  faults.kill_all();
  sweep.run_to_the_end(2);
  EXPECT_EQ(difference(sweep.result(), undisturbed(engine)), "") << where << "\n" << first.output << first.errors;
  EXPECT_EQ(first.errors.find("mistake in tearless"), std::string::npos) << where << "\n" << first.errors;
  for (const auto& [run, outcomes] : sweep.outcomes()) {
    for (const std::string& outcome : outcomes) {
      EXPECT_TRUE(outcome != "settings" && outcome != "crashed")
          << where << ": " << run << " " << outcome << first.output;
    }
  }
  return faults.hits() > 0;
}

void try_all(Engine engine, int64_t sample) {
  struct Trial {
    const Failing* failing;
    int64_t call;
  };
  std::vector<Trial> trials;
  int64_t points = 0;
  for (const Failing& failing : kFailings) {
    const int64_t count = calls(engine, failing.kinds);
    points += count;
    for (const int64_t call : chosen_points(count, sample, failing.kinds)) trials.push_back({&failing, call});
  }
  std::printf("failing calls, %s engine: %ld calls of %zu kinds, %zu tried (seed %u%s)\n",
              engine == Engine::kFake ? "fake" : "real", static_cast<long>(points), std::size(kFailings), trials.size(),
              seed(), asked_for_all() ? ", all" : "");
  std::atomic<size_t> happened = 0;
  in_parallel(trials.size(), [&](size_t i) { happened += try_one(engine, *trials[i].failing, trials[i].call); });
  std::printf("failed at %zu of %zu\n", happened.load(), trials.size());
  EXPECT_GT(happened.load() * 10, trials.size() * 9);
}

TEST(FailingCalls, LoseNothingAndCountNoTry) { try_all(Engine::kFake, 4); }

TEST(FailingCalls, OfTheRealEngineLoseNothingAndCountNoTry) {
  if (!has(Engine::kReal)) GTEST_SKIP() << "needs tearless-engine, without sanitizers";
  try_all(Engine::kReal, 1);
}

}  // namespace
}  // namespace tearless::crash::faults_test
