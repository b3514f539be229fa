// What other processes ask of the service over its socket: one line of JSON each way, then the connection ends.
//
//   {"request": "pause", "sweeps": ["norm-89abcdef"]}       →  {"done": ["norm-89abcdef"], "refused": []}
//   {"request": "pause", "runs": ["0c95df280f397769"]}      →  {"done": [], "refused": ["0c95df280f397769"]}
//   anything that is not understood                         →  {"error": "one sentence"}
//
// Requests may be repeated, as start.h does if a service ends before it answers. A new request is a row of
// request_kinds(), which the service, the parser of requests and the command line read.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/runs/environment.h"

namespace tearless::harness {

class Service;

struct Request {
  std::string name;  // RequestKind::name
  std::vector<std::string> sweeps = {};
  std::vector<std::string> runs = {};
  std::set<std::string> flags = {};  // of RequestKind::flags
  std::optional<int64_t> priority = {};
  Variables secrets = {};  // values that the sweeps' runs need and no file has (runs/environment.h)
};

/// What a request is about.
enum class RequestTarget { kNothing, kSweeps, kRuns, kBoth };

struct RequestKind {
  std::string_view name;
  RequestTarget target;
  std::string_view flags;  // that it may have, separated by spaces
  nlohmann::json (*carry_out)(Service&, const Request&);
  std::string_view help = "";  // of the command of this name; "": no command has it, or that does more
  bool needs_words = false;    // the command does not mean the newest sweep unless that is named
};
std::span<const RequestKind> request_kinds();
/// Null for a name that no row has.
const RequestKind* find_request_kind(std::string_view name);

/// The longest request or answer that is read, bytes: ids of 100,000 runs fit.
inline constexpr size_t kMaxLineLength = 16 << 20;

nlohmann::json to_json(const Request& request);

/// Reads a line that another process sent. UserError, with one sentence for that process, for anything but a request.
Request request_from(std::string_view line);

}  // namespace tearless::harness
