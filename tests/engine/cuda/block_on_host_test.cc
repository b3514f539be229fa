// The block that runs bodies on the processor: what is right on a GPU gives the same bits in either order, and what is
// wrong there shows.
#include "tests/engine/cuda/block_on_host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <vector>

namespace tearless::engine::test::block_on_host_test {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::Truly;
using Body = std::function<void(BlockOnHost&)>;

constexpr int kThreads = 2 * kLanes;
constexpr Shape kTwoWarps{1, kThreads, kThreads* static_cast<int>(sizeof(float))};

/// What `body` returns in each thread of one block, in both orders of threads.
std::vector<std::vector<float>> in_both_orders(const std::function<float(BlockOnHost&)>& body) {
  std::vector<std::vector<float>> results;
  for (const ThreadOrder order : {ThreadOrder::kBackwards, ThreadOrder::kForwards}) {
    set_thread_order(order);
    std::vector<float> result(kThreads);
    run_blocks(kTwoWarps, [&](BlockOnHost& block) { result[static_cast<size_t>(block.thread())] = body(block); });
    results.push_back(result);
  }
  return results;
}

float* floats(BlockOnHost& block) { return reinterpret_cast<float*>(block.shared()); }

// Writes its own element of shared memory, synchronises by `meet`, and reads that of the thread `away` further.
float neighbour(BlockOnHost& block, int away, const Body& meet) {
  floats(block)[block.thread()] = static_cast<float>(block.thread());
  meet(block);
  return floats(block)[(block.thread() + away) % kThreads];
}

TEST(BlockOnHost, HandsOverAtABarrierOfTheBlock) {
  const Body meet = [](BlockOnHost& block) { block.sync(); };
  const auto results = in_both_orders([&](BlockOnHost& block) { return neighbour(block, kLanes, meet); });
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0].front(), kLanes);
  EXPECT_EQ(results[0].back(), kLanes - 1);
}

TEST(BlockOnHost, ShowsThatABarrierIsMissing) {
  const Body none = [](BlockOnHost&) {};
  const Body of_the_warp = [](BlockOnHost& block) {
    for (int i = 0; i < 5; ++i) block.warp_sync();
  };
  const auto in_a_warp = in_both_orders([&](BlockOnHost& block) { return neighbour(block, 1, none); });
  EXPECT_NE(in_a_warp[0], in_a_warp[1]);
  // Another warp is not waited for, however often the warp's own lanes meet.
  const auto between_warps = in_both_orders([&](BlockOnHost& block) { return neighbour(block, kLanes, of_the_warp); });
  EXPECT_NE(between_warps[0], between_warps[1]);
  const auto within = in_both_orders([&](BlockOnHost& block) {
    floats(block)[block.thread()] = static_cast<float>(block.thread());
    block.warp_sync();
    return floats(block)[block.thread() ^ 1];
  });
  EXPECT_EQ(within[0], within[1]);
}

TEST(BlockOnHost, PassesValuesBetweenTheLanesOfAWarp) {
  const auto passed = in_both_orders([](BlockOnHost& block) {
    return block.from_lane(static_cast<float>(block.thread()), 5) +
           100 * block.butterfly(static_cast<float>(block.lane()), [](float a, float b) { return a + b; });
  });
  EXPECT_EQ(passed[0], passed[1]);
  for (int thread = 0; thread < kThreads; ++thread) {
    const int lane_5 = thread - thread % kLanes + 5, sum_of_lanes = kLanes * (kLanes - 1) / 2;
    EXPECT_EQ(passed[0][static_cast<size_t>(thread)], static_cast<float>(lane_5 + 100 * sum_of_lanes));
  }
}

TEST(BlockOnHost, RunsEveryBlockWithSharedMemoryThatNobodyHasWritten) {
  std::vector<int64_t> blocks;
  std::vector<float> first;
  run_blocks({3, kLanes, 16}, [&](BlockOnHost& block) {
    if (block.thread() == 0) {
      blocks.push_back(block.index());
      for (int i = 0; i < 4; ++i) first.push_back(floats(block)[i]);
      std::memset(block.shared(), 0, 16);
    }
    block.sync();
  });
  EXPECT_THAT(blocks, ElementsAre(0, 1, 2));
  EXPECT_THAT(first, Each(Truly([](float x) { return std::isnan(x); })));
}

TEST(BlockOnHost, DiesOfWhatHangsAGpuOrThatItRefuses) {
  const Body nothing = [](BlockOnHost&) {};
  EXPECT_DEATH(run_blocks({1, kLanes + 1, 0}, nothing), "block on host: a block must have whole warps");
  EXPECT_DEATH(run_blocks({1, 0, 0}, nothing), "block on host: a block must have whole warps");
  EXPECT_DEATH(run_blocks({1, 1024 + kLanes, 0}, nothing), "1024 threads at most");
  run_blocks({1, 1024, 0}, nothing);
  EXPECT_DEATH(run_blocks({1, kThreads, 0}, [](BlockOnHost& block) { block.warp() == 0 ? block.sync() : void(); }),
               "threads of a block wait at a barrier that others never reach");
  EXPECT_DEATH(run_blocks({1, kThreads, 0}, [](BlockOnHost& block) { block.lane() > 0 ? block.warp_sync() : void(); }),
               "threads of a block wait at a barrier that others never reach");
}

}  // namespace
}  // namespace tearless::engine::test::block_on_host_test
