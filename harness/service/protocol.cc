#include "harness/service/protocol.h"

#include <algorithm>
#include <array>
#include <sstream>

#include "base/error.h"

namespace tearless::harness {
using nlohmann::json;
namespace {

// Ids are names of folders: nothing that leads out of the workspace.
bool is_name(const std::string& text) {
  return !text.empty() && text.size() < 256 && text.find('/') == std::string::npos && text[0] != '.' &&
         text.find('\0') == std::string::npos;
}

std::vector<std::string> names_in(const json& request, const char* key) {
  std::vector<std::string> names;
  const auto found = request.find(key);
  if (found == request.end()) return names;
  const auto is_no_name = [](const json& name) { return !name.is_string() || !is_name(name.get<std::string>()); };
  if (!found->is_array() || std::any_of(found->begin(), found->end(), is_no_name)) {
    fail("\"{}\" of a request must be a list of names", key);
  }
  std::set<std::string> seen;
  for (const std::string name : *found) {
    if (seen.insert(name).second) names.push_back(name);  // two rows of a grid may be one run
  }
  return names;
}

bool has_flag(const RequestKind& kind, const std::string& flag) {
  std::istringstream flags{std::string(kind.flags)};
  for (std::string known; flags >> known;) {
    if (known == flag) return true;
  }
  return false;
}

}  // namespace

const RequestKind* find_request_kind(std::string_view name) {
  for (const RequestKind& kind : request_kinds()) {
    if (kind.name == name) return &kind;
  }
  return nullptr;
}

json to_json(const Request& request) {
  json line = {{"request", request.name}};
  if (!request.sweeps.empty()) line["sweeps"] = request.sweeps;
  if (!request.runs.empty()) line["runs"] = request.runs;
  if (!request.flags.empty()) line["flags"] = request.flags;
  if (request.priority) line["priority"] = *request.priority;
  if (!request.secrets.empty()) line["secrets"] = request.secrets;
  return line;
}

Request request_from(std::string_view line) {
  const json request = json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!request.is_object()) fail("a request is one line with a JSON object");
  const auto unknown = [](std::string_view what) {
    fail(
        "this tearless does not know {} of a request: the other one is of another build. To change to that: tearless "
        "stop, then the command again",
        what);
  };
  constexpr auto kKeys = std::to_array<std::string_view>({"request", "sweeps", "runs", "flags", "priority", "secrets"});
  for (const auto& [key, value] : request.items()) {
    if (std::find(kKeys.begin(), kKeys.end(), key) == kKeys.end()) unknown(fmt::format("the key \"{}\"", key));
  }
  const auto name = request.find("request");
  if (name == request.end() || !name->is_string()) fail("a request needs a name: \"request\"");
  const RequestKind* kind = find_request_kind(name->get<std::string>());
  if (!kind) unknown(fmt::format("the name \"{}\"", name->get<std::string>()));
  Request result{.name = *name, .sweeps = names_in(request, "sweeps"), .runs = names_in(request, "runs")};
  for (const std::string& flag : names_in(request, "flags")) {
    if (!has_flag(*kind, flag)) unknown(fmt::format("the flag \"{}\"", flag));
    result.flags.insert(flag);
  }
  if (const auto priority = request.find("priority"); priority != request.end()) {
    constexpr uint64_t kMost = std::numeric_limits<int64_t>::max();
    const bool fits = !priority->is_number_unsigned() || priority->get<uint64_t>() <= kMost;
    if (!priority->is_number_integer() || !fits) {
      fail("\"priority\" of a request must be a whole number of 64 bits, signed");
    }
    result.priority = *priority;
  }
  if (const auto secrets = request.find("secrets"); secrets != request.end()) {
    const bool are_texts = secrets->is_object() && std::ranges::all_of(*secrets, &json::is_string);
    if (!are_texts) fail("\"secrets\" of a request must be an object of texts");
    result.secrets = *secrets;
  }
  const bool has_sweeps = kind->target == RequestTarget::kSweeps || kind->target == RequestTarget::kBoth;
  const bool has_runs = kind->target == RequestTarget::kRuns || kind->target == RequestTarget::kBoth;
  if (!result.sweeps.empty() && !has_sweeps) fail("the request {} takes no sweeps", kind->name);
  if (!result.runs.empty() && !has_runs) fail("the request {} takes no runs", kind->name);
  return result;
}

}  // namespace tearless::harness
