// What scontrol says of preemption.
#include "harness/slurm/cluster_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "base/time.h"
#include "tests/harness/slurm/stand_ins.h"

namespace tearless::harness::cluster_facts_test {
namespace {

using testing::HasSubstr;

Said printed(const std::string& output) { return {.code = 0, .output = output}; }

// Lines of Slurm 22.05.8.
const Said kConfig = printed(
    "Configuration data as of 2026-11-27T10:00:00\n"
    "KillWait                = 30 sec\n"
    "MaxArraySize            = 1001\n"
    "MinJobAge               = 300 sec\n"
    "PreemptMode             = GANG,SUSPEND\n"
    "PreemptType             = preempt/partition_prio\n"
    "SlurmctldParameters     = idle_on_node_suspend,preempt_send_user_signal\n"
    "\nSlurmctld(primary) at login is UP\n");
const Said kPartitions = printed(
    "PartitionName=low AllowGroups=ALL Default=YES QoS=N/A GraceTime=4 Hidden=NO PreemptMode=REQUEUE State=UP\n"
    "PartitionName=high AllowGroups=ALL Default=NO QoS=N/A GraceTime=0 Hidden=NO PreemptMode=OFF State=UP\n");

TEST(ClusterFacts, AreReadOfThePartition) {
  const ClusterFacts facts = facts_of(kConfig, kPartitions, "");
  EXPECT_EQ(facts.partition, "low");
  EXPECT_EQ(facts.preempt_type, "preempt/partition_prio");
  EXPECT_EQ(facts.preempt_mode, "REQUEUE") << "the partition's, not the cluster's";
  EXPECT_TRUE(facts.warns);
  EXPECT_EQ(facts.grace_seconds, 4);
  EXPECT_EQ(facts.kill_wait_seconds, 30);
  EXPECT_EQ(facts.min_job_age_seconds, 300);
  EXPECT_EQ(facts.max_array_size, 1001);
  EXPECT_EQ(facts_of(kConfig, kPartitions, "high").preempt_mode, "OFF");
  EXPECT_EQ(facts_of(kConfig, kPartitions, "nosuch").preempt_mode, "GANG,SUSPEND");
}

TEST(ClusterFacts, OfACommandThatFailedThereAreNone) {
  const ClusterFacts facts = facts_of({.code = 1, .output = kConfig.output}, {.code = 1}, "");
  EXPECT_EQ(facts.preempt_type + facts.preempt_mode + facts.partition, "");
  EXPECT_EQ(facts.kill_wait_seconds, std::nullopt);
  EXPECT_EQ(cost_of_preemption(facts, 30), "whether jobs are preempted here is not known: scontrol did not say");
}

TEST(ClusterFacts, NoTextIsTooOddForThem) {
  std::mt19937 bits(51);
  for (int trial = 0; trial < 2000; ++trial) {
    std::string config = kConfig.output, partitions = kPartitions.output;
    for (int change = 0; change < 8; ++change) {
      config[bits() % config.size()] = static_cast<char>(bits());
      partitions[bits() % partitions.size()] = "= \n-9\xff"[bits() % 6];
    }
    const ClusterFacts facts = facts_of(printed(config), printed(partitions), "");
    ASSERT_GE(facts.grace_seconds.value_or(0), 0);
    ASSERT_FALSE(cost_of_preemption(facts, 30).empty());
  }
}

TEST(CostOfPreemption, DependsOnTheWarning) {
  ClusterFacts facts = facts_of(kConfig, kPartitions, "");
  EXPECT_EQ(cost_of_preemption(facts, 30),
            "a preemption in partition low comes 4 seconds after its warning (GraceTime), and a run may need 30 for a "
            "checkpoint: then it costs the updates since the last checkpoint");
  facts.grace_seconds = 60;
  EXPECT_EQ(cost_of_preemption(facts, 30),
            "a preemption in partition low comes 60 seconds after its warning (GraceTime), which is enough for a "
            "checkpoint: it costs seconds");
  facts.warns = false;
  EXPECT_EQ(cost_of_preemption(facts, 30),
            "a preemption in partition low comes without a warning (SlurmctldParameters lacks "
            "preempt_send_user_signal) and costs the updates since the last checkpoint");
  facts.preempt_mode = "SUSPEND";
  EXPECT_THAT(cost_of_preemption(facts, 30), HasSubstr("is suspended (PreemptMode=SUSPEND)"));
  EXPECT_EQ(cost_of_preemption(facts_of(kConfig, kPartitions, "high"), 30), "no job is preempted in partition high");
}

TEST(StandInFacts, AreAskedOfScontrol) {
  const StandIns slurm({"warn_preempted=true", "grace_time=7"});
  SlurmPrograms commands(slurm.path(), steady_seconds);
  const ClusterFacts facts = ask_for_facts(commands, "high");
  EXPECT_EQ(facts.partition, "high");
  EXPECT_EQ(facts.grace_seconds, 7);
  EXPECT_TRUE(facts.warns);
  EXPECT_EQ(facts.preempt_mode, "REQUEUE");
}

}  // namespace
}  // namespace tearless::harness::cluster_facts_test
