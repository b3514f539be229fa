#include "base/sealed_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"

namespace tearless {
using nlohmann::json;
namespace {

constexpr const char* kChecksum = "sha256";
// Marks an object as sealed. Without it, an object whose key "sha256" was damaged would pass as one of another program.
constexpr const char* kSealed = "sealed";

std::string checksum_of(const json& record) {
  return sha256(record.dump(-1, ' ', false, json::error_handler_t::replace));
}

}  // namespace

std::string sealed(json record) {
  record[kSealed] = true;
  record[kChecksum] = checksum_of(record);
  return record.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

std::optional<json> unsealed(std::string_view text) {
  // nlohmann::json copies and prints recursively. Dropping values nested deeper than 32 levels, which no sealed JSON of
  // this project has, bounds the stack. It takes time, and few texts have as many brackets.
  constexpr int kDepth = 32;
  const auto shallow = [](int depth, json::parse_event_t, const json&) { return depth <= kDepth; };
  const bool may_be_deep = std::ranges::count_if(text, [](char c) { return c == '{' || c == '['; }) > kDepth;
  json record = json::parse(text, may_be_deep ? json::parser_callback_t(shallow) : nullptr, /*allow_exceptions=*/false);
  if (!record.is_object()) return std::nullopt;
  if (!record.contains(kChecksum) && !record.contains(kSealed)) return record;
  const json checksum = record.value(kChecksum, json());
  record.erase(kChecksum);
  if (checksum != checksum_of(record)) return std::nullopt;
  record.erase(kSealed);
  return record;
}

std::optional<json> read_sealed(const std::filesystem::path& file) {
  try {
    return unsealed(read_file(file));
  } catch (const UserError&) {
    return std::nullopt;
  }
}

}  // namespace tearless
