// The training loop with a task whose every answer is known: when it evaluates, what it selects, why it ends, and that
// no crash shows in what it leaves.
#include "engine/train/trainer.h"

#include <ATen/ops/abs.h>
#include <ATen/ops/sum.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <cmath>
#include <limits>
#include <sstream>
#include <stdexcept>

#include "engine/train/stop_request.h"
#include "tests/support/paths.h"

namespace tearless::engine {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::ElementsAre;

constexpr int64_t kBatches = 3;  // of a pass
constexpr int64_t kTypes = 4;

/// Learns one distribution over four types; batch b of pass p shows the label (p + b) mod 4.
class Toy final : public Task {
 public:
  Toy() : parameters_({{"logits", {1, kTypes}, {Initial::Kind::kNormal, 1.0}}}, 1, at::kCPU) {}

  Parameters& parameters() override { return parameters_; }
  int64_t start_pass(int64_t pass) override {
    pass_ = pass;
    return kBatches;
  }
  ReadyBatch ready(int64_t index, uint32_t) override {
    labels.push_back((pass_ + index) % kTypes);
    return {.labels = {static_cast<int32_t>(labels.back())}};
  }
  LossSums loss(const Step& step, const ReadyBatch& batch) override {
    if (step.update == crash_at) throw std::runtime_error("crash");
    if (step.update == spoil_at) parameters_.values().fill_(std::numeric_limits<float>::quiet_NaN());
    return smoothed_cross_entropy(step.tape, parameters_.get("logits"), batch.labels, 0.1);
  }
  Evaluation evaluate() override {
    if (stop_at_evaluation == evaluations_) throw StopRequested();
    const double size = parameters_.values().abs().sum().item<double>();
    const double score = script.empty() ? std::round(100 * size) / 100 : script.at(evaluations_);
    ++evaluations_;
    return {{{"dev.bleu", score}, {"dev.ppl", size}}, score};
  }
  NamedNumbers final_scores(const RunDirectory& run) override {
    fs::create_directories(run.outputs());
    test::write_text(run.outputs() / "test.hyp", "a hypothesis\n");
    return {{"test.size", parameters_.values().abs().sum().item<double>()}};
  }
  std::vector<std::string> output_files() const override { return {"outputs/test.hyp"}; }

  std::vector<double> script;   // dev scores, evaluation by evaluation; empty: a function of the parameters
  std::vector<int64_t> labels;  // of every update
  uint32_t crash_at = 0, spoil_at = 0;
  size_t stop_at_evaluation = 1000;

 private:
  Parameters parameters_;
  int64_t pass_ = 0;
  size_t evaluations_ = 0;
};

/// A run directory and the settings of training in it.
class Trained : public testing::Test {
 protected:
  Trained() : run_(folder_.path()) {
    train_.epoch_updates = 4;
    train_.max_epochs = 5;
    train_.early_stop = 0;
    train_.schedule.kind = ScheduleKind::kNowarmup;
    train_.schedule.lr = 0.05;
    execution_.log_updates = 2;
    spdlog::set_level(spdlog::level::err);
  }

  ExitCode attempt(Task& task) const {
    return Trainer(task, train_, execution_, /*d_model=*/kTypes, run_, run_.make_attempt()).run();
  }
  json scores() const { return json::parse(test::read_text(run_.scores())); }
  Done done() const { return read_done(run_).value(); }
  /// (step, value) of each metric of that name.
  std::vector<std::pair<int64_t, double>> metric(const std::string& name) const {
    std::vector<std::pair<int64_t, double>> found;
    std::istringstream lines(test::read_text(run_.metrics()));
    for (std::string line; std::getline(lines, line);) {
      const json record = json::parse(line);
      if (record.at("name") == name) found.emplace_back(record.at("step"), record.at("value"));
    }
    return found;
  }

