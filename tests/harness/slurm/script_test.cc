// The batch script and sbatch's options.
#include "harness/slurm/script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>

#include "base/words.h"
#include "tests/support/error_of.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace tearless::harness::script_test {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

Executor a100() {
  return {.name = "a100",
          .partition = "gpu",
          .account = "nlp",
          .gres = "gpu:a100:1",
          .time = "12:00:00",
          .seconds = 43'200,
          .cpus = 8,
          .memory_bytes = int64_t{32} << 30,
          .options = {"--qos=normal"},
          .setup = {"module load cuda"},
          .prefix = {"apptainer", "exec", "--nv", "/shared/my image.sif"}};
}

const Batch kFour{.token = "1a2b3c4d",
                  .count = 4,
                  .allocation = {.gres = "gpu:a100:1", .memory_bytes = int64_t{48} << 30},
                  .not_on = {"n7", "n9"}};

TEST(BatchScript, SaysAllThatIsAskedAndBecomesTheWorker) {
  EXPECT_EQ(batch_script(a100(), kFour, "/shared/results/queue/jobs", "/shared/results", "/shared/bin/tearless"),
            "#!/bin/bash\n"
            "# 4 workers of tearless for the executor a100: each trains runs of one workspace until none waits or its "
            "time is\n"
            "# nearly over. To start more, submit this file again.\n"
            "#SBATCH --partition=gpu\n"
            "#SBATCH --account=nlp\n"
            "#SBATCH --gres=gpu:a100:1\n"
            "#SBATCH --cpus-per-task=8\n"
            "#SBATCH --mem=49152M\n"
            "#SBATCH --time=12:00:00\n"
            "#SBATCH --qos=normal\n"
            "#SBATCH --exclude=n7,n9\n"
            "#SBATCH --job-name=tearless-1a2b3c4d\n"
            "#SBATCH --array=0-3\n"
            "#SBATCH --output=/shared/results/queue/jobs/1a2b3c4d-%a.out\n"
            "#SBATCH --chdir=/shared/results/queue/jobs\n"
            "#SBATCH --open-mode=append\n"
            "#SBATCH --no-requeue\n"
            "#SBATCH --signal=B:TERM@150\n"
            "module load cuda\n"
            "exec apptainer exec --nv '/shared/my image.sif' /shared/bin/tearless worker --workspace /shared/results "
            "--executor a100 --job "
            "\"${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}@1a2b3c4d\" --cores 8 --memory 49152MiB --until 43200s\n");
}

TEST(BatchScript, LeavesOutWhatTheSectionDoesNotSay) {
  const auto words = sbatch_options({.name = "cpu"}, {.token = "1a2b3c4d"}, "/w");
  EXPECT_THAT(words, ElementsAre("--cpus-per-task=1", "--job-name=tearless-1a2b3c4d", "--array=0-0",
                                 "--output=/w/1a2b3c4d-%a.out", "--chdir=/w", "--open-mode=append", "--no-requeue",
                                 "--signal=B:TERM@150"));
  EXPECT_THAT(batch_script({.name = "cpu"}, {.token = "1a2b3c4d"}, "/w", "/w", "/t"),
              AllOf(HasSubstr(" --cores 1\n"), Not(HasSubstr("--memory")), Not(HasSubstr("--until"))));
}

TEST(BatchScript, NodesThatTheSectionExcludesStayExcluded) {
  const Executor executor{.name = "cpu", .options = {"--exclude=n1", "-Cib"}};
  const auto words = sbatch_options(executor, {.token = "1a2b3c4d", .not_on = {"n2"}}, "/w");
  EXPECT_THAT(words, Contains("--exclude=n2,n1"));
  EXPECT_THAT(words, Not(Contains("--exclude=n1")));
}

TEST(BatchScript, AShortAllocationIsWarnedInTime) {
  Executor executor = a100();
  executor.seconds = 120;
  EXPECT_THAT(sbatch_options(executor, kFour, "/w"), Contains("--signal=B:TERM@30"));
}

TEST(BatchScript, APathWithBlanksAndQuotesIsOneWord) {
  const test::TempFolder folder;
  const fs::path odd = folder / "it's \"my\" $HOME; # 5%";
  fs::create_directory(odd);
  const fs::path program = odd / "tearless";
  test::write_text(program, "#!/bin/sh\nprintf '[%s]' \"$@\"\n");
  ::chmod(program.c_str(), 0700);
  const std::string script = batch_script({.name = "cpu"}, {.token = "1a2b3c4d"}, odd, odd, program);
  test::write_text(folder / "script", script);
  const auto ended = test::run({.arguments = {"/bin/bash", (folder / "script").string()},
                                .environment = {{"SLURM_ARRAY_JOB_ID", "17"}, {"SLURM_ARRAY_TASK_ID", "3"}}});
  EXPECT_EQ(ended.output,
            "[worker][--workspace][" + odd.string() + "][--executor][cpu][--job][17_3@1a2b3c4d][--cores][1]");
  // sbatch reads its words as a shell does, but for "%".
  const std::string line = script.substr(script.find("#SBATCH '--output=") + 8);
  const auto word = test::run({.arguments = {"/bin/sh", "-c", "printf %s " + line.substr(0, line.find('\n'))}});
  std::string doubled = odd.string();
  doubled.insert(doubled.find('%'), "%");
  EXPECT_EQ(word.output, "--output=" + doubled + "/1a2b3c4d-%a.out");
}

TEST(BatchScript, APathThatSlurmDoesNotTakeIsRefused) {
  EXPECT_THAT(error_of([] { sbatch_options({.name = "cpu"}, {.token = "1a2b3c4d"}, "/a\\b"); }),
              HasSubstr("backslash"));
  EXPECT_THAT(error_of([] { sbatch_options({.name = "cpu"}, {.token = "1a2b3c4d"}, "/a\nb"); }),
              HasSubstr("line break"));
}

TEST(WorkerJob, IsReadBack) {
  const auto job = worker_job("17_3@1a2b3c4d");
  ASSERT_TRUE(job);
  EXPECT_EQ(job->id(), "17_3");
  EXPECT_EQ(job->token, "1a2b3c4d");
  for (const char* none : {"", "17_3", "17@1a2b3c4d", "_3@1a2b3c4d", "17_@1a2b3c4d", "17_x@1a2b3c4d", "17_3@1A2B3C4D",
                           "17_3@1a2b3c4d5", "1a2b@17_3", "99999999999_3@1a2b3c4d"}) {
    EXPECT_FALSE(worker_job(none)) << none;
  }
}

TEST(WorkerJob, ANameOfAnotherJobHasNoToken) {
  EXPECT_EQ(token_in("tearless-1a2b3c4d"), "1a2b3c4d");
  for (const char* none : {"tearless-", "tearless-1a2b3c4", "tearless-1a2b3c4dx", "train", "Tearless-1a2b3c4d", ""}) {
    EXPECT_EQ(token_in(none), "") << none;
  }
}

}  // namespace
}  // namespace tearless::harness::script_test
