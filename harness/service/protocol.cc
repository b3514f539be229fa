#include "harness/service/protocol.h"

#include <algorithm>

#include "base/error.h"

namespace tearless::harness {
using nlohmann::json;
namespace {

// In the order of the enumerators.
constexpr auto kVerbs = std::to_array<std::string_view>(
    {"status", "submit", "retry", "pause", "resume", "cancel", "hold", "release", "priority", "delete", "why", "stop"});

// Ids are names of folders: nothing that leads out of the workspace.
bool is_name(const std::string& text) {
  return !text.empty() && text.size() < 256 && text.find('/') == std::string::npos && text[0] != '.' &&
         text.find('\0') == std::string::npos;
}

std::vector<std::string> names_in(const json& request, const char* key) {
  std::vector<std::string> names;
  const auto found = request.find(key);
  if (found == request.end()) return names;
  if (!found->is_array()) fail("\"{}\" of a request must be a list of ids", key);
  for (const json& name : *found) {
    if (!name.is_string() || !is_name(name)) fail("\"{}\" of a request must be a list of ids", key);
    names.push_back(name);
  }
  return names;
}

bool flag_in(const json& request, const char* key) {
  const auto found = request.find(key);
  if (found == request.end()) return false;
  if (!found->is_boolean()) fail("\"{}\" of a request must be true or false", key);
  return *found;
}

}  // namespace

std::string_view name_of(Verb verb) { return kVerbs.at(static_cast<size_t>(verb)); }

json to_json(const Request& request) {
  json line = {{"verb", name_of(request.verb)}};
  if (!request.sweeps.empty()) line["sweeps"] = request.sweeps;
  if (!request.runs.empty()) line["runs"] = request.runs;
  if (request.verb == Verb::kPriority) line["priority"] = request.priority;
  if (request.now) line["now"] = true;
  if (request.keep_results) line["keep_results"] = true;
  if (request.all) line["all"] = true;
  return line;
}

Request request_from(std::string_view line) {
  const json request = json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!request.is_object()) fail("a request is one line with a JSON object");
  for (const auto& [key, value] : request.items()) {
    constexpr auto kKeys =
        std::to_array<std::string_view>({"verb", "sweeps", "runs", "priority", "now", "keep_results", "all"});
    if (std::find(kKeys.begin(), kKeys.end(), key) == kKeys.end()) {
      fail("this tearless does not know \"{}\" in a request; is the other one of another version?", key);
    }
  }
  const auto verb = request.find("verb");
  if (verb == request.end() || !verb->is_string()) fail("a request needs a \"verb\"");
  const auto known = std::find(kVerbs.begin(), kVerbs.end(), verb->get<std::string>());
  if (known == kVerbs.end()) {
    fail("this tearless does not know the verb \"{}\"; is the other one of another version?", verb->get<std::string>());
  }
  Request result{.verb = static_cast<Verb>(known - kVerbs.begin()),
                 .sweeps = names_in(request, "sweeps"),
                 .runs = names_in(request, "runs")};
  if (const auto priority = request.find("priority"); priority != request.end()) {
    if (!priority->is_number_integer()) fail("\"priority\" of a request must be a whole number");
    result.priority = *priority;
  }
  result.now = flag_in(request, "now");
  result.keep_results = flag_in(request, "keep_results");
  result.all = flag_in(request, "all");
  return result;
}

}  // namespace tearless::harness
