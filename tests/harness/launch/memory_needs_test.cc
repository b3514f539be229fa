// Which of the known sizes is reserved, and how the need grows.
#include "harness/launch/memory_needs.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace tearless::harness::memory_needs_test {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

using Learn = std::function<void(MemoryNeeds&)>;

Learn peak(int64_t gib) {
  return [=](MemoryNeeds& needs) { needs.learn_peak("a", gib * kGiB); };
}
Learn uses(int64_t gib) {
  return [=](MemoryNeeds& needs) { needs.learn_use("a", gib * kGiB); };
}
Learn ran_out(int64_t gib, bool shared = true) {
  return [=](MemoryNeeds& needs) { needs.ran_out("a", gib * kGiB, shared); };
}

TEST(MemoryNeeds, AreWhatTheBestSourceSays) {
  struct Row {
    const char* claim;
    std::vector<Learn> learnt;
    int64_t declared, estimate;  // GiB; 0: not said
    int64_t gib;                 // expected; 0: not known
    const char* why;             // expected; null: not compared
  };
  const Row rows[] = {
      {"nobody described it", {}, 0, 0, 0, "not known"},
      {"an estimate has a wide margin", {}, 0, 10, 13, "10.0 GiB estimated, with a margin of 30 %"},
      {"a measured peak replaces it", {peak(10)}, 0, 20, 11, "10.0 GiB measured, with a margin of 10 %"},
      {"the largest peak counts", {peak(10), peak(8)}, 0, 20, 11, nullptr},
      {"what is declared has no margin", {peak(7)}, 8, 0, 8, "8.0 GiB declared"},
      {"as much as declared was measured", {peak(8)}, 8, 0, 8, nullptr},
      {"more than declared was measured",
       {peak(10)},
       8,
       0,
       11,
       "10.0 GiB measured, with a margin of 10 %, more than the 8.0 GiB declared"},
      {"a run may not have reached its peak yet", {uses(2)}, 0, 10, 13, nullptr},
      {"it uses more than was estimated", {uses(20), uses(3)}, 0, 10, 22, "20.0 GiB measured, with a margin of 10 %"},
      {"another run used more than this peak", {uses(20), peak(10)}, 0, 10, 22, nullptr},
      {"what it uses now alone says nothing", {uses(2)}, 0, 0, 0, nullptr},
      {"it uses more than was declared", {uses(10)}, 1, 0, 11, nullptr},
      {"a run ran out of memory beside others",
       {ran_out(8)},
       8,
       0,
       12,
       "12.0 GiB, because a run with less ran out of memory beside others"},
      {"and again", {ran_out(8), ran_out(12)}, 8, 0, 18, nullptr},
      {"a run that was placed before ran out", {ran_out(8), ran_out(12), ran_out(8)}, 8, 0, 18, nullptr},
      {"by itself it needs more than there is", {ran_out(24, false)}, 0, 10, 13, nullptr},
      {"nothing else is known", {ran_out(2)}, 0, 0, 3, nullptr},
      {"the peak is more than what ran out", {ran_out(2), peak(10)}, 0, 0, 11, nullptr},
  };
  for (const Row& row : rows) {
    MemoryNeeds needs;
    needs.learn_peak("b", 999 * kGiB);  // of another class
    for (const Learn& learn : row.learnt) learn(needs);
    const auto said = [](int64_t gib) { return gib > 0 ? std::optional(gib * kGiB) : std::nullopt; };
    const MemoryNeeds::Answer answer = needs.of("a", {.declared = said(row.declared), .estimate = said(row.estimate)});
    EXPECT_EQ(answer.bytes.value_or(0), row.gib * kGiB) << row.claim;
    EXPECT_EQ(row.why ? answer.why : "", row.why ? row.why : "") << row.claim;
  }
}

TEST(MemoryNeeds, OfAnyPeakCoverIt) {
  for (int64_t bytes = 1; bytes < 100 * kGiB; bytes = 3 * bytes + 1) {
    MemoryNeeds needs;
    needs.learn_peak("a", bytes);
    EXPECT_GE(static_cast<double>(*needs.of("a").bytes), static_cast<double>(bytes) * MemoryNeeds::kPeakMargin - 1);
    EXPECT_GT(*needs.of("a").bytes, bytes);
  }
}

}  // namespace
}  // namespace tearless::harness::memory_needs_test
