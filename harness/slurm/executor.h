// Executors: whose machines train the runs of a sweep. `workers` is built in: workers that people start. The others are
// sections of executors.toml:
//
//   [a100]
//   kind = "slurm"
//   partition = "gpu"
//   gres = "gpu:a100:1"
//   time = "12:00:00"
//   cpus = 8
//   memory = "32GiB"
//   workers = 8                     # the most at the same time
//   account = "nlp"
//   options = ["--qos=normal"]      # further words for sbatch
//   setup = ["module load cuda"]    # lines of the batch script before the worker
//   prefix = ["apptainer", "exec"]  # words before the worker's command
//   [[a100.instead]]                # of runs that need more memory of a GPU
//   memory_above = "38GiB"
//   gres = "gpu:a100_80:1"
//
// A grid never names one, so a sweep is the same everywhere. What sections mean to sbatch: script.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/runs/needs.h"

namespace tearless::harness {

/// A time as Slurm has it: minutes, minutes:seconds, hours:minutes:seconds, days-hours[:minutes[:seconds]]. Nullopt for
/// anything else; 0: no limit.
std::optional<double> seconds_of_limit(std::string_view text);

/// A worker with less time takes nothing: it ends a minute and the grace time of its runs (30 s if not said) before.
inline constexpr double kMinWorkerSeconds = 91;

struct Executor {
  struct Instead {
    int64_t memory_above = 0;  // bytes
    std::string gres;
    NLOHMANN_DEFINE_TYPE_INTRUSIVE(Instead, memory_above, gres)
  };

  std::string name = {};
  bool slurm = true;                                    // else `workers`
  std::string partition = {}, account = {}, gres = {};  // "": sbatch's default
  std::string time = {};                                // as Slurm spells it; "": the partition's
  std::optional<double> seconds = {};                   // the same; unset: none, or no limit
  int64_t cpus = 1;                                     // of a worker
  std::optional<int64_t> memory_bytes = {};             // of a worker; unset: Slurm's default
  int64_t workers = 1;                                  // at most, at the same time
  std::vector<std::string> options = {};                // each begins with "-"
  std::vector<std::string> setup = {};                  // lines of shell
  std::vector<std::string> prefix = {};                 // words
  std::vector<Instead> instead = {};                    // by memory_above, ascending
  std::optional<double> max_gpu_hours = {};             // --max-gpu-hours, no key of a section; unset: no limit
};
/// What a sweep keeps of its executor: the service may have another HOME.
TEARLESS_JSON(Executor, (name, slurm, partition, account, gres, time, cpus, workers, options, setup, instead),
              (prefix, seconds, memory_bytes, max_gpu_hours))

/// $XDG_CONFIG_HOME/tearless/executors.toml (~/.config if that is not set). UserError if neither it nor HOME is set.
std::filesystem::path default_executor_file();

/// The sections of a file, by name. UserError with file:line for what is wrong in it, or if it cannot be read.
std::map<std::string, Executor> read_executors(const std::filesystem::path& file);

/// The executor of this name. UserError, one sentence that names the file and its sections, if there is none.
Executor find_executor(const std::string& name, const std::filesystem::path& file);

/// What is asked of Slurm for one worker, as far as it differs by runs.
struct Allocation {
  std::string gres = {};                     // "": none
  std::optional<int64_t> memory_bytes = {};  // of the machine; unset: Slurm's default
  int64_t gpu_memory_above = 0;              // of a gres in place of the section's: its memory_above, in bytes
  auto operator<=>(const Allocation&) const = default;
};

/// That of workers for runs with these needs. `is_larger`: half as much memory again, as far as the section says how
/// much there is: of the machine, and of a GPU, if there is a gres for that.
Allocation allocation_for(const Executor& executor, const Needs& needs, bool is_larger = false);

/// How many runs with these needs an allocation trains at once, at least 1.
int64_t runs_at_once(const Executor& executor, const Needs& needs, const Allocation& allocation);

/// The GPUs of one worker, as far as gres or options name them.
int64_t gpus_of(const Executor& executor, const Allocation& allocation);

/// The workers that so many runs fill, by what is asked for each; at most `workers` of the section are asked for.
/// `allocation_of`: as allocation_for(). Runs that it never trains are left out.
std::map<Allocation, int64_t> workers_for(const Executor& executor, const std::map<Needs, int64_t>& runs,
                                          const std::function<Allocation(const Needs&)>& allocation_of);

/// Why it never trains runs with these needs, one phrase; "" if it does.
std::string never_fits(const Executor& executor, const Needs& needs);

}  // namespace tearless::harness
