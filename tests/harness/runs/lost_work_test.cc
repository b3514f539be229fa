// The work that attempts lost, computed by hand.
#include "harness/runs/lost_work.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "tests/support/paths.h"

namespace tearless::harness::lost_work_test {
namespace {

constexpr int64_t kNoon = 1'769'860'800;  // 2026-01-31T12:00:00Z, seconds since 1970
constexpr int64_t nanoseconds(int64_t seconds_after_noon) { return (kNoon + seconds_after_noon) * 1'000'000'000; }

TEST(LostWork, IsWhatWasReportedSinceTheLastCheckpointAtTheMeanSpeedOfTheAttempt) {
  // 400 updates in 100 s, of which 120 came after the checkpoint: 120 / 4 = 30 s.
  const LostWork lost = lost_work({.checkpoint = 100, .step = 150, .reported_ns = nanoseconds(-60)},
                                  {.checkpoint = 380, .step = 500, .reported_ns = nanoseconds(100)}, kNoon);
  EXPECT_EQ(lost.updates, 120);
  EXPECT_DOUBLE_EQ(lost.seconds, 30);
  EXPECT_EQ(text_of(lost), "120 updates, 0:30");
}

TEST(LostWork, WithoutACheckpointIsAllOfIt) {
  const LostWork lost = lost_work({}, {.checkpoint = 0, .step = 1, .reported_ns = nanoseconds(75)}, kNoon);
  EXPECT_EQ(text_of(lost), "1 update, 1:15");
}

TEST(LostWork, IsNothingAfterACheckpointOfTheLastUpdate) {
  const WorkDone before{.checkpoint = 100, .step = 100, .reported_ns = nanoseconds(-60)};
  for (const int64_t step : {450, 400}) {  // reported every 50 updates, stopped with a checkpoint in between
    const LostWork lost = lost_work(before, {.checkpoint = 450, .step = step, .reported_ns = nanoseconds(9)}, kNoon);
    EXPECT_EQ(lost.updates, 0);
    EXPECT_EQ(lost.seconds, 0);
  }
}

TEST(LostWork, OfAnAttemptThatReportedNothingIsNotThatOfTheOneBeforeIt) {
  const WorkDone found{.checkpoint = 380, .step = 500, .reported_ns = nanoseconds(-60)};
  EXPECT_EQ(lost_work(found, found, kNoon).updates, 0);
  WorkDone again = found;  // the same step a second time
  again.reported_ns = nanoseconds(60);
  EXPECT_EQ(lost_work(found, again, kNoon).updates, 120);
}

TEST(LostWork, HasNoDurationWhereTheClockWasSetBack) {
  const LostWork lost = lost_work({}, {.checkpoint = 0, .step = 5, .reported_ns = nanoseconds(-60)}, kNoon);
  EXPECT_EQ(lost.updates, 5);
  EXPECT_EQ(lost.seconds, 0);
}

class LostWorkOfTest : public testing::Test {
 protected:
  LostWorkOfTest() : run_(folder_ / "run") { make_folders(run_.checkpoints()); }

  void begin(int64_t attempt, nlohmann::json found) {
    found["started_at"] = "2026-01-31T12:00:00Z";
    make_folders(run_.attempt(attempt));
    test::write_text(run_.attempt(attempt) / "start.json", found.dump());
  }
  void report(int64_t step, int64_t seconds_after_noon) {
    test::write_text(run_.metrics(), "{\"step\": " + std::to_string(step) + "}\n");
    const timespec at{.tv_sec = kNoon + seconds_after_noon, .tv_nsec = 0};
    const timespec times[2] = {at, at};
    ASSERT_EQ(::utimensat(AT_FDCWD, run_.metrics().c_str(), times, 0), 0);
  }
  std::string text() const {
    const std::optional<LostWork> lost = lost_work_of(run_, 1);
    return lost ? text_of(*lost) : "not known";
  }

  test::TempFolder folder_;
  RunDirectory run_;
};

TEST_F(LostWorkOfTest, IsTheSameBeforeAndAfterTheNextAttemptHasCutTheMetrics) {
  begin(1, {{"checkpoint", 0}, {"step", 0}, {"reported_ns", 0}});
  make_folders(run_.checkpoint(60));
  report(100, 50);
  EXPECT_EQ(text(), "40 updates, 0:20");
  make_folders(run_.attempt(2));  // never began
  EXPECT_EQ(text(), "40 updates, 0:20");
  begin(3, {{"checkpoint", 60}, {"step", 100}, {"reported_ns", nanoseconds(50)}});
  report(60, 55);
  make_folders(run_.checkpoint(80));
  EXPECT_EQ(text(), "40 updates, 0:20");
}

TEST_F(LostWorkOfTest, IsNotKnownOfAttemptsThatDidNotRecordHowFarTheRunWas) {
  begin(1, {{"checkpoint", 0}});
  report(100, 50);
  EXPECT_EQ(text(), "not known") << "without the other two";
  begin(1, {{"checkpoint", 0}, {"step", 0}, {"reported_ns", 0}});
  EXPECT_EQ(text(), "100 updates, 0:50");
  for (const nlohmann::json& step : {nlohmann::json(-1), nlohmann::json(1e300), nlohmann::json("7")}) {
    begin(2, {{"checkpoint", 0}, {"step", step}, {"reported_ns", 0}});
    EXPECT_EQ(text(), "not known") << step;
  }
  begin(2, {{"checkpoint", 0}});
  EXPECT_EQ(text(), "not known") << "nor does the next one say";
  test::write_text(run_.attempt(1) / "start.json", "{");
  EXPECT_EQ(text(), "not known") << "damaged";
}

}  // namespace
}  // namespace tearless::harness::lost_work_test
