#include "base/run_directory.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/numbers.h"
#include "base/omitted.h"
#include "base/sealed_json.h"
#include "base/sys.h"
#include "base/time.h"
#include "base/words.h"

namespace tearless {
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

// N of a name "<prefix>N" in canonical decimal form; nullopt for any other name.
std::optional<int64_t> number_in(const std::string& name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  const auto number = number_of<int64_t>(std::string_view(name).substr(prefix.size()));
  return number && name == fmt::format("{}{}", prefix, *number) ? number : std::nullopt;
}

std::string host_name() {
  char name[256] = {};
  ::gethostname(name, sizeof name - 1);
  return name;
}

// N of every name "<prefix>N" in `folder`, in ascending order; empty if there is no such folder.
std::vector<int64_t> numbers_in(const fs::path& folder, std::string_view prefix) {
  std::vector<int64_t> numbers;
  for (const fs::path& entry : entries_of(folder)) {
    if (const auto number = number_in(entry.filename().string(), prefix)) numbers.push_back(*number);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

int64_t last_of(const std::vector<int64_t>& numbers) { return numbers.empty() ? 0 : numbers.back(); }

constexpr std::string_view kCheckpointPrefix = "step-";

constexpr std::streamoff kMetricsTail = 1 << 16;  // bytes at the end of metrics.jsonl that are searched for a line

int64_t last_step_in(const fs::path& metrics) {
  std::ifstream in(metrics, std::ios::binary | std::ios::ate);
  if (!in) return 0;
  in.seekg(std::max<std::streamoff>(0, in.tellg() - kMetricsTail));
  const std::string tail{std::istreambuf_iterator<char>(in), {}};
  const size_t end = tail.rfind('\n');
  if (end == std::string::npos) return 0;
  const std::vector<std::string_view> lines = split_lines(std::string_view(tail).substr(0, end));
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    const auto metric = json::parse(*line, nullptr, /*allow_exceptions=*/false);
    if (!metric.is_object()) continue;
    if (const std::optional<int64_t> step = updates_in(metric.value("step", json()))) return *step;
  }
  return 0;
}

int64_t changed_ns(const fs::path& file) {
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0) return 0;
  return int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
}

}  // namespace

int64_t RunDirectory::newest_attempt() const { return last_of(numbers_in(attempts(), "")); }

int64_t RunDirectory::newest_begun_attempt() const {
  std::vector<int64_t> numbers = numbers_in(attempts(), "");
  while (!numbers.empty() && !has_begun(numbers.back())) numbers.pop_back();
  return last_of(numbers);
}

bool RunDirectory::has_begun(int64_t number) const { return fs::exists(attempt(number) / "start.json"); }

fs::path RunDirectory::checkpoint(int64_t step) const {
  return checkpoints() / fmt::format("{}{}", kCheckpointPrefix, step);
}

std::vector<int64_t> RunDirectory::checkpoint_steps() const { return numbers_in(checkpoints(), kCheckpointPrefix); }

int64_t RunDirectory::newest_checkpoint() const { return last_of(checkpoint_steps()); }

std::string RunDirectory::id() const {
  return fs::absolute(root_ / "").lexically_normal().parent_path().filename().string();
}

int64_t RunDirectory::make_attempt() const {
  make_folders(attempts());
  for (int64_t number = newest_attempt() + 1;; ++number) {
    if (sys::mkdir(attempt(number).c_str()) == 0) {
      sync_folder(attempts());
      return number;
    }
    if (errno != EEXIST) fail_errno("make", attempt(number));
  }
}

