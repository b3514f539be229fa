#include "harness/grants/worker_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <limits>
#include <random>

#include "base/error.h"
#include "base/words.h"
#include "harness/runs/workspace.h"

namespace tearless::harness {
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

std::string line_of(const json& record) { return record.dump(-1, ' ', false, json::error_handler_t::replace) + "\n"; }

// Throws nlohmann::json::exception for a line that is no record.
void take(const json& line, WorkerNews& news) {
  if (line.contains("worker")) {
    WorkerFacts facts = line;
    line.at("worker").get_to(facts.name);
    news.facts = std::move(facts);
  }
  if (line.contains("claimed")) news.claims.emplace_back(line.at("claimed"), line.at("attempt"));
  if (line.contains("ended")) {
    AttemptReport report{
        .id = line.at("ended"), .attempt = line.at("attempt"), .fault = line.at("fault"), .files = line.at("files")};
    if (line.contains("result")) report.result = line.at("result").get<RunFiles>();
    news.ends.push_back(std::move(report));
  }
  if (line.contains("bye")) news.bye = line.at("bye");
}

}  // namespace

std::string new_worker_name() { return fmt::format("{}-{:08x}", this_machine(), std::random_device()()); }

bool fits(const WorkerFacts& worker, const Needs& needs, int64_t memory_above) {
  if (worker.executor != needs.executor || !std::ranges::includes(worker.secrets, needs.secrets)) return false;
  const int64_t declared = needs.declared ? needs.memory_bytes.value_or(0) : 0;
  const auto suffices = [&](const std::string& kind, int64_t bytes) {
    return (needs.kind.empty() || kind == needs.kind) && bytes >= declared && bytes > memory_above;
  };
  constexpr int64_t kUnknown = std::numeric_limits<int64_t>::max();
  if (needs.device != "cuda")
    return suffices(worker.processor, worker.memory_bytes > 0 ? worker.memory_bytes : kUnknown);
  return std::ranges::any_of(worker.devices,
                             [&](const WorkerDevice& device) { return suffices(device.name, device.memory_bytes); });
}

WorkerFile::WorkerFile(const fs::path& workers, const WorkerFacts& facts)
    : file_(workers / (facts.name + ".jsonl"), 0) {
  json first = facts;
  first["worker"] = facts.name;
  file_.append(line_of(first));
}

void WorkerFile::say(const std::string& line) {
  unwritten_ += line;
  try {
    file_.append(unwritten_);
    unwritten_.clear();
  } catch (const MachineError&) {
    // Some of it may have been written: that line is lost, and its repetition is whole.
    if (!unwritten_.starts_with('\n')) unwritten_ = fmt::format("\n{}", unwritten_);
  }
}

void WorkerFile::beat() { say(line_of({{"beat", ++beats_}})); }

void WorkerFile::claimed(const std::string& id, int64_t attempt) {
  say(line_of({{"claimed", id}, {"attempt", attempt}}));
}

void WorkerFile::ended(const AttemptReport& report) {
  json line = {{"ended", report.id}, {"attempt", report.attempt}, {"fault", report.fault}, {"files", report.files}};
  if (report.result) line["result"] = *report.result;
  say(line_of(line));
}

void WorkerFile::bye(std::string_view why) { say(line_of({{"bye", why}})); }

WorkerNews WorkerTail::read() {
  WorkerNews news;
  std::error_code unreadable;
  const auto size = static_cast<int64_t>(fs::file_size(file_, unreadable));
  if (unreadable || size <= size_) return news;
  news.grew = true;
  size_ = size;
  std::ifstream in(file_, std::ios::binary);
  in.seekg(read_);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const size_t end = text.rfind('\n');
  if (end == std::string::npos) return news;
  read_ += static_cast<int64_t>(end) + 1;
  for (const std::string_view line : split_lines(std::string_view(text).substr(0, end))) {
    try {
      take(json::parse(line), news);
    } catch (const json::exception&) {  // of a later version, or damaged
    }
  }
  return news;
}

}  // namespace tearless::harness
