#include "tests/crash/sweep.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <set>
#include <thread>

#include "base/lock_file.h"
#include "base/run_directory.h"
#include "harness/folders/looks.h"
#include "harness/store/store.h"
#include "tests/e2e/small_training.h"

namespace tearless::crash {
namespace fs = std::filesystem;
namespace {

// Two runs, each with a checkpoint or two before its end, which read two files, and a derivation of each.
constexpr const char* kFakeGrid = R"(title = "A sweep that is killed"
seeds = 1
[set]
"fake.updates" = 7
"data.pair" = "corpus"
[axis]
"model.kind" = ["a", "b"]
[derived.again]
beam = 8
[table]
scores = ["test.score", "again.test.score"]
)";

// One layer of eight channels; evaluations and checkpoints at updates that divide nothing else.
constexpr const char* kRealGrid = R"(title = "A sweep that is killed"
seeds = 1
[set]
"data.name" = "tiny"
"data.train" = "corpus/train"
"data.dev" = "corpus/dev"
"data.test" = "corpus/test"
"data.source" = "de"
"data.target" = "en"
"text.kind" = "segmented"
"model.d_model" = 8
"model.heads" = 2
"model.d_ff" = 8
"model.encoder_layers" = 1
"model.decoder_layers" = 1
"train.batch.tokens" = 60
"train.epoch_updates" = 3
"train.max_epochs" = 2
"decode.beam" = 2
"run.log_updates" = 2
[axis]
"model.norm.kind" = ["scale_norm"]
[derived.wide]
beam = 3
[derived.mark]
kind = "score"
metric = "chrf"
outputs = "wide"
[table]
scores = ["test.*", "train.*", "wide.test.bleu", "mark.test.chrf"]
)";

// One claim is decided at the first look, one at the second, and one cannot be decided.
constexpr const char* kGridWithLooks = R"(title = "A sweep that is killed between its looks"
seeds = 4
[set]
"fake.updates" = 2
[axis]
"model.kind" = ["a", "b", "c"]
[table]
scores = ["test.score"]
[claims]
looks = [2, 3, 4]
[[claim]]
text = "a and c are equivalent"
equivalent = ["a", "c"]
within = "0.1 score"
[[claim]]
text = "b is not worse than a"
not_worse = ["b", "a"]
within = "0.1 score"
[[claim]]
text = "c is below a limit"
below = ["c"]
than = 20.0474
)";

const char* grid_of(Engine engine) {
  return engine == Engine::kFake ? kFakeGrid : engine == Engine::kReal ? kRealGrid : kGridWithLooks;
}

fs::path program_of(Engine engine) {
  return test::program(engine == Engine::kReal ? "tearless-engine" : "fake-engine");
}

std::string environment_or(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value ? value : otherwise;
}

// True if the programs that are killed are built with sanitizers; this one may be of another build.
bool are_sanitized() { return !environment_or("TEARLESS_SANITIZED", "").empty(); }

}  // namespace

bool has(Engine engine) {
  // LibTorch takes seconds to start under a sanitizer, and is not what these tests are about.
  if (engine == Engine::kReal && are_sanitized()) return false;
  return fs::exists(program_of(engine));
}

Sweep::Sweep(Engine engine) : engine_(engine) {
  test::write_text(folder_ / "grid.toml", grid_of(engine));
  if (engine != Engine::kReal) {
    for (const char* file : {"corpus.a", "corpus.b"})
      test::write_text(folder_ / file, std::string("the bytes of ") + file);
  } else {
    fs::create_directories(folder_ / "corpus");
    test::write_small_corpus(folder_ / "corpus", 30, 3);
  }
}

test::Command Sweep::command(const test::Faults* faults, const std::vector<std::string>& more) const {
  test::Command command{.arguments = {test::program("tearless").string(), "run", "grid.toml"},
                        .environment = faults ? faults->environment() : std::map<std::string, std::string>{},
                        .folder = folder_.path()};
  if (engine_ == Engine::kLooks) command.arguments.emplace_back("--until-decided");
  command.arguments.insert(command.arguments.end(), more.begin(), more.end());
  command.environment["TEARLESS_ENGINE"] = program_of(engine_).string();
  command.environment["TEARLESS_CACHE"] = cache().string();
  return command;
}

test::Finished Sweep::run(const test::Faults* faults, const std::vector<std::string>& more) const {
  return test::run(command(faults, more));
}

int Sweep::run_to_the_end(int most) const {
  test::Finished finished;
  for (int times = 1; times <= most; ++times) {
    finished = run();
    if (finished.code == 0) return times;
  }
  ADD_FAILURE() << "not through after " << most << " more times: code " << finished.code << "\n"
                << finished.output << finished.errors;
  return most;
}

void Sweep::wait_until_unserved() const {
  test::eventually([&] { return !LockFile::is_held(workspace() / "tearless.lock"); });
}

