// Which attempt an engine belongs to, and run directories that were truncated or have a flipped bit: each is refused or
// gives the same run, never another.
#include "engine/run/attempt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <functional>
#include <random>

#include "base/error.h"
#include "base/files.h"
#include "engine/data/prepared.h"
#include "engine/data/token_file.h"
#include "tests/engine/run/small_runs.h"
#include "tests/engine/train/in_memory.h"
#include "tests/support/error_of.h"
#include "tests/support/sanitized.h"

namespace tearless::engine::attempt_test {
namespace {

using tearless::test::error_of;
namespace fs = std::filesystem;
using nlohmann::json;
using test::read_text;
using test::write_text;
using testing::HasSubstr;

/// The variables of a supervisor, gone at the end of the scope.
class Variables {
 public:
  Variables(const std::string& attempt, const std::string& lock) {
    ::setenv("TEARLESS_ATTEMPT", attempt.c_str(), 1);
    ::setenv("TEARLESS_LOCK_FD", lock.c_str(), 1);
  }
  ~Variables() {
    ::unsetenv("TEARLESS_ATTEMPT");
    ::unsetenv("TEARLESS_LOCK_FD");
  }
  Variables(const Variables&) = delete;
  Variables& operator=(const Variables&) = delete;
};

class InheritedAttempts : public testing::Test {
 protected:
  InheritedAttempts() : run_(folder_.path()) { run_.make_attempt(); }
  std::optional<int64_t> inherited() const {
    const auto found = inherited_attempt(run_);
    return found ? std::optional(found->number) : std::nullopt;
  }

  tearless::test::TempFolder folder_;
  RunDirectory run_;
};

TEST_F(InheritedAttempts, AreAcceptedWithTheLockOfThisRun) {
  const auto lock = LockFile::try_acquire(run_.lock());
  const Variables variables("1", std::to_string(::dup(lock->descriptor())));  // which it owns from then on
  EXPECT_EQ(inherited(), 1);
}

TEST_F(InheritedAttempts, AreNotAcceptedForTheirVariablesAlone) {
  EXPECT_EQ(inherited(), std::nullopt);
  const auto lock = LockFile::try_acquire(run_.lock());
  const std::string descriptor = std::to_string(lock->descriptor());
  const auto believed = [&](const std::string& attempt, const std::string& descriptor) {
    const Variables variables(attempt, descriptor);
    return inherited().has_value();
  };
  EXPECT_FALSE(believed("1", "987")) << "not open";
  EXPECT_FALSE(believed("1", "-1"));
  EXPECT_FALSE(believed("1", "4294967296"));
  EXPECT_FALSE(believed("1", ""));
  EXPECT_FALSE(believed("1", descriptor + "x"));
  EXPECT_FALSE(believed("1x", descriptor));
  EXPECT_FALSE(believed("0", descriptor));
  EXPECT_FALSE(believed("2", descriptor)) << "there is no such attempt";
  const tearless::test::TempFolder other;
  const auto others_lock = LockFile::try_acquire(other / "lock");
  EXPECT_FALSE(believed("1", std::to_string(others_lock->descriptor()))) << "the lock of another run";
  run_.make_attempt();
  EXPECT_FALSE(believed("1", descriptor)) << "a newer attempt has begun";
  ::setenv("TEARLESS_ATTEMPT", "2", 1);
  EXPECT_EQ(inherited(), std::nullopt) << "an old supervisor, or a shell";
  ::unsetenv("TEARLESS_ATTEMPT");
}

/// A run of two updates that is done.
class DoneRun : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const test::InMemory in_memory;
    runs_ = new test::SmallRuns;
    for (const char* set : {"train", "dev", "test"}) runs_->write(set, {{"a b c", "c b a"}, {"b a", "a b"}});
    settings_ = test::with(test::corpus_settings(), {{"text.kind", "segmented"},
                                                     {"model.encoder_layers", 1},
                                                     {"model.decoder_layers", 1},
                                                     {"model.d_model", 8},
                                                     {"model.d_ff", 8},
                                                     {"model.heads", 1},
                                                     {"train.epoch_updates", 2},
                                                     {"train.max_epochs", 1},
                                                     {"run.log_updates", 1}});
    run_ = new RunDirectory(runs_->make(settings_));
    ASSERT_EQ(attempt_run(run_->root()), kExitDone);
  }
  static void TearDownTestSuite() {
    delete run_;
    delete runs_;
  }

  /// Damages `file` in every way (cut at every byte and each bit flipped, up to 64 KiB; a seeded sample beyond; under
  /// the sanitizers every third of them) and calls `check` with what was done, then restores it.
  static void damage(const fs::path& file, const std::function<void(const std::string& what)>& check) {
    const std::string good = read_text(file);
    std::mt19937 random(20260131);
    const size_t every = 64 * 1024;
    const auto try_it = [&](const std::string& bytes, const std::string& what) {
      write_text(file, bytes);
      check(file.filename().string() + " " + what);
    };
    const auto flipped = [&](size_t bit) {
      std::string bytes = good;
      bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
      return bytes;
    };
    constexpr size_t kStep = tearless::test::kSanitized ? 3 : 1;
    for (size_t size = 0; size < std::min(good.size(), every); size += kStep)
      try_it(good.substr(0, size), "cut to " + std::to_string(size));
    for (size_t bit = 0; bit < 8 * std::min(good.size(), every); bit += kStep)
      try_it(flipped(bit), "with bit " + std::to_string(bit) + " flipped");
    for (int i = 0; good.size() > every && i < 200; ++i) {
      const size_t bit = random() % (8 * good.size());
      try_it(flipped(bit), "with bit " + std::to_string(bit) + " flipped");
      try_it(good.substr(0, bit / 8), "cut to " + std::to_string(bit / 8));
    }
    write_text(file, good);
  }

