#include "harness/runs/attempt_files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/sealed_json.h"
#include "base/words.h"

namespace tearless::harness {
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr const char* kFilesOfExit[] = {"start.json", "measured.json", "arithmetic"};
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
  return folder_of(run, attempt).newest_checkpoint();
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string valid_utf8(const std::string& text) {
  return json::parse(json(text).dump(-1, ' ', false, json::error_handler_t::replace)).get<std::string>();
}

// tearless-engine limits perplexities to e^700, which JSON can represent: what is so large has overflowed.
bool is_overflowed_perplexity(std::string_view name, double value) {
  const std::string last = last_word(name);
  return (last == "ppl" || last == "ppl_smoothed") && value >= 1.0142e304;
}

// "NaN", "-Infinity", "inf", "1e999": what strtod() reads whole, but not as a finite number.
bool stands_for_no_number(const std::string& word) {
  char* end = nullptr;
  const double value = std::strtod(word.c_str(), &end);
  return !word.empty() && end == word.c_str() + word.size() && !std::isfinite(value);
}

}  // namespace

std::string claimant_of(const RunDirectory& run, int64_t attempt) {
  const std::string line = bytes_from(run.attempt(attempt) / kClaimedFile, 0);
  return line.ends_with('\n') ? line.substr(0, line.size() - 1) : "";
}

RunDirectory work_of(const RunDirectory& run, int64_t attempt) {
  const fs::path worker = claimant_of(run, attempt);
  return RunDirectory(run.attempt(attempt) / ("work." + worker.filename().string()) / run.id());
}

RunDirectory folder_of(const RunDirectory& run, int64_t attempt) {
  std::error_code unreadable;
  RunDirectory work = work_of(run, attempt);
  const bool is_there = fs::is_directory(work.root(), unreadable) && !fs::exists(run.done(), unreadable);
  return is_there ? work : run;
}

GrantEnd grant_end_of(const RunDirectory& run, int64_t attempt) {
  const json end = record_in(run.attempt(attempt) / kEndedFile);
  try {
    return {.failure = failure_named(field<std::string>(end, "class", "")),
            .reason = field<std::string>(end, "reason", "")};
  } catch (const std::logic_error&) {  // of a later version
    return {};
  }
}

std::string cuda_device_of(const RunDirectory& run, int64_t attempt) {
  return field<std::string>(record_in(run.attempt(attempt) / "start.json"), "cuda_device", "");
}

SubmittedEnvironment environment_of(const RunDirectory& run, int64_t attempt) {
  const json record = record_in(run.attempt(attempt) / "start.json");
  json variables = record.value("environment", json::object());
  for (auto at = variables.begin(); at != variables.end();) at = at->is_string() ? std::next(at) : variables.erase(at);
  try {
    return json{
        {"names", json::array()}, {"variables", variables}, {"secrets", record.value("secrets", json::array())}};
  } catch (const json::exception&) {  // another program's
    return {};
  }
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

json checksums_for_exit(const RunDirectory& run, int64_t attempt) {
  json checksums = json::object();
  for (const char* name : kFilesOfExit) {
    const fs::path file = run.attempt(attempt) / name;  // a folder or a pipe must not keep exit.json from being written
    std::error_code unreadable;
    const bool is_readable = fs::is_regular_file(file, unreadable) && ::access(file.c_str(), R_OK) == 0;
    if (is_readable) checksums[name] = sha256_of_file(file);
  }
  return checksums;
}

std::string changed_attempt_file(const RunDirectory& run, int64_t attempt) {
  const fs::path exit = run.attempt(attempt) / "exit.json";
  const std::optional<json> record = read_sealed(exit);
  if (record ? !record->contains("files") : !fs::exists(exit)) return "";
  if (!record || !record->at("files").is_object()) return fmt::format("attempts/{}/exit.json", attempt);
  const json& then = record->at("files");
  const json now = checksums_for_exit(run, attempt);
  for (const char* name : kFilesOfExit) {
    if (now.value(name, json()) != then.value(name, json())) return fmt::format("attempts/{}/{}", attempt, name);
  }
  return "";
}

std::string missing_attempt_record(const RunDirectory& run, int64_t attempt) {
  const auto has = [&](const char* name) { return fs::exists(run.attempt(attempt) / name); };
  if (has("start.json") && has("exit.json")) return "";
  const bool is_last = fs::exists(run.done()) && attempt == run.newest_attempt();  // the one that left the result
  const bool has_more = is_last || has("exit.json") || has("measured.json") || has("arithmetic");
  const char* missing = !has("start.json") && has_more                           ? "start"
                        : !has("exit.json") && (is_last || has("measured.json")) ? "exit"
                                                                                 : "";
  return *missing ? fmt::format("attempts/{}/{}.json", attempt, missing) : "";
}

AttemptRecord read_attempt(const RunDirectory& run, int64_t attempt) {
  const fs::path folder = run.attempt(attempt);
  const json start = record_in(folder / "start.json");
  const json exit = record_in(folder / "exit.json");
  const bool is_sound = changed_attempt_file(run, attempt).empty();
  const json measured = is_sound ? record_in(folder / "measured.json") : json::object();
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
          .arithmetic = is_sound ? first_line(bytes_from(folder / "arithmetic", 0)) : "",
          .program_file = field<std::string>(start, "program_file", ""),
          .measured = measured.empty() ? json() : measured};
}

