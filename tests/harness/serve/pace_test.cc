#include "harness/serve/pace.h"

#include <gtest/gtest.h>

namespace tearless::harness {
namespace {

TEST(PaceTest, TheFirstChangeIsToldAtOnceAndOnce) {
  Pace pace(5);
  EXPECT_FALSE(pace.tells(100, 5)) << "nothing has changed";
  pace.change();
  EXPECT_TRUE(pace.tells(100, 7));
  EXPECT_FALSE(pace.tells(101, 7));
}

TEST(PaceTest, TheNextOneWaitsForAHundredTimesTheWorkSinceThen) {
  Pace pace(0);
  pace.change();
  pace.tells(100, 0);
  pace.change();
  EXPECT_FALSE(pace.tells(101, 0.02));
  EXPECT_FALSE(pace.tells(101.9, 0.02));
  EXPECT_TRUE(pace.tells(102.1, 0.02)) << "the change was kept";
  pace.change();
  EXPECT_TRUE(pace.tells(103, 0.02)) << "no work was done since then";
}

TEST(PaceTest, PagesThatArePreparedAsOftenAsTheyAreToldTakeAHundredthOfACore) {
  Pace pace(0);
  double work = 0;
  for (int second = 0; second < 10'000; ++second) {
    pace.change();
    if (pace.tells(second, work)) work += 0.3;
  }
  EXPECT_LE(work, 100.4);
  EXPECT_GE(work, 90);
}

}  // namespace
}  // namespace tearless::harness
