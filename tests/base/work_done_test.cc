// How far a run is, by its files, and that an attempt records it when it begins.
#include "base/run_directory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/sealed_json.h"
#include "base/time.h"
#include "tests/support/paths.h"

namespace tearless::work_done_test {
namespace {

std::string metric(int64_t step) {
  return nlohmann::json{{"step", step}, {"name", "train.loss"}, {"value", 1.5}}.dump() + "\n";
}

class WorkDoneTest : public testing::Test {
 protected:
  WorkDoneTest() : run_(folder_ / "run") { make_folders(run_.checkpoint(20)); }

  int64_t step_in(const std::string& metrics) {
    test::write_text(run_.metrics(), metrics);
    return work_done(run_).step;
  }

  test::TempFolder folder_;
  RunDirectory run_;
};

TEST_F(WorkDoneTest, WithoutMetricsThereIsNoStep) {
  const WorkDone done = work_done(run_);
  EXPECT_EQ(done.checkpoint, 20);
  EXPECT_EQ(done.step, 0);
  EXPECT_EQ(done.reported_ns, 0);
  EXPECT_EQ(step_in(""), 0);
}

TEST_F(WorkDoneTest, TheStepIsThatOfTheLastCompleteLine) {
  EXPECT_EQ(step_in(metric(10) + metric(30)), 30);
  EXPECT_EQ(step_in(metric(10) + metric(30) + R"({"step": 40, "na)"), 30) << "cut while it was written";
  EXPECT_EQ(step_in(R"({"step": 40})"), 0);
}

TEST_F(WorkDoneTest, LinesThatAreNoMetricsAreSkipped) {
  EXPECT_EQ(step_in(metric(10) + "not a metric\n[]\n{\"step\": \"50\"}\n\n"), 10);
  EXPECT_EQ(step_in(metric(10) + "{\"step\": -1}\n{\"step\": 1e300}\n{\"step\": 18446744073709551615}\n"), 10);
}

TEST_F(WorkDoneTest, OnlyTheEndOfALongFileIsRead) {
  std::string long_file = metric(10);
  for (int i = 0; i < 1000; ++i) long_file.append(99, 'x').append("\n");
  EXPECT_EQ(step_in(long_file), 0);
  EXPECT_EQ(step_in(long_file + metric(30)), 30);
}

TEST_F(WorkDoneTest, AnAttemptRecordsItWhenItBegins) {
  test::write_text(run_.metrics(), metric(30));
  const timespec at{.tv_sec = 1'769'860'800, .tv_nsec = 250'000'000};
  const timespec times[2] = {at, at};
  ASSERT_EQ(::utimensat(AT_FDCWD, run_.metrics().c_str(), times, 0), 0);
  write_start(run_, run_.make_attempt(), {});
  const nlohmann::json start = *read_sealed(run_.attempt(1) / "start.json");
  EXPECT_EQ(start.at("checkpoint"), 20);
  EXPECT_EQ(start.at("step"), 30);
  EXPECT_EQ(start.at("reported_ns"), 1'769'860'800'250'000'000);
}

TEST(SecondsOfUtc, ReadsWhatUtcNowWrites) {
  EXPECT_EQ(seconds_of_utc("1970-01-02T00:00:01Z"), 86'401);
  EXPECT_EQ(seconds_of_utc("2026-01-31T12:00:00Z"), 1'769'860'800);
  EXPECT_TRUE(seconds_of_utc(utc_now()));
  for (const char* other : {"", "2026-01-31", "2026-01-31T12:00:00", "2026-01-31T12:00:00Z and more"}) {
    EXPECT_EQ(seconds_of_utc(other), std::nullopt) << other;
  }
}

}  // namespace
}  // namespace tearless::work_done_test
