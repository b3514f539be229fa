// What the runs on one GPU make together, from reports that come now and then.
#include "harness/devices/throughput.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tearless::harness::throughput_test {
namespace {

// A run that makes `rate` updates a second and reports every `every`.
struct Reporter {
  std::string id;
  double rate = 1;
  int64_t every = 1;
  std::string shape = "a";
  double begun = 0;

  Throughput::Run at(double now) const {
    const auto made = static_cast<int64_t>(rate * (now - begun));
    return {.id = id, .resource_class = shape, .step = made / every * every};
  }
};

std::vector<SharingObservation> observe(Throughput& throughput, const std::vector<Reporter>& runs, double from,
                                        double to) {
  std::vector<SharingObservation> all;
  for (double now = from; now < to; now += 5) {
    std::vector<Throughput::Run> reported;
    for (const Reporter& run : runs) reported.push_back(run.at(now));
    if (const auto observation = throughput.note(reported, now)) all.push_back(*observation);
  }
  return all;
}

TEST(Throughput, IsTheSumOfTheRunsRates) {
  Throughput throughput;
  const auto all =
      observe(throughput, {{.id = "x", .rate = 10, .every = 1}, {.id = "y", .rate = 4, .every = 100}}, 0, 1000);
  ASSERT_GE(all.size(), 6u);
  for (const SharingObservation& each : all) {
    EXPECT_EQ(each.runs, 2);
    EXPECT_EQ(each.resource_class, "a");
    EXPECT_GE(each.seconds, Throughput::kWindow);
    EXPECT_NEAR(each.updates / each.seconds, 14, 0.5) << "also of a run that reports every 25 s only";
  }
}

TEST(Throughput, IsNotMeasuredAcrossAChangeOfTheRuns) {
  Throughput throughput;
  const Reporter x{.id = "x", .rate = 10}, y{.id = "y", .rate = 10};
  EXPECT_TRUE(observe(throughput, {x}, 0, 100).empty());
  EXPECT_TRUE(observe(throughput, {x, y}, 100, 200).empty()) << "the window begins again";
  EXPECT_FALSE(observe(throughput, {x, y}, 200, 300).empty());
}

TEST(Throughput, OfRunsOfDifferentShapesIsNotMeasured) {
  Throughput throughput;
  EXPECT_TRUE(observe(throughput, {{.id = "x", .rate = 10}, {.id = "y", .rate = 10, .shape = "b"}}, 0, 1000).empty());
  EXPECT_TRUE(observe(throughput, {{.id = "z", .rate = 10, .shape = ""}}, 1000, 2000).empty()) << "not known";
}

TEST(Throughput, OfARunThatIsStillPreparingIsNotMeasured) {
  Throughput throughput;
  EXPECT_TRUE(observe(throughput, {{.id = "x", .rate = 0}, {.id = "y", .rate = 10}}, 0, 1000).empty());
}

TEST(Throughput, ATryThatBeginsAtACheckpointBeginsAWindow) {
  Throughput throughput;
  EXPECT_TRUE(observe(throughput, {{.id = "x", .rate = 10}}, 0, 100).empty());
  const auto all = observe(throughput, {{.id = "x", .rate = 10, .begun = 95}}, 100, 400);
  ASSERT_FALSE(all.empty());
  EXPECT_NEAR(all.front().updates / all.front().seconds, 10, 0.5);
}

}  // namespace
}  // namespace tearless::harness::throughput_test
