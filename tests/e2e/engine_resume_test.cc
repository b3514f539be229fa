// The real engine stopped, killed and without disk space at many points: it resumes, and leaves the bytes of an
// undisturbed run.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <tuple>

#include "tests/e2e/small_training.h"

namespace tearless::engine_resume_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;
using Settings = std::map<std::string, std::string>;
using Sums = std::map<std::string, std::string>;

constexpr size_t kLinesAnUpdate = 3;  // loss, learning rate and gradient norm of every update
constexpr int kUpdates = 60;

/// $TEARLESS_TEST_SEED chooses other points.
unsigned test_seed() {
  const char* chosen = std::getenv("TEARLESS_TEST_SEED");
  const unsigned seed = chosen ? static_cast<unsigned>(std::atoi(chosen)) : 20260131u;
  std::cout << "seed " << seed << "\n";
  return seed;
}

/// `count` different updates of the first two thirds, in order.
std::vector<int> seeded_points(size_t count) {
  std::mt19937 random(test_seed());
  std::set<int> points;
  while (points.size() < count) points.insert(1 + static_cast<int>(random() % (2 * kUpdates / 3)));
  return {points.begin(), points.end()};
}

/// A corpus and a cache that all tests share, and an undisturbed run.
struct Shared {
  test::TempFolder folder;
  Sums undisturbed;
};

class EngineResume : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    shared_ = new Shared;
    test::write_small_corpus(shared_->folder.path());
    const Started undisturbed = start("undisturbed", test::small_settings());
    const test::Finished ended = test::run(undisturbed.command);
    ASSERT_EQ(ended.code, kExitDone) << ended.output << ended.errors;
    shared_->undisturbed = test::checksums(undisturbed.run());
  }
  static void TearDownTestSuite() { delete shared_; }

  /// A command that creates and trains the run of some settings in a folder of its own; run again, it resumes.
  struct Started {
    test::Command command;
    fs::path runs;
    RunDirectory run() const {
      for (const auto& entry : fs::directory_iterator(runs)) return RunDirectory(entry.path());
      return RunDirectory(runs / "none");
    }
    /// Lines of metrics so far; 0 before there is a run.
    size_t lines() const { return fs::exists(runs) ? test::count_lines(run().metrics()) : 0; }
  };
  static Started start(const std::string& name, const Settings& settings) {
    const fs::path config = shared_->folder / (name + ".toml"), runs = shared_->folder / name;
    test::write_text(config, test::toml_of(settings));
    return {{.arguments = {test::program("tearless-engine").string(), "train", "--config", config.string(), "--runs",
                           runs.string()},
             .environment = {{"TEARLESS_CACHE", (shared_->folder / "cache").string()}}},
            runs};
  }

  /// Runs until `update` is reported (and at least one that was not before), then sends `signal`.
  static int interrupt_at(const Started& started, int update, int signal) {
    const size_t wanted = std::max(kLinesAnUpdate * static_cast<size_t>(update), started.lines() + 1);
    test::Background engine(started.command);
    EXPECT_TRUE(test::eventually([&] { return started.lines() >= wanted; })) << "update " << update;
    engine.signal(signal);
    return engine.wait().code;
  }

  static void expect_same_bytes_after_stops_and_kills(const std::string& name, const Settings& settings) {
    SCOPED_TRACE(name);
    const Started undisturbed = start(name, settings), started = start(name + "-disturbed", settings);
    const test::Finished ended = test::run(undisturbed.command);
    ASSERT_EQ(ended.code, kExitDone) << ended.errors;
    int signal = SIGKILL, code = 128 + SIGKILL;
    for (const int update : seeded_points(6)) {
      EXPECT_EQ(interrupt_at(started, update, signal), code) << "at update " << update;
      std::tie(signal, code) = signal == SIGKILL ? std::pair(SIGTERM, int{kExitStopped}) : std::pair(SIGKILL, 137);
    }
    ASSERT_EQ(test::run(started.command).code, kExitDone);
    EXPECT_EQ(test::checksums(started.run()), test::checksums(undisturbed.run()));
  }

  static void expect_undisturbed_bytes(const Started& started) {
    const test::Finished ended = test::run(started.command);
    ASSERT_EQ(ended.code, kExitDone) << ended.output << ended.errors;
    EXPECT_EQ(test::checksums(started.run()), shared_->undisturbed);
  }

  static Shared* shared_;
};
Shared* EngineResume::shared_ = nullptr;