std::string difference(const Result& result, const Result& expected) {
  std::string text;
  if (result.table != expected.table) text += "the table is\n" + result.table;
  for (const auto& [name, bytes] : expected.files) {
    const auto found = result.files.find(name);
    if (found == result.files.end())
      text += name + " is missing\n";
    else if (found->second != bytes)
      text += name + " is\n" + found->second;
  }
  for (const auto& [name, bytes] : result.files) {
    if (!expected.files.contains(name)) text += name + " should not be there\n";
  }
  return text;
}

Result Sweep::result() const {
  test::Command table = command(nullptr);
  table.arguments = {table.arguments[0], engine_ == Engine::kLooks ? "check-table" : "table", "grid.toml"};
  Result result{.table = test::run(table).output, .files = {}};
  std::error_code absent;
  for (const auto& entry : fs::directory_iterator(workspace() / "runs", absent)) {
    const RunDirectory run(entry.path());
    for (const fs::path& file : {run.scores(), run.metrics(), run.gradient_norms(), run.model(),
                                 run.outputs() / "test.hyp", run.outputs() / "dev.stats"}) {
      if (fs::exists(file)) result.files[run.id() + "/" + file.filename().string()] = test::read_text(file);
    }
  }
  for (const auto& entry : fs::directory_iterator(workspace() / "sweeps", absent)) {
    const std::string sweep = entry.path().filename();
    for (const harness::LookTaken& look : harness::read_looks(harness::Workspace(workspace()), sweep)) {
      std::string& text = result.files[fmt::format("{}/{} at look {}", sweep, look.claim, look.look)];
      text += fmt::format("{} {} {}\n", look.seeds, look.verdict, look.shown);
      for (const auto& [run, checksum] : look.saw) text += fmt::format("saw {} {}\n", run, checksum);
    }
  }
  return result;
}

std::map<std::string, std::vector<std::string>> Sweep::outcomes() const {
  std::map<std::string, std::vector<std::string>> all;
  const auto store = harness::Store::open_reader(harness::Workspace(workspace()));
  if (!store) return all;
  for (const std::string& id : store->ids_starting_with("")) {
    for (const harness::AttemptRecord& attempt : store->attempts_of(id)) all[id].push_back(attempt.outcome);
  }
  return all;
}

namespace {

struct Undisturbed {
  Result result;
  int64_t points = 0;
};

const Undisturbed& undisturbed_sweep(Engine engine) {
  static const auto make = [](Engine which) {
    const Sweep sweep(which);
    test::Faults faults(sweep.folder());
    faults.plan().roles = roles_of(which);
    const test::Finished finished = sweep.run(&faults, {"--jobs", "1"});
    EXPECT_EQ(finished.code, 0) << finished.output << finished.errors;
    return Undisturbed{sweep.result(), faults.points()};
  };
  static const Undisturbed fake = make(Engine::kFake);
  if (engine == Engine::kFake) return fake;
  static const Undisturbed looks = make(Engine::kLooks);
  if (engine == Engine::kLooks) return looks;
  static const Undisturbed real = make(Engine::kReal);
  return real;
}

}  // namespace

uint32_t roles_of(Engine engine) { return engine == Engine::kReal ? fault::kProgram : fault::kEverybody; }

const Result& undisturbed(Engine engine) { return undisturbed_sweep(engine).result; }
int64_t undisturbed_points(Engine engine) { return undisturbed_sweep(engine).points; }

bool asked_for_all() { return environment_or("TEARLESS_CRASH", "") == "all"; }
uint32_t seed() {
  const auto today = std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now()).time_since_epoch().count();
  static const std::string drawn = environment_or("TEARLESS_SEED", std::to_string(today).c_str());
  return static_cast<uint32_t>(std::stoul(drawn));
}

std::vector<int64_t> chosen_points(int64_t points, int64_t sample, uint32_t salt) {
  if (are_sanitized()) sample = std::max<int64_t>(1, sample / 3);  // everything takes three times as long
  std::vector<int64_t> all(static_cast<size_t>(points));
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i) + 1;
  if (asked_for_all() || points <= sample) return all;
  std::mt19937 random(seed() * 1000003u + salt);
  std::shuffle(all.begin(), all.end(), random);
  all.resize(static_cast<size_t>(sample));
  std::sort(all.begin(), all.end());
  return all;
}

void in_parallel(size_t count, const std::function<void(size_t)>& trial) {
  std::atomic<size_t> next = 0;
  std::vector<std::thread> workers;
  for (unsigned i = 0; i < std::max(2u, std::thread::hardware_concurrency()); ++i) {
    workers.emplace_back([&] {
      for (size_t number; (number = next++) < count;) {
        trial(number);
        if (number % 100 == 99) std::fprintf(stderr, "%zu of %zu tried\n", number + 1, count);
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
}

}  // namespace tearless::crash
