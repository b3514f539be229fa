// Slurm's commands as children: those of the stand-ins, and programs of the tests' own.
#include "harness/slurm/commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/time.h"
#include "harness/slurm/squeue.h"
#include "tests/harness/slurm/stand_ins.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace tearless::harness::commands_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class CommandsTest : public testing::Test {
 protected:
  void make_program(const std::string& name, const std::string& script) {
    test::write_text(folder_ / name, "#!/bin/sh\n" + script);
    ::chmod((folder_ / name).c_str(), 0700);
  }
  Said said(std::vector<std::string> words, double seconds = 60) { return say(commands_, words, seconds); }

  test::TempFolder folder_;
  SlurmPrograms commands_{folder_.path().string() + ":/bin", steady_seconds};
};

TEST_F(CommandsTest, WhatACommandSaysIsKept) {
  make_program("sinfo", "echo \"[$1]\"; echo trouble >&2; exit 3\n");
  const Said it = said({"sinfo", "a b"});
  EXPECT_EQ(it.output, "[a b]\n");
  EXPECT_EQ(it.errors, "trouble\n");
  EXPECT_EQ(it.code, 3);
  EXPECT_FALSE(it.timed_out || it.missing);
}

TEST_F(CommandsTest, AMissingProgramIsOneSentence) {
  const Said it = said({"sbatch"});
  EXPECT_TRUE(it.missing);
  EXPECT_EQ(it.errors,
            "Slurm's sbatch is not on PATH of this machine: start the service where it is, such as on the cluster's "
            "login node");
}

TEST_F(CommandsTest, AProgramThatMayNotBeExecutedIsMissing) {
  test::write_text(folder_ / "sbatch", "#!/bin/sh\n");
  EXPECT_TRUE(said({"sbatch"}).missing);
}

TEST_F(CommandsTest, AProgramThatCannotBeStartedIsSaid) {
  make_program("sbatch", "");
  test::write_text(folder_ / "sbatch", "#!/no/such/interpreter\n");
  const Said it = said({"sbatch"});
  EXPECT_NE(it.code, 0);
  EXPECT_THAT(it.errors, HasSubstr("cannot start"));
}

TEST_F(CommandsTest, ASlowOneIsKilledWithItsChildren) {
  make_program("squeue", "echo begun; sh -c 'echo $$ > " + (folder_ / "pid").string() + "; exec sleep 1000'\n");
  const Said it = said({"squeue"}, 1);
  EXPECT_TRUE(it.timed_out);
  EXPECT_EQ(it.output, "begun\n");
  const pid_t pid = std::stoi(test::read_text(folder_ / "pid"));
  EXPECT_TRUE(test::eventually([&] {
    const std::string stat = "/proc/" + std::to_string(pid) + "/stat";
    return !std::filesystem::exists(stat) || test::read_text(stat).find(") Z ") != std::string::npos;
  }));
}

TEST_F(CommandsTest, SeveralRunAtOnceAndNobodyWaits) {
  make_program("slow", "read line < " + (folder_ / "pipe").string() + "; echo $line\n");
  make_program("quick", "echo quick\n");
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  std::vector<std::string> ends;
  commands_.ask({"slow"}, 60, [&](const Said& it) { ends.push_back(it.output); });
  commands_.ask({"quick"}, 60, [&](const Said& it) { ends.push_back(it.output); });
  EXPECT_TRUE(test::eventually([&] {
    commands_.poll();
    return ends.size() == 1;
  }));
  EXPECT_THAT(ends, ElementsAre("quick\n"));
  test::write_text(folder_ / "pipe", "late\n");
  EXPECT_TRUE(test::eventually([&] {
    commands_.poll();
    return ends.size() == 2;
  }));
  EXPECT_THAT(ends, ElementsAre("quick\n", "late\n"));
}

TEST_F(CommandsTest, AnEndThatThrowsLosesNoOther) {
  make_program("sinfo", "");
  int ends = 0;
  commands_.ask({"sinfo"}, 60, [](const Said&) { throw std::runtime_error("full"); });
  commands_.ask({"sinfo"}, 60, [&](const Said&) { ++ends; });
  int thrown = 0;
  EXPECT_TRUE(test::eventually([&] {
    try {
      commands_.poll();
    } catch (const std::runtime_error&) {
      ++thrown;
    }
    return ends == 1;
  }));
  EXPECT_EQ(thrown, 1);
}

TEST_F(CommandsTest, TheGpusOfThisMachineAreNotHandedOn) {
  make_program("sbatch", "echo \"[$CUDA_VISIBLE_DEVICES]\"\n");
  ::setenv("CUDA_VISIBLE_DEVICES", "3", /*overwrite=*/1);
  EXPECT_EQ(said({"sbatch"}).output, "[]\n");
  ::unsetenv("CUDA_VISIBLE_DEVICES");
}

TEST_F(CommandsTest, AComplaintIsTheSentenceItself) {
  EXPECT_EQ(complaint_of({.code = 1,
                          .errors = "sbatch: error: invalid partition specified: no\n"
                                    "sbatch: error: Batch job submission failed: Invalid partition name specified\n"}),
            "invalid partition specified: no; Invalid partition name specified");
  EXPECT_EQ(complaint_of({.code = 1, .errors = "allocation failure: \x1b[2JInvalid qos\n\n"}), "\\x1b[2JInvalid qos");
  EXPECT_EQ(complaint_of({.code = 7}), "it ended with exit code 7 and without a word");
  EXPECT_EQ(complaint_of({.code = 137, .errors = "sleeping\n", .timed_out = true}), "it did not answer in time");
  EXPECT_LT(complaint_of({.code = 1, .errors = std::string(100'000, 'x')}).size(), 400U);
}

TEST(StandInCommands, HangingSaysAsMuchAsTheyHadSaid) {
  const StandIns slurm;
  SlurmPrograms commands(slurm.path(), steady_seconds);
  slurm.misbehave({StandIns::wrong("squeue", "hang"), StandIns::wrong("squeue", "garbage")});
  EXPECT_FALSE(jobs_in(say(commands, squeue_words(), 1)));
  EXPECT_FALSE(jobs_in(say(commands, squeue_words(), 60)));
  EXPECT_TRUE(jobs_in(say(commands, squeue_words(), 60)));
}

}  // namespace
}  // namespace tearless::harness::commands_test
