// Which of the known sizes is reserved, and how the needs grows.
#include "harness/devices/memory_needs.h"

#include <gtest/gtest.h>

namespace tearless::harness::memory_needs_test {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

MemoryNeeds::Said estimated(int64_t bytes) { return {.declared = {}, .estimate = bytes}; }
MemoryNeeds::Said declared(int64_t bytes) { return {.declared = bytes, .estimate = {}}; }

int64_t times(int64_t bytes, double factor) { return static_cast<int64_t>(static_cast<double>(bytes) * factor); }

TEST(MemoryNeeds, AreUnknownOfAShapeThatNobodyDescribed) {
  MemoryNeeds needs;
  EXPECT_EQ(needs.of("b").bytes, std::nullopt);
  EXPECT_EQ(needs.of("b").why, "not known");
}

TEST(MemoryNeeds, AreTheEstimateWithAWideMarginAtFirst) {
  MemoryNeeds needs;
  EXPECT_EQ(needs.of("a", estimated(10 * kGiB)).bytes, 13 * kGiB);
  EXPECT_EQ(needs.of("a", estimated(10 * kGiB)).why, "10.0 GiB estimated, with a margin of 30 %");
}

TEST(MemoryNeeds, AreTheLargestMeasuredPeakWithASmallMarginOnceOneIsKnown) {
  MemoryNeeds needs;
  needs.learn_peak("a", 10 * kGiB);
  needs.learn_peak("a", 8 * kGiB);
  EXPECT_EQ(needs.of("a", estimated(20 * kGiB)).bytes, 11 * kGiB);
  EXPECT_EQ(needs.of("a", estimated(20 * kGiB)).why, "10.0 GiB measured, with a margin of 10 %");
  needs.learn_peak("b", 1 * kGiB);
  EXPECT_EQ(needs.of("a", estimated(20 * kGiB)).bytes, 11 * kGiB) << "the peak of another shape";
}

TEST(MemoryNeeds, AreWhatIsDeclaredWithoutAMargin) {
  MemoryNeeds needs;
  needs.learn_peak("a", 7 * kGiB);
  EXPECT_EQ(needs.of("a", {.declared = 8 * kGiB, .estimate = 20 * kGiB}).bytes, 8 * kGiB);
  EXPECT_EQ(needs.of("a", {.declared = 8 * kGiB, .estimate = 20 * kGiB}).why, "8.0 GiB declared");
}

TEST(MemoryNeeds, AreMoreThanDeclaredOnceMoreWasMeasured) {
  MemoryNeeds needs;
  needs.learn_peak("a", 8 * kGiB);
  EXPECT_EQ(needs.of("a", declared(8 * kGiB)).bytes, 8 * kGiB);
  needs.learn_peak("a", 10 * kGiB);
  EXPECT_EQ(needs.of("a", declared(8 * kGiB)).bytes, 11 * kGiB);
  EXPECT_EQ(needs.of("a", declared(8 * kGiB)).why,
            "10.0 GiB measured, with a margin of 10 %, more than the 8.0 GiB declared");
}

TEST(MemoryNeeds, AreNotLessBecauseARunHasNotReachedItsPeakYet) {
  MemoryNeeds needs;
  needs.learn_use("a", 2 * kGiB);
  EXPECT_EQ(needs.of("a", estimated(10 * kGiB)).bytes, 13 * kGiB);
  needs.learn_use("a", 20 * kGiB);
  needs.learn_use("a", 3 * kGiB);
  EXPECT_EQ(needs.of("a", estimated(10 * kGiB)).bytes, 22 * kGiB);
  EXPECT_EQ(needs.of("a", estimated(10 * kGiB)).why, "20.0 GiB measured, with a margin of 10 %");
  needs.learn_peak("a", 10 * kGiB);
  EXPECT_EQ(needs.of("a", estimated(10 * kGiB)).bytes, 22 * kGiB) << "another run used more";

  needs.learn_use("b", 2 * kGiB);
  EXPECT_EQ(needs.of("b").bytes, std::nullopt) << "only what it uses now is known";
  EXPECT_EQ(needs.of("b", declared(kGiB)).why,
            "2.0 GiB measured, with a margin of 10 %, more than the 1.0 GiB declared");
}

TEST(MemoryNeeds, GrowEachTimeARunRanOutOfMemoryBesideOthers) {
  MemoryNeeds needs;
  needs.ran_out("a", 8 * kGiB, true);
  EXPECT_EQ(needs.of("a", declared(8 * kGiB)).bytes, 12 * kGiB);
  EXPECT_EQ(needs.of("a", declared(8 * kGiB)).why, "12.0 GiB, because a run with less ran out of memory beside others");
  needs.ran_out("a", 12 * kGiB, true);
  EXPECT_EQ(needs.of("a", declared(8 * kGiB)).bytes, 18 * kGiB);
  needs.ran_out("a", 8 * kGiB, true);
  EXPECT_EQ(needs.of("a", declared(8 * kGiB)).bytes, 18 * kGiB) << "a run that was placed before";
}

TEST(MemoryNeeds, DoNotGrowWhenARunRanOutOfMemoryByItself) {
  MemoryNeeds needs;
  needs.ran_out("a", 24 * kGiB, false);
  EXPECT_EQ(needs.of("a", estimated(10 * kGiB)).bytes, 13 * kGiB);
}

TEST(MemoryNeeds, KeepThePeakWhereItIsMoreThanWhatRanOut) {
  MemoryNeeds needs;
  needs.ran_out("a", 2 * kGiB, true);
  EXPECT_EQ(needs.of("a").bytes, 3 * kGiB);
  needs.learn_peak("a", 10 * kGiB);
  EXPECT_EQ(needs.of("a").bytes, 11 * kGiB);
}

TEST(MemoryNeeds, OfAnyPeakCoverIt) {
  for (int64_t bytes = 1; bytes < 100 * kGiB; bytes = 3 * bytes + 1) {
    MemoryNeeds needs;
    needs.learn_peak("a", bytes);
    EXPECT_GE(*needs.of("a").bytes, times(bytes, MemoryNeeds::kPeakMargin)) << bytes;
    EXPECT_GT(*needs.of("a").bytes, bytes);
  }
}

}  // namespace
}  // namespace tearless::harness::memory_needs_test