  static test::SmallRuns* runs_;
  static test::Settings settings_;
  static RunDirectory* run_;
};
test::SmallRuns* DoneRun::runs_ = nullptr;
test::Settings DoneRun::settings_;
RunDirectory* DoneRun::run_ = nullptr;

TEST_F(DoneRun, SettingsThatWereDamagedAreRefused) {
  damage(run_->settings(), [&](const std::string& what) {
    EXPECT_THAT(error_of([&] { read_run_directory(run_->root()); }), HasSubstr("was changed")) << what;
  });
}

// Nothing in local.toml can reach the run's identity.
TEST_F(DoneRun, LocalSettingsThatWereDamagedAreRefusedOrGiveTheSameRun) {
  RunOptions good = read_run_directory(run_->root());
  const std::string identity = canonical_text(good);
  int refused = 0, taken = 0;
  damage(run_->local(), [&](const std::string& what) {
    const std::string error = error_of([&] {
      RunOptions options = read_run_directory(run_->root());
      EXPECT_EQ(canonical_text(options), identity) << what;
      ++taken;
    });
    refused += !error.empty();
  });
  EXPECT_GT(refused, 100);
  EXPECT_GT(taken, 100);
}

TEST_F(DoneRun, ResultsThatWereDamagedAreRefused) {
  const json scores = json::parse(read_result(*run_, "scores.json"));
  EXPECT_EQ(scores.at("updates"), 2);
  damage(run_->scores(), [&](const std::string& what) {
    EXPECT_THAT(error_of([&] { read_result(*run_, "scores.json"); }), HasSubstr("was changed after the run ended"))
        << what;
  });
  for (const char* name : {"metrics.jsonl", "gradient_norms.f32", "outputs/dev.hyp", "outputs/test.stats"}) {
    const std::string good = read_text(run_->root() / name);
    write_text(run_->root() / name, good.substr(0, good.size() - 1));
    EXPECT_THAT(error_of([&] { attempt_run(run_->root()); }), HasSubstr(std::string(name) + " was changed"));
    write_text(run_->root() / name, good);
  }
}

TEST_F(DoneRun, ADoneThatWasDamagedIsRefusedOrSaysTheSame) {
  const json scores = json::parse(read_result(*run_, "scores.json"));
  damage(run_->done(), [&](const std::string& what) {
    error_of([&] { EXPECT_EQ(json::parse(read_result(*run_, "scores.json")), scores) << what; });
    error_of([&] { EXPECT_EQ(attempt_run(run_->root()), kExitDone) << what; });
  });
  EXPECT_EQ(run_->newest_attempt(), 1);
}

TEST_F(DoneRun, ADamagedPreparedCorpusIsFoundOrGivesTheSameRun) {
  const RunOptions options = read_run_directory(run_->root());
  const TranslateOptions& translation = test::translation(options);
  const fs::path file = prepared_folder(preparation_key(translation.data, translation.text)) / "tokens.bin";
  const std::string good = token_file_bytes(read_token_file(file, translation.text.kind));
  damage(file, [&](const std::string& what) {
    try {
      EXPECT_EQ(token_file_bytes(read_token_file(file, translation.text.kind)), good) << what;
    } catch (const std::exception&) {  // found: it is regenerated
    }
  });
}

TEST_F(DoneRun, IsNotDoneBeforeThereIsADone) {
  const RunDirectory fresh(runs_->make(settings_));
  EXPECT_THAT(error_of([&] { read_result(fresh, "scores.json"); }), HasSubstr("the run is not done; train it first"));
}

// As a shell might have exported it: the attempt is made as by hand.
TEST_F(DoneRun, VariablesOfAnotherAttemptAreNotFollowed) {
  const RunDirectory run(runs_->make(settings_));
  run.make_attempt();
  const Variables variables("1", "987");
  EXPECT_EQ(attempt_run(run.root()), kExitDone);
  EXPECT_EQ(run.newest_attempt(), 2);
  EXPECT_TRUE(fs::exists(run.attempt(2) / "measured.json"));
  EXPECT_FALSE(fs::exists(run.attempt(1) / "measured.json"));
  EXPECT_EQ(read_text(run.attempt(2) / "phase"), "publishing");
}

TEST_F(DoneRun, AnExportedAttemptDoesNotGetPastTheLock) {
  const RunDirectory run(runs_->make(settings_));
  run.make_attempt();
  const auto lock = LockFile::try_acquire(run.lock());
  const Variables variables("1", "987");
  EXPECT_THAT(error_of([&] { attempt_run(run.root()); }), HasSubstr("is in use by another process"));
}

}  // namespace
}  // namespace tearless::engine::attempt_test
