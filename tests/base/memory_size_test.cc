// Sizes of memory in text.
#include "base/memory_size.h"

#include <gtest/gtest.h>

namespace tearless::memory_size_test {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

TEST(MemorySize, IsReadWithItsUnit) {
  EXPECT_EQ(parse_memory("24GiB"), 24 * kGiB);
  EXPECT_EQ(parse_memory("1.5 GiB"), 3 * kGiB / 2);
  EXPECT_EQ(parse_memory("512 MiB"), kGiB / 2);
}

TEST(MemorySize, IsNotReadFromAnythingElse) {
  for (const char* text : {"", "24", "GiB", "24GB", "24 GiB ", "24  GiB", "-1GiB", "0GiB", "0.0000000001GiB", "1e3GiB",
                           "infGiB", "nanGiB", "99999999999GiB", "24 gib"}) {
    EXPECT_EQ(parse_memory(text), std::nullopt) << text;
  }
}

TEST(MemorySize, IsPrintedInGiBOrMiB) {
  EXPECT_EQ(memory_text(24 * kGiB), "24.0 GiB");
  EXPECT_EQ(memory_text(kGiB / 2), "512 MiB");
  EXPECT_EQ(memory_text(0), "0 MiB");
}

TEST(MemorySize, OfANeedThatDoesNotFitIsPrintedLargerThanWhatIsFree) {
  const int64_t free = 9 * kGiB + kGiB / 10;
  EXPECT_EQ(memory_text(free), memory_text(free + 1));
  EXPECT_EQ(memory_text_up(free + 1), "9.2 GiB");
  EXPECT_EQ(memory_text_down(free), "9.0 GiB");
  EXPECT_EQ(memory_text_up((5 << 20) + 1), "6 MiB");
  EXPECT_EQ(memory_text_down((5 << 20) - 1), "4 MiB");
}

}  // namespace
}  // namespace tearless::memory_size_test
