// Devices from text, and sizes of memory in text.
#include "harness/launch/declared_devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/memory_size.h"
#include "tests/support/error_of.h"

namespace tearless::harness::declared_devices_test {
namespace {

using test::error_of;
using testing::HasSubstr;
using testing::SizeIs;

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

TEST(DeclaredDevices, AreAsManyAsTheTextSays) {
  DeclaredDevices declared("2 x 24GiB, 80 GiB", "--devices");
  ASSERT_THAT(declared.devices(), SizeIs(3));
  EXPECT_EQ(declared.devices()[1].uuid, "declared-1");
  EXPECT_EQ(declared.devices()[1].memory_bytes, 24 * kGiB);
  EXPECT_EQ(declared.devices()[2].uuid, "declared-2");
  EXPECT_EQ(declared.devices()[2].memory_bytes, 80 * kGiB);
  EXPECT_EQ(declared.devices()[2].index, 2);
  EXPECT_EQ(declared.devices()[2].name, "declared 80.0 GiB");
}

TEST(DeclaredDevices, MayBeNone) { EXPECT_THAT(DeclaredDevices("none", "--devices").devices(), SizeIs(0)); }

TEST(DeclaredDevices, AreRefusedInOneSentenceThatNamesTheOption) {
  EXPECT_EQ(error_of([] { DeclaredDevices("four", "--devices"); }),
            "--devices = \"four\" does not declare devices; write their number and memory, such as \"4 x 24GiB\" or "
            "\"2 x 24GiB, 80GiB\", at most 1024 of them, or \"none\"");
  for (const char* text : {"", ",", "24GiB,", "4 x", "x 24GiB", "0 x 24GiB", "-1 x 24GiB", "1.5 x 24GiB", "4 24GiB",
                           "4 x 4 x 24GiB", "1025 x 24GiB", "1000 x 24GiB, 25 x 24GiB", "99999999999 x 24GiB"}) {
    EXPECT_THAT(error_of([&] { DeclaredDevices(text, "--devices"); }), HasSubstr("does not declare devices")) << text;
  }
}

TEST(DeclaredDevices, AreIdleUntilToldOtherwise) {
  DeclaredDevices declared("2 x 24GiB", "--devices");
  EXPECT_EQ(declared.use_of("declared-0").error, "");
  EXPECT_EQ(declared.use_of("declared-0").used_bytes, 0);
  declared.set_use("declared-0", {.used_bytes = 7, .processes = {{.pid = 3, .bytes = 7}}, .error = ""});
  EXPECT_EQ(declared.use_of("declared-0").used_bytes, 7);
  EXPECT_EQ(declared.use_of("declared-1").used_bytes, 0);
  EXPECT_EQ(declared.use_of("declared-2").error, "no GPU has this UUID");
}

}  // namespace
}  // namespace tearless::harness::declared_devices_test
