#include "base/record.h"

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"

namespace tearless {
using nlohmann::json;
namespace {

constexpr const char* kChecksum = "sha256";
// Says that a checksum belongs to the record: a record whose checksum has lost its name must not pass for an old one.
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
  // Copying and printing a value recurse: what is nested deeper than any record of ours is left out.
  const auto shallow = [](int depth, json::parse_event_t, const json&) { return depth <= 32; };
  json record = json::parse(text, shallow, /*allow_exceptions=*/false);
  if (!record.is_object()) return std::nullopt;
  if (!record.contains(kChecksum) && !record.contains(kSealed)) return record;
  const json checksum = record.value(kChecksum, json());
  record.erase(kChecksum);
  if (checksum != checksum_of(record)) return std::nullopt;
  record.erase(kSealed);
  return record;
}

std::optional<json> read_record(const std::filesystem::path& file) {
  try {
    return unsealed(read_file(file));
  } catch (const UserError&) {
    return std::nullopt;
  }
}

}  // namespace tearless
