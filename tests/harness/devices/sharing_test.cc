// The number of runs per GPU, against simulated GPUs with a stated model of sharing.
#include "harness/devices/sharing.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace tearless::harness::sharing_test {
namespace {

using testing::HasSubstr;

// The sum of the throughput of k runs, in updates/s.
using Model = std::function<double(int)>;

void observe(Sharing& sharing, int runs, double throughput, int times = 3, const std::string& shape = "a") {
  for (int i = 0; i < times; ++i) {
    sharing.observe({.resource_class = shape, .runs = runs, .seconds = 60, .updates = 60 * throughput});
  }
}

// Does what is asked, `observations` times, and measures it with an error of at most ±`noise`. Calls `each` with every
// answer before it is followed.
Sharing::Answer simulate(Sharing& sharing, const Model& model, int most, double noise, std::mt19937& random,
                         int observations, const std::function<void(const Sharing::Answer&)>& each = nullptr) {
  for (int i = 0; i < observations; ++i) {
    const Sharing::Answer answer = sharing.runs_per_device("a", most);
    if (each) each(answer);
    const double error = noise * (2 * (random() / 4294967296.0) - 1);
    sharing.observe(
        {.resource_class = "a", .runs = answer.runs, .seconds = 60, .updates = 60 * model(answer.runs) * (1 + error)});
  }
  return sharing.runs_per_device("a", most);
}

TEST(Sharing, BeginsWithOneRun) {
  const Sharing sharing;
  const Sharing::Answer answer = sharing.runs_per_device("a", 8);
  EXPECT_EQ(answer.runs, 1);
  EXPECT_TRUE(answer.searching);
  EXPECT_EQ(answer.why, "trying 1 per GPU: not measured yet");
}

TEST(Sharing, TriesOneRunMoreWhileTheSumGrows) {
  Sharing sharing;
  observe(sharing, 1, 10200, 2);
  EXPECT_EQ(sharing.runs_per_device("a", 8).runs, 1) << "two observations are not enough";
  observe(sharing, 1, 10200, 1);
  EXPECT_EQ(sharing.runs_per_device("a", 8).runs, 2);
  observe(sharing, 2, 17900);
  EXPECT_EQ(sharing.runs_per_device("a", 8).runs, 3);
  observe(sharing, 3, 21000);
  const Sharing::Answer trying = sharing.runs_per_device("a", 8);
  EXPECT_EQ(trying.runs, 4);
  EXPECT_TRUE(trying.searching);
  EXPECT_EQ(trying.why, "trying 4 per GPU: 1 run makes 10.2k updates/s, 2 make 17.9k, 3 make 21.0k");
  observe(sharing, 4, 20100);
  const Sharing::Answer chosen = sharing.runs_per_device("a", 8);
  EXPECT_EQ(chosen.runs, 3);
  EXPECT_FALSE(chosen.searching);
  EXPECT_EQ(chosen.why, "3 per GPU: 1 run makes 10.2k updates/s, 2 make 17.9k, 3 make 21.0k, 4 make 20.1k");
}

TEST(Sharing, TriesNoMoreRunsThanMemoryTakes) {
  Sharing sharing;
  observe(sharing, 1, 900);
  observe(sharing, 2, 1800);
  const Sharing::Answer answer = sharing.runs_per_device("a", 2);
  EXPECT_EQ(answer.runs, 2);
  EXPECT_FALSE(answer.searching);
  EXPECT_EQ(answer.why, "2 per GPU, as many as its memory takes: 1 run makes 900 updates/s, 2 make 1.8k");
  EXPECT_EQ(sharing.runs_per_device("a", 1).runs, 1) << "a needs that grew";
  EXPECT_EQ(sharing.runs_per_device("a", 0).runs, 1) << "a run that needs a whole GPU";
}

TEST(Sharing, StaysWithOneRunWhereTwoAddNothing) {
  Sharing sharing;
  observe(sharing, 1, 2e6);
  observe(sharing, 2, 1.99e6);
  const Sharing::Answer answer = sharing.runs_per_device("a", 8);
  EXPECT_EQ(answer.runs, 1);
  EXPECT_FALSE(answer.searching);
  EXPECT_THAT(answer.why, HasSubstr("1 run makes 2.0M updates/s, 2 make 2.0M"));
}

TEST(Sharing, LeavesANumberThatBecomesWorse) {
  Sharing sharing;
  observe(sharing, 1, 1000);
  observe(sharing, 2, 1800);
  observe(sharing, 3, 1900, 100);
  observe(sharing, 4, 1840);
  ASSERT_EQ(sharing.runs_per_device("a", 4).runs, 3);
  observe(sharing, 3, 1500, 12);
  EXPECT_EQ(sharing.runs_per_device("a", 4).runs, 2) << "4 runs make 2 % more, which does not count";
}

TEST(Sharing, TriesMoreRunsWhereManySmallGainsPromiseEnough) {
  Sharing sharing;
  observe(sharing, 1, 1000);
  observe(sharing, 2, 1015);
  EXPECT_EQ(sharing.runs_per_device("a", 3).runs, 1) << "one more run adds 1.5 % at most";
  EXPECT_EQ(sharing.runs_per_device("a", 8).runs, 3) << "six more may add 9 %";
}

TEST(Sharing, DoesNotEndTheSearchForAnUnluckyMeasurement) {
  Sharing sharing;
  observe(sharing, 1, 1000);
  for (const double throughput : {985, 1015, 985, 1015}) observe(sharing, 2, throughput, 1);
  EXPECT_EQ(sharing.runs_per_device("a", 8).runs, 3);
}

TEST(Sharing, ChoosesANumberThatWasMeasuredWithoutASearch) {
  Sharing sharing;
  observe(sharing, 1, 1000);
  observe(sharing, 2, 1000);
  observe(sharing, 5, 2000);
  EXPECT_EQ(sharing.runs_per_device("a", 8).runs, 5);
}

TEST(Sharing, KeepsShapesApart) {
  Sharing sharing;
  observe(sharing, 1, 1000, 3, "a");
  EXPECT_EQ(sharing.runs_per_device("a", 8).runs, 2);
  EXPECT_EQ(sharing.runs_per_device("b", 8).runs, 1);
}

TEST(Sharing, MeasuresANoisyNumberLonger) {
  Sharing sharing;
  for (int i = 0; i < 11; ++i) observe(sharing, 1, i % 2 == 0 ? 900 : 1100, 1);
  EXPECT_EQ(sharing.runs_per_device("a", 8).runs, 1);
  observe(sharing, 1, 1000, 1);
  EXPECT_EQ(sharing.runs_per_device("a", 8).runs, 2) << "but not for ever";
}

TEST(Sharing, IgnoresObservationsThatMeasureNothing) {
  Sharing sharing;
  for (int i = 0; i < 5; ++i) {
    sharing.observe({.resource_class = "a", .runs = 1, .seconds = 0, .updates = 100});
    sharing.observe({.resource_class = "a", .runs = 1, .seconds = -1, .updates = 100});
    sharing.observe({.resource_class = "a", .runs = 0, .seconds = 60, .updates = 100});
    sharing.observe({.resource_class = "a", .runs = 1, .seconds = 60, .updates = std::nan("")});
  }
  EXPECT_EQ(sharing.runs_per_device("a", 8).why, "trying 1 per GPU: not measured yet");
}

TEST(Sharing, OfRunsThatMakeNothingChoosesOne) {
  Sharing sharing;
  std::mt19937 random(1);
  EXPECT_EQ(simulate(
                sharing, [](int) { return 0.0; }, 8, 0, random, 100)
                .runs,
            1);
}

// What sharing does on real devices: a run alone leaves gaps that others fill, until something is full, and beyond
// that they disturb each other.
struct NamedModel {
  std::string name;
  Model sum;
};
std::vector<NamedModel> models() {
  std::vector<NamedModel> models = {
      {"no gain: time slicing of a busy GPU", [](int) { return 1000.0; }},
      {"perfect scaling", [](int k) { return 1000.0 * k; }},
  };
  for (const double slowdown : {0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.1, 1.5}) {
    models.push_back({fmt::format("each run slows the others by {}", slowdown),
                      [=](int k) { return 1000 * k / (1 + slowdown * (k - 1)); }});
  }
  for (const double full : {1.3, 2.0, 2.5, 3.7, 5.5}) {
    models.push_back({fmt::format("full at {}", full), [=](int k) { return 1000 * std::min<double>(k, full); }});
    for (const double loss : {0.02, 0.1, 0.3}) {
      models.push_back({fmt::format("full at {}, then {} less for each run", full, loss), [=](int k) {
                          return 1000 * std::min<double>(k, full) * std::max(0.05, 1 - loss * std::max(0.0, k - full));
                        }});
    }
  }
  for (const double loss : {0.01, 0.05, 0.2}) {
    models.push_back({fmt::format("{} less for each run", loss), [=](int k) { return 1000 * (1 - loss * (k - 1)); }});
  }
  return models;
}

// Claims, for every model, every limit by memory and every seed: no number is searched for longer than its 12
// observations; the chosen sum is not below a single run's, and within 5 % of the best number that memory allows. With
// errors of measurement of up to ±3 %, of which a mean of many keeps a part, 1 % more.
class SimulatedSharing : public testing::TestWithParam<double> {};

TEST_P(SimulatedSharing, IsNearTheBestNumberAndNeverWorseThanOneRun) {
  const double noise = GetParam();
  const double tolerance = noise > 0 ? 0.01 : 1e-9;
  for (const NamedModel& model : models()) {
    for (const int most : {1, 2, 3, 5, 8}) {
      double best = 0;
      for (int k = 1; k <= most; ++k) best = std::max(best, model.sum(k));
      for (unsigned seed = 1; seed <= (noise > 0 ? 10 : 1); ++seed) {
        SCOPED_TRACE(fmt::format("{}, memory for {}, seed {}", model.name, most, seed));
        std::mt19937 random(seed);
        Sharing sharing;
        Sharing::Answer answer;  // the last that was not a search
        size_t searches = 0;
        simulate(sharing, model.sum, most, noise, random, 150, [&](const Sharing::Answer& asked) {
          ASSERT_GE(asked.runs, 1);
          ASSERT_LE(asked.runs, most);
          searches += asked.searching;
          if (!asked.searching) answer = asked;
        });
        EXPECT_LE(searches, static_cast<size_t>(most) * Sharing::kMaxObservations);
        EXPECT_GE(model.sum(answer.runs), model.sum(1) * (1 - tolerance)) << answer.why;
        EXPECT_GE(model.sum(answer.runs), best * (0.95 - tolerance)) << answer.why;
        EXPECT_THAT(answer.why, HasSubstr(fmt::format("{} per GPU", answer.runs)));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Noise, SimulatedSharing, testing::Values(0.0, 0.01, 0.03),
                         [](const auto& info) { return fmt::format("{:.0f}percent", 100 * info.param); });

// While it searches, no more is lost than the first number that is worse costs.
TEST(Sharing, SearchesNoFurtherThanOneNumberThatIsWorse) {
  for (const double loss : {0.05, 0.2, 0.5}) {
    std::mt19937 random(7);
    Sharing sharing;
    int largest = 0;
    simulate(
        sharing, [=](int k) { return 1000 * (1 - loss * (k - 1)); }, 8, 0, random, 100,
        [&](const Sharing::Answer& answer) { largest = std::max(largest, answer.runs); });
    EXPECT_EQ(largest, 2) << loss;
  }
}

// The machine gets another task at half time: from then on more than two runs disturb each other.
TEST(Sharing, FollowsAMachineThatChanges) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    Sharing sharing;
    const Model early = [](int k) { return 1000.0 * std::min(k, 4); };
    const Model late = [](int k) { return k <= 2 ? 1000.0 * k : 1000.0; };
    EXPECT_EQ(simulate(sharing, early, 6, 0.02, random, 100).runs, 4);
    EXPECT_EQ(simulate(sharing, late, 6, 0.02, random, 200).runs, 2);
  }
}

}  // namespace
}  // namespace tearless::harness::sharing_test