TEST_F(EngineResume, StoppedByRequestAtSeededPointsLeavesTheSameBytes) {
  const Started started = start("stopped", test::small_settings());
  for (const int update : seeded_points(6))
    EXPECT_EQ(interrupt_at(started, update, SIGTERM), kExitStopped) << "at update " << update;
  EXPECT_EQ(started.run().newest_attempt(), 6);
  EXPECT_FALSE(fs::exists(started.run().done()));
  expect_undisturbed_bytes(started);
}

TEST_F(EngineResume, KilledAtSeededPointsLeavesTheSameBytes) {
  const Started started = start("killed", test::small_settings());
  for (const int update : seeded_points(6))
    EXPECT_EQ(interrupt_at(started, update, SIGKILL), 128 + SIGKILL) << "at update " << update;
  expect_undisturbed_bytes(started);
}

// A stop leaves checkpoints of other updates, on either side of those that are averaged.
TEST_F(EngineResume, AMeanOfCheckpointsIsTheSameAfterStopsAndKills) {
  for (const std::string kind : {"last", "best"}) {
    Settings settings = test::small_settings();
    settings["train.select.kind"] = fmt::format("\"{}\"", kind);
    settings["train.select.count"] = "3";
    expect_same_bytes_after_stops_and_kills(kind, settings);
  }
}

TEST_F(EngineResume, MergedAttentionWithBuffersOfBatchesLeavesTheSameBytesAfterStopsAndKills) {
  Settings settings = test::small_settings();
  settings["model.decoder_sublayers"] = "\"matt, ffn\"";
  settings["model.input_vector"] = "true";
  settings["train.batch.count"] = "\"padded_below\"";
  settings["train.batch.regenerate"] = "\"buffers\"";
  settings["train.batch.buffer"] = "100";
  settings["decode.search"] = "\"t2t\"";
  expect_same_bytes_after_stops_and_kills("merged", settings);
}

// Passes of about eleven updates, evaluations apart from them, and batches that are made once.
TEST_F(EngineResume, PassesOfMaxTokenBatchesLeaveTheSameBytesAfterStopsAndKills) {
  Settings settings = test::small_settings();
  settings["train.epoch_updates"] = "\"pass\"";
  settings["train.evaluate_updates"] = "9";
  settings["train.batch.count"] = "\"max_tokens\"";
  settings["train.batch.regenerate"] = "\"once\"";
  settings["train.label_smoothing_form"] = "\"zero\"";
  settings["train.loss_mean"] = "\"sentences\"";
  settings["model.mask_target_vocabulary"] = "false";
  const Started undisturbed = start("passes", settings), started = start("passes-disturbed", settings);
  ASSERT_EQ(test::run(undisturbed.command).code, kExitDone);
  EXPECT_EQ(read_done(undisturbed.run()).value().reason, "max_epochs");
  const int64_t updates = read_done(undisturbed.run()).value().step;
  for (const auto& [part, signal, code] :
       {std::tuple(3, SIGKILL, 128 + SIGKILL), {2, SIGTERM, int{kExitStopped}}, {1, SIGKILL, 128 + SIGKILL}}) {
    const auto update = static_cast<int>(updates - part * updates / 4);
    EXPECT_EQ(interrupt_at(started, update, signal), code) << "at update " << update;
  }
  ASSERT_EQ(test::run(started.command).code, kExitDone);
  EXPECT_EQ(test::checksums(started.run()), test::checksums(undisturbed.run()));
}