  test::TempFolder folder_;
  RunDirectory run_;
  TrainOptions train_;
  ExecutionOptions execution_;
};

TEST_F(Trained, TakesTheBatchesInOrderPassAfterPass) {
  Toy toy;
  train_.max_updates = 8;
  EXPECT_EQ(attempt(toy), kExitDone);
  EXPECT_THAT(toy.labels, ElementsAre(0, 1, 2, 1, 2, 3, 2, 3));
}

TEST_F(Trained, EvaluatesAfterEachEpochAndAtTheLastUpdate) {
  Toy toy;
  train_.max_updates = 10;
  attempt(toy);
  std::vector<int64_t> steps;
  for (const auto& [step, value] : metric("dev.bleu")) steps.push_back(step);
  EXPECT_THAT(steps, ElementsAre(4, 8, 10));
  EXPECT_EQ(done().reason, "max_updates");
  EXPECT_EQ(scores().at("updates"), 10);
}

TEST_F(Trained, ReportsTheMeanLossSinceTheLastReport) {
  execution_.log_updates = 1;
  Toy every;
  attempt(every);
  const auto losses = metric("train.loss");
  ASSERT_EQ(losses.size(), 20u);
  fs::remove_all(run_.root() / "checkpoints");
  fs::remove(run_.done());
  fs::remove(run_.metrics());
  execution_.log_updates = 2;
  Toy second;
  attempt(second);
  const auto means = metric("train.loss");
  ASSERT_EQ(means.size(), 10u);
  for (size_t i = 0; i < means.size(); ++i) {
    EXPECT_EQ(means[i].first, static_cast<int64_t>(2 * i + 2));
    EXPECT_NEAR(means[i].second, (losses[2 * i].second + losses[2 * i + 1].second) / 2, 1e-12);
  }
  EXPECT_EQ(metric("train.lr").front(), (std::pair<int64_t, double>{2, 0.05}));
}

TEST_F(Trained, SelectsTheBestAndOfEqualsTheLatest) {
  Toy toy;
  toy.script = {1, 7, 3, 7, 5};
  EXPECT_EQ(attempt(toy), kExitDone);
  EXPECT_EQ(scores().at("selected_step"), 16);
  EXPECT_EQ(scores().at("dev.bleu"), 7);
  // The final scores are those of the selected parameters, not of the last ones.
  EXPECT_EQ(scores().at("test.size").get<double>(), metric("dev.ppl")[3].second);
  EXPECT_NE(scores().at("test.size").get<double>(), metric("dev.ppl")[4].second);
  EXPECT_EQ(done().reason, "max_epochs");
}

TEST_F(Trained, StopsEarlyWhereNothingIsStrictlyBetter) {
  Toy toy;
  train_.early_stop = 2;
  toy.script = {1, 2, 2, 2, 9};  // equals are taken, but they are no improvement
  attempt(toy);
  EXPECT_EQ(done().reason, "early_stop");
  EXPECT_EQ(done().step, 16);
  EXPECT_EQ(scores().at("selected_step"), 16);
}

TEST_F(Trained, DecaysOnPlateausAndEndsBelowTheLowestRate) {
  Toy toy;
  train_.schedule.decay_factor = 0.1;
  train_.schedule.decay_patience = 1;
  train_.min_lr = 0.001;
  toy.script = {5, 4, 4, 3, 2};
  attempt(toy);
  EXPECT_EQ(done().reason, "min_lr");
  EXPECT_EQ(done().step, 16);
  std::vector<double> rates;
  for (const auto& [step, rate] : metric("train.lr")) rates.push_back(rate);
  EXPECT_THAT(rates,
              testing::Pointwise(testing::DoubleNear(1e-12), {0.05, 0.05, 0.05, 0.05, 0.005, 0.005, 0.005, 0.005}));
}

TEST_F(Trained, ANumberThatIsNotFiniteEndsTheRunWithItsStep) {
  Toy toy;
  toy.spoil_at = 7;
  EXPECT_EQ(attempt(toy), kExitDiverged);
  EXPECT_EQ(done().outcome, "diverged");
  EXPECT_EQ(done().step, 7);
  EXPECT_EQ(done().reason, "the loss is not finite");
  EXPECT_FALSE(fs::exists(run_.scores()));
  EXPECT_TRUE(changed_result_file(run_, done()).empty());
}

TEST_F(Trained, KeepsTheBestCheckpointBesidesTheNewest) {
  Toy toy;
  toy.script = {9, 1, 2, 3, 4};
  execution_.keep_checkpoints = 2;
  attempt(toy);
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(run_.checkpoints())) names.push_back(entry.path().filename());
  EXPECT_THAT(names, testing::UnorderedElementsAre("step-4", "step-16", "step-20"));
}

