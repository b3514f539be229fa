// The training loop after crashes, stops, damage and a newer attempt: the run resumes, and leaves the bytes of an
// undisturbed one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "base/error.h"
#include "base/files.h"
#include "tests/engine/train/toy.h"
#include "tests/support/error_of.h"

namespace tearless::engine::resume_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::read_text;
using test::results_of;
using test::Toy;
using test::write_text;
using testing::HasSubstr;

/// Three epochs of seven updates with a report after every third: a stop nearly everywhere leaves an epoch, a report
/// and a pass open.
class Resumed : public test::Trained {
 protected:
  Resumed() {
    train_.epoch_updates = 7;
    train_.max_epochs = 3;
    execution_.log_updates = 3;
    train_.schedule.decay_rule = DecayRule::kBestPatience;
    train_.schedule.decay_patience = 1;
  }

  Toy toy() const {
    Toy made;
    made.wanted_size = best_;
    return made;
  }
  /// Trains to the end without a disturbance, then leaves an empty run directory.
  std::string undisturbed() {
    Toy task = toy();
    EXPECT_EQ(attempt(task), kExitDone);
    const std::string results = results_of(run_);
    start_again();
    return results;
  }
  ExitCode stop_at(uint32_t update, int times = 1) const {
    Toy task = toy();
    task.at_update = [&](uint32_t n) {
      for (int i = 0; n == update && i < times; ++i) ::raise(SIGTERM);
    };
    return attempt(task);
  }
  std::string finished() const {
    Toy task = toy();
    EXPECT_EQ(attempt(task), kExitDone);
    return results_of(run_);
  }
  fs::path checkpoint(int64_t step) const { return run_.checkpoints() / ("step-" + std::to_string(step)); }
  std::vector<int64_t> steps() const {
    std::vector<int64_t> found;
    for (const auto& entry : fs::directory_iterator(run_.checkpoints()))
      found.push_back(std::stoll(entry.path().filename().string().substr(5)));
    std::sort(found.begin(), found.end());
    return found;
  }
  /// Bytes of metrics.jsonl that the newest attempt found and retained: how far back it went.
  uint64_t retained() const {
    return json::parse(read_text(run_.attempt(run_.newest_attempt()) / "measured.json")).at("metrics_kept_bytes");
  }
  /// Bytes of metrics.jsonl at a checkpoint.
  uint64_t recorded(int64_t step) const {
    return json::parse(read_text(checkpoint(step) / "manifest.json")).at("state").at("metrics_bytes");
  }
  static void flip(const fs::path& file, size_t at) {
    std::string bytes = read_text(file);
    bytes.at(at) = static_cast<char>(bytes.at(at) ^ 1);
    write_text(file, bytes);
  }

  /// What the parameters measure after each evaluation: it chooses the best one.
  static constexpr double kAtSeven = 1.285, kAtFourteen = 1.317, kAtTwentyOne = 1.239;
  double best_ = kAtFourteen;
};

TEST_F(Resumed, ACrashAtEveryUpdateDoesNotShow) {
  const std::string expected = undisturbed();
  for (uint32_t update = 1; update <= 21; ++update) {
    Toy crashing = toy();
    crashing.crash_at = update;
    EXPECT_THROW(attempt(crashing), std::runtime_error) << update;
  }
  EXPECT_EQ(finished(), expected);
}

TEST_F(Resumed, AStopAtAnyUpdateDoesNotShow) {
  const std::string expected = undisturbed();
  for (uint32_t update = 1; update <= 20; ++update) {
    start_again();
    EXPECT_EQ(stop_at(update), kExitStopped) << update;
    EXPECT_EQ(steps().back(), update) << "the update under way is finished, and no other";
    EXPECT_EQ(finished(), expected) << update;
  }
}

TEST_F(Resumed, AStopAtEveryUpdateOneAfterAnotherDoesNotShow) {
  const std::string expected = undisturbed();
  for (uint32_t update = 1; update <= 20; ++update) EXPECT_EQ(stop_at(update), kExitStopped) << update;
  EXPECT_EQ(finished(), expected);
}