std::optional<ProcessName> supervisor_of(const RunDirectory& run, int64_t attempt) {
  const std::optional<json> start = read_sealed(run.attempt(attempt) / "start.json");
  if (!start) return std::nullopt;
  try {
    const json& who = start->at("supervisor");
    return ProcessName{who.at("pid"), who.at("start_ticks"), who.at("boot_id")};
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

bool is_supervised(const RunDirectory& run) {
  const std::optional<ProcessName> newest = supervisor_of(run, run.newest_begun_attempt());
  return newest && newest->pid != ProcessName::own().pid && newest->is_alive();
}

std::optional<LockFile> claim(const RunDirectory& run) {
  std::optional<LockFile> lock = LockFile::try_acquire(run.lock());
  if (!lock || is_supervised(run)) return std::nullopt;
  return lock;
}

std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

WorkDone work_done(const RunDirectory& run) {
  return {.checkpoint = std::max<int64_t>(0, run.newest_checkpoint()),
          .step = last_step_in(run.metrics()),
          .reported_ns = changed_ns(run.metrics())};
}

void write_start(const RunDirectory& run, int64_t attempt, json stamp) {
  const ProcessName self = ProcessName::own();
  stamp["attempt"] = attempt;
  stamp["supervisor"] = {{"pid", self.pid}, {"start_ticks", self.start_ticks}, {"boot_id", self.boot_id}};
  stamp["host"] = host_name();
  stamp["processor"] = processor_name();
  stamp["started_at"] = utc_now();
  const WorkDone found = work_done(run);
  stamp["checkpoint"] = found.checkpoint;
  stamp["step"] = found.step;
  stamp["reported_ns"] = found.reported_ns;
  write_atomically(run.attempt(attempt) / "start.json", sealed(std::move(stamp)));
}

std::string file_hash(const fs::path& program) {
  std::error_code unreadable;
  if (!fs::is_regular_file(program, unreadable) || ::access(program.c_str(), R_OK) != 0) return "";
  return sha256_of_file(program).substr(0, 16);
}

std::string derived_from(std::string_view canonical_text) {
  constexpr std::string_view kLine = "derived.of = \"";
  const size_t begin = canonical_text.starts_with(kLine) ? 0 : canonical_text.find(fmt::format("\n{}", kLine));
  if (begin == std::string_view::npos) return "";
  const size_t id = canonical_text.find('"', begin) + 1;
  return std::string(canonical_text.substr(id, canonical_text.find('"', id) - id));
}

std::string run_id(std::string_view canonical_text) { return sha256(canonical_text).substr(0, 16); }

std::optional<int64_t> updates_in(const json& json) {
  if (!json.is_number_integer()) return std::nullopt;
  const bool is_negative = !json.is_number_unsigned() && json.get<int64_t>() < 0;
  if (is_negative || json.get<uint64_t>() > static_cast<uint64_t>(kMaxUpdates)) return std::nullopt;
  return json.get<int64_t>();
}

namespace {

int64_t step_of(const json& done, const fs::path& file) {
  const std::optional<int64_t> step = updates_in(done.at("step"));
  if (step) return *step;
  fail(
      "{}: \"step\" is {}; it must be a whole number from 0 to 2^53. Correct the training program, and delete the "
      "run's folder to train it again",
      file.string(), done.at("step").dump());
}

}  // namespace

std::optional<Done> read_done(const RunDirectory& run) {
  if (!fs::exists(run.done())) return std::nullopt;
  try {
    if (const std::optional<json> record = unsealed(read_file(run.done()))) {
      Done done{.id = record->value("id", ""),
                .outcome = record->at("outcome"),
                .step = step_of(*record, run.done()),
                .reason = record->at("reason"),
                .files = record->at("files")};
      if (done.outcome == "done" || done.outcome == "diverged") return done;
    }
  } catch (const json::exception&) {
  }
  fail("{} is damaged; delete the run's folder to train it again", run.done().string());
}

std::vector<std::string> write_results(const RunDirectory& run, const json& scores,
                                       const std::map<std::string, std::string>& files) {
  std::vector<std::string> names;
  for (const auto& [name, bytes] : files) {
    make_folders((run.root() / name).parent_path());
    write_atomically(run.root() / name, bytes);
    names.push_back(name);
  }
  write_atomically(run.scores(), scores.dump(2) + "\n");
  names.emplace_back("scores.json");
  return names;
}

void write_done(const RunDirectory& run, std::string outcome, int64_t step, std::string reason,
                const std::vector<std::string>& names, const std::map<std::string, std::string>& inputs) {
  json files = json::object();
  for (const std::string& name : names) files[name] = sha256_of_file(run.root() / name);
  json done = {{"id", run.id()}, {"outcome", outcome}, {"step", step}, {"reason", reason}, {"files", files}};
  if (!inputs.empty()) done["inputs"] = inputs;
  write_atomically(run.done(), sealed(std::move(done)));
}

std::string changed_result_file(const RunDirectory& run, const Done& done) {
  const Omitted omitted = read_omitted(run);
  for (const auto& [name, checksum] : done.files) {
    const fs::path path = (run.root() / name).lexically_normal();
    const bool is_inside = path.string().starts_with((run.root() / "").lexically_normal().string());
    const auto listed = omitted.find(name);
    if (is_inside && !fs::exists(path) && listed != omitted.end() && listed->second.sha256 == checksum) continue;
    if (!is_inside || !fs::is_regular_file(path) || sha256_of_file(path) != checksum) return name;
  }
  return "";
}

std::string read_result(const RunDirectory& run, const std::string& name) {
  const std::optional<Done> done = read_done(run);
  if (!done) fail("{} has no {}: the run is not done; train it first", run.root().string(), name);
  const fs::path path = run.root() / name;
  const auto recorded = done->files.find(name);
  std::string bytes = fs::is_regular_file(path) ? read_file(path) : "";
  if (recorded == done->files.end() || recorded->second != sha256(bytes)) refuse_changed(run, name);
  return bytes;
}

void refuse_changed(const RunDirectory& run, const std::string& name) {
  require_here(run, name);
  const fs::path path = run.root() / name;
  fail("{} {}; restore it, or delete {} to make the run again", path.string(),
       fs::exists(path) ? "was changed after the run ended" : "is missing", run.root().string());
}

}  // namespace tearless
