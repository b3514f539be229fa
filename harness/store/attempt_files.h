// What a run directory tells of its attempts, metrics and scores, as the store keeps it. Reads files only; a file that
// is absent or torn tells nothing.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/run_directory.h"
#include "harness/store/store.h"

namespace tearless::harness {

/// A process, named once and for all (pids are reused, this is not).
struct ProcessName {
  int64_t pid = 0;
  int64_t start_ticks = 0;
  std::string boot_id;

  bool is_alive() const;
};

/// Who supervises an attempt; nothing where start.json is not there.
std::optional<ProcessName> supervisor_of(const RunDirectory& run, int64_t attempt);

/// The UUID of the CUDA device that an attempt has, or "".
std::string cuda_device_of(const RunDirectory& run, int64_t attempt);

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
