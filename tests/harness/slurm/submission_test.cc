// Submissions on the disk, and what is made of sbatch's answers: those of the stand-ins.
#include "harness/slurm/submission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "base/time.h"
#include "harness/slurm/script.h"
#include "harness/slurm/squeue.h"
#include "tests/harness/slurm/stand_ins.h"
#include "tests/support/paths.h"

namespace tearless::harness::submission_test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using Kind = Outcome::Kind;

WorkerSubmission known(const std::string& token, const std::string& executor = "a100") {
  return {.token = token,
          .executor = executor,
          .allocation = {.gres = "gpu:1", .memory_bytes = 100, .gpu_memory_above = 7},
          .count = 3,
          .state = WorkerSubmission::State::kKnown,
          .job = "17",
          .at = "2026-11-27T10:00:00Z"};
}

TEST(SubmissionFiles, AreReadBackByExecutor) {
  const test::TempFolder folder;
  write_submission(folder.path(), known("1a2b3c4d"));
  write_submission(folder.path(), known("00000001", "cpu"));
  const auto found = read_submissions(folder.path(), "a100");
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].token, "1a2b3c4d");
  EXPECT_EQ(found[0].allocation, (Allocation{.gres = "gpu:1", .memory_bytes = 100, .gpu_memory_above = 7}));
  EXPECT_EQ(found[0].count, 3);
  EXPECT_EQ(found[0].state, WorkerSubmission::State::kKnown);
  EXPECT_EQ(found[0].job, "17");
  EXPECT_EQ(found[0].at, "2026-11-27T10:00:00Z");
  EXPECT_THAT(read_submissions(folder / "absent", "a100"), IsEmpty());
}

TEST(SubmissionFiles, ADamagedOneIsNone) {
  const test::TempFolder folder;
  write_submission(folder.path(), known("1a2b3c4d"));
  std::string text = test::read_text(folder / "1a2b3c4d.json");
  text.replace(text.find("17"), 2, "18");
  test::write_text(folder / "1a2b3c4d.json", text);
  test::write_text(folder / "00000002.json", "");
  test::write_text(folder / "notes.json", "{}");
  EXPECT_THAT(read_submissions(folder.path(), "a100"), IsEmpty());
}

TEST(SubmissionFiles, AreRemovedWithScriptAndOutputs) {
  const test::TempFolder folder;
  write_submission(folder.path(), known("1a2b3c4d"));
  for (const char* name : {"1a2b3c4d.sh", "1a2b3c4d-0.out", "1a2b3c4d-12.out", "1a2b3c4e.sh"}) {
    test::write_text(folder / name, "");
  }
  remove_submission(folder.path(), "1a2b3c4d");
  EXPECT_FALSE(fs::exists(folder / "1a2b3c4d.json") || fs::exists(folder / "1a2b3c4d-12.out"));
  EXPECT_TRUE(fs::exists(folder / "1a2b3c4e.sh"));
}

TEST(SubmissionFiles, WhatWasUsedOfGpusStaysKnown) {
  const test::TempFolder folder;
  WorkerSubmission used = known("1a2b3c4d");
  used.seconds = {{0, 100}, {2, 50}};
  used.gpus = 2;
  used.state = WorkerSubmission::State::kOver;
  EXPECT_EQ(used.gpu_seconds(), 300);
  write_submission(folder.path(), used);
  test::write_text(folder / "1a2b3c4d.sh", "");
  clear_submissions(folder.path(), 0);
  EXPECT_FALSE(fs::exists(folder / "1a2b3c4d.sh"));
  ASSERT_THAT(read_submissions(folder.path(), "a100"), SizeIs(1));
  EXPECT_EQ(read_submissions(folder.path(), "a100")[0].gpu_seconds(), 300);
}

TEST(SubmissionFiles, OnlyTheLastOfThoseThatAreOverAreKept) {
  const test::TempFolder folder;
  for (int i = 0; i < 5; ++i) {
    WorkerSubmission one = known("0000000" + std::to_string(i));
    one.at = "2026-11-27T10:0" + std::to_string(9 - i) + ":00Z";
    if (i != 4) one.state = WorkerSubmission::State::kOver;
    write_submission(folder.path(), one);
    test::write_text(folder / (one.token + "-0.out"), "");
  }
  test::write_text(folder / "0000000a.sh", "of a submission that was removed half");
  test::write_text(folder / "mine.txt", "");
  clear_submissions(folder.path(), 2);
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder.path())) names.insert(entry.path().filename());
  EXPECT_THAT(names, ElementsAre("00000000-0.out", "00000000.json", "00000001-0.out", "00000001.json", "00000004-0.out",
                                 "00000004.json", "mine.txt"));
}

