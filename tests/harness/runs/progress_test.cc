#include "harness/runs/progress.h"

#include <gtest/gtest.h>

namespace tearless::harness::progress_test {
namespace {

Progress some_progress() {
  Progress progress;
  progress.label = "layer_norm · pre · seed 1";
  progress.updates = 1000;
  progress.take({{0, 100, "train.loss", 5.25}}, 10);
  progress.take({{50, 300, "train.loss", 4.125}, {90, 300, "dev.ppl", 20}, {120, 300, "dev.bleu", 7.5}}, 20);
  return progress;
}

TEST(Progress, SpeedIsMeasuredFromTheFirstUpdateSeen) {
  const Progress progress = some_progress();
  EXPECT_DOUBLE_EQ(progress.updates_per_second, 20);
  EXPECT_DOUBLE_EQ(*progress.seconds_left(), 35);
  EXPECT_EQ(progress.dev_name, "dev.ppl");
}

TEST(Progress, AResumedAttemptThatGoesBackIsMeasuredFromThere) {
  Progress progress = some_progress();
  progress.take({{0, 50, "train.loss", 5}}, 100);
  progress.take({{9, 60, "train.loss", 5}}, 110);
  EXPECT_DOUBLE_EQ(progress.updates_per_second, 1);
}

TEST(Progress, TheSpeedOfRunsTogetherIsInTokensIfAllReportThem) {
  Progress slow, fast;
  slow.updates_per_second = 0.25;
  fast.updates_per_second = 7;
  EXPECT_EQ(speed_text({slow, fast}), "7.25 updates/s");
  fast.tokens_per_second = 5000;
  EXPECT_EQ(speed_text({slow, fast}), "7.25 updates/s");
  slow.tokens_per_second = 300;
  EXPECT_EQ(speed_text({slow, fast}), "5300 tokens/s");
  fast.updates_per_second = 1234.5;
  fast.tokens_per_second.reset();
  EXPECT_EQ(speed_text({fast}), "1234 updates/s");
  EXPECT_EQ(speed_text({}), "");
}

TEST(Progress, NothingIsKnownBeforeTheFirstUpdate) {
  EXPECT_FALSE(Progress().seconds_left().has_value());
  EXPECT_EQ(Progress().step, 0);
  EXPECT_EQ(duration_text(std::nullopt), "-");
}

TEST(Progress, DurationsReadLikeAClock) {
  EXPECT_EQ(duration_text(5), "0:05");
  EXPECT_EQ(duration_text(3723), "1:02:03");
}

TEST(Progress, TheFirstReportOfARunFromItsBeginningHasASpeed) {
  Progress progress;
  progress.take({}, 10);
  progress.take({}, 11);
  progress.take({{0, 100, "train.loss", 5.25}}, 30);
  EXPECT_DOUBLE_EQ(progress.updates_per_second, 5);
  progress.take({{50, 300, "train.loss", 5}}, 40);
  EXPECT_DOUBLE_EQ(progress.updates_per_second, 20) << "from the second on without the preparation";
  Progress resumed;
  resumed.take({}, 10);
  resumed.take({{50, 300, "train.loss", 5}}, 30);
  EXPECT_EQ(resumed.updates_per_second, 0) << "its first update is not known";
  Progress adopted;
  adopted.take({{0, 100, "train.loss", 5.25}}, 30);
  EXPECT_EQ(adopted.updates_per_second, 0) << "its start is not known";
}

}  // namespace
}  // namespace tearless::harness::progress_test