// No size is nearer to the best one than that after update 14: three evaluations later the training ends.
TEST_F(Resumed, AStopAtAnyUpdateLeavesTheEarlyEndWhereItWas) {
  train_.max_epochs = 10;
  train_.early_stop = 3;
  const std::string expected = undisturbed();
  ASSERT_THAT(expected, testing::AllOf(HasSubstr("\"reason\": \"early_stop\""), HasSubstr("\"step\": 35\n}")));
  for (uint32_t update = 1; update < 35; ++update) {
    start_again();
    EXPECT_EQ(stop_at(update), kExitStopped) << update;
    EXPECT_EQ(finished(), expected) << update;
  }
  start_again();
  for (uint32_t update = 1; update < 35; ++update) EXPECT_EQ(stop_at(update), kExitStopped) << update;
  EXPECT_EQ(finished(), expected);
}

TEST_F(Resumed, AskedTwiceItStopsOnce) {
  const std::string expected = undisturbed();
  EXPECT_EQ(stop_at(5, /*times=*/2), kExitStopped);
  EXPECT_EQ(finished(), expected);
}

TEST_F(Resumed, AStopInsideAnEvaluationGoesBackToBeforeIt) {
  const std::string expected = undisturbed();
  for (const size_t evaluation : {0, 1, 1}) {  // the third goes through the one that stopped the second
    Toy stopped = toy();
    stopped.at_evaluation = [&](size_t n) {
      if (n == evaluation) throw StopRequested();
    };
    EXPECT_EQ(attempt(stopped), kExitStopped);
    EXPECT_FALSE(fs::exists(run_.done()));
  }
  EXPECT_EQ(finished(), expected);
}

// The checkpoint that follows the evaluation is written all the same, and with it what the evaluation said.
TEST_F(Resumed, AStopThatComesTooLateForAnEvaluationKeepsIt) {
  const std::string expected = undisturbed();
  Toy stopped = toy();
  stopped.at_evaluation = [](size_t) { ::raise(SIGTERM); };
  EXPECT_EQ(attempt(stopped), kExitStopped);
  EXPECT_EQ(json::parse(read_text(checkpoint(7) / "manifest.json")).at("state").at("evaluated_at"), 7);
  EXPECT_EQ(finished(), expected);
}

// step-14 is from before its evaluation and refers to the best checkpoint of then, which the repeated evaluation must
// not remove.
TEST_F(Resumed, ACrashAfterARepeatedEvaluationResumesBeforeIt) {
  const std::string expected = undisturbed();
  Toy stopped = toy();
  stopped.at_evaluation = [&](size_t n) {
    if (n == 1) throw StopRequested();
  };
  EXPECT_EQ(attempt(stopped), kExitStopped);
  const uint64_t at_fourteen = recorded(14);
  Toy crashing = toy();
  crashing.crash_at = 16;
  EXPECT_THROW(attempt(crashing), std::runtime_error);
  EXPECT_EQ(finished(), expected);
  EXPECT_EQ(retained(), at_fourteen);
}

TEST_F(Resumed, AStopInsideTheFinalScoresLeavesNoResult) {
  for (const double best : {kAtSeven, kAtTwentyOne}) {  // the selected checkpoint is another one, or the newest
    best_ = best;
    start_again();
    const std::string expected = undisturbed();
    Toy stopped = toy();
    stopped.at_final_scores = [] {
      ::raise(SIGTERM);
      throw_if_stopped();
    };
    EXPECT_EQ(attempt(stopped), kExitStopped);
    EXPECT_FALSE(fs::exists(run_.scores()));
    EXPECT_FALSE(fs::exists(run_.done()));
    EXPECT_EQ(finished(), expected);
  }
}

class Diverging : public Resumed {
 protected:
  /// In update 18, after the best evaluation at 14.
  ExitCode diverge(const std::function<void(Toy&)>& prepare = {}) const {
    Toy task = toy();
    task.spoil_at = 18;
    if (prepare) prepare(task);
    return attempt(task);
  }
  std::string undisturbed() {
    EXPECT_EQ(diverge(), kExitDiverged);
    EXPECT_EQ(json::parse(read_text(run_.scores())).at("selected_step"), 14);
    const std::string results = results_of(run_);
    start_again();
    return results;
  }
};

