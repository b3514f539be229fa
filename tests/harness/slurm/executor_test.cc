// Sections of executors.toml, and what they mean for runs.
#include "harness/slurm/executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/error_of.h"
#include "tests/support/paths.h"

namespace tearless::harness::executor_test {
namespace {

using test::error_of;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kGiB = int64_t{1} << 30;

constexpr const char* kFull = R"(
[a100]
kind = "slurm"
partition = "gpu"
account = "nlp"
time = "1-12:00:00"
gres = "gpu:a100:2"
cpus = 8
memory = "32GiB"
workers = 6
options = ["--qos=normal", "-Cib"]
setup = ["module load cuda", "ulimit -c 0"]
prefix = ["apptainer", "exec", "image.sif"]
[[a100.instead]]
memory_above = "70GiB"
gres = "gpu:h100:1"
[[a100.instead]]
memory_above = "38GiB"
gres = "gpu:a100_80:1"

[cpu]
kind = "slurm"
)";

class ExecutorTest : public testing::Test {
 protected:
  std::string file() const { return (folder_ / "executors.toml").string(); }
  std::map<std::string, Executor> read(const std::string& text) const {
    test::write_text(file(), text);
    return read_executors(file());
  }
  // The message for a section with this line.
  std::string refusal(const std::string& line) const {
    return error_of([&] { read("[a]\nkind = \"slurm\"\n" + line + "\n"); });
  }

