// One small sweep in a folder of its own, started, killed, and started again until it is through: what the tests of
// this folder do to the harness, its supervisors and a training program.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/support/faults.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace tearless::crash {

/// The training program that a sweep drives.
enum class Engine {
  kFake,   // tests/support/fake_engine.cc: milliseconds a run
  kReal,   // tearless-engine with a tiny model
  kLooks,  // the fake one, until the claims of the sweep are decided
};

/// Whether that program is built.
bool has(Engine engine);

/// What a sweep leaves that must not depend on what happened to it.
struct Result {
  std::string table;
  std::map<std::string, std::string> files;  // "<id>/scores.json" …: bytes; the looks that were taken, without times

  bool operator==(const Result&) const = default;
};

/// What differs between two results, in a few words; "" where nothing does.
std::string difference(const Result& result, const Result& expected);

class Sweep {
 public:
  explicit Sweep(Engine engine);

  /// `tearless run`, with a plan of faults or without one.
  test::Finished run(const test::Faults* faults = nullptr, const std::vector<std::string>& more = {}) const;
  /// The same without waiting for it.
  test::Command command(const test::Faults* faults, const std::vector<std::string>& more = {}) const;
  /// Runs it until it reports that all is done, at most `most` times, and returns how often; beyond that the test
  /// fails.
  int run_to_the_end(int most) const;

  /// Waits for the service that a command may have started and that is about to leave.
  void wait_until_unserved() const;

  Result result() const;
  /// The outcomes of all attempts that the store knows, by run.
  std::map<std::string, std::vector<std::string>> outcomes() const;

  std::filesystem::path folder() const { return folder_.path(); }
  std::filesystem::path workspace() const { return folder_ / "results"; }
  std::filesystem::path cache() const { return folder_ / "cache"; }

 private:
  Engine engine_;
  test::TempFolder folder_;
};

/// The processes whose calls are points: all, but with the real engine only its own. What harness and supervisors do at
/// theirs does not depend on the program, and its processes take half a second to start.
uint32_t roles_of(Engine engine);

/// The result of a sweep that nothing happened to; made once.
const Result& undisturbed(Engine engine);
/// How many points such a sweep passes.
int64_t undisturbed_points(Engine engine);

/// TEARLESS_CRASH=all asks for everything, else a sample is drawn by TEARLESS_SEED, or where it is not set by the day.
bool asked_for_all();
uint32_t seed();
/// Points to try out of 1 … `points`: all of them, or `sample` drawn by the seed and `salt`.
std::vector<int64_t> chosen_points(int64_t points, int64_t sample, uint32_t salt);

/// Runs `trial` for each number in 0 … count-1 on as many threads as there are cores.
void in_parallel(size_t count, const std::function<void(size_t)>& trial);

}  // namespace tearless::crash
