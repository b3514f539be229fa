// How long a plan will take, and how much room, compared with sums by hand.
#include "harness/plan/estimate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

namespace tearless::harness::estimate_test {
namespace {

using testing::ElementsAre;

Run run(const std::string& shape, int64_t updates, const std::string& device = "cpu", int threads = 1) {
  return {.id = "",
          .settings = "",
          .needs = {.device = device, .threads = threads, .resource_class = shape},
          .updates = updates};
}

// The lines on a machine with so many cores and GPUs.
std::vector<std::string> lines_of(const Estimate& estimate, int cores, int gpus) {
  return estimate_lines(estimate, cores, gpus, "tearless run g.toml --calibrate");
}

TEST(Estimate, IsThePaceOfRunsOfTheSameShape) {
  const std::vector<Timing> ended = {{.resource_class = "a", .updates = 100, .seconds = 50},
                                     {.resource_class = "b", .updates = 100, .seconds = 500}};
  const Estimate estimate = estimate_of({run("a", 1000), run("a", 2000), run("b", 10)}, ended);
  EXPECT_DOUBLE_EQ(estimate.cpu_seconds, 0.5 * 3000 + 5 * 10);
  EXPECT_EQ(estimate.known, 3);
  EXPECT_EQ(estimate.error, 0) << "one run of a shape says nothing about the spread";
  EXPECT_THAT(lines_of(estimate, 2, 0),
              ElementsAre("about 12:55 on 2 cores, from 2 ended runs of the same resource classes"));
}

TEST(Estimate, OfRunsThatMakeNoUpdateIsTheTimeOfThoseThatHaveEnded) {
  const std::vector<Timing> ended = {{.resource_class = "d", .updates = 0, .seconds = 4},
                                     {.resource_class = "d", .updates = 0, .seconds = 6}};
  const Estimate estimate = estimate_of({run("d", 0), run("d", 0), run("d", 0), run("e", 0)}, ended);
  EXPECT_DOUBLE_EQ(estimate.cpu_seconds, 3 * 5);
  EXPECT_EQ(estimate.unknown, 1);
}

// A training of passes has no known length until its corpus is prepared.
TEST(Estimate, OfRunsOfUnknownLengthIsTheTimeOfWholeRunsAndOfTheOthersThePaceOfWhatWasMade) {
  const std::vector<Timing> ended = {
      {.resource_class = "a", .updates = 0, .seconds = 50, .training_seconds = 40, .updates_made = 100},
      {.resource_class = "a", .updates = 200, .seconds = 100}};
  EXPECT_DOUBLE_EQ(estimate_of({run("a", 300)}, ended).cpu_seconds, 0.5 * 300);
  EXPECT_DOUBLE_EQ(estimate_of({run("a", 0)}, ended).cpu_seconds, 75);
  const std::vector<Timing> calibration = {
      {.resource_class = "b", .updates = 20, .seconds = 10, .training_seconds = 8, .updates_made = 20}};
  EXPECT_EQ(estimate_of({run("b", 0)}, {}, calibration).unknown, 1);
  EXPECT_DOUBLE_EQ(estimate_of({run("b", 100)}, {}, calibration).cpu_seconds, 2 + 0.4 * 100);
}

TEST(Estimate, IsWiderTheMoreTheRunsDifferAndTheFewerThereAre) {
  const auto of = [](const std::vector<double>& seconds, int wanted) {
    std::vector<Timing> ended;
    for (const double each : seconds) ended.push_back({.resource_class = "a", .updates = 100, .seconds = each});
    return estimate_of(std::vector<harness::Run>(static_cast<size_t>(wanted), run("a", 100)), ended);
  };
  // Paces 0.9 and 1.1: mean 1, variance 0.02; four runs of 100 updates.
  const Estimate four = of({90, 110}, 4);
  EXPECT_DOUBLE_EQ(four.cpu_seconds, 400);
  EXPECT_NEAR(four.error, 2 * std::sqrt(0.02 * (4 * 1e4 + 160'000.0 / 2)) / 400, 1e-12);
  EXPECT_LT(of({90, 110, 90, 110, 90, 110}, 4).error, four.error);
  EXPECT_GT(of({50, 150}, 4).error, four.error);
  EXPECT_THAT(lines_of(four, 4, 0),
              ElementsAre("about 1:40 on 4 cores, ± 24 %, from 2 ended runs of the same resource classes"));
}

TEST(Estimate, OfAPartOfTheRunsSaysOfHowManyAndHowTheOthersCanBeTimed) {
  const std::vector<Timing> ended = {{.resource_class = "a", .updates = 100, .seconds = 50},
                                     {.resource_class = "", .updates = 100, .seconds = 50}};
  const Estimate estimate =
      estimate_of({run("a", 1000), run("b", 1000), run("c", 10), run("b", 1000), run("", 1000)}, ended);
  EXPECT_EQ(estimate.unknown, 4);
  EXPECT_DOUBLE_EQ(estimate.cpu_seconds, 500);
  EXPECT_THAT(lines_of(estimate, 1, 0),
              ElementsAre("1 of 5 runs: about 8:20 on 1 core, from 1 ended run of the same resource classes",
                          "3 runs of 2 resource classes have not been timed: tearless run g.toml --calibrate",
                          "not known for 1 run of which the program names no resource class or measures no time"));
  EXPECT_THAT(lines_of(estimate_of({run("b", 1000)}, ended), 1, 0),
              ElementsAre("1 run of one resource class has not been timed: tearless run g.toml --calibrate"))
      << "nothing is estimated";
}

// 20 updates in 4 s and one evaluation in 3 s, of 10 s altogether.
const Timing kShort{.resource_class = "a",
                    .updates = 20,
                    .seconds = 10,
                    .training_seconds = 4,
                    .updates_made = 20,
                    .evaluation_seconds = 3,
                    .evaluations = 1};

TEST(Estimate, TakesCalibrationsApartIntoUpdatesEvaluationsAndWhatIsDoneOnce) {
  harness::Run whole = run("a", 1000, "cpu", 2);
  whole.evaluations = 10;
  const Estimate estimate = estimate_of({whole}, {}, {kShort});
  EXPECT_DOUBLE_EQ(estimate.cpu_seconds, 2 * (3 + 1000 * 0.2 + 10 * 3));
  EXPECT_EQ(estimate.known, 1);
  EXPECT_EQ(estimate.calibrated, 1);
  EXPECT_THAT(lines_of(estimate, 2, 0), ElementsAre("about 3:53 on 2 cores, by calibration"));
  // A program that measures nothing.
  EXPECT_DOUBLE_EQ(estimate_of({whole}, {}, {{.resource_class = "a", .updates = 20, .seconds = 10}}).cpu_seconds,
                   2 * 1000 * 0.5);
}

TEST(Estimate, OfCalibrationsThatTookNoWholeSecondAndMeasuredNothingIsNotKnown) {
  const std::vector<Timing> calibration = {{.resource_class = "a", .updates = 20, .seconds = 0}};
  EXPECT_THAT(lines_of(estimate_of({run("a", 1000)}, {}, calibration), 2, 0),
              ElementsAre("not known for 1 run of which the program names no resource class or measures no time"));
}

TEST(Estimate, PrefersRunsThatHaveEndedToCalibrations) {
  const std::vector<Timing> ended = {{.resource_class = "a", .updates = 100, .seconds = 90},
                                     {.resource_class = "a", .updates = 100, .seconds = 110}};
  Timing of_b = kShort;
  of_b.resource_class = "b";
  EXPECT_DOUBLE_EQ(estimate_of({run("a", 100)}, ended, {kShort}).cpu_seconds, 100);
  EXPECT_GT(estimate_of({run("a", 100)}, ended, {kShort}).error, 0);
  const Estimate both = estimate_of({run("a", 100), run("b", 100), run("c", 100)}, ended, {kShort, of_b});
  EXPECT_DOUBLE_EQ(both.cpu_seconds, 100 + (3 + 100 * 0.2));
  EXPECT_EQ(both.error, 0) << "one calibration says nothing about the spread";
  EXPECT_THAT(lines_of(both, 1, 0),
              ElementsAre("2 of 3 runs: about 2:03 on 1 core, from 2 ended runs of the same resource classes; 1 run by "
                          "calibration",
                          "1 run of one resource class has not been timed: tearless run g.toml --calibrate"));
}

TEST(Estimate, DoesNotTakeACalibrationWithoutShapeForARunWithoutShape) {
  Timing without = kShort;
  without.resource_class = "";
  const Estimate estimate = estimate_of({run("", 100), run("b", 100)}, {}, {without});
  EXPECT_EQ(estimate.unknown, 2);
  EXPECT_EQ(estimate.untimed, 1);
}

TEST(Estimate, CountsCoresAndGpusApart) {
  const std::vector<Timing> ended = {{.resource_class = "a", .updates = 100, .seconds = 50},
                                     {.resource_class = "g", .updates = 100, .seconds = 360}};
  const Estimate estimate =
      estimate_of({run("a", 100, "cpu", 4), run("g", 1000, "cuda"), run("g", 1000, "cuda", 8)}, ended);
  EXPECT_DOUBLE_EQ(estimate.cpu_seconds, 200);
  EXPECT_DOUBLE_EQ(estimate.gpu_seconds, 7200);
  EXPECT_THAT(
      lines_of(estimate, 2, 2),
      ElementsAre("about 1:40 on 2 cores and 1:00:00 on 2 GPUs, from 2 ended runs of the same resource classes"));
  EXPECT_THAT(lines_of(estimate, 2, 0),
              ElementsAre("about 1:40 on 2 cores and 2 GPU hours, from 2 ended runs of the same resource classes"));
}

TEST(Estimate, OfTheDiskIsTheLargestOfAFewRunsOfTheShape) {
  const std::map<std::string, int64_t> sizes = {{"a1", 100}, {"a2", 300}, {"a3", 200}, {"b1", 7}, {"c1", 9}};
  std::vector<Timing> ended;
  for (const auto& [id, bytes] : sizes) ended.push_back({.id = id, .resource_class = id.substr(0, 1)});
  std::vector<std::string> measured;
  const auto bytes_of = [&](const std::string& id) {
    measured.push_back(id);
    return sizes.at(id);
  };
  EXPECT_EQ(disk_estimate({run("a", 1), run("a", 1), run("b", 1)}, ended, bytes_of), 2 * 300 + 7);
  EXPECT_EQ(measured, (std::vector<std::string>{"a1", "a2", "a3", "b1"})) << "c is not asked for";
  EXPECT_EQ(disk_estimate({run("a", 1), run("d", 1)}, ended, bytes_of), std::nullopt);
  EXPECT_EQ(disk_estimate({run("", 1)}, {{.id = "a1", .resource_class = ""}}, bytes_of), std::nullopt);

  measured.clear();
  disk_estimate({run("a", 1)}, std::vector<Timing>(100, {.id = "a1", .resource_class = "a"}), bytes_of);
  EXPECT_LE(measured.size(), 10u) << "each folder is read";
}

}  // namespace
}  // namespace tearless::harness::estimate_test
