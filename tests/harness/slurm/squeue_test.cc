// Lists of squeue, whole, cut and made up.
#include "harness/slurm/squeue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace tearless::harness::squeue_test {
namespace {

using testing::ElementsAre;

constexpr const char* kList =
    "17|0|RUNNING|n1|1-02:03:04|tearless-1a2b3c4d|None\n"
    "17|1|PENDING||0:00|tearless-1a2b3c4d|ReqNodeNotAvail, UnavailableNodes:n1,n2\n"
    "18|N/A|COMPLETED|n[1-2]|3:04|a|b|None\n"
    "19|N/A|FAILED||INVALID|wrap|BadConstraints\n";

std::optional<std::vector<SlurmJob>> jobs_of(const std::string& output) {
  return jobs_in({.code = 0, .output = output});
}

TEST(Squeue, EachJobIsReadWithItsReason) {
  const auto jobs = jobs_of(kList);
  ASSERT_TRUE(jobs);
  ASSERT_EQ(jobs->size(), 4U);
  EXPECT_EQ((*jobs)[0].id(), "17_0");
  EXPECT_EQ((*jobs)[0].node, "n1");
  EXPECT_EQ((*jobs)[0].state(), JobState::kRunning);
  EXPECT_EQ((*jobs)[1].id(), "17_1");
  EXPECT_EQ((*jobs)[1].reason, "ReqNodeNotAvail, UnavailableNodes:n1,n2");
  EXPECT_EQ((*jobs)[1].name, "tearless-1a2b3c4d");
  EXPECT_EQ((*jobs)[2].id(), "18") << "a job of its own, whose name has a bar";
  EXPECT_EQ((*jobs)[3].reason, "BadConstraints");
  EXPECT_EQ((*jobs)[0].seconds, 86'400 + 2 * 3600 + 3 * 60 + 4);
  EXPECT_EQ((*jobs)[1].seconds, 0);
  EXPECT_EQ((*jobs)[2].seconds, 184);
  EXPECT_EQ((*jobs)[3].seconds, 0) << "what is no time";
  EXPECT_EQ(jobs_of("17|0|RUNNING|n1|1:1:1:1:1|j|None\n")->at(0).seconds, 0);
}

TEST(Squeue, AnEmptyAnswerIsAListAndAFailedOneIsNone) {
  EXPECT_TRUE(jobs_of("") && jobs_of("")->empty());
  EXPECT_FALSE(jobs_in({.code = 1, .output = kList}));
  EXPECT_FALSE(jobs_in({.code = 0, .output = kList, .timed_out = true}));
}

TEST(Squeue, ACutAnswerIsNoList) {
  const std::string list = kList;
  EXPECT_FALSE(jobs_of(list.substr(0, list.size() - 1)));
  EXPECT_FALSE(jobs_of(list.substr(0, list.size() / 2)));
}

TEST(Squeue, GarbageIsNoListAndALineOfItIsLeftOut) {
  EXPECT_FALSE(jobs_of("\xff\n\x1b[2J<html>502|||\n"));
  EXPECT_FALSE(jobs_of("\n"));
  const auto jobs = jobs_of("<html>\n17|0|RUNNING|n1|0:01|tearless-1a2b3c4d|None\n|0|RUNNING||||\n");
  ASSERT_TRUE(jobs);
  EXPECT_EQ(jobs->size(), 1U);
}

TEST(Squeue, LinesThatAreAlmostOnesOfTheListAreNone) {
  for (const char* line :
       {"x|0|RUNNING|n1|0:01|j|None", "17|-1|RUNNING|n1|0:01|j|None", "17|0-3|PENDING|n1|0:01|j|None",
        "17|0|running|n1|0:01|j|None", "17|0|RUNNING|n1|0:01|j", "|0|RUNNING|n1|0:01|j|None",
        "17||RUNNING|n1|0:01|j|None", "12345678901|0|RUNNING|n1|0:01|j|None", "17|0||n1|0:01|j|None",
        " 17|0|RUNNING|n1|0:01|j|None", "17|99999999999999999999|RUNNING|n1|0:01|j|None"}) {
    EXPECT_FALSE(jobs_of(std::string(line) + "\n")) << line;
  }
}

TEST(Squeue, AWordThatIsNotKnownIsWaitedOut) {
  EXPECT_EQ(meaning_of("HIBERNATING").state, JobState::kUnknown);
  const auto jobs = jobs_of("17|0|HIBERNATING|n1|0:01|tearless-1a2b3c4d|None\n");
  ASSERT_TRUE(jobs);
  EXPECT_EQ(jobs->at(0).state(), JobState::kUnknown);
}

TEST(Squeue, NoEndOfAJobIsTheFaultOfARunButMemory) {
  for (const char* word :
       {"PREEMPTED", "NODE_FAIL", "BOOT_FAIL", "CANCELLED", "DEADLINE", "TIMEOUT", "FAILED", "COMPLETED"}) {
    EXPECT_EQ(meaning_of(word).state, JobState::kEnded) << word;
    EXPECT_EQ(meaning_of(word).failure, FailureClass::kStopped) << word;
    EXPECT_FALSE(meaning_of(word).phrase.empty());
  }
  EXPECT_EQ(meaning_of("OUT_OF_MEMORY").failure, FailureClass::kOutOfMemory);
  EXPECT_EQ(meaning_of("COMPLETING").state, JobState::kRunning) << "its processes may be there";
}

// Texts made of pieces of lists and of bytes. No job may be found that is not a line of the text, field by field.
TEST(Squeue, NoTextInventsAJob) {
  const std::vector<std::string> pieces = {"17",
                                           "|",
                                           "||",
                                           "N/A",
                                           "RUNNING",
                                           "PENDING",
                                           "None",
                                           "\n",
                                           "tearless-1a2b3c4d",
                                           "n[1-3]",
                                           "-",
                                           "0",
                                           "\r",
                                           " ",
                                           "\xff\xfe",
                                           "18446744073709551616",
                                           "1-02:03:04",
                                           ":",
                                           kList,
                                           "99999999999",
                                           "\x1b[2J",
                                           "é",
                                           "_",
                                           "COMPLETED"};
  std::mt19937 bits(51);
  for (int trial = 0; trial < 20'000; ++trial) {
    std::string text = trial % 2 == 0 ? kList : "";
    for (uint32_t count = bits() % 12; count > 0; --count) {
      const std::string& piece = pieces[bits() % pieces.size()];
      const size_t at = text.empty() ? 0 : bits() % (text.size() + 1);
      if (bits() % 4 == 0 && at < text.size()) {
        text[at] = static_cast<char>(bits());
      } else {
        text.insert(at, piece);
      }
    }
    if (bits() % 5 == 0) text.resize(bits() % (text.size() + 1));
    const auto jobs = jobs_of(text);
    if (!jobs) continue;
    const auto lines = std::count(text.begin(), text.end(), '\n');
    ASSERT_LE(static_cast<int64_t>(jobs->size()), lines) << text;
    for (const SlurmJob& job : *jobs) {
      const std::string begin = job.array + "|" + (job.task ? "" : "N/A|" + job.word + "|");
      ASSERT_NE(("\n" + text).find("\n" + begin), std::string::npos) << text;
      ASSERT_NE(text.find("|" + job.word + "|"), std::string::npos) << text;
      ASSERT_TRUE(!job.task || (*job.task >= 0 && *job.task <= 9'999'999'999)) << text;
      ASSERT_EQ(job.array.find_first_not_of("0123456789"), std::string::npos) << text;
    }
  }
}

}  // namespace
}  // namespace tearless::harness::squeue_test