TEST_F(Diverging, AStopAtAnyUpdateBeforeItDoesNotShow) {
  const std::string expected = undisturbed();
  for (const uint32_t update : {3, 14, 15, 17}) {
    EXPECT_EQ(stop_at(update), kExitStopped) << update;
  }
  EXPECT_EQ(diverge(), kExitDiverged);
  EXPECT_EQ(results_of(run_), expected);
}

// The parameters are then those of the selected checkpoint: a checkpoint of them would be of no update.
TEST_F(Diverging, AStopInsideTheScoresOfItsBestCheckpointLeavesNoResultAndNoCheckpoint) {
  const std::string expected = undisturbed();
  const auto stopped = [](Toy& task) {
    task.at_final_scores = [] {
      ::raise(SIGTERM);
      throw_if_stopped();
    };
  };
  EXPECT_EQ(diverge(stopped), kExitStopped);
  EXPECT_FALSE(fs::exists(run_.scores()));
  EXPECT_FALSE(fs::exists(run_.done()));
  EXPECT_THAT(steps(), testing::ElementsAre(14));
  EXPECT_EQ(diverge(), kExitDiverged);
  EXPECT_EQ(results_of(run_), expected);
}

TEST_F(Diverging, ABestCheckpointLostBeforeItIsTrainedAgain) {
  const std::string expected = undisturbed();
  bool lost = false;
  const auto lose_it = [&](Toy& task) {
    task.at_update = [&](uint32_t n) {
      if (n == 18 && !std::exchange(lost, true)) flip(checkpoint(14) / "state.bin", 3);
    };
  };
  EXPECT_EQ(diverge(lose_it), kExitDiverged);
  EXPECT_EQ(results_of(run_), expected);
}

// The second training towards it is stopped like any other: with a checkpoint of where it was.
TEST_F(Diverging, AStopAfterADivergenceWasUndoneLeavesACheckpoint) {
  const std::string expected = undisturbed();
  int at_sixteen = 0;
  const auto lose_and_stop = [&](Toy& task) {
    task.at_update = [&](uint32_t n) {
      if (n == 18) flip(checkpoint(14) / "state.bin", 3);
      if (n == 16 && ++at_sixteen == 2) ::raise(SIGTERM);
    };
  };
  EXPECT_EQ(diverge(lose_and_stop), kExitStopped);
  EXPECT_EQ(at_sixteen, 2);
  EXPECT_EQ(steps().back(), 16);
  EXPECT_EQ(diverge(), kExitDiverged);
  EXPECT_EQ(results_of(run_), expected);
}

// A report is of the updates since the last one, whatever interval either attempt has.
TEST_F(Resumed, WithAnotherIntervalOfReportsTheNextReportIsOfAllUpdatesSinceTheLast) {
  for (const auto& [before, after, reported] :
       {std::tuple(4, 5, std::vector<int64_t>{4, 10, 15, 20}), {5, 2, {5, 8, 10, 12, 14, 16, 18, 20}}}) {
    start_again();
    execution_.log_updates = before;
    Toy stopped = toy(), resumed = toy();
    stopped.at_update = [](uint32_t n) {
      if (n == 6) ::raise(SIGTERM);
    };
    EXPECT_EQ(attempt(stopped), kExitStopped);
    execution_.log_updates = after;
    EXPECT_EQ(attempt(resumed), kExitDone);
    std::map<uint32_t, CrossEntropySums> losses = stopped.losses;
    losses.insert(resumed.losses.begin(), resumed.losses.end());
    const std::vector<float> norms = gradient_norms();
    const auto loss = metric("train.loss"), norm = metric("train.grad_norm_window_mean");
    ASSERT_EQ(loss.size(), reported.size());
    int64_t last = 0;
    for (size_t i = 0; i < reported.size(); ++i) {
      EXPECT_EQ(loss[i].first, reported[i]);
      double loss_sum = 0, norm_sum = 0;
      int64_t tokens = 0;
      for (int64_t n = last + 1; n <= reported[i]; ++n) {
        loss_sum += losses.at(static_cast<uint32_t>(n)).loss;
        tokens += losses.at(static_cast<uint32_t>(n)).tokens;
        norm_sum += norms.at(static_cast<size_t>(n - 1));
      }
      EXPECT_NEAR(loss[i].second, loss_sum / static_cast<double>(tokens), 1e-9);
      EXPECT_NEAR(norm[i].second, norm_sum / static_cast<double>(reported[i] - last), 1e-6);
      last = reported[i];
    }
  }
}

