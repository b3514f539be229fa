// What a run directory tells of its attempts, metrics and scores. Reads files only; a file that is absent, torn or no
// longer what was written tells nothing.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/run_directory.h"

namespace tearless::harness {

/// What is known of an attempt: its files, and what was made of them.
struct AttemptRecord {
  int64_t number = 0;
  std::string outcome;  // "" while it runs, "done", "diverged", or the name of a FailureClass (verdict.h)
  std::string reason;
  std::optional<int64_t> code, signal;  // of the program; nothing while it runs, and where the supervisor died too
  std::string asked;                    // "stop" or "stall" where the program was asked to end, and why; else ""
  bool killed_for_memory = false;       // the kernel killed a process of its control group while it ran
  bool disk_full = false;               // where the run's folder lies, when the program had ended
  std::string phase;                    // the last one that the program told of; "" where it tells none
  int64_t checkpoint = 0;               // the newest one when it ended
  std::string started_at, ended_at;     // UTC; "" where unknown
  std::string host, device, processor, version;
  int64_t numerics = 0;
  nlohmann::json measured;  // measured.json, or null
};

/// A line of metrics.jsonl.
struct MetricLine {
  int64_t position = 0;  // its byte offset
  int64_t step = 0;
  std::string name;
  double value = 0;
};

/// The UUID of the CUDA device that an attempt has, or "".
std::string cuda_device_of(const RunDirectory& run, int64_t attempt);

/// What the program last said that it was doing (attempts/<n>/phase), or "".
std::string phase_of(const RunDirectory& run, int64_t attempt);

/// start.json, exit.json and measured.json of an attempt; `outcome` and `reason` stay empty (verdict.h).
AttemptRecord read_attempt(const RunDirectory& run, int64_t attempt);

/// The last line of log.txt that is not blank, as valid UTF-8, or "".
std::string last_log_line(const RunDirectory& run, int64_t attempt);

/// The numbers of scores.json. UserError where it is there and cannot be understood.
std::map<std::string, double> read_scores(const RunDirectory& run);

/// The complete lines of metrics.jsonl from a byte on; one that is not understood is passed over.
struct MetricsRead {
  int64_t from = 0;  // 0 instead of what was asked where the file has become shorter than that
  std::vector<MetricLine> lines;
  int64_t to = 0;
};
MetricsRead read_metrics(const RunDirectory& run, int64_t from);

}  // namespace tearless::harness
