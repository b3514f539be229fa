#include "harness/runs/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "base/spelling.h"
#include "base/words.h"

namespace tearless::harness {
using nlohmann::ordered_json;

namespace {

constexpr const char* kOldClassKey = "shape";  // of the resource class, in what earlier builds wrote
constexpr int64_t kManyThreads = 1'000'000;    // more are taken to be so many: no machine has them

// 4.0 is a whole number, as Python writes a quotient; true and 4.5 are rejected. Null and a missing member are unset.
std::optional<int64_t> whole_number_at(const ordered_json& json, const char* key,
                                       int64_t least = std::numeric_limits<int64_t>::min()) {
  const auto member = json.find(key);
  if (member == json.end() || member->is_null()) return std::nullopt;
  const double value = member->is_number() ? member->get<double>() : NAN;
  if (!(std::abs(value) < 0x1p63) || value != std::floor(value)) {
    throw std::invalid_argument(fmt::format("\"{}\" is not a whole number", key));
  }
  const auto number = member->get<int64_t>();
  if (number < least) throw std::invalid_argument(fmt::format("\"{}\" is {}, less than {}", key, number, least));
  return number;
}

std::string text_at(const ordered_json& json, const char* key, std::optional<std::string> absent = std::nullopt) {
  const auto member = json.find(key);
  if (member == json.end() && absent) return *absent;
  if (member == json.end()) throw std::invalid_argument(fmt::format("\"{}\" is missing", key));
  if (!member->is_string()) throw std::invalid_argument(fmt::format("\"{}\" is not a text", key));
  return member->get<std::string>();
}

std::string device_in(const ordered_json& json) {
  std::string device = text_at(json, "device", "cpu");
  if (device != "cpu" && device != "cuda") {
    throw std::invalid_argument(fmt::format("\"device\" is \"{}\"; it must be cpu or cuda", device));
  }
  return device;
}

std::shared_ptr<const InputFiles> data_from(const ordered_json& json, const Run* like) {
  const auto is_text = [](const ordered_json& checksum) { return checksum.is_string(); };
  if (!json.is_object() || !std::ranges::all_of(json, is_text)) {
    throw std::invalid_argument("\"data\" is not an object of files and their checksums");
  }
  const auto files = json.get<InputFiles>();
  for (const auto& [file, checksum] : files) {
    if (!file.starts_with('/')) throw std::invalid_argument(fmt::format("\"{}\" is not an absolute path", file));
  }
  return like && like->data && *like->data == files ? like->data : std::make_shared<const InputFiles>(files);
}

}  // namespace

const std::string& label_on(const Labels& labels, const std::string& axis) {
  static const std::string kNone;
  const auto found = std::find_if(labels.begin(), labels.end(), [&](const auto& label) { return label.first == axis; });
  return found == labels.end() ? kNone : found->second;
}

bool names_program(std::string_view settings) {
  return settings.find(fmt::format("\n{} = ", kProgramIdentity)) != std::string_view::npos;
}

std::string label_of(const Labels& labels) {
  std::string text;
  for (const auto& [axis, label] : labels) {
    const bool is_alone =
        std::ranges::count(labels, last_word(axis), [&](const auto& one) { return last_word(one.first); }) == 1;
    if (!text.empty()) text += " · ";
    if (is_bare(label)) text += (is_alone ? last_word(axis) : axis) + " ";
    text += label.empty() ? axis + "=" : label;
  }
  return text;
}

std::string label_of(const Run& run) {
  const std::string labels = label_of(run.coordinates);
  return fmt::format("{}{}seed {}", labels, labels.empty() ? "" : " · ", run.seed);
}

std::string label_axes(const Labels& coordinates) {
  std::string axes;
  for (const auto& [axis, label] : coordinates) axes += axis + " · ";
  return axes + "seed";
}

ordered_json to_json(const Labels& labels) {
  ordered_json json = ordered_json::object();
  for (const auto& [axis, label] : labels) json[axis] = label;
  return json;
}

Labels labels_from(const ordered_json& json) {
  Labels labels;
  for (const auto& [axis, label] : json.items()) labels.emplace_back(axis, label.get<std::string>());
  return labels;
}

ordered_json to_json(const Run& run) {
  ordered_json json = {{"id", run.id}, {"canonical", run.settings}, {"local", run.local}};
  if (!run.waiting_for.empty()) json["waiting_for"] = run.waiting_for;
  if (run.data) json["data"] = *run.data;
  json["coordinates"] = to_json(run.coordinates);
  json["seed"] = run.seed;
  json["rank"] = run.rank;
  json["device"] = run.needs.device;
  json["threads"] = run.needs.threads;
  json["resource_class"] = run.needs.resource_class;
  if (run.needs.memory_bytes) json["memory_bytes"] = *run.needs.memory_bytes;
  if (run.parameters) json["parameters"] = *run.parameters;
  json["updates"] = run.updates;
  json["evaluations"] = run.evaluations;
  if (!run.warnings.empty()) json["warnings"] = run.warnings;
  return json;
}

Run run_from(const ordered_json& json, const Run* like) {
  Run run{.id = text_at(json, "id"),
          .settings = text_at(json, "canonical"),
          .waiting_for = text_at(json, "waiting_for", ""),
          .local = text_at(json, "local", "")};
  if (const auto data = json.find("data"); data != json.end()) run.data = data_from(*data, like);
  if (const auto axes = json.find("coordinates"); axes != json.end()) run.coordinates = labels_from(*axes);
  run.seed = whole_number_at(json, "seed").value_or(0);
  run.rank = whole_number_at(json, "rank").value_or(0);
  run.needs = {.device = device_in(json),
               .threads = static_cast<int>(std::min(whole_number_at(json, "threads", 1).value_or(1), kManyThreads)),
               .resource_class = text_at(json, json.contains(kOldClassKey) ? kOldClassKey : "resource_class", ""),
               .memory_bytes = whole_number_at(json, "memory_bytes", 0)};
  if (run.needs.memory_bytes == 0) run.needs.memory_bytes.reset();  // as good as not said
  run.parameters = whole_number_at(json, "parameters", 0);
  run.updates = whole_number_at(json, "updates", 0).value_or(0);
  run.evaluations = whole_number_at(json, "evaluations", 0).value_or(0);
  if (const auto warnings = json.find("warnings"); warnings != json.end() && !warnings->is_null()) {
    run.warnings = warnings->get<std::vector<std::string>>();
  }
  return run;
}

}  // namespace tearless::harness