TEST_F(Resumed, AStopAtAnyUpdateLeavesTheEarlyStopThatIsObservedWhereItWas) {
  train_.max_epochs = 6;
  execution_.observe.early_stop = 3;
  const std::string expected = undisturbed();
  ASSERT_THAT(expected, HasSubstr("{\"step\": 35, \"name\": \"would_stop.dev.bleu\", \"value\": "));
  for (const uint32_t update : {30, 34, 35, 36, 41}) EXPECT_EQ(stop_at(update), kExitStopped) << update;
  EXPECT_EQ(finished(), expected);
}

// --- damage ----------------------------------------------------------------------------------------------------------

TEST_F(Resumed, ADamagedCheckpointIsSkippedForTheOneBefore) {
  execution_.keep_checkpoints = 3;
  for (const char* file : {"state.bin", "manifest.json"}) {
    start_again();
    const std::string expected = undisturbed();
    stop_at(17);
    ASSERT_THAT(steps(), testing::ElementsAre(7, 14, 17));
    const uint64_t at_fourteen = recorded(14);
    flip(checkpoint(17) / file, 20);
    EXPECT_EQ(stop_at(15), kExitStopped);
    EXPECT_THAT(steps(), testing::ElementsAre(7, 14, 15)) << "the damaged one must not be met again";
    EXPECT_EQ(retained(), at_fourteen);
    EXPECT_EQ(finished(), expected);
  }
}

TEST_F(Resumed, WithoutAnIntactCheckpointTheRunStartsAgain) {
  const std::string expected = undisturbed();
  stop_at(17);
  for (const int64_t step : steps()) write_text(checkpoint(step) / "state.bin", "");
  EXPECT_EQ(finished(), expected);
  EXPECT_EQ(retained(), 0u);
}

TEST_F(Resumed, ACheckpointWhoseBestIsLostIsNotUsed) {
  best_ = kAtSeven;
  execution_.keep_checkpoints = 3;
  for (const bool removed : {false, true}) {
    start_again();
    const std::string expected = undisturbed();
    stop_at(5);
    const uint64_t at_five = recorded(5);
    stop_at(9);
    ASSERT_THAT(steps(), testing::ElementsAre(5, 7, 9));
    removed ? static_cast<void>(fs::remove_all(checkpoint(7))) : flip(checkpoint(7) / "state.bin", 3);
    EXPECT_EQ(finished(), expected);
    EXPECT_EQ(retained(), at_five);
  }
}

TEST_F(Resumed, ABestCheckpointLostBeforeTheFinalScoresIsTrainedAgain) {
  best_ = kAtSeven;
  const std::string expected = undisturbed();
  Toy task = toy();
  task.at_evaluation = [&](size_t n) {
    if (n == 2) flip(checkpoint(7) / "state.bin", 3);
  };
  EXPECT_EQ(attempt(task), kExitDone);
  EXPECT_EQ(task.labels.size(), 42u) << "all from the start, as there is no older checkpoint";
  EXPECT_EQ(results_of(run_), expected);
}

TEST_F(Resumed, ADiskThatLosesTheBestCheckpointAgainIsAnError) {
  best_ = kAtSeven;
  Toy task = toy();
  task.at_evaluation = [&](size_t n) {
    if (n % 3 == 2) fs::remove_all(checkpoint(7));
  };
  EXPECT_THROW(attempt(task), UserError);
  EXPECT_FALSE(fs::exists(run_.done()));
}

