// What a worker says, and what the service makes of it while it is being written.
#include "harness/grants/worker_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/paths.h"

namespace tearless::harness::worker_file_test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

const WorkerFacts kFacts = {.name = "n1-0a1b2c3d",
                            .host = "n1",
                            .cores = 16,
                            .memory_bytes = 1 << 20,
                            .devices = {{.name = "NVIDIA H100", .memory_bytes = 80}},
                            .processor = "Xeon",
                            .until = 90};

const RunFiles kResult = {.done = "34cd", .bytes = {{"scores.json", 7}}};

class WorkerFileTest : public testing::Test {
 protected:
  WorkerFileTest() { fs::create_directories(folder_ / "workers"); }
  void append(const std::string& text) const { std::ofstream(file_, std::ios::app | std::ios::binary) << text; }

  test::TempFolder folder_;
  fs::path file_ = folder_ / "workers/n1-0a1b2c3d.jsonl";
  WorkerTail tail_{file_};
};

TEST(WorkerFits, ByExecutorDeviceAndMemory) {
  WorkerFacts cpu = kFacts, gpu = kFacts, unknown = kFacts;
  cpu.devices.clear();
  cpu.memory_bytes = 100;
  gpu.devices = {{.name = "A100", .memory_bytes = 40}, {.name = "H100", .memory_bytes = 80}};
  unknown.memory_bytes = 0;
  const Needs any{.executor = kWorkers}, cuda{.device = "cuda", .executor = kWorkers};
  EXPECT_TRUE(fits(cpu, any, 99));
  EXPECT_FALSE(fits(cpu, any, 100));
  EXPECT_FALSE(fits(cpu, {.executor = "other"}, 0));
  EXPECT_FALSE(fits(cpu, cuda, 0));
  EXPECT_TRUE(fits(gpu, cuda, 79));
  EXPECT_FALSE(fits(gpu, cuda, 80));
  const Needs declared{.device = "cuda", .memory_bytes = 81, .declared = true, .executor = kWorkers};
  EXPECT_FALSE(fits(gpu, declared, 0));
  EXPECT_TRUE(fits(unknown, any, 99)) << "how much it has is not known";
  EXPECT_TRUE(fits(cpu, {.executor = kWorkers, .kind = "Xeon"}, 0));
  EXPECT_FALSE(fits(cpu, {.executor = kWorkers, .kind = "EPYC"}, 0));
  EXPECT_TRUE(fits(gpu, {.device = "cuda", .executor = kWorkers, .kind = "A100"}, 39));
  EXPECT_FALSE(fits(gpu, {.device = "cuda", .executor = kWorkers, .kind = "A100"}, 40)) << "only the other has more";
  EXPECT_FALSE(fits(gpu, {.device = "cuda", .executor = kWorkers, .kind = "Xeon"}, 0));
}

TEST_F(WorkerFileTest, EachLineIsReadOnce) {
  EXPECT_FALSE(tail_.read().grew) << "it is not there yet";
  WorkerFile file(folder_ / "workers", kFacts);
  WorkerNews news = tail_.read();
  EXPECT_TRUE(news.grew);
  ASSERT_TRUE(news.facts);
  EXPECT_EQ(news.facts->name, kFacts.name);
  EXPECT_EQ(news.facts->host, "n1");
  EXPECT_EQ(news.facts->cores, 16);
  EXPECT_EQ(news.facts->memory_bytes, 1 << 20);
  ASSERT_EQ(news.facts->devices.size(), 1u);
  EXPECT_EQ(news.facts->devices[0].name, "NVIDIA H100");
  EXPECT_EQ(news.facts->devices[0].memory_bytes, 80);
  EXPECT_EQ(news.facts->until, 90);
  EXPECT_EQ(news.facts->processor, "Xeon");
  file.claimed("a", 3);
  file.ended({.id = "a", .attempt = 3, .fault = "no room", .files = {{"exit.json", "12ab"}}, .result = kResult});
  file.bye("idle");
  news = tail_.read();
  EXPECT_FALSE(news.facts);
  EXPECT_THAT(news.claims, ElementsAre(Pair("a", 3)));
  ASSERT_EQ(news.ends.size(), 1u);
  EXPECT_EQ(news.ends[0].id, "a");
  EXPECT_EQ(news.ends[0].attempt, 3);
  EXPECT_EQ(news.ends[0].fault, "no room");
  EXPECT_THAT(news.ends[0].files, ElementsAre(Pair("exit.json", "12ab")));
  EXPECT_EQ(news.ends[0].result, kResult);
  EXPECT_EQ(news.bye, "idle");
  news = tail_.read();
  EXPECT_FALSE(news.grew);
  EXPECT_THAT(news.claims, IsEmpty());
}

