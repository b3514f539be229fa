// Learning rates against the numbers of docs/spec/training.md §1.6, and plateaus by both rules of §1.7.
#include "engine/train/schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace tearless::engine::schedule_test {
namespace {

constexpr int64_t kWidth = 512;
constexpr int64_t kUpdates = 300'000;  // the last one

ScheduleOptions with_kind(std::string kind, int64_t warmup = 8000, double scale = 1.0) {
  ScheduleOptions options;
  options.kind = std::move(kind);
  options.warmup_updates = warmup;
  options.scale = scale;
  return options;
}

/// How often each evaluation of `scores` decayed the learning rate: 0 or 1 each.
std::vector<int> decays(const ScheduleOptions& options, const std::vector<double>& scores,
                        int64_t updates_each = 100'000) {
  Schedule schedule(options, kWidth, kUpdates);
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
    const Schedule schedule(with_kind("invsqrt", row.warmup, row.scale), kWidth, kUpdates);
    EXPECT_NEAR(schedule.learning_rate(row.warmup), row.peak, 0.5e-7);
    EXPECT_LT(schedule.learning_rate(row.warmup - 1), schedule.learning_rate(row.warmup));
    EXPECT_LT(schedule.learning_rate(row.warmup + 1), schedule.learning_rate(row.warmup));
    EXPECT_NEAR(schedule.learning_rate(row.warmup / 2), row.peak / 2, 0.5e-7) << "the ramp is linear";
  }
  const Schedule schedule(with_kind("invsqrt"), kWidth, kUpdates);
  EXPECT_NEAR(schedule.learning_rate(1), 4.941e-4 / 8000, 1e-11);
  EXPECT_NEAR(schedule.learning_rate(100'000), 1.398e-4, 0.5e-7);
  EXPECT_NEAR(schedule.learning_rate(300'000), 8.07e-5, 0.5e-7);
}

TEST(Schedule, ValdecayStaysAtTheLearningRateOfTheEndOfItsWarmUp) {
  const Schedule schedule(with_kind("valdecay"), kWidth, kUpdates);
  EXPECT_EQ(schedule.learning_rate(8000), schedule.learning_rate(7999));
  EXPECT_EQ(schedule.learning_rate(1'000'000), schedule.learning_rate(7999));
  EXPECT_NEAR(schedule.learning_rate(7999), 4.941e-4 * 7999 / 8000, 1e-7);
  EXPECT_GT(Schedule(with_kind("valdecay", 1), kWidth, kUpdates).learning_rate(1), 0)
      << "a warm-up of one update has no update before it";
}

TEST(Schedule, NowarmupBeginsAtItsLearningRate) {
  const Schedule schedule(with_kind("nowarmup"), kWidth, kUpdates);
  EXPECT_EQ(schedule.learning_rate(1), 3e-4);
  EXPECT_EQ(schedule.learning_rate(1'000'000), 3e-4);
}

// Expected values: invsqrt p · min(n / w, √(w / n)), valdecay p · min(n, w - 1) / w, nowarmup p; by hand for p = 2e-3.
TEST(Schedule, PeakLrIsTheHighestLearningRateWhateverTheKind) {
  const struct {
    const char* kind;
    int64_t warmup, update;
    double expected;
  } rows[] = {
      {"invsqrt", 400, 1, 5e-6},         {"invsqrt", 400, 100, 5e-4},      {"invsqrt", 400, 399, 1.995e-3},
      {"invsqrt", 400, 400, 2e-3},       {"invsqrt", 400, 1600, 1e-3},     {"invsqrt", 400, 40'000, 2e-4},
      {"invsqrt", 1, 1, 2e-3},           {"invsqrt", 1, 4, 1e-3},          {"valdecay", 400, 1, 5e-6},
      {"valdecay", 400, 100, 5e-4},      {"valdecay", 400, 399, 1.995e-3}, {"valdecay", 400, 400, 1.995e-3},
      {"valdecay", 400, 1600, 1.995e-3}, {"valdecay", 1, 1, 2e-3},         {"valdecay", 1, 9, 2e-3},
      {"nowarmup", 400, 1, 2e-3},        {"nowarmup", 400, 40'000, 2e-3},
  };
  for (const auto& row : rows) {
    ScheduleOptions options = with_kind(row.kind, row.warmup, /*scale=*/7);
    options.lr = 7;  // neither scale, nor lr, nor the width has an effect
    options.peak_lr = 2e-3;
    for (const int64_t width : {32, 512}) {
      EXPECT_NEAR(Schedule(options, width, kUpdates).learning_rate(row.update), row.expected, 1e-15)
          << row.kind << " w " << row.warmup << " n " << row.update;
    }
  }
}

TEST(Schedule, PeakLrIsTheScaleOfItsConversion) {
  for (const char* kind : {"invsqrt", "valdecay"}) {
    ScheduleOptions by_peak = with_kind(kind, 8000);
    by_peak.peak_lr = 4.941058844e-4;  // 512^-½ · 8000^-½
    const Schedule scaled(with_kind(kind, 8000), kWidth, kUpdates), peaked(by_peak, kWidth, kUpdates);
    for (const int64_t n : {1, 4000, 7999, 8000, 8001, 100'000}) {
      EXPECT_NEAR(peaked.learning_rate(n) / scaled.learning_rate(n), 1, 1e-9) << n;
    }
  }
}

TEST(Schedule, PeakLrDecaysOnPlateausAsTheOthersDo) {
  ScheduleOptions options = with_kind("nowarmup");
  options.peak_lr = 1e-3;
  Schedule schedule(options, kWidth, kUpdates);
  for (const double bleu : {10.0, 9.0, 8.0, 7.0}) schedule.on_evaluation(bleu, 100);
  EXPECT_NEAR(schedule.learning_rate(500), 8e-4, 1e-15);
  options = with_kind("invsqrt");
  options.peak_lr = 1e-3;
  EXPECT_EQ(decays(options, {10, 9, 8, 7, 6}), (std::vector<int>{0, 0, 0, 0, 0}));
}

TEST(Schedule, MinWindowDecaysBelowEachOfTheLastThreeAndCountsNothing) {
  const ScheduleOptions options = with_kind("nowarmup");
  // Falling at once: only the fourth evaluation has three before it; then every further fall decays again.
  EXPECT_EQ(decays(options, {10, 9, 8, 7, 6, 5}), (std::vector<int>{0, 0, 0, 1, 1, 1}));
  // A tie with the lowest is not below it, and below the best is not enough.
  EXPECT_EQ(decays(options, {10, 9, 8, 8, 8.5, 7.99}), (std::vector<int>{0, 0, 0, 0, 0, 1}));
  EXPECT_EQ(decays(options, {20, 10, 11, 10.5, 10.4, 10.6, 10.39}), (std::vector<int>{0, 0, 0, 0, 0, 0, 1}));
}

TEST(Schedule, BestPatienceCountsEvaluationsWithoutANewBestAndRestarts) {
  ScheduleOptions options = with_kind("nowarmup");
  options.decay_rule = DecayRule::kBestPatience;
  EXPECT_EQ(decays(options, {10, 9, 9.5, 10, 9, 9, 9, 11, 10, 10, 10}),
            (std::vector<int>{0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 1}));
  options.decay_patience = 2;
  EXPECT_EQ(decays(options, {10, 9, 9, 10.01, 10, 10}), (std::vector<int>{0, 0, 1, 0, 0, 1}));
}

TEST(Schedule, PlateausOfTheWarmUpAreRememberedButDoNotDecay) {
  const ScheduleOptions options = with_kind("valdecay", 500);
  EXPECT_EQ(decays(options, {10, 9, 8, 7, 6, 5}, /*updates_each=*/100), (std::vector<int>{0, 0, 0, 0, 1, 1}))
      << "the fifth evaluation, at update 500, looks back into the warm-up";
}

TEST(Schedule, OnlyKindsThatSaySoDecayOnPlateaus) {
  for (const auto& kind : schedule_kinds()) {
    ScheduleOptions options = with_kind(std::string(kind->name));
    options.peak_lr = 1e-3;
    const int decayed = kind->decays ? 1 : 0;
    EXPECT_EQ(decays(options, {10, 9, 8, 7, 6}), (std::vector<int>{0, 0, 0, decayed, decayed})) << kind->name;
  }
}

// docs/spec/training.md §1.10: invsqrt reaches 5e-5 at update 781,250, and 1e-6 at 1.95e9.
TEST(Schedule, IsExhaustedBelowMinLrWhateverTheKindButNotInItsWarmUp) {
  const Schedule invsqrt(with_kind("invsqrt"), kWidth, kUpdates);
  EXPECT_FALSE(invsqrt.exhausted(781'240, 5e-5));
  EXPECT_TRUE(invsqrt.exhausted(781'260, 5e-5));
  EXPECT_FALSE(invsqrt.exhausted(1'950'000'000, 1e-6));
  EXPECT_TRUE(invsqrt.exhausted(1'960'000'000, 1e-6));
  for (const auto& kind : schedule_kinds()) {
    ScheduleOptions options = with_kind(std::string(kind->name), 500);
    options.peak_lr = 1e-3;
    const Schedule schedule(options, kWidth, kUpdates);
    EXPECT_EQ(schedule.exhausted(1, 1e-2), !kind->has_warmup) << kind->name;
    EXPECT_EQ(schedule.exhausted(499, 1e-2), !kind->has_warmup) << kind->name;
    EXPECT_TRUE(schedule.exhausted(500, 1e-2)) << kind->name;
    EXPECT_FALSE(schedule.exhausted(kUpdates / 2, 1e-6)) << kind->name;
  }
}

// Worked out by hand for W = 4000, peak 1e-3, init 1e-7 (docs/spec/training.md §2). Update n follows k = n - 1 updates:
// 1e-7 + k · 9.999e-4 / 4000 up to k = 4000, then 1e-3 · √(4000 / k).
TEST(Schedule, InverseSqrtIsFairseqs) {
  ScheduleOptions options = with_kind("inverse_sqrt", 4000);
  options.peak_lr = 1e-3;
  const struct {
    int64_t update;
    double expected;
  } rows[] = {{1, 1e-7},    {2, 3.49975e-7}, {1001, 2.50075e-4}, {4000, 9.99750025e-4},
              {4001, 1e-3}, {16'001, 5e-4},  {100'001, 2e-4},    {400'001, 1e-4}};
  for (const auto& row : rows) {
    EXPECT_NEAR(Schedule(options, kWidth, kUpdates).learning_rate(row.update), row.expected, 1e-12) << row.update;
  }
}

// By hand for w = 100, N = 1100, peak 1e-3 and floor 1e-4: n / 100 of the peak; then 1e-4 + 4.5e-4 · (1 + cos(π (n -
// 100) / 1000)), whose cosine is √½ after a quarter, ½ after a third, 0 after a half.
TEST(Schedule, CosineFallsFromThePeakToItsFloorAtTheLastUpdate) {
  ScheduleOptions options = with_kind("cosine", 100);
  options.peak_lr = 1e-3;
  WrittenSettings written;
  written.values = {{"cosine.floor", 1e-4}, {"kind", "cosine"}, {"peak_lr", 1e-3}, {"warmup_updates", 100}};
  read_settings(written, [&](SettingsVisitor& v) { describe(v, options); });
  const struct {
    int64_t update;
    double expected;
  } rows[] = {{1, 1e-5},    {50, 5e-4},  {100, 1e-3}, {350, 8.681980515e-4}, {600, 5.5e-4}, {850, 2.318019485e-4},
              {1100, 1e-4}, {2000, 1e-4}};
  const Schedule schedule(options, kWidth, 1100);
  for (const auto& row : rows) EXPECT_NEAR(schedule.learning_rate(row.update), row.expected, 1e-12) << row.update;
  EXPECT_NEAR(Schedule(options, kWidth, 3100).learning_rate(1100), 1e-4 + 4.5e-4 * 1.5, 1e-12) << "a third of the way";
  EXPECT_FALSE(schedule.exhausted(1099, 1e-4)) << "the floor is not below itself";
}

/// Decays until the learning rate is below `floor`.
int decays_until_exhausted(const ScheduleOptions& options, double floor) {
  Schedule schedule(options, kWidth, kUpdates);
  double score = 100;
  for (int i = 0; i < 3; ++i) schedule.on_evaluation(score -= 1, 1'000'000);
  for (int count = 0;; ++count) {
    if (schedule.exhausted(1'000'000, floor)) return count;
    schedule.on_evaluation(score -= 1, 1'000'000);
  }
}

TEST(Schedule, ExhaustsAfterAsManyDecaysAsThePaperNeeds) {
  EXPECT_EQ(decays_until_exhausted(with_kind("nowarmup"), 5e-5), 9);
  EXPECT_EQ(decays_until_exhausted(with_kind("nowarmup"), 1e-6), 26);
  EXPECT_EQ(decays_until_exhausted(with_kind("valdecay"), 1e-6), 28);
  EXPECT_EQ(decays_until_exhausted(with_kind("valdecay", 8000, 2), 1e-6), 31);
  EXPECT_FALSE(Schedule(with_kind("valdecay"), kWidth, kUpdates).exhausted(10, 1e-6))
      << "a ramp begins below any floor";
}

TEST(Schedule, ResumesFromItsState) {
  for (const DecayRule rule : {DecayRule::kMinWindow, DecayRule::kBestPatience}) {
    ScheduleOptions options = with_kind("nowarmup");
    options.decay_rule = rule;
    const std::vector<double> scores = {5, 4, 4.5, 3, 4, 4, 2, 1, 6, 5, 4, 3};
    for (size_t stop = 0; stop <= scores.size(); ++stop) {
      Schedule whole(options, kWidth, kUpdates), before(options, kWidth, kUpdates), after(options, kWidth, kUpdates);
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