TEST_F(Resumed, MetricsThatDoNotBeginAsTheCheckpointRecordedAreWrittenAgain) {
  execution_.keep_checkpoints = 3;
  const auto with_metrics = [&](const std::function<void(std::string&)>& change) {
    start_again();
    const std::string expected = undisturbed();
    stop_at(5);
    stop_at(9);
    std::string metrics = read_text(run_.metrics());
    std::map<uint64_t, int64_t> step_of{{0, 0}};
    for (const int64_t step : steps()) step_of[recorded(step)] = step;
    change(metrics);
    write_text(run_.metrics(), metrics);
    EXPECT_EQ(finished(), expected);
    return step_of.at(retained());
  };
  EXPECT_EQ(with_metrics([](std::string&) {}), 9);
  EXPECT_EQ(with_metrics([](std::string& bytes) { bytes += "{\"step\": 10, \"na"; }), 9) << "a torn last line";
  EXPECT_EQ(with_metrics([](std::string& bytes) { bytes.pop_back(); }), 7);
  EXPECT_EQ(with_metrics([](std::string& bytes) { bytes.back() = ' '; }), 7);
  EXPECT_EQ(with_metrics([](std::string& bytes) { bytes[10] ^= 1; }), 0);
  EXPECT_EQ(with_metrics([](std::string& bytes) { bytes.clear(); }), 0);
}

TEST_F(Resumed, GradientNormsThatDoNotBeginAsTheCheckpointRecordedAreWrittenAgain) {
  execution_.keep_checkpoints = 3;
  const auto with_norms = [&](const std::function<void(std::string&)>& change) {
    start_again();
    const std::string expected = undisturbed();
    stop_at(5);
    stop_at(9);
    std::string norms = read_text(run_.gradient_norms());
    EXPECT_EQ(norms.size(), 9 * sizeof(float));
    std::map<uint64_t, int64_t> step_of{{0, 0}};
    for (const int64_t step : steps()) step_of[recorded(step)] = step;
    change(norms);
    write_text(run_.gradient_norms(), norms);
    EXPECT_EQ(finished(), expected);
    return step_of.at(retained());
  };
  EXPECT_EQ(with_norms([](std::string&) {}), 9);
  EXPECT_EQ(with_norms([](std::string& bytes) { bytes += "ab"; }), 9) << "half a number of an update that is lost";
  EXPECT_EQ(with_norms([](std::string& bytes) { bytes.pop_back(); }), 7);
  EXPECT_EQ(with_norms([](std::string& bytes) { bytes[24] ^= 1; }), 5) << "the norm of update 7";
  EXPECT_EQ(with_norms([](std::string& bytes) { bytes.clear(); }), 0);
}

TEST_F(Resumed, MetricsOrGradientNormsChangedWhileTheAttemptLivesAreWrittenAgain) {
  for (const std::string name : {"metrics.jsonl", "gradient_norms.f32"}) {
    start_again();
    const std::string expected = undisturbed();
    Toy task = toy();
    task.at_evaluation = [&](size_t n) {
      if (n == 1) flip(run_.root() / name, 10);
    };
    EXPECT_EQ(attempt(task), kExitDone);
    EXPECT_EQ(results_of(run_), expected) << name;
  }
}

TEST_F(Resumed, ACheckpointOfAnUnknownFormatIsRefusedAndStays) {
  stop_at(5);
  write_text(checkpoint(5) / "manifest.json", R"({"format": 1, "files": {}, "state": {}})");
  Toy task = toy();
  EXPECT_THAT(tearless::test::error_of([&] { attempt(task); }),
              HasSubstr("was written by another version of the engine"));
  EXPECT_TRUE(fs::exists(checkpoint(5)));
}

// --- another attempt has begun ---------------------------------------------------------------------------------------

/// Everything in a folder: name → bytes.
std::map<std::string, std::string> contents(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() && entry.path().filename() != "phase")
      files[fs::relative(entry.path(), folder)] = read_text(entry.path());
  }
  return files;
}

