// Sealed JSON: JSON objects that carry their own checksum, {"code": 0, …, "sealed": true, "sha256": "…"}. The checksum
// covers the object without the key "sha256", as compact JSON with sorted keys. An object with neither key was written
// by another training program, and is accepted unchecked.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace tearless {

/// The text of an object with its checksum added.
std::string sealed(nlohmann::json record);

/// Parses and verifies a text. Returns the object without the two keys; nullopt if the text is not a JSON object or
/// does not match its checksum.
std::optional<nlohmann::json> unsealed(std::string_view text);

/// As unsealed(), for the content of a file. Nullopt also if the file cannot be read.
std::optional<nlohmann::json> read_sealed(const std::filesystem::path& file);

}  // namespace tearless