TEST(Tokens, AreNotDrawnTwice) {
  std::set<std::string> tokens;
  for (int i = 0; i < 100; ++i) tokens.insert(new_token());
  EXPECT_THAT(tokens, SizeIs(100));
  EXPECT_EQ(token_in(job_name(*tokens.begin())), *tokens.begin());
}

class AnswersOfSbatch : public testing::Test {
 protected:
  Said submit(const std::vector<std::string>& options, double seconds = 60) {
    std::vector<std::string> words = {"sbatch", "--parsable", "--output=/dev/null", "--wrap=true"};
    words.insert(words.end(), options.begin(), options.end());
    return say(commands_, words, seconds);
  }
  Outcome outcome(const std::vector<std::string>& options) { return outcome_of(submit(options)); }
  Outcome with(const std::string& what, const nlohmann::json& more = nlohmann::json::object()) {
    slurm_.misbehave(std::vector<nlohmann::json>(1, StandIns::wrong("sbatch", what, more)));
    return outcome({});
  }

  StandIns slurm_{{"full_queue_seconds=0.1", "max_job_count=3", "max_array_size=11"}};
  SlurmPrograms commands_{slurm_.path(), steady_seconds};
};

TEST_F(AnswersOfSbatch, AnIdIsASubmission) {
  EXPECT_EQ(outcome({}).kind, Kind::kSubmitted);
  EXPECT_EQ(outcome({}).job, "2");
  EXPECT_EQ(outcome_of({.code = 0, .output = "17;cluster\n"}).job, "17");
}

TEST_F(AnswersOfSbatch, WhatDoesNotExistIsRefusedWithSlurmsSentence) {
  const Outcome partition = outcome({"-p", "nosuch"});
  EXPECT_EQ(partition.kind, Kind::kRefused);
  EXPECT_EQ(partition.sentence, "invalid partition specified: nosuch; Invalid partition name specified");
  EXPECT_EQ(outcome({"--gres=tpu:1"}).kind, Kind::kRefused);
  EXPECT_EQ(outcome({"--gres=gpu:a:3"}).sentence, "Requested node configuration is not available");
  EXPECT_EQ(with("fail", {{"error", "no-account"}}).kind, Kind::kRefused);
  EXPECT_EQ(outcome({"--no-such-option"}).kind, Kind::kRefused);
}

TEST_F(AnswersOfSbatch, TooManyIsALimit) {
  EXPECT_EQ(outcome({"--array=0-11"}).kind, Kind::kLimit);
  EXPECT_EQ(outcome({"--array=0-9"}).kind, Kind::kLimit) << "the queue is full";
  EXPECT_EQ(with("fail", {{"error", "submit-limit"}}).kind, Kind::kLimit);
}

TEST_F(AnswersOfSbatch, ALostAnswerIsUnknownThoughTheJobExists) {
  const Outcome lost = with("lose-answer", {{"seconds", 0}});
  EXPECT_EQ(lost.kind, Kind::kUnknown);
  EXPECT_THAT(lost.sentence, HasSubstr("Socket timed out"));
  EXPECT_THAT(slurm_.jobs(), SizeIs(1));
  slurm_.misbehave(std::vector<nlohmann::json>(1, StandIns::wrong("sbatch", "lose-answer")));
  const Outcome killed = outcome_of(submit({}, 1));
  EXPECT_EQ(killed.kind, Kind::kUnknown);
}

TEST_F(AnswersOfSbatch, NonsenseIsUnknown) {
  EXPECT_EQ(with("garbage").kind, Kind::kUnknown);
  EXPECT_EQ(with("empty").kind, Kind::kUnknown);
  EXPECT_EQ(with("fail", {{"text", "a sentence of the site"}}).kind, Kind::kUnknown);
  EXPECT_EQ(with("fail", {{"error", "no-controller"}}).kind, Kind::kUnknown);
  EXPECT_EQ(outcome_of({.code = 0, .output = "Submitted batch job 17\n"}).kind, Kind::kUnknown);
}

TEST_F(AnswersOfSbatch, ATestRefusesByKnownSentencesAlone) {
  const auto test_of = [&](const std::string& option) { return outcome_of_test(submit({"--test-only", option})); };
  EXPECT_EQ(test_of("-plow").kind, Kind::kSubmitted);
  EXPECT_EQ(test_of("-pnosuch").kind, Kind::kRefused);
  EXPECT_EQ(test_of("--array=0-11").kind, Kind::kLimit);
  EXPECT_EQ(outcome_of_test({.code = 1, .errors = "allocation failure: Nodes are busy"}).kind, Kind::kUnknown);
}

}  // namespace
}  // namespace tearless::harness::submission_test