TEST_F(Resumed, ASupersededAttemptEndsWithoutAnotherByte) {
  struct Moment {
    const char* name;
    uint32_t update = 0;      // 0: in none
    int64_t evaluation = -1;  // -1: in none
    bool in_final_scores = false, stops = false, diverges = false;
  };
  for (const Moment& moment : {Moment{.name = "in an update that is not reported", .update = 10},
                               {.name = "in an update that is reported", .update = 9},
                               {.name = "in an evaluation", .evaluation = 1},
                               {.name = "while it stops", .update = 10, .stops = true},
                               {.name = "while it diverges", .update = 10, .diverges = true},
                               {.name = "in the final scores", .in_final_scores = true}}) {
    SCOPED_TRACE(moment.name);
    start_again();
    std::map<std::string, std::string> before;
    Toy task = toy();
    size_t updates_before = 0;
    const auto supersede = [&] {
      fs::create_directories(run_.attempt(7));
      before = contents(run_.root());
      updates_before = task.labels.size();
    };
    if (moment.diverges) task.spoil_at = moment.update;
    task.at_update = [&](uint32_t n) {
      if (n == moment.update) supersede();
      if (n == moment.update && moment.stops) ::raise(SIGTERM);
    };
    task.at_evaluation = [&](size_t n) {
      if (static_cast<int64_t>(n) == moment.evaluation) supersede();
    };
    task.at_final_scores = [&] {
      if (moment.in_final_scores) supersede();
    };
    EXPECT_EQ(attempt(task), kExitStopped);
    EXPECT_FALSE(before.empty());
    EXPECT_EQ(contents(run_.root()), before);
    EXPECT_EQ(task.labels.size(), updates_before) << "it must train nothing";
  }
}

TEST_F(Resumed, AnAttemptThatIsSupersededBeforeItBeginsTouchesNothing) {
  stop_at(5);
  write_text(run_.metrics(), read_text(run_.metrics()) + "the newer attempt's");
  const auto before = contents(run_.root());
  stop_with_checkpoint();
  Toy task = toy();
  const int64_t older = 1;
  fs::create_directories(run_.attempt(2));
  EXPECT_EQ(Trainer(task, train_, execution_, run_, older).run(), kExitStopped);
  EXPECT_EQ(contents(run_.root()), before);
}

TEST_F(Resumed, WritesItsPhase) {
  Toy task = toy();
  const auto phase = [&] { return read_text(run_.attempt(1) / "phase"); };
  task.at_update = [&](uint32_t) { EXPECT_EQ(phase(), "training"); };
  task.at_evaluation = [&](size_t) { EXPECT_EQ(phase(), "evaluating"); };
  task.at_final_scores = [&] { EXPECT_EQ(phase(), "evaluating"); };
  EXPECT_EQ(attempt(task), kExitDone);
  EXPECT_EQ(phase(), "publishing");
}

TEST_F(Resumed, IgnoresThatItCannotWriteItsPhase) {
  const std::string expected = undisturbed();
  fs::create_directories(run_.attempt(1) / "phase" / "in the way");
  Toy task = toy();
  stop_with_checkpoint();
  EXPECT_EQ(Trainer(task, train_, execution_, run_, 1).run(), kExitDone);
  EXPECT_EQ(results_of(run_), expected);
}

// [observe] is local: it may be another in each attempt. Only the updates that were observed count in a mean.
TEST_F(Resumed, MeansOfGroupsAreOfTheUpdatesThatWereObserved) {
  EXPECT_EQ(stop_at(5), kExitStopped);
  execution_.observe.window_means = true;
  EXPECT_EQ(stop_at(11), kExitStopped);
  execution_.observe.window_means = false;
  EXPECT_EQ(stop_at(13), kExitStopped);
  execution_.observe.window_means = true;
  finished();
  const std::vector<std::pair<int64_t, double>> means = metric("grad_norm_window_mean.logits");
  const std::vector<float> norms = gradient_norms();
  std::map<int64_t, std::vector<int64_t>> observed = {{6, {6}}, {9, {7, 8, 9}}, {15, {14, 15}}, {18, {16, 17, 18}}};
  observed[21] = {19, 20, 21};
  ASSERT_EQ(means.size(), observed.size());
  for (const auto& [step, mean] : means) {
    double sum = 0;
    for (const int64_t update : observed.at(step)) sum += norms.at(static_cast<size_t>(update - 1));
    EXPECT_NEAR(mean, sum / static_cast<double>(observed.at(step).size()), 1e-6) << step;
  }
}

}  // namespace
}  // namespace tearless::engine::resume_test
