#include "harness/schedule/progress.h"

#include <gtest/gtest.h>

#include "harness/schedule/screen.h"

namespace tearless::harness {
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

TEST(Progress, NothingIsKnownBeforeTheFirstUpdate) {
  EXPECT_FALSE(Progress().seconds_left().has_value());
  EXPECT_EQ(Progress().step, 0);
  EXPECT_EQ(duration_text(std::nullopt), "-");
}

TEST(Progress, DurationsReadLikeAClock) {
  EXPECT_EQ(duration_text(5), "0:05");
  EXPECT_EQ(duration_text(3723), "1:02:03");
}

TEST(Progress, ALineFitsItsTerminal) {
  const Progress progress = some_progress();
  EXPECT_EQ(
      progress_line(progress, 200),
      "layer_norm · pre · seed 1                        300/1000    loss 4.125   dev.ppl 20     20 updates/s ETA 0:35");
  for (const size_t columns : {20, 40, 80}) {
    const std::string line = progress_line(progress, columns);
    size_t characters = 0;
    for (const char c : line) characters += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    EXPECT_LE(characters, columns);
  }
}

}  // namespace
}  // namespace tearless::harness