TEST_F(WorkerFileTest, WhatIsNotSaidOfAWorkerIsAsUsual) {
  append(R"({"worker":"w","host":"h","executor":"e","job":"","cores":1,"memory_bytes":2,"devices":[],"until":null})"
         "\n"
         R"({"worker":"w","executor":"e","job":"","cores":1,"memory_bytes":2,"devices":[]})"
         "\n");
  const WorkerFacts facts = tail_.read().facts.value();
  EXPECT_EQ(facts.host, "h") << "the second lacks its host";
  EXPECT_EQ(facts.until, std::nullopt);
  EXPECT_EQ(facts.processor, "");
  EXPECT_FALSE(facts.shared);
  WorkerFile(folder_ / "workers",
             {.name = "u", .host = "h", .processor = "p", .until = 9, .secrets = {"S"}, .shared = true});
  EXPECT_EQ(test::read_text(folder_ / "workers/u.jsonl"),
            R"({"cores":0,"devices":[],"executor":"workers","host":"h","job":"","memory_bytes":0,"processor":"p",)"
            R"("secrets":["S"],"shared":true,"until":9.0,"worker":"u"})"
            "\n");
}

TEST_F(WorkerFileTest, GrowthAloneIsLife) {
  WorkerFile file(folder_ / "workers", kFacts);
  tail_.read();
  EXPECT_FALSE(tail_.read().grew);
  file.beat();
  EXPECT_TRUE(tail_.read().grew);
  append("{");
  EXPECT_TRUE(tail_.read().grew) << "half a line, too";
}

TEST_F(WorkerFileTest, ATornLineIsReadLater) {
  append("{\"claimed\": \"a\", \"att");
  EXPECT_THAT(tail_.read().claims, IsEmpty());
  append("empt\": 3}\n{\"claimed\"");
  EXPECT_THAT(tail_.read().claims, ElementsAre(Pair("a", 3)));
  append(": \"b\", \"attempt\": 4}\n");
  EXPECT_THAT(tail_.read().claims, ElementsAre(Pair("b", 4)));
}

TEST_F(WorkerFileTest, AStaleSizeIsWaitedOut) {
  append("{\"claimed\": \"a\", \"attempt\": 3}\n");
  tail_.read();
  fs::resize_file(file_, 5);
  EXPECT_FALSE(tail_.read().grew);
  fs::resize_file(file_, 0);
  append("{\"claimed\": \"a\", \"attempt\": 3}\n{\"claimed\": \"b\", \"attempt\": 4}\n");
  EXPECT_THAT(tail_.read().claims, ElementsAre(Pair("b", 4)));
}

TEST_F(WorkerFileTest, WhatIsNoRecordIsPassedOver) {
  append(
      "garbage\n\n[1]\n7\n{\"claimed\": 7, \"attempt\": 3}\n{\"ended\": \"a\"}\n{\"later\": 1}\n"
      "{\"claimed\": \"b\", \"attempt\": 4}\n");
  const WorkerNews news = tail_.read();
  EXPECT_THAT(news.claims, ElementsAre(Pair("b", 4)));
  EXPECT_THAT(news.ends, IsEmpty());
}

TEST(WorkerName, IsAnotherAtEachStart) { EXPECT_NE(new_worker_name(), new_worker_name()); }

}  // namespace
}  // namespace tearless::harness::worker_file_test
