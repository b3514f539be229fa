// Learning rates against the numbers of docs/spec/training.md §1.6, and plateaus by both rules of §1.7.
#include "engine/train/schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace tearless::engine::schedule_test {
namespace {

constexpr int64_t kWidth = 512;

ScheduleOptions with_kind(ScheduleKind kind, int64_t warmup = 8000, double scale = 1.0) {
  ScheduleOptions options;
  options.kind = kind;
  options.warmup_updates = warmup;
  options.scale = scale;
  return options;
}

/// How often each evaluation of `scores` decayed the learning rate: 0 or 1 each.
std::vector<int> decays(const ScheduleOptions& options, const std::vector<double>& scores,
                        int64_t updates_each = 100'000) {
  Schedule schedule(options, kWidth);
  std::vector<int> seen;
  int64_t updates = 0;
  for (const double score : scores) {
    updates += updates_each;
    const double before = schedule.learning_rate(1'000'000'000);
    schedule.on_evaluation(score, updates);
    seen.push_back(schedule.learning_rate(1'000'000'000) < before ? 1 : 0);
  }
  return seen;
}

TEST(Schedule, InvsqrtPeaksWhereThePaperSays) {
  const struct {
    int64_t warmup;
    double scale, peak;
  } rows[] = {{4000, 1, 6.988e-4}, {8000, 1, 4.941e-4}, {16000, 1, 3.494e-4}, {8000, 2, 9.882e-4}};
  for (const auto& row : rows) {
    const Schedule schedule(with_kind(ScheduleKind::kInvsqrt, row.warmup, row.scale), kWidth);
    EXPECT_NEAR(schedule.learning_rate(row.warmup), row.peak, 0.5e-7);
    EXPECT_LT(schedule.learning_rate(row.warmup - 1), schedule.learning_rate(row.warmup));
    EXPECT_LT(schedule.learning_rate(row.warmup + 1), schedule.learning_rate(row.warmup));
    EXPECT_NEAR(schedule.learning_rate(row.warmup / 2), row.peak / 2, 0.5e-7) << "the ramp is linear";
  }
  const Schedule schedule(with_kind(ScheduleKind::kInvsqrt), kWidth);
  EXPECT_NEAR(schedule.learning_rate(1), 4.941e-4 / 8000, 1e-11);
  EXPECT_NEAR(schedule.learning_rate(100'000), 1.398e-4, 0.5e-7);
  EXPECT_NEAR(schedule.learning_rate(300'000), 8.07e-5, 0.5e-7);
}

TEST(Schedule, ValdecayStaysAtTheLearningRateOfTheEndOfItsWarmUp) {
  const Schedule schedule(with_kind(ScheduleKind::kValdecay), kWidth);
  EXPECT_EQ(schedule.learning_rate(8000), schedule.learning_rate(7999));
  EXPECT_EQ(schedule.learning_rate(1'000'000), schedule.learning_rate(7999));
  EXPECT_NEAR(schedule.learning_rate(7999), 4.941e-4 * 7999 / 8000, 1e-7);
  EXPECT_GT(Schedule(with_kind(ScheduleKind::kValdecay, 1), kWidth).learning_rate(1), 0)
      << "a warm-up of one update has no update before it";
}

TEST(Schedule, NowarmupBeginsAtItsLearningRate) {
  const Schedule schedule(with_kind(ScheduleKind::kNowarmup), kWidth);
  EXPECT_EQ(schedule.learning_rate(1), 3e-4);
  EXPECT_EQ(schedule.learning_rate(1'000'000), 3e-4);
}

// Expected values: invsqrt p · min(n / w, √(w / n)), valdecay p · min(n, w - 1) / w, nowarmup p; by hand for p = 2e-3.
TEST(Schedule, PeakLrIsTheHighestLearningRateWhateverTheKind) {
  const struct {
    ScheduleKind kind;
    int64_t warmup, update;
    double expected;
  } rows[] = {
      {ScheduleKind::kInvsqrt, 400, 1, 5e-6},         {ScheduleKind::kInvsqrt, 400, 100, 5e-4},
      {ScheduleKind::kInvsqrt, 400, 399, 1.995e-3},   {ScheduleKind::kInvsqrt, 400, 400, 2e-3},
      {ScheduleKind::kInvsqrt, 400, 1600, 1e-3},      {ScheduleKind::kInvsqrt, 400, 40'000, 2e-4},
      {ScheduleKind::kInvsqrt, 1, 1, 2e-3},           {ScheduleKind::kInvsqrt, 1, 4, 1e-3},
      {ScheduleKind::kValdecay, 400, 1, 5e-6},        {ScheduleKind::kValdecay, 400, 100, 5e-4},
      {ScheduleKind::kValdecay, 400, 399, 1.995e-3},  {ScheduleKind::kValdecay, 400, 400, 1.995e-3},
      {ScheduleKind::kValdecay, 400, 1600, 1.995e-3}, {ScheduleKind::kValdecay, 1, 1, 2e-3},
      {ScheduleKind::kValdecay, 1, 9, 2e-3},          {ScheduleKind::kNowarmup, 400, 1, 2e-3},
      {ScheduleKind::kNowarmup, 400, 40'000, 2e-3},
  };
  for (const auto& row : rows) {
    ScheduleOptions options = with_kind(row.kind, row.warmup, /*scale=*/7);
    options.lr = 7;  // neither scale, nor lr, nor the width has an effect
    options.peak_lr = 2e-3;
    for (const int64_t width : {32, 512}) {
      EXPECT_NEAR(Schedule(options, width).learning_rate(row.update), row.expected, 1e-15)
          << static_cast<int>(row.kind) << " w " << row.warmup << " n " << row.update;
    }
  }
}

TEST(Schedule, PeakLrIsTheScaleOfItsConversion) {
  for (const ScheduleKind kind : {ScheduleKind::kInvsqrt, ScheduleKind::kValdecay}) {
    ScheduleOptions by_peak = with_kind(kind, 8000);
    by_peak.peak_lr = 4.941058844e-4;  // 512^-½ · 8000^-½
    const Schedule scaled(with_kind(kind, 8000), kWidth), peaked(by_peak, kWidth);
    for (const int64_t n : {1, 4000, 7999, 8000, 8001, 100'000}) {
      EXPECT_NEAR(peaked.learning_rate(n) / scaled.learning_rate(n), 1, 1e-9) << n;
    }
  }
}

TEST(Schedule, PeakLrDecaysOnPlateausAsTheOthersDo) {
  ScheduleOptions options = with_kind(ScheduleKind::kNowarmup);
  options.peak_lr = 1e-3;
  Schedule schedule(options, kWidth);
  for (const double bleu : {10.0, 9.0, 8.0, 7.0}) schedule.on_evaluation(bleu, 100);
  EXPECT_NEAR(schedule.learning_rate(500), 8e-4, 1e-15);
  options = with_kind(ScheduleKind::kInvsqrt);
  options.peak_lr = 1e-3;
  EXPECT_EQ(decays(options, {10, 9, 8, 7, 6}), (std::vector<int>{0, 0, 0, 0, 0}));
}

TEST(Schedule, MinWindowDecaysBelowEachOfTheLastThreeAndCountsNothing) {
  const ScheduleOptions options = with_kind(ScheduleKind::kNowarmup);
  // Falling at once: only the fourth evaluation has three before it; then every further fall decays again.
  EXPECT_EQ(decays(options, {10, 9, 8, 7, 6, 5}), (std::vector<int>{0, 0, 0, 1, 1, 1}));
  // A tie with the lowest is not below it, and below the best is not enough.
  EXPECT_EQ(decays(options, {10, 9, 8, 8, 8.5, 7.99}), (std::vector<int>{0, 0, 0, 0, 0, 1}));
  EXPECT_EQ(decays(options, {20, 10, 11, 10.5, 10.4, 10.6, 10.39}), (std::vector<int>{0, 0, 0, 0, 0, 0, 1}));
}

TEST(Schedule, BestPatienceCountsEvaluationsWithoutANewBestAndRestarts) {
  ScheduleOptions options = with_kind(ScheduleKind::kNowarmup);
  options.decay_rule = DecayRule::kBestPatience;
  EXPECT_EQ(decays(options, {10, 9, 9.5, 10, 9, 9, 9, 11, 10, 10, 10}),
            (std::vector<int>{0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 1}));
  options.decay_patience = 2;
  EXPECT_EQ(decays(options, {10, 9, 9, 10.01, 10, 10}), (std::vector<int>{0, 0, 1, 0, 0, 1}));
}

TEST(Schedule, PlateausOfTheWarmUpAreRememberedButDoNotDecay) {
  const ScheduleOptions options = with_kind(ScheduleKind::kValdecay, 500);
  EXPECT_EQ(decays(options, {10, 9, 8, 7, 6, 5}, /*updates_each=*/100), (std::vector<int>{0, 0, 0, 0, 1, 1}))
      << "the fifth evaluation, at update 500, looks back into the warm-up";
}

TEST(Schedule, InvsqrtNeitherDecaysNorEnds) {
  const ScheduleOptions options = with_kind(ScheduleKind::kInvsqrt);
  EXPECT_EQ(decays(options, {10, 9, 8, 7, 6}), (std::vector<int>{0, 0, 0, 0, 0}));
  EXPECT_FALSE(Schedule(options, kWidth).exhausted(2'000'000'000, 1e-6));
}

/// Decays until the learning rate is below `floor`.
int decays_until_exhausted(const ScheduleOptions& options, double floor) {
  Schedule schedule(options, kWidth);
  double score = 100;
  for (int i = 0; i < 3; ++i) schedule.on_evaluation(score -= 1, 1'000'000);
  for (int count = 0;; ++count) {
    if (schedule.exhausted(1'000'000, floor)) return count;
    schedule.on_evaluation(score -= 1, 1'000'000);
  }
}

TEST(Schedule, ExhaustsAfterAsManyDecaysAsThePaperNeeds) {
  EXPECT_EQ(decays_until_exhausted(with_kind(ScheduleKind::kNowarmup), 5e-5), 9);
  EXPECT_EQ(decays_until_exhausted(with_kind(ScheduleKind::kNowarmup), 1e-6), 26);
  EXPECT_EQ(decays_until_exhausted(with_kind(ScheduleKind::kValdecay), 1e-6), 28);
  EXPECT_EQ(decays_until_exhausted(with_kind(ScheduleKind::kValdecay, 8000, 2), 1e-6), 31);
  EXPECT_FALSE(Schedule(with_kind(ScheduleKind::kValdecay), kWidth).exhausted(10, 1e-6))
      << "a ramp begins below any floor";
}

TEST(Schedule, ResumesFromItsState) {
  for (const DecayRule rule : {DecayRule::kMinWindow, DecayRule::kBestPatience}) {
    ScheduleOptions options = with_kind(ScheduleKind::kNowarmup);
    options.decay_rule = rule;
    const std::vector<double> scores = {5, 4, 4.5, 3, 4, 4, 2, 1, 6, 5, 4, 3};
    for (size_t stop = 0; stop <= scores.size(); ++stop) {
      Schedule whole(options, kWidth), before(options, kWidth), after(options, kWidth);
      for (size_t i = 0; i < scores.size(); ++i) {
        whole.on_evaluation(scores[i], 100);
        if (i == stop) after.restore(nlohmann::json::parse(before.state().dump()));
        (i < stop ? before : after).on_evaluation(scores[i], 100);
        EXPECT_EQ((i < stop ? before : after).learning_rate(1), whole.learning_rate(1));
      }
    }
  }
}

}  // namespace
}  // namespace tearless::engine::schedule_test
