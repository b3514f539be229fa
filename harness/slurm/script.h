// What is asked of sbatch: its options, and the batch script. Pure.
//
// The options are in the script, so that it can be read and submitted by hand, and once more on the command line, where
// variables such as SBATCH_PARTITION do not replace them. Each element of the array is a worker; the script becomes it
// (exec), so that Slurm's signals reach it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "harness/slurm/executor.h"

namespace tearless::harness {

/// One submission.
struct Batch {
  std::string token;  // 8 hex digits
  int64_t count = 1;  // workers
  Allocation allocation = {};
  std::vector<std::string> not_on = {};  // hosts
};

/// The job's name, by which it is found again: "tearless-1a2b3c4d".
std::string job_name(const std::string& token);
/// The token in a job's name; "" if it has none.
std::string token_in(const std::string& job_name);

/// Where a worker's output is: "1a2b3c4d-3.out".
std::string output_name(const std::string& token, int64_t task);

/// A worker's job, as the script names it to the worker: "17_3@1a2b3c4d". Ids may be used again, tokens are not.
struct WorkerJob {
  std::string array;
  int64_t task = 0;
  std::string token;
  std::string id() const { return array + "_" + std::to_string(task); }
};
std::optional<WorkerJob> worker_job(const std::string& text);

/// Options for sbatch. `folder`: absolute, where workers' output is written. UserError if its path has a line break or
/// a backslash, which Slurm does not take there.
std::vector<std::string> sbatch_options(const Executor& executor, const Batch& batch,
                                        const std::filesystem::path& folder);

/// The text of the batch script. All paths: absolute.
std::string batch_script(const Executor& executor, const Batch& batch, const std::filesystem::path& folder,
                         const std::filesystem::path& workspace, const std::filesystem::path& tearless);

}  // namespace tearless::harness
