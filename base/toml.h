// Parses TOML and flattens its tables into dotted keys. Include it from .cc files only: toml++ is slow to compile.
#pragma once

#include <toml++/toml.h>

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/settings.h"

namespace tearless {

/// The content of a TOML file. UserError if it is not a regular file or larger than 4 MiB.
std::string read_toml_text(const std::filesystem::path& file);

/// Parses `text`; error messages call it `name`. UserError with the line for a syntax error, a key that is defined
/// twice, and for what could exhaust the stack: values nested more than 256 deep, and lines with more than 100 dots.
toml::table parse_toml(std::string_view text, const std::string& name);

/// Converts a bool, a number, a text or a list of them. UserError naming `key` and the line for dates and tables.
nlohmann::json toml_to_json(const toml::node& node, const std::string& key, const std::string& name);

/// Flattens nested tables into dotted keys; `"a.b" = 1` and `a.b = 1` mean the same. UserError if a key is set twice.
WrittenSettings flatten_toml(const toml::table& table, const std::string& name);

}  // namespace tearless
