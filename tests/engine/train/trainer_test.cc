// The training loop with a task whose every result is known: when it evaluates, what it selects, why it ends, and what
// it scores.
#include "engine/train/trainer.h"

#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/engine/train/toy.h"

namespace tearless::engine::trainer_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::Toy;
using test::Trained;
using testing::ElementsAre;

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

TEST_F(Trained, SeesDevScoresAsTheyArePrinted) {
  Toy toy;
  toy.script = {7.004, 3, 7.001, 6.99, 5};  // 7.00 twice: a tie, of which the later is selected
  EXPECT_EQ(attempt(toy), kExitDone);
  EXPECT_EQ(scores().at("selected_step"), 12);
  EXPECT_EQ(scores().at("dev.bleu"), 7.001) << "stored as it is";
}

TEST_F(Trained, SelectsTheLowestScoreWhereLowerIsBetterAndDecaysWhenItRises) {
  Toy toy;
  toy.higher_is_better = false;
  toy.script = {5, 4, 2, 3, 2.5};
  train_.schedule.decay_factor = 0.1;
  train_.schedule.decay_patience = 1;
  EXPECT_EQ(attempt(toy), kExitDone);
  EXPECT_EQ(scores().at("selected_step"), 12);
  EXPECT_EQ(scores().at("dev.bleu"), 2);
  EXPECT_NEAR(metric("train.lr").at(7).second, 0.05, 1e-12) << "no score so far was above the one before";
  EXPECT_NEAR(metric("train.lr").at(8).second, 0.005, 1e-12) << "after 3, which is above 2";
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

TEST_F(Trained, WithoutEarlyStopItSaysOnceWhereThatWouldHaveEnded) {
  const std::vector<double> script = {1, 2, 2, 2, 9, 3, 3, 3};
  train_.max_epochs = 8;
  const auto would_stop = [&](int64_t patience) {
    start_again();
    Toy toy;
    toy.script = script;
    execution_.observe.early_stop = patience;
    attempt(toy);
    EXPECT_EQ(done().step, 32);
    return metric("would_stop.dev.bleu");
  };
  EXPECT_THAT(would_stop(2), ElementsAre(std::pair(16, 2.0)));
  EXPECT_THAT(would_stop(3), ElementsAre(std::pair(32, 9.0)));
  EXPECT_TRUE(would_stop(4).empty());
  EXPECT_TRUE(would_stop(0).empty());
  train_.early_stop = 2;
  start_again();
  Toy stopped;
  stopped.script = script;
  attempt(stopped);
  EXPECT_EQ(done().step, 16) << "as it said";
  EXPECT_EQ(scores().at("dev.bleu"), 2) << "as it said";
  EXPECT_TRUE(metric("would_stop.dev.bleu").empty());
}

TEST_F(Trained, TheScoreAtWhichItWouldHaveEndedIsTheLowestWhereLowerIsBetter) {
  Toy toy;
  toy.higher_is_better = false;
  toy.script = {5, 4, 4.5, 6, 7};
  execution_.observe.early_stop = 2;
  attempt(toy);
  EXPECT_THAT(metric("would_stop.dev.bleu"), ElementsAre(std::pair(16, 4.0)));
}

TEST_F(Trained, DecaysOnPlateausAndEndsBelowTheLowestLearningRate) {
  Toy toy;
  train_.schedule.decay_factor = 0.1;
  train_.schedule.decay_patience = 1;
  train_.min_lr = 0.001;
  toy.script = {5, 4, 4, 3, 2};
  attempt(toy);
  EXPECT_EQ(done().reason, "min_lr");
  EXPECT_EQ(done().step, 16);
  std::vector<double> learning_rates;
  for (const auto& [step, value] : metric("train.lr")) learning_rates.push_back(value);
  EXPECT_THAT(learning_rates,
              testing::Pointwise(testing::DoubleNear(1e-12), {0.05, 0.05, 0.05, 0.05, 0.005, 0.005, 0.005, 0.005}));
}

TEST_F(Trained, ANumberThatIsNotFiniteEndsTheRunWithItsStep) {
  Toy toy;
  toy.spoil_at = 3;
  EXPECT_EQ(attempt(toy), kExitDiverged);
  EXPECT_EQ(done().outcome, "diverged");
  EXPECT_EQ(done().step, 3);
  EXPECT_EQ(done().reason, "the loss is not finite");
  EXPECT_FALSE(fs::exists(run_.scores()));
  EXPECT_TRUE(changed_result_file(run_, done()).empty());
  EXPECT_EQ(gradient_norms().size(), 2u) << "of the updates that were made";
  EXPECT_TRUE(done().files.contains("gradient_norms.f32"));
}

// The loss of one update is compared, not the mean of a report.
TEST_F(Trained, ALossAboveTheThresholdIsADivergenceAndOneThatIsEqualIsNone) {
  Toy calm;
  EXPECT_EQ(attempt(calm), kExitDone);
  const auto loss_of = [&](uint32_t update) {
    return calm.losses.at(update).loss / static_cast<double>(calm.losses.at(update).tokens);
  };
  uint32_t largest = 1;
  for (const auto& [update, sums] : calm.losses) {
    if (loss_of(update) > loss_of(largest)) largest = update;
  }
  start_again();
  train_.diverged_loss = loss_of(largest);
  Toy at_threshold;
  EXPECT_EQ(attempt(at_threshold), kExitDone);
  start_again();
  train_.diverged_loss = std::nextafter(loss_of(largest), 0.0);
  Toy above;
  EXPECT_EQ(attempt(above), kExitDiverged);
  EXPECT_EQ(done().outcome, "diverged");
  EXPECT_EQ(done().step, largest);
  EXPECT_THAT(done().reason, testing::MatchesRegex("the loss [0-9.]+ is above train.diverged_loss = [0-9.]+"));
  EXPECT_EQ(gradient_norms().size(), largest - 1) << "of the updates that were made";
}

TEST_F(Trained, ANumberThatIsNotFiniteIsADivergenceWithAThresholdToo) {
  Toy toy;
  train_.diverged_loss = 1e9;
  toy.spoil_at = 3;
  EXPECT_EQ(attempt(toy), kExitDiverged);
  EXPECT_EQ(done().reason, "the loss is not finite");
}

TEST_F(Trained, ARunThatDivergesAfterAnEvaluationLeavesTheScoresOfItsBestCheckpoint) {
  Toy toy;
  toy.script = {1, 7, 3};
  toy.spoil_at = 14;
  EXPECT_EQ(attempt(toy), kExitDiverged);
  EXPECT_EQ(done().outcome, "diverged");
  EXPECT_EQ(done().step, 14);
  EXPECT_EQ(done().reason, "the loss is not finite");
  EXPECT_EQ(scores().at("diverged_step"), 14);
  EXPECT_EQ(scores().at("selected_step"), 8);
  EXPECT_EQ(scores().at("updates"), 13);
  EXPECT_EQ(scores().at("dev.bleu"), 7);
  EXPECT_EQ(scores().at("test.size").get<double>(), metric("dev.ppl")[1].second) << "not of the spoilt parameters";
  EXPECT_EQ(gradient_norms().size(), 13u);
  EXPECT_TRUE(fs::exists(run_.model()));
  EXPECT_THAT(done().files, ElementsAre(testing::Key("gradient_norms.f32"), testing::Key("metrics.jsonl"),
                                        testing::Key("outputs/test.hyp"), testing::Key("outputs/test.stats"),
                                        testing::Key("scores.json")));
  EXPECT_TRUE(changed_result_file(run_, done()).empty());
}

TEST_F(Trained, ARunThatDivergesHasTheScoresOfABestCheckpointThatWaitedInMemory) {
  Toy toy;
  toy.script = {1, 7, 3};
  toy.spoil_at = 14;
  execution_.checkpoint_share = 0;
  EXPECT_EQ(attempt(toy), kExitDiverged);
  EXPECT_EQ(scores().at("selected_step"), 8);
  EXPECT_EQ(scores().at("test.size").get<double>(), metric("dev.ppl")[1].second) << "not of the spoilt parameters";
  EXPECT_THAT(run_.checkpoint_steps(), ElementsAre(8));
}

TEST_F(Trained, KeepsTheBestCheckpointBesidesTheNewest) {
  const auto kept = [this](int64_t epoch_updates, int64_t newest) {
    start_again();
    Toy toy;
    toy.script = {9, 1, 2, 3, 4};
    train_.epoch_updates = epoch_updates;
    execution_.keep_checkpoints = newest;
    attempt(toy);
    EXPECT_EQ(scores().at("selected_step"), epoch_updates);
    return run_.checkpoint_steps();
  };
  EXPECT_THAT(kept(4, 2), testing::UnorderedElementsAre(4, 16, 20));
  EXPECT_THAT(kept(1, 1), testing::UnorderedElementsAre(1, 5));
}

TEST_F(Trained, ALargeCheckpointIsWrittenAfterAnEvaluationWhereItsShareOfTheTimeIsReached) {
  const auto written = [this](double share) {
    start_again();
    Toy toy;
    toy.script = {9, 1, 2, 3, 4};
    toy.carried_state = {at::zeros({64 << 20}, at::kByte)};
    train_.epoch_updates = 4;
    execution_.keep_checkpoints = 1000;
    execution_.checkpoint_share = share;
    attempt(toy);
    return run_.checkpoint_steps();
  };
  EXPECT_THAT(written(1e-9), ElementsAre(4, 20)) << "the first took longer than that share, then that of the end";
  EXPECT_THAT(written(1), ElementsAre(4, 8, 12, 16, 20));
}

TEST_F(Trained, TheEndHasItsCheckpointAlsoWhereOthersWait) {
  Toy toy;
  toy.script = {9, 1, 2, 3, 4};
  train_.epoch_updates = 4;
  train_.early_stop = 2;
  execution_.checkpoint_share = 0;
  attempt(toy);
  EXPECT_EQ(done().reason, "early_stop");
  EXPECT_THAT(run_.checkpoint_steps(), ElementsAre(4, 12));
}

TEST_F(Trained, DoneNamesEveryResultAndItsChecksum) {
  Toy toy;
  attempt(toy);
  EXPECT_THAT(done().files, ElementsAre(testing::Key("gradient_norms.f32"), testing::Key("metrics.jsonl"),
                                        testing::Key("outputs/test.hyp"), testing::Key("outputs/test.stats"),
                                        testing::Key("scores.json")));
  EXPECT_EQ(test::read_text(run_.outputs() / "test.hyp"), "a hypothesis\n");
  EXPECT_EQ(changed_result_file(run_, done()), "");
}

/// One update by hand: the logits before it, and what they make of its label.
struct ByHand {
  double loss = 0, nll = 0, gradient_norm = 0;
};
ByHand by_hand(const at::Tensor& logits, int64_t label, double smoothing) {
  std::vector<double> p;
  for (int64_t i = 0; i < test::kLabels; ++i) p.push_back(std::exp(logits[i].item<double>()));
  const double sum = std::accumulate(p.begin(), p.end(), 0.0);
  ByHand found;
  double squares = 0;
  for (int64_t i = 0; i < test::kLabels; ++i) {
    p[i] /= sum;
    const double wanted = smoothing / test::kLabels + (i == label ? 1 - smoothing : 0);
    found.loss -= wanted * std::log(p[i]);
    squares += (p[i] - wanted) * (p[i] - wanted);
  }
  found.nll = -std::log(p[label]);
  found.gradient_norm = std::sqrt(squares);
  return found;
}

TEST_F(Trained, EveryNumberIsTheOneComputedByHand) {
  execution_.log_updates = 3;  // which divides neither an epoch nor the run
  train_.max_updates = 19;
  Toy toy;
  toy.script = {1, 7, 3, 6, 5};
  std::vector<ByHand> updates;
  toy.at_update = [&](uint32_t) {
    updates.push_back(by_hand(toy.parameters().values(), toy.labels.back(), /*smoothing=*/0.1));
  };
  ASSERT_EQ(attempt(toy), kExitDone);
  ASSERT_EQ(updates.size(), 19u);
  const auto mean = [&](size_t begin, size_t end, double ByHand::*what) {
    double sum = 0;
    for (size_t i = begin; i < end; ++i) sum += updates[i].*what;
    return sum / static_cast<double>(end - begin);
  };
  constexpr double kClose = 1e-5;  // losses and gradients are computed in fp32

  const auto losses = metric("train.loss"), norms = metric("train.grad_norm"),
             window_means = metric("train.grad_norm_window_mean");
  ASSERT_EQ(losses.size(), 6u);
  ASSERT_EQ(norms.size(), 6u);
  ASSERT_EQ(window_means.size(), 6u);
  for (size_t i = 0; i < losses.size(); ++i) {
    EXPECT_EQ(losses[i].first, static_cast<int64_t>(3 * i + 3));
    EXPECT_NEAR(losses[i].second, mean(3 * i, 3 * i + 3, &ByHand::loss), kClose);
    EXPECT_NEAR(norms[i].second, updates[3 * i + 2].gradient_norm, kClose);
    EXPECT_NEAR(window_means[i].second, mean(3 * i, 3 * i + 3, &ByHand::gradient_norm), kClose);
    EXPECT_GT(std::abs(window_means[i].second - norms[i].second), 10 * kClose) << "or a mix-up would not show";
  }
  const auto perplexities = metric("train.ppl"), smoothed = metric("train.ppl_smoothed");
  ASSERT_EQ(perplexities.size(), 5u);
  ASSERT_EQ(smoothed.size(), 5u);
  for (size_t i = 0; i < perplexities.size(); ++i) {
    const size_t end = std::min<size_t>(4 * i + 4, 19);
    EXPECT_NEAR(perplexities[i].second, std::exp(mean(4 * i, end, &ByHand::nll)), 10 * kClose);
    EXPECT_NEAR(smoothed[i].second, std::exp(mean(4 * i, end, &ByHand::loss)), 10 * kClose);
    EXPECT_GT(std::abs(perplexities[i].second - smoothed[i].second), 100 * kClose) << "or a mix-up would not show";
  }

  const auto loss_sums = metric("train.loss_sum");
  ASSERT_EQ(loss_sums.size(), 4u) << "the fifth epoch has no end";
  for (size_t i = 0; i < loss_sums.size(); ++i) {
    EXPECT_EQ(loss_sums[i].first, static_cast<int64_t>(4 * i + 4));
    EXPECT_NEAR(loss_sums[i].second, 4 * mean(4 * i, 4 * i + 4, &ByHand::loss), 10 * kClose);
  }

  const std::vector<float> every_norm = gradient_norms();
  ASSERT_EQ(every_norm.size(), 19u);
  for (size_t i = 0; i < every_norm.size(); ++i) EXPECT_NEAR(every_norm[i], updates[i].gradient_norm, kClose) << i;
  for (const auto& [step, norm] : norms) EXPECT_EQ(every_norm[step - 1], static_cast<float>(norm));

  const json found = scores();
  EXPECT_NEAR(found.at("train.grad_norm_mean"), mean(0, 19, &ByHand::gradient_norm), kClose);
  double largest = 0;
  for (const ByHand& update : updates) largest = std::max(largest, update.gradient_norm);
  EXPECT_NEAR(found.at("train.grad_norm_max"), largest, kClose);
  EXPECT_EQ(found.at("selected_step"), 8);
  EXPECT_EQ(found.at("updates"), 19);
  EXPECT_EQ(found.at("parameters"), test::kLabels);
  EXPECT_EQ(found.at("dev.bleu"), 7);
  EXPECT_EQ(found.at("dev.ppl").get<double>(), metric("dev.ppl")[1].second);
  EXPECT_EQ(found.at("train.ppl").get<double>(), perplexities[1].second) << "of the selected epoch, not of the last";
  EXPECT_EQ(found.at("train.ppl_smoothed").get<double>(), smoothed[1].second);
  EXPECT_EQ(found.at("test.size").get<double>(), metric("dev.ppl")[1].second);
  EXPECT_EQ(found.size(), 10u) << "a score without a test: " << found.dump();
}

TEST(TrainOptions, SayHowManyUpdatesAndEvaluationsThereAreAtMost) {
  TrainOptions train;
  train.epoch_updates = 100;
  train.max_epochs = 3;
  EXPECT_EQ(train.update_limit(), 300);
  EXPECT_EQ(train.evaluation_limit(), 3);
  train.max_updates = 201;
  EXPECT_EQ(train.update_limit(), 201);
  EXPECT_EQ(train.evaluation_limit(), 3) << "the last one after a single update";
  train.max_updates = 200;
  EXPECT_EQ(train.evaluation_limit(), 2);
  train.evaluate_updates = 30;
  EXPECT_EQ(train.evaluation_limit(), 7);
}

TEST(TrainOptions, SayHowMuchThereIsOfPassesOnceAPassIsKnown) {
  TrainOptions train;
  train.max_epochs = 4;
  train.evaluate_updates = std::nullopt;
  EXPECT_EQ(train.update_limit(), 4000);
  EXPECT_EQ(train.evaluation_limit(), TrainOptions::kUnlimited);
  EXPECT_EQ(train.evaluation_limit(150), 27) << "4000 / 150, and one at the end";
  train.epoch_updates = std::nullopt;
  EXPECT_EQ(train.update_limit(), TrainOptions::kUnlimited);
  EXPECT_EQ(train.update_limit(150), 600);
  EXPECT_EQ(train.evaluation_limit(150), 4);
  train.evaluate_updates = 0;
  EXPECT_EQ(train.evaluation_limit(150), 4);
  train.evaluate_updates = 100;
  EXPECT_EQ(train.evaluation_limit(150), 6);
  train.max_updates = 350;
  EXPECT_EQ(train.update_limit(), 350);
  EXPECT_EQ(train.evaluation_limit(), 4);
}

TEST_F(Trained, MeasuresItsAttempt) {
  const auto measured = [&](int64_t attempt) {
    return json::parse(test::read_text(run_.attempt(attempt) / "measured.json"));
  };
  Toy crashing;
  crashing.crash_at = 11;
  EXPECT_THROW(attempt(crashing), std::runtime_error);
  EXPECT_FALSE(fs::exists(run_.attempt(1) / "measured.json"));
  Toy toy;
  attempt(toy);
  const json second = measured(2);
  EXPECT_EQ(second.at("updates"), 12) << "its own: the first eight were resumed";
  EXPECT_EQ(second.at("fallback_ops"), 0);
  EXPECT_GT(second.at("peak_memory_bytes"), 0);
  EXPECT_GT(second.at("metrics_kept_bytes"), 0);
  const double training_seconds = second.at("training_seconds"), seconds = second.at("seconds");
  EXPECT_GT(training_seconds, 0);
  EXPECT_EQ(second.at("evaluations"), 3) << "its own";
  const double evaluation_seconds = second.at("evaluation_seconds");
  EXPECT_GT(evaluation_seconds, 0);
  EXPECT_GE(seconds, training_seconds + evaluation_seconds);
  EXPECT_NEAR(second.at("tokens_per_second").get<double>() * training_seconds, 12 * 3, 1e-6) << "three rows an update";

  execution_.ops = ExecutionOptions::Ops::kReference;
  start_again();
  Toy by_formula;
  attempt(by_formula);
  EXPECT_EQ(measured(1).at("fallback_ops"), 20);
}

TEST(Selection, RoundsAsItsScoreIsPrinted) {
  const Selection bleu{.score = "dev.bleu"};
  EXPECT_EQ(bleu.rounded(27.125), 27.12);  // the binary number is a tie: printing goes to the even digit
  EXPECT_EQ(bleu.rounded(27.12500001), 27.13);
  EXPECT_EQ(bleu.rounded(0.004), 0.0);
  EXPECT_EQ((Selection{.score = "dev.bpc", .decimals = 4}.rounded(1.03456)), 1.0346);
}

}  // namespace
}  // namespace tearless::engine::trainer_test
