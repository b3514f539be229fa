#include "harness/slurm/script.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/error.h"
#include "base/numbers.h"
#include "base/words.h"

namespace tearless::harness {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kNamePrefix = "tearless-";
constexpr size_t kTokenDigits = 8;
// Slurm's warning before the time limit: the workers' own end (--until) comes earlier if their clock is right. Slurm
// may be a minute early or late.
constexpr double kWarnSeconds = 150;
constexpr int64_t kMiB = 1 << 20;
constexpr std::string_view kExclude = "--exclude=";

bool is_token(std::string_view text) {
  return text.size() == kTokenDigits && text.find_first_not_of("0123456789abcdef") == text.npos;
}

bool is_number(std::string_view text) {
  return !text.empty() && text.size() <= 10 && text.find_first_not_of("0123456789") == text.npos;
}

// A word of an #SBATCH line, which sbatch takes as a shell does, but that it drops a backslash also between single
// quotes (measured with 22.05.8).
std::string directive_word(std::string_view text) {
  std::string word;
  for (const char c : text) word += c == '\\' ? std::string("\\\\") : std::string(1, c);
  return shell_word(word);
}

// A path in which sbatch replaces nothing.
std::string pattern_of(const fs::path& path) {
  std::string pattern;
  for (const char c : path.string()) {
    if (c == '\n' || c == '\r' || c == '\\') {
      fail("{} has a line break or a backslash in its name, which Slurm does not take: move the workspace",
           path.string());
    }
    pattern += c;
    if (c == '%') pattern += c;
  }
  return pattern;
}

}  // namespace

std::string job_name(const std::string& token) { return std::string(kNamePrefix) + token; }

std::string token_in(const std::string& job_name) {
  if (!job_name.starts_with(kNamePrefix)) return "";
  const std::string token = job_name.substr(kNamePrefix.size());
  return is_token(token) ? token : "";
}

std::string output_name(const std::string& token, int64_t task) { return fmt::format("{}-{}.out", token, task); }

std::optional<WorkerJob> worker_job(const std::string& text) {
  const size_t underscore = text.find('_'), at = text.find('@');
  if (underscore == text.npos || at == text.npos || at < underscore) return std::nullopt;
  const std::string task = text.substr(underscore + 1, at - underscore - 1);
  WorkerJob job{.array = text.substr(0, underscore), .token = text.substr(at + 1)};
  if (!is_number(job.array) || !is_number(task) || !is_token(job.token)) return std::nullopt;
  job.task = number_of<int64_t>(task).value();  // of ten digits at most
  return job;
}

std::vector<std::string> sbatch_options(const Executor& executor, const Batch& batch, const fs::path& folder) {
  std::vector<std::string> words;
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) words.push_back(option + value);
  };
  add("--partition=", executor.partition);
  add("--account=", executor.account);
  add("--gres=", batch.allocation.gres);
  add("--cpus-per-task=", std::to_string(executor.cpus));
  const std::optional<int64_t>& memory = batch.allocation.memory_bytes;
  if (memory) add("--mem=", fmt::format("{}M", (*memory + kMiB - 1) / kMiB));
  add("--time=", executor.time);
  std::vector<std::string> excluded = batch.not_on;  // sbatch takes only the last --exclude
  for (const std::string& option : executor.options) {
    if (option.starts_with(kExclude)) {
      excluded.push_back(option.substr(kExclude.size()));
    } else {
      words.push_back(option);
    }
  }
  add("--exclude=", fmt::format("{}", fmt::join(excluded, ",")));
  const double warning = std::min(kWarnSeconds, executor.seconds.value_or(kWarnSeconds * 4) / 4);
  add("--job-name=", job_name(batch.token));
  add("--array=", fmt::format("0-{}", batch.count - 1));
  add("--output=", pattern_of(folder / (batch.token + "-")) + "%a.out");
  add("--chdir=", folder.string());  // the service's may not be there
  words.insert(words.end(), {"--open-mode=append", "--no-requeue",
                             fmt::format("--signal=B:TERM@{}", std::max(1, static_cast<int>(warning)))});
  return words;
}

std::string batch_script(const Executor& executor, const Batch& batch, const fs::path& folder,
                         const fs::path& workspace, const fs::path& tearless) {
  std::string script = fmt::format(
      "#!/bin/bash\n"
      "# {} of tearless for the executor {}: each trains runs of one workspace until none waits or its time is\n"
      "# nearly over. To start more, submit this file again.\n",
      counted(batch.count, "worker"), executor.name);
  for (const std::string& word : sbatch_options(executor, batch, folder)) {
    script += fmt::format("#SBATCH {}\n", directive_word(word));
  }
  for (const std::string& line : executor.setup) script += line + "\n";
  script += "exec";
  for (const std::string& word : executor.prefix) script += fmt::format(" {}", shell_word(word));
  script += fmt::format(
      " {} worker --workspace {} --executor {} --job \"${{SLURM_ARRAY_JOB_ID}}_${{SLURM_ARRAY_TASK_ID}}@{}\"",
      shell_word(tearless.string()), shell_word(workspace.string()), executor.name, batch.token);
  // A cluster that binds no job to its cores shows the worker the whole node.
  const std::optional<int64_t>& memory = batch.allocation.memory_bytes;
  script += fmt::format(" --cores {}", executor.cpus);
  if (memory) script += fmt::format(" --memory {}MiB", *memory / kMiB);
  if (executor.seconds) script += fmt::format(" --until {}s", std::floor(*executor.seconds));
  return script + "\n";
}

}  // namespace tearless::harness