// Without a learning rate no evaluation is better than the first: the third without a better score ends the training.
TEST_F(EngineResume, StoppedBetweenTheEvaluationsThatEndItEarlyItEndsAtTheSameUpdate) {
  Settings settings = test::small_settings();
  settings["train.early_stop"] = "3";
  settings["train.max_epochs"] = "12";
  settings["train.epoch_updates"] = "5";
  settings["train.schedule.kind"] = "\"nowarmup\"";
  settings["train.schedule.lr"] = "1e-12";
  settings["train.min_lr"] = "0.0";
  settings.erase("train.schedule.scale");
  settings.erase("train.schedule.warmup_updates");
  const Started undisturbed = start("early", settings), stopped = start("early-stopped", settings);
  ASSERT_EQ(test::run(undisturbed.command).code, kExitDone);
  const Done done = read_done(undisturbed.run()).value();
  EXPECT_EQ(done.reason, "early_stop");
  EXPECT_EQ(done.step, 20);
  for (const int update : {7, 12, 17}) EXPECT_EQ(interrupt_at(stopped, update, SIGTERM), kExitStopped) << update;
  ASSERT_EQ(test::run(stopped.command).code, kExitDone);
  EXPECT_EQ(test::checksums(stopped.run()), test::checksums(undisturbed.run()));
}

/// True while a checkpoint is being written: a folder tmp-N of a step that is not published yet.
bool writes_a_checkpoint(const RunDirectory& run) {
  std::error_code moving;  // folders come and go meanwhile
  for (const auto& entry : fs::directory_iterator(run.checkpoints(), moving)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("tmp-") && !fs::exists(run.checkpoints() / ("step-" + name.substr(4)), moving)) return true;
  }
  return false;
}

/// As wide as it takes for the writing of a checkpoint to be long enough to be caught.
Settings wide_settings() {
  Settings wide = test::small_settings();
  wide["model.d_model"] = "192";
  wide["model.d_ff"] = "1024";
  wide["train.max_epochs"] = "3";
  wide["train.epoch_updates"] = "4";
  return wide;
}

TEST_F(EngineResume, DisturbedWhileACheckpointIsWrittenLeavesTheSameBytes) {
  const Started undisturbed = start("wide", wide_settings());
  ASSERT_EQ(test::run(undisturbed.command).code, kExitDone);

  for (const auto& [signal, code] : {std::pair(SIGKILL, 128 + SIGKILL), std::pair(SIGTERM, int{kExitStopped})}) {
    const Started started = start("wide-" + std::to_string(signal), wide_settings());
    bool caught = false;
    for (int attempt = 0; attempt < 10 && !caught; ++attempt) {
      test::Background engine(started.command);
      const auto done = [&] { return fs::exists(started.runs) && fs::exists(started.run().done()); };
      while (!fs::exists(started.runs) ||
             !(writes_a_checkpoint(started.run()) || done())) {  // no sleep: the write is short
      }
      ASSERT_FALSE(done()) << "no signal fell into the writing of a checkpoint";
      engine.signal(signal);
      EXPECT_EQ(engine.wait().code, code);
      // A killed engine leaves an incomplete checkpoint; one that is asked to stop finishes it first.
      caught = signal == SIGTERM || writes_a_checkpoint(started.run());
    }
    EXPECT_TRUE(caught);
    ASSERT_EQ(test::run(started.command).code, kExitDone);
    EXPECT_EQ(test::checksums(started.run()), test::checksums(undisturbed.run()));
  }
}

/// Some bytes of a file turned over.
void spoil(const fs::path& file) {
  std::string bytes = test::read_text(file);
  for (size_t i = bytes.size() / 3; i < bytes.size() / 2; ++i) bytes[i] = static_cast<char>(~bytes[i]);
  test::write_text(file, bytes);
}

