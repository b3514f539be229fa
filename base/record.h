// Small JSON records that vouch for themselves: {"code": 0, …, "sha256": "…"}, where sha256 is of the record without
// it. A record without a checksum is of an earlier version, or a foreign program's, and is taken as it is.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace tearless {

/// The text of a record, with its checksum.
std::string sealed(nlohmann::json record);
/// The record without its checksum; nothing where the text is no JSON object or is not what was sealed.
std::optional<nlohmann::json> unsealed(std::string_view text);
/// The same of a file; nothing too where it cannot be read.
std::optional<nlohmann::json> read_record(const std::filesystem::path& file);

}  // namespace tearless