std::string machine_of(const AttemptRecord& attempt) {
  std::string machine = attempt.device + ", " + attempt.processor;
  if (!attempt.arithmetic.empty()) machine += ", " + attempt.arithmetic;
  return machine;
}

size_t kinds_in(const std::set<std::string>& machines) {
  constexpr std::string_view kBetween = ", ";
  const auto parts_of = [&](const std::string& machine) {
    std::vector<std::string> parts;
    for (size_t begin = 0; begin < machine.size();) {
      const size_t end = std::min(machine.find(kBetween, begin), machine.size());
      if (end > begin) parts.push_back(machine.substr(begin, end - begin));
      begin = end + kBetween.size();
    }
    return parts;
  };
  // They are some of the other's, in its order.
  const auto lacks_parts_of = [&](const std::string& one, const std::string& other) {
    const std::vector<std::string> known = parts_of(one), all = parts_of(other);
    auto at = all.begin();
    for (const std::string& part : known) {
      at = std::find(at, all.end(), part);
      if (at == all.end()) return false;
      ++at;
    }
    return known.size() < all.size();
  };
  return std::ranges::count_if(machines, [&](const std::string& one) {
    return std::ranges::none_of(machines, [&](const std::string& other) { return lacks_parts_of(one, other); });
  });
}

