#include "harness/runs/attempt_files.h"

#include <algorithm>
#include <fstream>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/sealed_json.h"

namespace tearless::harness {
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr int64_t kLogTail = 8192;  // bytes at the end of a log that are searched for its last line

// The bytes of a file from `offset` on; "" if the file is shorter or missing.
std::string bytes_from(const fs::path& file, int64_t offset) {
  std::ifstream in(file, std::ios::binary);
  in.seekg(offset);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The object in a sealed JSON file; an empty object if the file is missing or damaged.
json record_in(const fs::path& file) { return read_sealed(file).value_or(json::object()); }

int64_t size_of(const fs::path& file) {
  std::error_code error;
  const auto size = fs::file_size(file, error);
  return error ? 0 : static_cast<int64_t>(size);
}

template <class Value>
Value field(const json& record, const char* key, Value otherwise) {
  const auto found = record.find(key);
  if (found == record.end()) return otherwise;
  if constexpr (std::is_same_v<Value, std::string>) {
    return found->is_string() ? found->get<std::string>() : otherwise;
  } else {
    return found->is_number_integer() ? Value(found->get<int64_t>()) : otherwise;
  }
}

// The newest checkpoint at the end of an attempt: the one that the next attempt found at its start, or, for the newest
// attempt, the one there is now.
int64_t checkpoint_after(const RunDirectory& run, int64_t attempt) {
  for (int64_t next = attempt + 1, newest = run.newest_attempt(); next <= newest; ++next) {
    if (run.has_begun(next)) return field<int64_t>(record_in(run.attempt(next) / "start.json"), "checkpoint", 0);
  }
  return run.newest_checkpoint();
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string valid_utf8(const std::string& text) {
  return json::parse(json(text).dump(-1, ' ', false, json::error_handler_t::replace)).get<std::string>();
}

}  // namespace

std::string cuda_device_of(const RunDirectory& run, int64_t attempt) {
  return field<std::string>(record_in(run.attempt(attempt) / "start.json"), "cuda_device", "");
}

Variables environment_of(const RunDirectory& run, int64_t attempt) {
  const json record = record_in(run.attempt(attempt) / "start.json");
  const json recorded = record.value("environment", json::object());
  Variables variables;
  for (const auto& [name, value] : recorded.items()) {
    if (value.is_string()) variables[name] = value.get<std::string>();
  }
  return variables;
}

std::vector<int> cores_of(const RunDirectory& run, int64_t attempt) {
  const json record = record_in(run.attempt(attempt) / "start.json");
  std::vector<int> cores;
  for (const json& core : record.value("cores", json::array())) {
    if (core.is_number_integer()) cores.push_back(core);
  }
  return cores;
}

std::string phase_of(const RunDirectory& run, int64_t attempt) {
  const std::string phase = bytes_from(run.attempt(attempt) / "phase", 0);
  for (const char* known : {"preparing", "training", "evaluating", "publishing"}) {
    if (phase.starts_with(known)) return known;
  }
  return "";
}

AttemptRecord read_attempt(const RunDirectory& run, int64_t attempt) {
  const fs::path folder = run.attempt(attempt);
  const json start = record_in(folder / "start.json");
  const json exit = record_in(folder / "exit.json");
  const json measured = record_in(folder / "measured.json");
  return {.number = attempt,
          .outcome = "",
          .reason = "",
          .code = field<std::optional<int64_t>>(exit, "code", std::nullopt),
          .signal = field<std::optional<int64_t>>(exit, "signal", std::nullopt),
          .asked = field<std::string>(exit, "asked", ""),
          .killed_for_memory = field<int64_t>(exit, "memory_kills", 0) > 0,
          .disk_full = field<int64_t>(exit, "disk_full", 0) != 0,
          .phase = phase_of(run, attempt),
          .checkpoint = checkpoint_after(run, attempt),
          .started_at = field<std::string>(start, "started_at", ""),
          .ended_at = field<std::string>(exit, "ended_at", ""),
          .host = field<std::string>(start, "host", ""),
          .device = field<std::string>(start, "device", ""),
          .processor = field<std::string>(start, "processor", ""),
          .version = field<std::string>(start, "version", ""),
          .numerics = field<int64_t>(start, "numerics", 0),
          .arithmetic = first_line(bytes_from(folder / "arithmetic", 0)),
          .measured = measured.empty() ? json() : measured};
}

std::string machine_of(const AttemptRecord& attempt) {
  std::string machine = attempt.device + ", " + attempt.processor;
  if (!attempt.arithmetic.empty()) machine += ", " + attempt.arithmetic;
  return machine;
}

std::string last_log_line(const RunDirectory& run, int64_t attempt) {
  const fs::path log = run.attempt(attempt) / "log.txt";
  const std::string tail = bytes_from(log, std::max<int64_t>(0, size_of(log) - kLogTail));
  constexpr const char* kBlank = " \t\r\n";
  std::string_view rest = tail;
  while (true) {
    rest = rest.substr(0, rest.find_last_not_of(kBlank) + 1);
    const size_t before = rest.find_last_of("\r\n");  // progress bars end their lines with \r
    const std::string_view line = before == std::string_view::npos ? rest : rest.substr(before + 1);
    if (!line.starts_with(kLeftBehind)) return valid_utf8(std::string(line));
    rest.remove_suffix(line.size());
  }
}

std::map<std::string, double> scores_in(std::string_view text, const fs::path& file) {
  const auto refuse = [&file](const std::string& what) {
    fail("{} {}; restore it, or delete the run's folder to train it again", file.string(), what);
  };
  std::set<std::string> names;
  std::string newest;
  const auto note = [&](int depth, json::parse_event_t event, const json& parsed) {
    if (event != json::parse_event_t::key || depth != 1) return true;
    newest = parsed.get<std::string>();
    if (!names.insert(newest).second) refuse(fmt::format("has \"{}\" twice", newest));
    return true;
  };
  // SQLite, which reads the same bytes, takes no byte order mark.
  const json record = text.starts_with("\xEF\xBB\xBF") ? json() : json::parse(text, note, /*allow_exceptions=*/false);
  if (record.is_discarded() && !names.empty()) refuse(fmt::format("is no JSON behind \"{}\"", newest));
  if (!record.is_object()) refuse("is not a JSON object of scores");
  std::map<std::string, double> scores;
  for (const auto& [name, value] : record.items()) {
    if (value.is_number()) {
      scores[name] = value.get<double>();
    } else if (!value.is_null()) {
      refuse(fmt::format("has \"{}\" with a value that is no number", name));
    }
  }
  return scores;
}

std::map<std::string, double> read_scores(const RunDirectory& run) {
  const std::optional<std::string> text = read_if_there(run.scores());
  return text ? scores_in(*text, run.scores()) : std::map<std::string, double>();
}

MetricsRead read_metrics(const RunDirectory& run, int64_t from) {
  MetricsRead read;
  read.from = size_of(run.metrics()) < from ? 0 : from;
  read.to = read.from;
  const std::string bytes = bytes_from(run.metrics(), read.from);
  size_t begin = 0;
  for (size_t end; (end = bytes.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const json line = json::parse(bytes.begin() + static_cast<ptrdiff_t>(begin),
                                  bytes.begin() + static_cast<ptrdiff_t>(end), nullptr, /*allow_exceptions=*/false);
    if (line.is_object() && line.value("step", json()).is_number_integer() && line.value("name", json()).is_string() &&
        line.value("value", json()).is_number()) {
      read.lines.push_back({read.from + static_cast<int64_t>(begin), line["step"], line["name"], line["value"]});
    }
  }
  read.to += static_cast<int64_t>(begin);
  return read;
}

}  // namespace tearless::harness
