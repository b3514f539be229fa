// Signals of every kind, in every phase of an attempt, asked for or not: which class the attempt gets, and that the
// sweep ends with the same bytes whatever it was. With the real engine, which reports its phases, and with a program
// that handles no signals.
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdio>
#include <string>
#include <vector>

#include "base/fault.h"
#include "tests/crash/sweep.h"

namespace tearless::crash::signals_test {
namespace {

constexpr int kSignals[] = {SIGTERM, SIGINT, SIGKILL, SIGHUP, SIGSEGV};

std::vector<std::string> phases_of(Engine engine) {
  if (engine == Engine::kFake) return {"starting"};
  return {"starting", "preparing", "training", "evaluating", "publishing"};
}

bool is_polite(int signal) { return signal == SIGTERM || signal == SIGINT; }

// What the first attempt's outcome must be. SIGTERM or SIGINT that the harness did not send stops a program that
// handles it (tearless-engine does from its first instruction) and kills another.
bool is_right(Engine engine, const std::string& outcome, int signal, bool asked) {
  if (asked) return outcome == "stopped";
  if (signal == SIGSEGV) return outcome == "crashed";
  if (is_polite(signal)) return outcome == (engine == Engine::kFake ? "killed" : "stopped");
  return outcome == "killed";
}

void try_all(Engine engine) {
  struct Trial {
    std::string phase;
    int signal;
    bool asked;
  };
  std::vector<Trial> trials;
  for (const std::string& phase : phases_of(engine)) {
    for (const int signal : kSignals) {
      for (const bool asked : {false, true}) trials.push_back({phase, signal, asked});
    }
  }
  const std::vector<int64_t> chosen = chosen_points(static_cast<int64_t>(trials.size()), 10, 5);
  std::printf("signals, %s engine: %zu of %zu (seed %u)\n", engine == Engine::kFake ? "fake" : "real", chosen.size(),
              trials.size(), seed());
  in_parallel(chosen.size(), [&](size_t i) {
    const auto& [phase, signal, asked] = trials[static_cast<size_t>(chosen[i] - 1)];
    const std::string where = "signal " + std::to_string(signal) + (asked ? ", asked, " : ", not asked, ") + phase;
    const Sweep sweep(engine);
    test::Faults faults(sweep.folder());
    faults.signal_at(phase, signal, asked);
    // `check` and `probe` are programs too, and come to their start before any attempt does; the service probes again.
    if (phase == "starting") faults.plan().first = faults.plan().last = 4;
    const test::Finished first = sweep.run(&faults, {"--jobs", "1"});
    EXPECT_EQ(faults.hits(), 1) << where;
    sweep.run_to_the_end(2);
    bool found = false;
    for (const auto& [run, outcomes] : sweep.outcomes()) {
      if (outcomes.size() < 2) continue;
      found = true;
      EXPECT_TRUE(is_right(engine, outcomes[0], signal, asked)) << where << ": " << outcomes[0] << "\n" << first.output;
      EXPECT_EQ(outcomes.back(), "done") << where;
    }
    EXPECT_TRUE(found) << where << ": no attempt was ended\n" << first.output << first.errors;
    EXPECT_EQ(difference(sweep.result(), undisturbed(engine)), "") << where << "\n" << first.output;
  });
}

TEST(Signals, HaveOneClassEachForAProgramWithoutHandlers) { try_all(Engine::kFake); }

TEST(Signals, HaveOneClassEachInEveryPhaseOfTheRealEngine) {
  if (!has(Engine::kReal)) GTEST_SKIP() << "needs tearless-engine, without sanitizers";
  try_all(Engine::kReal);
}

}  // namespace
}  // namespace tearless::crash::signals_test