std::string program_of(const AttemptRecord& attempt) {
  std::string program = attempt.version.empty() ? "" : "version " + attempt.version;
  if (!attempt.program_file.empty()) program += (program.empty() ? "file " : ", file ") + attempt.program_file;
  return program;
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

std::string scores_as_json(std::string_view text) {
  constexpr std::string_view kOfNumbers = "+-.0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  std::string json_text;
  bool in_text = false;
  for (size_t at = 0; at < text.size();) {
    const size_t end = in_text ? at : std::min(text.find_first_not_of(kOfNumbers, at), text.size());
    if (end > at) {
      const std::string word(text.substr(at, end - at));
      json_text += stands_for_no_number(word) ? json(word).dump() : word;
      at = end;
      continue;
    }
    if (in_text && text[at] == '\\' && at + 1 < text.size())
      json_text += text[at++];
    else if (text[at] == '"')
      in_text = !in_text;
    json_text += text[at++];
  }
  return json_text;
}

Scores scores_in(std::string_view written, const fs::path& file) {
  const auto refuse = [&file](const std::string& what) {
    fail("{} {}; restore it, or delete the run's folder to train it again", file.string(), what);
  };
  const std::string text = scores_as_json(written);
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
  Scores scores;
  for (const auto& [name, value] : record.items()) {
    if (value.is_number() && is_overflowed_perplexity(name, value.get<double>())) {
      scores.no_numbers[name] = fmt::format("{:.0e}, which has overflowed", value.get<double>());
    } else if (value.is_number()) {
      scores.numbers[name] = value.get<double>();
    } else if (value.is_null()) {
      scores.no_numbers[name] = "null";
    } else if (value.is_string() && stands_for_no_number(value.get<std::string>())) {
      scores.no_numbers[name] = value.get<std::string>();
    } else {
      refuse(fmt::format("has \"{}\" with a value that is no number", name));
    }
  }
  return scores;
}

Scores read_scores(const RunDirectory& run) {
  const std::optional<std::string> text = read_if_there(run.scores());
  return text ? scores_in(*text, run.scores()) : Scores();
}

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// NaN for null: tearless-engine and others write it in place of NaN and of Infinity. nullopt: it stands for no number.
std::optional<double> value_of_metric(const json& value) {
  if (value.is_number()) return value.get<double>();
  const bool is_word = value.is_string() && stands_for_no_number(value.get<std::string>());
  if (!is_word && !value.is_null()) return std::nullopt;
  const double number = is_word ? std::strtod(value.get<std::string>().c_str(), nullptr) : kNaN;
  return std::isnan(number) ? kNaN : number;  // one NaN for all
}

// What is wrong with a line of metrics.jsonl that is not read; "" for a metric.
std::string fault_of_metric(const json& line) {
  if (line.is_discarded()) return "no JSON";
  if (!line.is_object()) return "no JSON object";
  for (const char* key : {"step", "name", "value"}) {
    if (!line.contains(key)) return fmt::format("no \"{}\"", key);
  }
  if (!updates_in(line["step"])) return "a \"step\" that is no whole number from 0 to 2^53";
  if (!line["name"].is_string()) return "a \"name\" that is no text";
  return value_of_metric(line["value"]) ? "" : "a \"value\" that is no number";
}

// What a metric has beside the keys that are read; "" for nothing.
std::string key_beside_metric(const json& line) {
  for (const auto& [key, value] : line.items()) {
    if (key != "step" && key != "name" && key != "value") return fmt::format("another key, \"{}\"", key);
  }
  return "";
}

}  // namespace

std::vector<std::string> sentences_of(const std::map<std::string, MetricsRead::Unread>& unread) {
  constexpr size_t kMost = 5;
  std::vector<std::string> sentences;
  for (const auto& [fault, of] : unread) {
    if (sentences.size() == kMost) {
      sentences.push_back(fmt::format("metrics.jsonl: and {} more kinds of what is not read", unread.size() - kMost));
      break;
    }
    sentences.push_back(
        fmt::format("metrics.jsonl: not read in {}, first in line {}: {}", counted(of.lines, "line"), of.first, fault));
  }
  return sentences;
}

std::vector<std::string> unread_metrics(const RunDirectory& run) {
  const json exit = record_in(run.attempt(run.newest_begun_attempt()) / "exit.json");
  std::vector<std::string> sentences;
  for (const json& sentence : exit.value("unread", json::array())) {
    if (sentence.is_string()) sentences.push_back(sentence);
  }
  return sentences;
}

MetricsRead read_metrics(const RunDirectory& run, int64_t from) {
  MetricsRead read;
  read.from = size_of(run.metrics()) < from ? 0 : from;
  read.to = read.from;
  const std::string bytes = bytes_from(run.metrics(), read.from);
  size_t begin = 0;
  int64_t number = 0;
  for (size_t end; (end = bytes.find('\n', begin)) != std::string::npos; begin = end + 1) {
    ++number;
    const std::string_view text = std::string_view(bytes).substr(begin, end - begin);
    json line = json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (line.is_discarded()) line = json::parse(scores_as_json(text), nullptr, /*allow_exceptions=*/false);
    const std::string fault = fault_of_metric(line);
    if (fault.empty()) {
      read.lines.push_back(
          {read.from + static_cast<int64_t>(begin), line["step"], line["name"], *value_of_metric(line["value"])});
    }
    const std::string what = fault.empty() ? key_beside_metric(line) : fault;
    if (what.empty()) continue;
    MetricsRead::Unread& unread = read.unread[what];
    if (unread.lines++ == 0) unread.first = number;
  }
  read.to += static_cast<int64_t>(begin);
  return read;
}

}  // namespace tearless::harness
