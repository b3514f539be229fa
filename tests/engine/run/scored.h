// One run without dropout, a batch an epoch and an update an epoch, every checkpoint retained: so every number of every
// evaluation can be had again from what is left.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <functional>

#include "tests/engine/run/small_runs.h"
#include "tests/engine/train/in_memory.h"

namespace tearless::engine::test {

class ScoredRun : public testing::Test {
 protected:
  static constexpr double kSmoothing = 0.1;

  /// Trains in SetUpTestSuite(): `settings` over those of such a run, on the data that `write` writes.
  static void train(int updates, const Settings& settings, const std::function<void(const SmallRuns&)>& write) {
    const InMemory in_memory;
    runs_ = new SmallRuns;
    write(*runs_);
    run_ = new RunDirectory(runs_->make(with({{"model.d_model", 16},
                                              {"model.d_ff", 24},
                                              {"model.heads", 2},
                                              {"model.norm.kind", "scale_norm"},
                                              {"model.dropout.residual", 0.0},
                                              {"model.dropout.attention", 0.0},
                                              {"model.dropout.relu", 0.0},
                                              {"model.dropout.word", 0.0},
                                              {"train.label_smoothing", kSmoothing},
                                              {"train.epoch_updates", 1},
                                              {"train.max_epochs", updates},
                                              {"train.early_stop", 0},
                                              {"train.batch.tokens", 4096},
                                              {"train.schedule.kind", "nowarmup"},
                                              {"train.schedule.decay_factor", 1.0},
                                              {"run.log_updates", 1},
                                              {"run.keep_checkpoints", 1000}},
                                             settings)));
    ASSERT_EQ(attempt_run(run_->root()), kExitDone);
    options_ = new RunOptions(read_run_directory(run_->root()));
    scores_ = nlohmann::json::parse(read_text(run_->scores()));
    metrics_.clear();
    for (const std::string& line : lines_of(run_->metrics())) {
      const auto record = nlohmann::json::parse(line);
      metrics_[record.at("name")][record.at("step")] = record.at("value");
    }
  }
  static void TearDownTestSuite() {
    delete options_;
    delete run_;
    delete runs_;
  }

  static int64_t selected() { return scores_.at("selected_step"); }
  static double score(const std::string& name) { return scores_.at(name); }

  /// The latest step of those with the best printed value of that metric.
  static int64_t best_step(const std::string& name) {
    double best = -1;
    int64_t step_of_best = 0;
    for (const auto& [step, value] : metrics_[name]) {
      char printed[32];
      std::snprintf(printed, sizeof printed, "%.2f", value);
      if (std::atof(printed) < best) continue;
      best = std::atof(printed);
      step_of_best = step;
    }
    return step_of_best;
  }
  static std::vector<std::string> result_files() {
    std::vector<std::string> names;
    const Done done = read_done(*run_).value();
    for (const auto& [name, checksum] : done.files) names.push_back(name);
    for (const auto& entry : std::filesystem::directory_iterator(run_->outputs())) {
      EXPECT_THAT(names, testing::Contains("outputs/" + entry.path().filename().string()));
    }
    return names;
  }
  /// Of the training, which measured.json gives in tokens a second.
  static double rows_seen() {
    const auto measured = nlohmann::json::parse(read_text(run_->attempt(1) / "measured.json"));
    EXPECT_EQ(measured.at("fallback_ops"), 0);
    EXPECT_EQ(measured.at("updates"), scores_.at("updates"));
    return measured.at("tokens_per_second").get<double>() * measured.at("training_seconds").get<double>();
  }

  /// Of the test set, which measured.json gives with their seconds.
  static int64_t sentences_decoded() {
    const auto measured = nlohmann::json::parse(read_text(run_->attempt(1) / "measured.json"));
    EXPECT_GT(measured.at("decoding_seconds"), 0);
    EXPECT_LT(measured.at("decoding_seconds"), measured.at("seconds"));
    return measured.at("decoded_sentences");
  }

  static inline SmallRuns* runs_ = nullptr;
  static inline RunDirectory* run_ = nullptr;
  static inline RunOptions* options_ = nullptr;
  static inline nlohmann::json scores_;
  static inline std::map<std::string, std::map<int64_t, double>> metrics_;
};

#define EXPECT_CLOSE(found, wanted) EXPECT_NEAR(found, wanted, 1e-4 * (wanted))

}  // namespace tearless::engine::test
