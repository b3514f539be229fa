// Learns one distribution over four labels; batch b of pass p shows the label (p + b) mod 4. What is to go wrong is set
// from outside.
#pragma once

#include <ATen/ops/abs.h>
#include <ATen/ops/sum.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "engine/train/stop_request.h"
#include "engine/train/trainer.h"
#include "tests/engine/train/in_memory.h"
#include "tests/support/paths.h"

namespace tearless::engine::test {

using tearless::test::read_text;
using tearless::test::TempFolder;
using tearless::test::write_text;

constexpr int64_t kBatches = 3;  // of a pass
constexpr int64_t kLabels = 4;

class ToyBatch final : public Batch {
 public:
  int64_t rows() const override { return 3; }  // counted, and nothing else
  int64_t predictions() const override { return static_cast<int64_t>(labels.size()); }
  std::vector<int64_t> bucket() const override { return {predictions()}; }
  void pad() override {}
  std::vector<Part> parts() const override { return {labels}; }

  std::vector<int32_t> labels;
};

class Toy final : public Task {
 public:
  Toy() { parameters_.allocate(); }

  Parameters& parameters() override { return parameters_; }
  std::vector<std::string> loss_names() const override { return {"loss", "nll"}; }
  int64_t schedule_width() const override { return kLabels; }
  std::vector<at::Tensor> carried() override { return carried_state; }
  Selection selection() const override { return {.score = "dev.bleu", .higher_is_better = higher_is_better}; }
  std::string dev_loss() const override { return "dev.ppl"; }
  int64_t start_pass(int64_t pass) override {
    pass_ = pass;
    return batches_of_pass.empty() ? kBatches : batches_of_pass.at(static_cast<size_t>(pass));
  }
  std::unique_ptr<Batch> ready(int64_t index, uint32_t) override {
    labels.push_back((pass_ + index) % kLabels);
    auto batch = std::make_unique<ToyBatch>();
    batch->labels = {static_cast<int32_t>(labels.back())};
    return batch;
  }
  LossSums loss(const ForwardContext& context, const Batch& of_toy) override {
    const auto& batch = static_cast<const ToyBatch&>(of_toy);
    if (at_update) at_update(context.update);
    if (context.update == crash_at) throw std::runtime_error("crash");
    if (context.update == spoil_at) parameters_.values().fill_(std::numeric_limits<float>::quiet_NaN());
    const CrossEntropySums sums = smoothed_cross_entropy(context.tape, logits_, batch.labels, 0.1);
    losses[context.update] = sums;
    return {{sums.loss, sums.nll}, sums.tokens};
  }
  NamedNumbers training_numbers(const LossSums& epoch) const override {
    return {{"train.ppl", std::exp(epoch.mean(1))}, {"train.ppl_smoothed", std::exp(epoch.mean(0))}};
  }
  NamedNumbers evaluate() override {
    if (at_evaluation) at_evaluation(evaluations_);
    const double size = parameters_.values().abs().sum().item<double>();
    const double score = script.empty()
                             ? std::round(100 * (wanted_size > 0 ? -std::abs(size - wanted_size) : size)) / 100
                             : script.at(evaluations_);
    ++evaluations_;
    return {{"dev.bleu", score}, {"dev.ppl", size}};
  }
  FinalScores final_scores() override {
    if (at_final_scores) at_final_scores();
    return {.numbers = {{"test.size", parameters_.values().abs().sum().item<double>()}},
            .files = {{"outputs/test.hyp", "a hypothesis\n"}, {"outputs/test.stats", "1\n"}}};
  }

  std::vector<double> script;            // dev scores, evaluation by evaluation; empty: a function of the parameters
  std::vector<int64_t> batches_of_pass;  // empty: kBatches each
  double wanted_size = 0;                // above 0: the nearer the size of the parameters is to it, the better
  std::vector<int64_t> labels;           // of every update
  std::map<uint32_t, CrossEntropySums> losses;
  bool higher_is_better = true;  // of the scores in `script`
  uint32_t crash_at = 0, spoil_at = 0;
  std::vector<at::Tensor> carried_state;
  // Called in the middle of that work.
  std::function<void(uint32_t)> at_update;
  std::function<void(size_t)> at_evaluation;
  std::function<void()> at_final_scores;

 private:
  Parameters parameters_{/*seed=*/1, at::kCPU};
  Value logits_ = parameters_.declare({"logits", {1, kLabels}, {Initial::Kind::kNormal, 1.0}});
  int64_t pass_ = 0;
  size_t evaluations_ = 0;
};

/// A run directory and the settings of training in it.
class Trained : private InMemory, public testing::Test {
 protected:
  Trained() : run_(empty_run(folder_)) {
    train_.epoch_updates = 4;
    train_.max_epochs = 5;
    train_.early_stop = 0;
    train_.schedule.kind = "nowarmup";
    train_.schedule.lr = 0.05;
    execution_.log_updates = 2;
    spdlog::set_level(spdlog::level::err);
  }

  ExitCode attempt(Task& task) const {
    stop_with_checkpoint();
    return Trainer(task, train_, execution_, run_, run_.make_attempt()).run();
  }
  /// All of one name, which DONE repeats.
  static RunDirectory empty_run(const TempFolder& folder) {
    std::filesystem::create_directories(folder / "run");
    return RunDirectory(folder / "run");
  }
  /// The same settings in an empty run directory.
  void start_again() {
    other_folders_.push_back(std::make_unique<TempFolder>());
    run_ = empty_run(*other_folders_.back());
  }
  nlohmann::json scores() const { return nlohmann::json::parse(read_text(run_.scores())); }
  Done done() const { return read_done(run_).value(); }
  /// The numbers in gradient_norms.f32.
  std::vector<float> gradient_norms() const {
    const std::string bytes = read_text(run_.gradient_norms());
    std::vector<float> norms(bytes.size() / sizeof(float));
    EXPECT_EQ(bytes.size(), norms.size() * sizeof(float));
    std::memcpy(norms.data(), bytes.data(), norms.size() * sizeof(float));
    return norms;
  }
  /// (step, value) of each metric of that name.
  std::vector<std::pair<int64_t, double>> metric(const std::string& name) const {
    std::vector<std::pair<int64_t, double>> found;
    std::istringstream lines(read_text(run_.metrics()));
    for (std::string line; std::getline(lines, line);) {
      const nlohmann::json record = nlohmann::json::parse(line);
      if (record.at("name") == name) found.emplace_back(record.at("step"), record.at("value"));
    }
    return found;
  }

  TempFolder folder_;
  std::vector<std::unique_ptr<TempFolder>> other_folders_;
  RunDirectory run_;
  TrainOptions train_;
  ExecutionOptions execution_;
};

/// The bytes that must not depend on what happened on the way.
inline std::string results_of(const RunDirectory& run) {
  return read_text(run.metrics()) + read_text(run.gradient_norms()) + read_text(run.scores()) +
         read_text(run.outputs() / "test.hyp") + read_text(run.done()) + read_text(run.model());
}

}  // namespace tearless::engine::test