  test::TempFolder folder_;
};

TEST_F(ExecutorTest, ASectionHasWhatIsWritten) {
  const Executor a100 = read(kFull).at("a100");
  EXPECT_EQ(a100.name, "a100");
  EXPECT_TRUE(a100.slurm);
  EXPECT_EQ(a100.partition, "gpu");
  EXPECT_EQ(a100.account, "nlp");
  EXPECT_EQ(a100.gres, "gpu:a100:2");
  EXPECT_EQ(a100.time, "1-12:00:00");
  EXPECT_EQ(a100.seconds, 36 * 3600);
  EXPECT_EQ(a100.cpus, 8);
  EXPECT_EQ(a100.memory_bytes, 32 * kGiB);
  EXPECT_EQ(a100.workers, 6);
  EXPECT_THAT(a100.options, ElementsAre("--qos=normal", "-Cib"));
  EXPECT_THAT(a100.setup, ElementsAre("module load cuda", "ulimit -c 0"));
  EXPECT_THAT(a100.prefix, ElementsAre("apptainer", "exec", "image.sif"));
  ASSERT_EQ(a100.instead.size(), 2U);
  EXPECT_EQ(a100.instead[0].gres, "gpu:a100_80:1") << "in the order of the memory";
}

TEST_F(ExecutorTest, WhatIsNotWrittenIsLeftToSlurm) {
  const Executor cpu = read(kFull).at("cpu");
  EXPECT_EQ(cpu.partition + cpu.account + cpu.gres + cpu.time, "");
  EXPECT_EQ(cpu.seconds, std::nullopt);
  EXPECT_EQ(cpu.memory_bytes, std::nullopt);
  EXPECT_EQ(cpu.cpus, 1);
  EXPECT_EQ(cpu.workers, 1);
}

TEST_F(ExecutorTest, WorkersIsBuiltInAndNeedsNoFile) {
  EXPECT_FALSE(find_executor("workers", folder_ / "absent.toml").slurm);
  EXPECT_THAT(error_of([&] { read("[workers]\nkind = \"slurm\"\n"); }),
              HasSubstr(file() + ":1: the executor \"workers\" is built in"));
}

TEST_F(ExecutorTest, OneThatDoesNotExistIsNamedWithThoseThatDo) {
  read(kFull);
  EXPECT_EQ(error_of([&] { find_executor("a10", file()); }),
            "there is no executor \"a10\" in " + file() + " (did you mean \"a100\"?); there are: a100, cpu, workers");
  const std::string absent = (folder_ / "absent.toml").string();
  EXPECT_EQ(error_of([&] { find_executor("a100", absent); }),
            "there is no executor \"a100\", as there is no file " + absent +
                ": write a section [a100] there (docs/slurm.md), or name \"workers\"");
}

TEST_F(ExecutorTest, AWrongKeyIsNamedWithItsLineAndTheNearest) {
  EXPECT_THAT(refusal("partitio = \"gpu\""),
              HasSubstr(file() + ":3: unknown key \"partitio\" in [a] (did you mean \"partition\"?); known keys: "));
  EXPECT_EQ(error_of([&] { read("[a]\npartition = \"gpu\"\n"); }), file() + ":1: [a] needs kind = \"slurm\"");
  EXPECT_THAT(error_of([&] { read("[a]\nkind = \"slrum\"\n"); }), HasSubstr("did you mean \"slurm\"?"));
  EXPECT_THAT(error_of([&] { read("kind = \"slurm\"\n"); }), HasSubstr(":1: \"kind\" is in no section"));
  EXPECT_THAT(error_of([&] { read("[\"a b\"]\nkind = \"slurm\"\n"); }), HasSubstr("is no name for an executor"));
}

TEST_F(ExecutorTest, AWrongValueIsNamedWithItsLine) {
  EXPECT_THAT(refusal("cpus = 0"), HasSubstr(":3: cpus must be a whole number from 1 to 4096"));
  EXPECT_THAT(refusal("workers = 1001"), HasSubstr("workers must be a whole number from 1 to 1000"));
  EXPECT_THAT(refusal("workers = 1.5"), HasSubstr("whole number"));
  EXPECT_THAT(refusal("memory = \"32 apples\""), HasSubstr("memory = \"32 apples\" is not a size such as \"32GiB\""));
  EXPECT_THAT(refusal("time = 12:00:00"), HasSubstr("must be text in quotes"));
  EXPECT_THAT(refusal("partition = \"a\\nb\""), HasSubstr("line break"));
  EXPECT_THAT(refusal("[[a.instead]]\ngres = \"gpu:1\""), HasSubstr("[[a.instead]] needs memory_above and gres"));
}

TEST_F(ExecutorTest, TimesAreSpelledAsForSlurm) {
  const auto seconds_of = [&](const std::string& time) {
    return read("[a]\nkind = \"slurm\"\ntime = \"" + time + "\"\n").at("a").seconds;
  };
  EXPECT_EQ(seconds_of("90"), 5400);
  EXPECT_EQ(seconds_of("90:30"), 5430);
  EXPECT_EQ(seconds_of("12:00:00"), 43'200);
  EXPECT_EQ(seconds_of("2-0"), 172'800);
  EXPECT_EQ(seconds_of("1-06:30"), 86'400 + 6 * 3600 + 1800);
  EXPECT_EQ(seconds_of("1-06:30:15"), 86'400 + 6 * 3600 + 1815);
  EXPECT_EQ(seconds_of("UNLIMITED"), std::nullopt);
  for (const char* none : {"12h", "1:2:3:4", "-5", "1-", "1-2-3", ":", "1:", "1e3"}) {
    EXPECT_THAT(refusal(std::string("time = \"") + none + "\""), HasSubstr("is no time as Slurm spells it")) << none;
  }
}

TEST_F(ExecutorTest, OptionsThatASubmissionNeedsForItselfAreRefused) {
  EXPECT_THAT(refusal("options = [\"--array=0-3\"]"), HasSubstr("\"--array=0-3\": tearless sets it itself"));
  EXPECT_THAT(refusal("options = [\"-Jname\"]"), HasSubstr("tearless sets it itself"));
  EXPECT_THAT(refusal("options = [\"-pgpu\"]"), HasSubstr("write partition = "));
  EXPECT_THAT(refusal("options = [\"--mem=3G\"]"), HasSubstr("write memory = "));
  EXPECT_THAT(refusal("options = [\"--qos\", \"normal\"]"), HasSubstr("\"normal\": each word begins with \"-\""));
  EXPECT_THAT(refusal("options = [\"-xn1\"]"), HasSubstr("--exclude="));
  EXPECT_EQ(refusal("options = [\"--exclude=n1\", \"--nodelist=n2\", \"-Cib\"]"), "");
}

TEST_F(ExecutorTest, RunsThatNeedMoreMemoryOfAGpuGetAnotherGres) {
  const Executor a100 = read(kFull).at("a100");
  const auto gres_of = [&](std::optional<int64_t> bytes) {
    return allocation_for(a100, {.device = "cuda", .memory_bytes = bytes}).gres;
  };
  EXPECT_EQ(gres_of(std::nullopt), "gpu:a100:2");
  EXPECT_EQ(gres_of(38 * kGiB), "gpu:a100:2");
  EXPECT_EQ(gres_of(39 * kGiB), "gpu:a100_80:1");
  EXPECT_EQ(gres_of(71 * kGiB), "gpu:h100:1");
  EXPECT_EQ(allocation_for(a100, {.memory_bytes = 71 * kGiB}).gres, "gpu:a100:2");
}

TEST_F(ExecutorTest, ALargerAllocationHasHalfAsMuchMemoryAgain) {
  const Executor a100 = read(kFull).at("a100");
  EXPECT_EQ(allocation_for(a100, {}, true), (Allocation{.gres = "gpu:a100:2", .memory_bytes = 48 * kGiB}));
  EXPECT_EQ(runs_at_once(a100, {.memory_bytes = 10 * kGiB}, allocation_for(a100, {}, true)), 4);
  const Needs gpu{.device = "cuda", .memory_bytes = 30 * kGiB};
  EXPECT_EQ(allocation_for(a100, gpu), (Allocation{.gres = "gpu:a100:2", .memory_bytes = 32 * kGiB}));
  EXPECT_EQ(allocation_for(a100, gpu, true),
            (Allocation{
                .gres = "gpu:a100_80:1", .memory_bytes = 48 * kGiB, .gpu_memory_above = a100.instead[0].memory_above}));
  const Executor cpu = read(kFull).at("cpu");
  EXPECT_EQ(allocation_for(cpu, {}, true), Allocation()) << "how much it has, Slurm knows alone";
}

TEST_F(ExecutorTest, AnAllocationTrainsAsManyRunsAsFit) {
  const Executor a100 = read(kFull).at("a100");
  const auto at_once = [&](const Needs& needs) { return runs_at_once(a100, needs, allocation_for(a100, needs)); };
  EXPECT_EQ(at_once({.device = "cpu", .threads = 2}), 4);
  EXPECT_EQ(at_once({.device = "cpu", .threads = 99}), 1);
  EXPECT_EQ(at_once({.device = "cpu", .threads = 1, .memory_bytes = 10 * kGiB}), 3);
  EXPECT_EQ(at_once({.device = "cuda", .threads = 1}), 2);
  EXPECT_EQ(at_once({.device = "cuda", .threads = 8}), 1);
  EXPECT_EQ(at_once({.device = "cuda", .threads = 1, .alone = true}), 1);
}

TEST_F(ExecutorTest, TheGpusOfAWorkerAreThoseOfItsGresOrOptions) {
  const auto gpus = [](const std::string& gres, std::vector<std::string> options) {
    return gpus_of({.options = std::move(options)}, {.gres = gres});
  };
  EXPECT_EQ(gpus("gpu:a100:2", {"--gpus=4"}), 2);
  EXPECT_EQ(gpus("", {"--gpus-per-node=a100:4"}), 4);
  EXPECT_EQ(gpus("", {"--gpus=3", "-Cib"}), 3);
  EXPECT_EQ(gpus("", {"-G2"}), 2);
  EXPECT_EQ(gpus("", {"--tres-per-task=cpu:8,gres/gpu:a100:2"}), 2);
  EXPECT_EQ(gpus("", {"--qos=gpu"}), 0);
}

TEST_F(ExecutorTest, SoManyRunsFillSoManyWorkers) {
  const Executor a100 = read(kFull).at("a100");
  const auto allocation_of = [&](const Needs& needs) { return allocation_for(a100, needs); };
  const Needs cpu{.threads = 2}, gpu{.device = "cuda"}, never{.memory_bytes = 33 * kGiB};
  EXPECT_EQ(workers_for(a100, {{cpu, 9}, {gpu, 3}, {never, 5}}, allocation_of),
            (std::map<Allocation, int64_t>{{allocation_of(cpu), 3 + 2}}));
}

TEST_F(ExecutorTest, ASectionWithoutGpusNeverTrainsRunsOfAGpu) {
  const auto all = read(std::string(kFull) + "[other]\nkind = \"slurm\"\noptions = [\"--gpus-per-node=1\"]\n");
  EXPECT_EQ(never_fits(all.at("cpu"), {.device = "cuda"}),
            "the executor cpu has no GPU: its section needs gres, such as \"gpu:1\"");
  EXPECT_EQ(never_fits(all.at("a100"), {.device = "cuda"}), "");
  EXPECT_EQ(never_fits(all.at("other"), {.device = "cuda"}), "");
  EXPECT_EQ(never_fits(all.at("a100"), {.memory_bytes = 33 * kGiB}),
            "the run needs 33.0 GiB, and the executor a100 has 32.0 GiB");
}

TEST_F(ExecutorTest, WhatASweepKeepsIsReadBack) {
  for (const auto& [name, executor] : read(kFull)) {
    const nlohmann::json kept = executor;
    EXPECT_EQ(nlohmann::json(kept.get<Executor>()), kept);
    EXPECT_EQ(kept.get<Executor>().seconds, executor.seconds);
    EXPECT_EQ(kept.get<Executor>().instead.size(), executor.instead.size());
  }
  const std::string usual =
      R"({"account":"","cpus":1,"gres":"","instead":[],"name":"","options":[],"partition":"","setup":[],"slurm":true,"time":"","workers":1})";
  EXPECT_EQ(nlohmann::json(Executor()).dump(), usual);
  EXPECT_EQ(nlohmann::json::parse(usual).get<Executor>().seconds, std::nullopt);
  const nlohmann::json full = Executor{.slurm = false,
                                       .seconds = 3,
                                       .memory_bytes = 4,
                                       .prefix = {"p"},
                                       .instead = {{.memory_above = 1, .gres = "g"}},
                                       .max_gpu_hours = 5};
  EXPECT_EQ(full.dump(), R"({"account":"","cpus":1,"gres":"","instead":[{"gres":"g","memory_above":1}],)"
                         R"("max_gpu_hours":5.0,"memory_bytes":4,"name":"","options":[],"partition":"","prefix":["p"],)"
                         R"("seconds":3.0,"setup":[],"slurm":false,"time":"","workers":1})");
  EXPECT_THROW(nlohmann::json({{"name", "x"}}).get<Executor>(), nlohmann::json::exception);
}

TEST_F(ExecutorTest, TheFileIsWhereXdgSays) {
  const char* const before = std::getenv("XDG_CONFIG_HOME");
  const std::string kept = before ? before : "";
  ::setenv("XDG_CONFIG_HOME", "/c", /*overwrite=*/1);
  EXPECT_EQ(default_executor_file(), "/c/tearless/executors.toml");
  ::unsetenv("XDG_CONFIG_HOME");
  EXPECT_EQ(default_executor_file(), std::string(std::getenv("HOME")) + "/.config/tearless/executors.toml");
  if (before) ::setenv("XDG_CONFIG_HOME", kept.c_str(), /*overwrite=*/1);
}

}  // namespace
}  // namespace tearless::harness::executor_test
