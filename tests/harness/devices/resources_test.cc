// What a run is given, from what was said of it and what was measured of others.
#include "harness/devices/resources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "harness/devices/declared_devices.h"

namespace tearless::harness::resources_test {
namespace {

using testing::HasSubstr;

constexpr int64_t kGiB = int64_t{1} << 30;

Resources machine(const std::string& devices, int runs_per_gpu = 0) {
  auto monitor = std::make_unique<DeclaredDevices>(devices, "--devices");
  const Resources::Options options{
      .capacity = {.cores = {0, 1}, .memory_bytes = 64 * kGiB, .devices = monitor->devices()},
      .runs_per_gpu = runs_per_gpu};
  return Resources(options, std::move(monitor));
}

Needs on_gpu(int64_t bytes, const std::string& shape = "a") {
  return {.device = "cuda", .resource_class = shape, .memory_bytes = bytes > 0 ? std::optional(bytes) : std::nullopt};
}

TEST(Resources, OneRunOfAShapeIsMeasuredBeforeTwoShareAGpu) {
  Resources resources = machine("1 x 24GiB");
  const auto first = resources.reserve(on_gpu(2 * kGiB));
  ASSERT_TRUE(first);
  EXPECT_FALSE(resources.reserve(on_gpu(2 * kGiB)));
  EXPECT_EQ(
      resources.why_here(on_gpu(2 * kGiB), *first),
      "on GPU 0, 2.6 GiB reserved (2.0 GiB estimated, with a margin of 30 %); trying 1 per GPU: not measured yet");
}

TEST(Resources, AsManyRunsShareAGpuAsWasAskedAndMemoryAllows) {
  Resources resources = machine("1 x 24GiB", 3);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(resources.reserve(on_gpu(2 * kGiB))) << i;
  EXPECT_FALSE(resources.reserve(on_gpu(2 * kGiB)));
  Resources small = machine("1 x 24GiB", 3);
  EXPECT_TRUE(small.reserve(on_gpu(10 * kGiB)));
  EXPECT_FALSE(small.reserve(on_gpu(10 * kGiB))) << "13 GiB each";
  Resources unknown = machine("1 x 24GiB", 3);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(unknown.reserve(on_gpu(0))) << "a third of the memory each";
}

TEST(Resources, ARunThatMustBeAloneHasItsGpuButNotTheMachine) {
  Resources resources = machine("2 x 24GiB", 2);
  Needs alone = on_gpu(kGiB);
  alone.alone = true;
  EXPECT_TRUE(resources.reserve(on_gpu(kGiB)));
  const auto whole = resources.reserve(alone);
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->device, "declared-1");
  EXPECT_TRUE(resources.reserve({.device = "cpu"}));
  EXPECT_THAT(resources.why_here(alone, *whole), HasSubstr("by itself"));
}

TEST(Resources, AShapeThatRanOutOfMemoryBesideOthersIsGivenMore) {
  Resources resources = machine("1 x 24GiB", 4);
  const auto first = resources.reserve(on_gpu(4 * kGiB)), second = resources.reserve(on_gpu(4 * kGiB));
  ASSERT_TRUE(first && second);
  const int64_t before = second->memory_bytes;
  resources.release(on_gpu(4 * kGiB), *second, Resources::End::kOutOfMemory);
  EXPECT_GT(resources.reserve(on_gpu(4 * kGiB))->memory_bytes, before);
}

TEST(Resources, WhatWasLearntIsTheSameAfterItWasRestored) {
  Resources resources = machine("1 x 24GiB");
  const auto run = resources.reserve(on_gpu(4 * kGiB));
  EXPECT_TRUE(resources.learnt("a").is_null());
  resources.note_use(on_gpu(4 * kGiB), *run, 7 * kGiB);
  resources.note_use(on_gpu(4 * kGiB), *run, 6 * kGiB);
  resources.release(on_gpu(4 * kGiB), *run, Resources::End::kByItself);
  const nlohmann::json learnt = resources.learnt("a");
  EXPECT_EQ(learnt.at("peak_bytes"), 7 * kGiB);

  Resources next = machine("1 x 24GiB");
  next.restore("a", learnt);
  EXPECT_EQ(next.learnt("a"), learnt);
  EXPECT_NEAR(static_cast<double>(next.reserve(on_gpu(0))->memory_bytes), 7.7 * kGiB, 1e6);
}

TEST(Resources, WhatIsNoRecordOfAShapeIsIgnored) {
  Resources resources = machine("1 x 24GiB");
  for (const char* text :
       {"{}", "[]", "null", R"({"peak_bytes": "x"})", R"({"peak_bytes": 1, "observations": [[1]]})"}) {
    resources.restore("b", nlohmann::json::parse(text));
  }
  EXPECT_TRUE(resources.learnt("b").is_null());
}

TEST(Resources, AFailedAttemptTeachesNoPeak) {
  Resources resources = machine("1 x 24GiB");
  const auto run = resources.reserve(on_gpu(4 * kGiB));
  resources.note_use(on_gpu(4 * kGiB), *run, kGiB);
  resources.release(on_gpu(4 * kGiB), *run, Resources::End::kOtherwise);
  EXPECT_TRUE(resources.learnt("a").is_null());
  EXPECT_EQ(resources.reserve(on_gpu(4 * kGiB))->memory_bytes, static_cast<int64_t>(std::ceil(4 * kGiB * 1.3)));
}

}  // namespace
}  // namespace tearless::harness::resources_test
