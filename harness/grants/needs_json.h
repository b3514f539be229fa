// What a run needs, as grants and the board have it in JSON.
#pragma once

#include <nlohmann/json.hpp>

#include "harness/runs/needs.h"

namespace tearless::harness {

inline nlohmann::json json_of(const Needs& needs) {
  nlohmann::json json = {
      {"device", needs.device},     {"threads", needs.threads}, {"resource_class", needs.resource_class},
      {"declared", needs.declared}, {"alone", needs.alone},     {"executor", needs.executor}};
  if (needs.memory_bytes) json["memory_bytes"] = *needs.memory_bytes;
  if (!needs.kind.empty()) json["kind"] = needs.kind;
  if (!needs.secrets.empty()) json["secrets"] = needs.secrets;
  return json;
}

/// The inverse. nlohmann::json::exception if a member is missing or of another type.
inline Needs needs_from(const nlohmann::json& json) {
  Needs needs{.device = json.at("device"),
              .threads = json.at("threads"),
              .resource_class = json.at("resource_class"),
              .declared = json.at("declared"),
              .alone = json.at("alone"),
              .executor = json.at("executor"),
              .kind = json.value("kind", ""),
              .secrets = json.value("secrets", std::set<std::string>())};
  if (json.contains("memory_bytes")) needs.memory_bytes = json["memory_bytes"].get<int64_t>();
  return needs;
}

}  // namespace tearless::harness
