// What other processes ask of the service over its socket: one line of JSON each way, then the connection ends.
//
//   {"verb": "pause", "sweeps": ["norm-89abcdef"]}          →  {"done": ["norm-89abcdef"]}
//   {"verb": "hold", "runs": ["0c95df280f397769"]}          →  {"done": [], "refused": ["0c95df280f397769"]}
//   anything that is not understood                         →  {"error": "one sentence"}
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tearless::harness {

enum class Verb {
  kStatus,    // ServiceFacts
  kSubmit,    // sweeps: their folders are written; the service adds them
  kRetry,     // sweeps: as kSubmit, with their failed runs; runs: queued again
  kPause,     // sweeps: running attempts stop with a checkpoint
  kResume,    // sweeps
  kCancel,    // sweeps, runs
  kHold,      // runs
  kRelease,   // runs
  kPriority,  // sweeps, priority
  kDelete,    // sweeps, keep_results: renamed to deleted/; without sweeps, `all`: what nothing needs, likewise
  kWhy,       // runs: why they wait
  kStop       // the service ends; `now`: its attempts stop too, else they continue under their supervisors
};

struct Request {
  Verb verb = Verb::kStatus;
  std::vector<std::string> sweeps = {};
  std::vector<std::string> runs = {};
  int64_t priority = 0;
  bool now = false;
  bool keep_results = false;
  bool all = false;
};

/// The longest request or answer that is read, bytes: ids of 100,000 runs fit.
inline constexpr size_t kMaxLineLength = 16 << 20;

std::string_view name_of(Verb verb);
nlohmann::json to_json(const Request& request);

/// Reads a line that another process sent. UserError, with one sentence for that process, for anything but a request.
Request request_from(std::string_view line);

}  // namespace tearless::harness
