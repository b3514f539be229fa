// TOML text as a table, and a table as flat dotted keys. For .cc files only: toml++ is slow to compile.
#pragma once

#include <toml++/toml.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/settings.h"

namespace tearless {

/// The text of a TOML file that a person wrote. UserError for what is no ordinary file, or far too large.
std::string read_toml_text(const std::filesystem::path& file);

/// Parses `text`, which messages call `name`. UserError with the line for a syntax error, and for tables, lists or
/// dotted keys that are nested so deeply that reading them could exhaust the stack.
toml::table parse_toml(std::string_view text, const std::string& name);

/// A bool, number, text, or list of them. UserError naming `key` and the line for dates and tables.
nlohmann::json toml_to_json(const toml::node& node, const std::string& key, const std::string& name);

/// Nested tables become dotted keys; `"a.b" = 1` and `a.b = 1` are the same. UserError where that sets a key twice.
WrittenSettings flatten_toml(const toml::table& table, const std::string& name);

}  // namespace tearless
