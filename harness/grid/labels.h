// Labels and names in print, as a grid file writes them. Slow to compile, as base/toml.h.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/toml.h"
#include "harness/grid/names.h"

namespace tearless::harness {

/// How tables, plans and messages call a value: a text as it is, anything else as TOML has it.
std::string label_of(const nlohmann::json& value);
/// The labels that a value or a list of values, the key `key` of `file`, names.
std::vector<std::string> labels_in(const toml::node& node, const std::string& key, const std::string& file);

/// A text, or { text = …, latex = … }. UserError, after "LOCATION: KEY", for anything else, and for LaTeX that would
/// break the table: braces or $ without their other one, and an &, %, # or line break that is not escaped.
Name read_name(const toml::node& node, const std::string& key, const std::string& location);

}  // namespace tearless::harness