TEST_F(Trained, DoneNamesEveryResultAndItsChecksum) {
  Toy toy;
  attempt(toy);
  EXPECT_THAT(done().files, ElementsAre(testing::Key("metrics.jsonl"), testing::Key("outputs/test.hyp"),
                                        testing::Key("scores.json")));
  EXPECT_EQ(changed_result_file(run_, done()), "");
}

/// The bytes that must not depend on what happened on the way.
std::string results_of(const RunDirectory& run) {
  return test::read_text(run.metrics()) + test::read_text(run.scores()) + test::read_text(run.done());
}

// Crashes at every single update, and requests to stop at every single evaluation, one after another in one run.
TEST_F(Trained, NoCrashShowsInWhatItLeaves) {
  train_.schedule.decay_rule = DecayRule::kBestPatience;
  train_.schedule.decay_patience = 1;
  train_.early_stop = 4;
  Toy undisturbed;
  ASSERT_EQ(attempt(undisturbed), kExitDone);
  const std::string expected = results_of(run_);

  const test::TempFolder other;
  run_ = RunDirectory(other.path());
  for (uint32_t update = 1; update <= 20; ++update) {
    Toy crashing;
    crashing.crash_at = update;
    EXPECT_THROW(attempt(crashing), std::runtime_error) << update;
  }
  Toy last;
  ASSERT_EQ(attempt(last), kExitDone);
  EXPECT_EQ(results_of(run_), expected);
}

TEST_F(Trained, ARequestDuringAnEvaluationGoesBackToBeforeIt) {
  Toy undisturbed;
  ASSERT_EQ(attempt(undisturbed), kExitDone);
  const std::string expected = results_of(run_);

  const test::TempFolder other;
  run_ = RunDirectory(other.path());
  for (int i = 0; i < 3; ++i) {
    Toy stopped;
    stopped.stop_at_evaluation = i == 0 ? 0 : 1;  // the second time it gets through the one that stopped it
    EXPECT_EQ(attempt(stopped), kExitStopped);
    EXPECT_FALSE(fs::exists(run_.done()));
  }
  Toy last;
  ASSERT_EQ(attempt(last), kExitDone);
  EXPECT_EQ(results_of(run_), expected);
}

TEST_F(Trained, MeasuresItsAttempt) {
  Toy toy;
  attempt(toy);
  const json measured = json::parse(test::read_text(run_.attempt(1) / "measured.json"));
  EXPECT_EQ(measured.at("updates"), 20);
  EXPECT_EQ(measured.at("fallback_ops"), 0);
  EXPECT_GT(measured.at("peak_memory_bytes"), 0);
  execution_.ops = ExecutionOptions::Ops::kReference;
  const test::TempFolder other;
  run_ = RunDirectory(other.path());
  Toy by_formula;
  attempt(by_formula);
  EXPECT_EQ(json::parse(test::read_text(run_.attempt(1) / "measured.json")).at("fallback_ops"), 20);
}

TEST(Perplexity, IsAlwaysANumber) {
  EXPECT_NEAR(perplexity(10, 5), std::exp(2.0), 1e-12);
  EXPECT_TRUE(std::isfinite(perplexity(1e9, 1)));
  EXPECT_EQ(perplexity(0, 0), 0);
}

}  // namespace
}  // namespace tearless::engine
