#include "harness/schedule/signs_of_life.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tearless::harness::signs_of_life_test {
namespace {

TEST(SignsOfLife, AreGrowthOfMetricsOrOutput) {
  SignsOfLife signs(100);
  EXPECT_EQ(signs.quiet(130), 30) << "since the start";
  signs.note(10, 0, 130);
  EXPECT_EQ(signs.quiet(130), 0);
  signs.note(10, 0, 150);
  EXPECT_EQ(signs.quiet(150), 20);
  signs.note(10, 5, 160);
  EXPECT_EQ(signs.quiet(160), 0);
  signs.note(20, 5, 170);
  EXPECT_EQ(signs.quiet(170), 0);
}

TEST(SignsOfLife, AreMetricsAloneOnceTheLogIsFullOrWasCut) {
  for (const int64_t end_of_output : {int64_t{(4 << 20) + 1}, int64_t{50}}) {
    SignsOfLife signs;
    signs.note(10, 100, 1);
    signs.note(10, end_of_output, 2);
    signs.note(10, end_of_output + 1, 3);
    signs.note(10, end_of_output + 2, 4);
    EXPECT_GE(signs.quiet(4), 2) << end_of_output;
    signs.note(11, end_of_output + 3, 5);
    EXPECT_EQ(signs.quiet(5), 0) << end_of_output;
  }
}

TEST(SignsOfLife, OfTrainingHaveARhythmAfterAFew) {
  SignsOfLife signs;
  for (int report = 1; report < 5; ++report) {
    signs.note(report, 0, 20 * report);
    EXPECT_TRUE(std::isinf(signs.longest_in_training())) << report;
  }
  signs.note(5, 0, 100);
  EXPECT_EQ(signs.longest_in_training(), 30 * 20);
  signs.note(6, 0, 103);
  EXPECT_EQ(signs.longest_in_training(), 30 * 20) << "the longest gap counts";
  signs.note(7, 0, 203);
  EXPECT_EQ(signs.longest_in_training(), 30 * 100);
}

TEST(SignsOfLife, NeverMakeFiveMinutesOfSilenceAStall) {
  SignsOfLife signs(0);
  for (int report = 1; report <= 9; ++report) signs.note(report, 0, 1000 + report);
  EXPECT_EQ(signs.longest_in_training(), 300) << "the time before the first report is no gap";
}

}  // namespace
}  // namespace tearless::harness::signs_of_life_test