TEST_F(EngineResume, DamagedBetweenTwoAttemptsLeavesTheSameBytes) {
  const Started started = start("damaged", test::small_settings());
  const auto newest = [&] {
    int64_t step = 0;
    for (const auto& entry : fs::directory_iterator(started.run().checkpoints()))
      step = std::max<int64_t>(step, std::stoll(entry.path().filename().string().substr(5)));
    return started.run().checkpoints() / ("step-" + std::to_string(step));
  };
  EXPECT_EQ(interrupt_at(started, 20, SIGTERM), kExitStopped);
  spoil(newest() / "state.bin");
  EXPECT_EQ(interrupt_at(started, 25, SIGTERM), kExitStopped);
  spoil(newest() / "manifest.json");
  EXPECT_EQ(interrupt_at(started, 20, SIGTERM), kExitStopped);
  fs::remove(newest() / "state.bin");
  EXPECT_EQ(interrupt_at(started, 20, SIGKILL), 128 + SIGKILL);
  spoil(started.run().metrics());
  const test::Finished ended = test::run(started.command);
  EXPECT_EQ(ended.code, kExitDone) << ended.errors;
  EXPECT_THAT(ended.output, HasSubstr("no longer begins with what it held at update"));
  EXPECT_THAT(ended.output, HasSubstr("the run resumes from an older one or from the start"));
  EXPECT_EQ(test::checksums(started.run()), shared_->undisturbed);
}

TEST_F(EngineResume, CheckpointsOfAnotherRunAreRefusedUntilTheyAreDeleted) {
  Settings settings = test::small_settings();
  const Started other = start("other-run", settings);
  settings["train.seed"] = "5";
  const Started undisturbed = start("seed-5", settings), started = start("seed-5-with-others", settings);
  EXPECT_EQ(interrupt_at(other, 20, SIGTERM), kExitStopped);
  EXPECT_EQ(interrupt_at(started, 20, SIGTERM), kExitStopped);
  ASSERT_EQ(test::run(undisturbed.command).code, kExitDone);
  const RunDirectory from = other.run(), to = started.run();
  fs::remove_all(to.checkpoints());
  fs::copy(from.checkpoints(), to.checkpoints(), fs::copy_options::recursive);
  fs::copy_file(from.metrics(), to.metrics(), fs::copy_options::overwrite_existing);

  const test::Finished refused = test::run(started.command);
  EXPECT_EQ(refused.code, EXIT_FAILURE);
  EXPECT_THAT(refused.errors,
              testing::MatchesRegex("tearless-engine: the checkpoint [^\n]*step-[0-9]+ is of the run " + from.id() +
                                    ", not of " + to.id() + "; delete that folder;[^\n]*\n"));
  EXPECT_EQ(test::read_text(to.metrics()), test::read_text(from.metrics()));
  EXPECT_EQ(to.checkpoint_steps(), from.checkpoint_steps());

  for (const int64_t step : to.checkpoint_steps()) fs::remove_all(to.checkpoint(step));
  ASSERT_EQ(test::run(started.command).code, kExitDone);
  EXPECT_EQ(test::checksums(to), test::checksums(undisturbed.run()));
}

TEST_F(EngineResume, EndsWhenANewerAttemptBegins) {
  const Started started = start("replaced", test::small_settings());
  test::Background engine(started.command);
  ASSERT_TRUE(test::eventually([&] { return started.lines() > 0; }));
  fs::create_directories(started.run().attempt(2));
  const test::Finished ended = engine.wait();
  EXPECT_EQ(ended.code, kExitStopped);
  EXPECT_THAT(ended.output, HasSubstr("because a newer attempt has started"));
  EXPECT_FALSE(fs::exists(started.run().attempt(1) / "measured.json"));
  EXPECT_FALSE(fs::exists(started.run().done()));
  expect_undisturbed_bytes(started);
}

TEST_F(EngineResume, TwoThreadsLeaveTheBytesOfOne) {
  Settings settings = test::small_settings();
  settings["train.epoch_updates"] = "6";  // few: two threads on busy cores wait for each other
  settings["train.max_epochs"] = "1";
  const Started one = start("one-thread", settings);
  ASSERT_EQ(test::run(one.command).code, kExitDone);
  settings["run.threads"] = "2";
  const Started two = start("two-threads", settings);
  ASSERT_EQ(test::run(two.command).code, kExitDone);
  EXPECT_EQ(json::parse(test::read_text(two.run().attempt(1) / "measured.json")).at("threads"), 2);
  EXPECT_EQ(test::checksums(one.run()), test::checksums(two.run()));
}

