#include "harness/slurm/executor.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <system_error>

#include "base/error.h"
#include "base/memory_size.h"
#include "base/nearest.h"
#include "base/numbers.h"
#include "base/table_reader.h"
#include "base/toml.h"
#include "base/words.h"
#include "harness/grants/worker_file.h"

namespace tearless::harness {
namespace fs = std::filesystem;
namespace {

constexpr int64_t kMaxWorkers = 1000;  // one array
constexpr int64_t kMaxCpus = 4096;
constexpr double kLarger = 1.5;  // memory of a larger allocation
constexpr const char* kKind = "slurm";

// Options of sbatch that a section's `options` may not have.
struct TakenOption {
  std::string_view name;
  char letter;  // '-': none
  std::string_view instead;
};
constexpr std::string_view kItself = "tearless sets it itself";
constexpr TakenOption kTaken[] = {
    {"array", 'a', kItself},
    {"job-name", 'J', kItself},
    {"output", 'o', kItself},
    {"error", 'e', kItself},
    {"parsable", '-', kItself},
    {"test-only", '-', kItself},
    {"wrap", '-', kItself},
    {"wait", 'W', kItself},
    {"signal", '-', kItself},
    {"chdir", 'D', kItself},
    {"open-mode", '-', kItself},
    {"requeue", '-', kItself},
    {"no-requeue", '-', kItself},
    {"partition", 'p', "write partition = \"…\""},
    {"account", 'A', "write account = \"…\""},
    {"time", 't', "write time = \"…\""},
    {"gres", '-', "write gres = \"…\""},
    {"cpus-per-task", 'c', "write cpus = …"},
    {"mem", '-', "write memory = \"…\""},
};

bool is_one_line(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

// A value for one option of sbatch.
std::string value_at(TableReader& reader, const std::string& key) {
  const std::string value = reader.text(key).value_or("");
  if (!is_one_line(value)) fail("{}: {} has a line break or another control character", reader.location(key), key);
  return value;
}

int64_t whole_at(TableReader& reader, const std::string& key, int64_t most) {
  const double number = reader.number(key).value_or(1);
  if (!(number >= 1 && number <= static_cast<double>(most)) || number != std::floor(number)) {
    fail("{}: {} must be a whole number from 1 to {}", reader.location(key), key, most);
  }
  return static_cast<int64_t>(number);
}

int64_t memory_at(TableReader& reader, const std::string& key, const std::string& text) {
  const std::optional<int64_t> bytes = parse_memory(text);
  if (!bytes) fail("{}: {} = \"{}\" is not a size such as \"32GiB\"", reader.location(key), key, text);
  return *bytes;
}

// Why a section may not have this word for sbatch, one phrase; "" if it may.
std::string fault_of_option(std::string_view word) {
  if (!word.starts_with("-") || word == "-" || word == "--") {
    return "each word begins with \"-\": write \"--qos=normal\" or \"-Cgpu\", not two words";
  }
  if (!is_one_line(word)) return "it has a line break or another control character";
  if (word.starts_with("-x") || word == "--exclude") return "write \"--exclude=HOST,…\"";
  const bool is_long = word.starts_with("--");
  const std::string_view name = is_long ? word.substr(2, word.find('=') - 2) : "";
  for (const TakenOption& taken : kTaken) {
    if (is_long ? name == taken.name : word[1] == taken.letter) return std::string(taken.instead);
  }
  return "";
}

void read_options(TableReader& reader, Executor& executor) {
  executor.options = reader.texts("options");
  for (const std::string& word : executor.options) {
    if (const std::string fault = fault_of_option(word); !fault.empty()) {
      fail("{}: options has \"{}\": {}", reader.location("options"), word, fault);
    }
  }
  executor.setup = reader.texts("setup");
  executor.prefix = reader.texts("prefix");
  if (!std::ranges::all_of(executor.prefix, is_one_line)) {
    fail("{}: prefix has a line break or another control character", reader.location("prefix"));
  }
}

void read_instead(TableReader& reader, const std::string& file, Executor& executor) {
  for (const toml::table* table : reader.tables("instead")) {
    TableReader entry(*table, fmt::format("[[{}.instead]]", executor.name), file);
    const auto memory = entry.text("memory_above");
    Executor::Instead instead{.gres = value_at(entry, "gres")};
    if (!memory || instead.gres.empty())
      fail("{}: [[{}.instead]] needs memory_above and gres", entry.location(), executor.name);
    instead.memory_above = memory_at(entry, "memory_above", *memory);
    entry.refuse_leftovers();
    executor.instead.push_back(instead);
  }
  std::ranges::sort(executor.instead, {}, &Executor::Instead::memory_above);
}

Executor read_section(const std::string& name, const toml::table& table, const std::string& file) {
  TableReader reader(table, "[" + name + "]", file);
  Executor executor{.name = name};
  if (!reader.has("kind")) fail("{}: [{}] needs kind = \"{}\"", reader.location(), name, kKind);
  reader.choice("kind", {kKind}, 0);
  executor.partition = value_at(reader, "partition");
  executor.account = value_at(reader, "account");
  executor.time = value_at(reader, "time");
  if (!executor.time.empty()) {
    executor.seconds = seconds_of_limit(executor.time);
    if (!executor.seconds) {
      fail("{}: time = \"{}\" is no time as Slurm spells it, such as \"12:00:00\" or \"2-00:00:00\"",
           reader.location("time"), executor.time);
    }
    if (*executor.seconds == 0) executor.seconds.reset();
    if (executor.seconds.value_or(kMinWorkerSeconds) < kMinWorkerSeconds) {
      fail("{}: time = \"{}\" leaves no time to train: a worker ends a minute and the grace time of its runs before",
           reader.location("time"), executor.time);
    }
  }
  executor.gres = value_at(reader, "gres");
  executor.cpus = whole_at(reader, "cpus", kMaxCpus);
  if (const auto memory = reader.text("memory")) executor.memory_bytes = memory_at(reader, "memory", *memory);
  executor.workers = whole_at(reader, "workers", kMaxWorkers);
  read_options(reader, executor);
  read_instead(reader, file, executor);
  reader.refuse_leftovers();
  return executor;
}

// The GPUs of one node that a gres asks for: "gpu:a100:2" → 2, "gpu" → 1, "shard:4" → 0.
int64_t gpus_in(std::string_view gres) {
  int64_t sum = 0;
  for (size_t begin = 0; begin < gres.size();) {
    const size_t end = std::min(gres.find(',', begin), gres.size());
    const std::string_view item = gres.substr(begin, end - begin);
    begin = end + 1;
    if (item != "gpu" && !item.starts_with("gpu:")) continue;
    const std::string_view last = item.substr(item.rfind(':') + 1);
    sum += number_of<int64_t>(last).value_or(1);
  }
  return sum;
}

// Those that a word for sbatch asks for: "--gpus-per-node=a100:2", "-G2", "--tres-per-task=gres/gpu:2" → 2.
int64_t gpus_in_option(std::string_view word) {
  if (word.starts_with("--tres-per")) {
    const size_t gpu = word.find("gpu");
    return gpu == word.npos ? 0 : gpus_in(word.substr(gpu));
  }
  if (word.starts_with("-G")) return gpus_in(fmt::format("gpu:{}", word.substr(2)));
  return word.starts_with("--gpus") ? gpus_in(fmt::format("gpu:{}", word.substr(word.find('=') + 1))) : 0;
}

}  // namespace

std::optional<double> seconds_of_limit(std::string_view text) {
  if (text == "UNLIMITED" || text == "INFINITE") return 0;
  const size_t dash = text.find('-');
  std::vector<double> numbers;  // from the largest unit
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end =
        std::min(text.find_first_of(numbers.empty() && dash != text.npos ? "-" : ":", begin), text.size());
    const int64_t number = number_of<int64_t>(text.substr(begin, end - begin)).value_or(-1);
    if (number < 0 || number > 1'000'000) return std::nullopt;
    numbers.push_back(static_cast<double>(number));
    begin = end + 1;
  }
  const bool has_days = dash != text.npos;
  if (numbers.size() > (has_days ? 4 : 3) || (has_days && numbers.size() < 2)) return std::nullopt;
  if (!has_days && numbers.size() < 3) {
    return 60 * numbers[0] + (numbers.size() == 2 ? numbers[1] : 0);
  }
  if (!has_days) numbers.insert(numbers.begin(), 0);
  numbers.resize(4);
  return 86'400 * numbers[0] + 3'600 * numbers[1] + 60 * numbers[2] + numbers[3];
}

fs::path default_executor_file() {
  const char* const config = std::getenv("XDG_CONFIG_HOME");
  const char* const home = std::getenv("HOME");
  if (config && *config) return fs::path(config) / "tearless" / "executors.toml";
  if (home && *home) return fs::path(home) / ".config" / "tearless" / "executors.toml";
  fail("executors.toml is in ~/.config/tearless, and HOME is not set: name the file with --executor-file");
}

std::map<std::string, Executor> read_executors(const fs::path& file) {
  const std::string name = file.string();
  const toml::table root = parse_toml(read_toml_text(file), name);
  std::map<std::string, Executor> executors;
  for (const auto& [section, node] : in_written_order(root)) {
    const int64_t line = node->source().begin.line;
    if (!node->is_table()) {
      fail("{}:{}: \"{}\" is in no section: write [NAME] above it, a name for the executor", name, line, section);
    }
    if (section == kWorkers) {
      fail("{}:{}: the executor \"{}\" is built in: give this section another name", name, line, section);
    }
    if (!is_plain_name(section)) {
      fail("{}:{}: \"{}\" is no name for an executor: it may have letters, digits, \"_\" and \"-\"", name, line,
           section);
    }
    executors[section] = read_section(section, *node->as_table(), name);
  }
  return executors;
}

Executor find_executor(const std::string& name, const fs::path& file) {
  if (name == kWorkers) return {.name = name, .slurm = false};
  std::error_code absent;
  if (!fs::exists(file, absent)) {
    fail(
        "there is no executor \"{}\", as there is no file {}: write a section [{}] there (docs/slurm.md), or name "
        "\"{}\"",
        name, file.string(), name, kWorkers);
  }
  const std::map<std::string, Executor> executors = read_executors(file);
  if (const auto found = executors.find(name); found != executors.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [section, executor] : executors) names.push_back(section);
  names.emplace_back(kWorkers);
  fail("there is no executor \"{}\" in {}{}; there are: {}", name, file.string(), did_you_mean(name, names),
       fmt::join(names, ", "));
}

Allocation allocation_for(const Executor& executor, const Needs& needs, bool is_larger) {
  const double factor = is_larger ? kLarger : 1;
  Allocation allocation{.gres = executor.gres, .memory_bytes = executor.memory_bytes};
  if (executor.memory_bytes) allocation.memory_bytes = scaled(*executor.memory_bytes, factor);
  if (needs.device != "cuda" || !needs.memory_bytes) return allocation;
  for (const Executor::Instead& entry : executor.instead) {
    if (scaled(*needs.memory_bytes, factor) <= entry.memory_above) continue;
    allocation.gres = entry.gres;
    allocation.gpu_memory_above = entry.memory_above;
  }
  return allocation;
}

int64_t runs_at_once(const Executor& executor, const Needs& needs, const Allocation& allocation) {
  const int64_t by_cpus = executor.cpus / std::max(needs.threads, 1);
  const int64_t by_gpus = needs.device == "cuda" ? gpus_of(executor, allocation) : by_cpus;
  const bool is_counted = needs.device != "cuda" && needs.memory_bytes.value_or(0) > 0 && allocation.memory_bytes;
  const int64_t by_memory = is_counted ? *allocation.memory_bytes / *needs.memory_bytes : by_cpus;
  return needs.alone ? 1 : std::max<int64_t>(1, std::min({by_cpus, by_gpus, by_memory}));
}

int64_t gpus_of(const Executor& executor, const Allocation& allocation) {
  if (const int64_t gpus = gpus_in(allocation.gres); gpus > 0) return gpus;
  int64_t most = 0;
  for (const std::string& word : executor.options) most = std::max(most, gpus_in_option(word));
  return most;
}

std::map<Allocation, int64_t> workers_for(const Executor& executor, const std::map<Needs, int64_t>& runs,
                                          const std::function<Allocation(const Needs&)>& allocation_of) {
  std::map<Allocation, int64_t> workers;
  for (const auto& [needs, count] : runs) {
    if (count <= 0 || !never_fits(executor, needs).empty()) continue;
    const Allocation allocation = allocation_of(needs);
    const int64_t at_once = runs_at_once(executor, needs, allocation);
    workers[allocation] += (count + at_once - 1) / at_once;
  }
  return workers;
}

std::string never_fits(const Executor& executor, const Needs& needs) {
  if (!executor.slurm) return "";
  if (needs.device == "cuda" && gpus_of(executor, allocation_for(executor, needs)) == 0) {
    return fmt::format("the executor {} has no GPU: its section needs gres, such as \"gpu:1\"", executor.name);
  }
  if (needs.device != "cuda" && executor.memory_bytes && needs.memory_bytes.value_or(0) > *executor.memory_bytes) {
    return fmt::format("the run needs {}, and the executor {} has {}", memory_text_up(*needs.memory_bytes),
                       executor.name, memory_text_down(*executor.memory_bytes));
  }
  return "";
}

}  // namespace tearless::harness
