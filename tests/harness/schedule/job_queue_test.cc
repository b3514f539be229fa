// The order in which waiting jobs are tried.
#include "harness/schedule/job_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace tearless::harness::job_queue_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const Needs kOneCore{.device = "cpu", .threads = 1, .alone = false};
const Needs kEightCores{.device = "cpu", .threads = 8, .alone = false};

bool anything(const Needs&) { return true; }
bool one_core(const Needs& needs) { return needs.threads == 1; }

std::vector<std::string> all_of(JobQueue& queue, double now = 0) {
  std::vector<std::string> taken;
  while (const auto next = queue.take(now, anything)) taken.push_back(*next);
  return taken;
}

TEST(JobQueue, OrdersByPriorityThenSubmissionThenRankThenWorkThenPlace) {
  JobQueue queue;
  queue.push("second place", kOneCore, {.work = 5, .place = 1});
  queue.push("first place", kOneCore, {.work = 5, .place = 0});
  queue.push("longer", kOneCore, {.work = 6, .place = 2});
  queue.push("lower rank", kOneCore, {.rank = -1, .work = 1, .place = 3});
  queue.push("later submission", kOneCore, {.submission = 1, .rank = -9, .work = 9});
  queue.push("urgent", kOneCore, {.priority = 1, .submission = 9, .rank = 9});
  EXPECT_THAT(all_of(queue),
              ElementsAre("urgent", "lower rank", "longer", "first place", "second place", "later submission"));
  EXPECT_EQ(queue.size(), 0u);
}

TEST(JobQueue, AJobThatDoesNotFitIsPassedOver) {
  JobQueue queue;
  queue.push("large", kEightCores, {.place = 0});
  queue.push("small", kOneCore, {.place = 1});
  EXPECT_EQ(queue.take(0, one_core), "small");
  EXPECT_EQ(queue.take(0, one_core), std::nullopt);
  EXPECT_EQ(queue.take(0, anything), "large");
}

TEST(JobQueue, AJobThatWasPassedOverForTooLongBlocksTheOthersUntilItFits) {
  JobQueue queue;
  queue.push("large", kEightCores, {.place = 0});
  for (int i = 1; i <= 4; ++i) queue.push("small " + std::to_string(i), kOneCore, {.place = i});
  EXPECT_EQ(queue.take(0, one_core), "small 1");
  EXPECT_EQ(queue.take(JobQueue::kPatience - 1, one_core), "small 2");
  EXPECT_EQ(queue.take(JobQueue::kPatience, one_core), std::nullopt);
  EXPECT_EQ(queue.take(JobQueue::kPatience + 1, anything), "large");
  EXPECT_EQ(queue.take(JobQueue::kPatience + 2, one_core), "small 3");
}

TEST(JobQueue, AJobThatIsNotFirstNeverBlocks) {
  JobQueue queue;
  queue.push("large", kEightCores, {.priority = -1});
  for (int i = 0; i < 3; ++i) {
    queue.push("small", kOneCore, {});
    EXPECT_EQ(queue.take(i * JobQueue::kPatience, one_core), "small");
  }
}

TEST(JobQueue, ADelayedJobWaitsForItsTime) {
  JobQueue queue;
  queue.push("late", kOneCore, {}, 10);
  queue.push("now", kOneCore, {.place = 1});
  EXPECT_THAT(all_of(queue, 9.9), ElementsAre("now"));
  EXPECT_THAT(all_of(queue, 10), ElementsAre("late"));
}

TEST(JobQueue, ARemovedJobIsNotTaken) {
  JobQueue queue;
  queue.push("delayed", kOneCore, {}, 10);
  queue.push("due", kEightCores, {});
  EXPECT_EQ(queue.take(0, one_core), std::nullopt);  // "due" is in its line now
  EXPECT_TRUE(queue.erase("delayed"));
  EXPECT_TRUE(queue.erase("due"));
  EXPECT_FALSE(queue.erase("due"));
  EXPECT_THAT(all_of(queue, 10), IsEmpty());
}

// Against a list that is sorted and scanned.
TEST(JobQueue, RandomHistoriesTakeWhatAScanWouldTake) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    struct Listed {
      std::string id;
      Needs needs;
      JobOrder order;
      double not_before;
    };
    std::vector<Listed> list;
    JobQueue queue;
    for (int step = 0; step < 500; ++step) {
      const double now = step * 0.1;  // short: nobody loses patience
      if (random() % 2 == 0) {
        const Listed job{
            std::to_string(step),
            {.device = random() % 2 ? "cpu" : "cuda", .threads = 1 + static_cast<int>(random() % 3)},
            {.priority = static_cast<int64_t>(random() % 3), .rank = static_cast<int64_t>(random() % 4), .place = step},
            random() % 4 == 0 ? now + random() % 5 : 0.0};
        list.push_back(job);
        queue.push(job.id, job.needs, job.order, job.not_before);
        continue;
      }
      const int free = static_cast<int>(random() % 4);
      const auto fits = [&](const Needs& needs) { return needs.threads <= free; };
      const Listed* best = nullptr;
      for (const Listed& job : list) {
        if (job.not_before <= now && fits(job.needs) && (!best || job.order < best->order)) best = &job;
      }
      const auto taken = queue.take(now, fits);
      ASSERT_EQ(taken.has_value(), best != nullptr);
      if (!taken) continue;
      ASSERT_EQ(*taken, best->id);
      list.erase(list.begin() + (best - list.data()));
    }
    EXPECT_EQ(queue.size(), list.size());
  }
}

}  // namespace
}  // namespace tearless::harness::job_queue_test