// The tests above take the library that this processor chooses, in fp32.
TEST_F(EngineResume, WithAnyMatmulLibraryStopsAndThreadsLeaveTheSameBytes) {
  std::set<std::string> used;
  size_t tried = 0;
  const std::vector<std::pair<std::string, std::string>> libraries = {
      {"run.matmul", "mkl"}, {"run.matmul", "openblas"}, {"run.precision", "bf16"}};
  for (const auto& [key, library] : libraries) {
    Settings settings = test::small_settings();
    settings[key] = "\"" + library + "\"";
    const Started one = start(library, settings);
    const test::Finished ended = test::run(one.command);
    if (ended.errors.find("cannot be used here") != std::string::npos ||
        ended.errors.find("which this one lacks") != std::string::npos) {
      fmt::print("left out: {}", ended.errors);
      continue;
    }
    ASSERT_EQ(ended.code, kExitDone) << ended.errors;
    used.insert(test::read_text(one.run().attempt(1) / "arithmetic"));
    settings["run.threads"] = "2";
    const Started stopped = start(library + "-stopped", settings);
    for (const int update : seeded_points(2))
      EXPECT_EQ(interrupt_at(stopped, update, SIGKILL), 128 + SIGKILL) << "at update " << update;
    ASSERT_EQ(test::run(stopped.command).code, kExitDone);
    EXPECT_EQ(test::checksums(stopped.run()), test::checksums(one.run())) << library;
    ++tried;
  }
  EXPECT_EQ(used.size(), tried) << "one library computed for two of them";
}

TEST_F(EngineResume, ADoneRunIsNotTrainedAgain) {
  const Started done = start("undisturbed", test::small_settings());
  const int64_t attempts = done.run().newest_attempt();
  EXPECT_EQ(test::run(done.command).code, kExitDone);
  EXPECT_EQ(done.run().newest_attempt(), attempts);
}

TEST_F(EngineResume, DecodePrintsTheTranslationsOfTheRun) {
  const Started done = start("undisturbed", test::small_settings());
  test::Command decode = done.command;
  decode.arguments = {decode.arguments[0], "decode", done.run().root().string(), "--input",
                      (shared_->folder / "test.de").string()};
  const test::Finished said = test::run(decode);
  EXPECT_EQ(said.code, kExitDone) << said.errors;
  const std::string translations = test::read_text(done.run().outputs() / "test.hyp");
  EXPECT_EQ(said.output, translations);

  const fs::path model = done.run().model(), checkpoints = done.run().checkpoints();
  fs::rename(model, shared_->folder / "model");
  EXPECT_EQ(test::run(decode).output, translations) << "by the checkpoint, as of a run of an older version";
  fs::rename(checkpoints, shared_->folder / "checkpoints");
  const test::Finished refused = test::run(decode);
  EXPECT_EQ(refused.code, kExitSettingsRefused);
  EXPECT_THAT(refused.errors, HasSubstr("has no model.safetensors: it was deleted;"));
  fs::rename(shared_->folder / "model", model);
  EXPECT_EQ(test::run(decode).output, translations) << "without checkpoints";
  fs::rename(shared_->folder / "checkpoints", checkpoints);
}

Settings diverging_settings() {
  Settings wild = test::small_settings();
  wild["model.norm.kind"] = "\"none\"";
  wild["model.placement"] = "\"pre_no_final\"";
  wild["train.schedule.kind"] = "\"nowarmup\"";
  wild["train.schedule.lr"] = "10";
  wild["train.clip_norm"] = "0";
  wild["model.encoder_layers"] = "8";
  return wild;
}

TEST_F(EngineResume, DivergenceIsAResultWithItsStep) {
  const Started started = start("wild", diverging_settings());
  EXPECT_EQ(test::run(started.command).code, kExitDiverged);
  const Done done = read_done(started.run()).value();
  EXPECT_EQ(done.outcome, "diverged");
  EXPECT_THAT(done.reason, HasSubstr("not finite"));
  // Every update before it was reported.
  EXPECT_THAT(test::read_text(started.run().metrics()), HasSubstr("{\"step\": " + std::to_string(done.step - 1) + ","));
  EXPECT_FALSE(fs::exists(started.run().scores()));
  EXPECT_EQ(test::run(started.command).code, kExitDiverged) << "the second time it only says so";
  EXPECT_EQ(started.run().newest_attempt(), 1);
}

TEST_F(EngineResume, DivergenceAfterAnEvaluationLeavesTheScoresOfTheBestCheckpoint) {
  Settings wild = diverging_settings();
  wild["train.epoch_updates"] = "1";
  const Started started = start("wild-evaluated", wild);
  EXPECT_EQ(test::run(started.command).code, kExitDiverged);
  const Done done = read_done(started.run()).value();
  EXPECT_EQ(done.outcome, "diverged");
  EXPECT_THAT(test::read_text(started.run().scores()),
              testing::AllOf(HasSubstr("\"diverged_step\": " + std::to_string(done.step)),
                             HasSubstr("\"updates\": " + std::to_string(done.step - 1)), HasSubstr("\"test.bleu")));
  for (const char* file : {"scores.json", "gradient_norms.f32", "metrics.jsonl", "outputs/test.hyp"}) {
    EXPECT_TRUE(done.files.contains(file)) << file;
  }
  EXPECT_EQ(fs::file_size(started.run().gradient_norms()), sizeof(float) * (done.step - 1));
  EXPECT_EQ(test::run(started.command).code, kExitDiverged) << "the second time it only says so";
  EXPECT_EQ(started.run().newest_attempt(), 1);
}

TEST_F(EngineResume, ASecondEngineOnTheSameRunIsRefused) {
  Settings settings = test::small_settings();
  settings["train.seed"] = "5";
  settings["train.max_epochs"] = "1000";  // longer than a second engine needs to start
  const Started started = start("contended", settings);
  test::Background first(started.command);
  ASSERT_TRUE(test::eventually([&] { return started.lines() > 0; }));
  const test::Finished second = test::run(started.command);
  EXPECT_EQ(second.code, kExitSettingsRefused);
  EXPECT_THAT(second.errors, HasSubstr("is in use by another process"));
  first.signal(SIGTERM);
  EXPECT_EQ(first.wait().code, kExitStopped);
}

TEST_F(EngineResume, ATamperedRunIsRefused) {
  Settings settings = test::small_settings();
  settings["train.max_epochs"] = "1";
  settings["train.epoch_updates"] = "2";
  const Started started = start("tampered", settings);
  ASSERT_EQ(test::run(started.command).code, kExitDone);
  const RunDirectory run = started.run();
  test::Command again = started.command;
  again.arguments = {again.arguments[0], "train", run.root().string()};

  const std::string scores = test::read_text(run.scores());
  test::write_text(run.scores(), scores + " ");
  test::Finished refused = test::run(again);
  EXPECT_EQ(refused.code, kExitSettingsRefused);
  EXPECT_THAT(refused.errors, HasSubstr("scores.json was changed after the run ended; restore it, or delete"));
  test::write_text(run.scores(), scores);
  EXPECT_EQ(test::run(again).code, kExitDone);

  test::write_text(run.settings(), test::read_text(run.settings()) + "train.seed = 9\n");
  refused = test::run(again);
  EXPECT_EQ(refused.code, kExitSettingsRefused);
  EXPECT_THAT(refused.errors, HasSubstr("run.toml was changed: the folder is named " + run.root().filename().string()));
}

// A limit on the size of files stands for a full disk: checkpoints do not fit. It is not the settings' fault, so the
// exit code lets the harness try again.
TEST_F(EngineResume, AFullDiskIsReportedAndTheRunResumesLater) {
  const Started started = start("starved", test::small_settings());
  test::Command limited = started.command;
  std::string line = "trap '' XFSZ; ulimit -f 300; exec";
  for (const std::string& argument : limited.arguments) line += " '" + argument + "'";
  limited.arguments = {"/bin/sh", "-c", line};
  const test::Finished full = test::run(limited);
  EXPECT_EQ(full.code, EXIT_FAILURE);
  EXPECT_THAT(full.errors,
              testing::MatchesRegex("tearless-engine: cannot write [^\n]*state.bin: File too large[^\n]*\n"));
  EXPECT_FALSE(fs::exists(started.run().done()));
  expect_undisturbed_bytes(started);
}

}  // namespace
}  // namespace tearless::engine_resume_test
