#include "base/toml.h"

namespace tearless {
namespace {

void flatten(const toml::table& table, const std::string& prefix, WrittenSettings& out) {
  for (const auto& [key, node] : table) {
    const std::string dotted = prefix + std::string(key.str());
    if (const auto* inner = node.as_table()) {
      flatten(*inner, dotted + ".", out);
      continue;
    }
    const bool again = !out.values.emplace(dotted, toml_to_json(node, dotted, out.name)).second;
    if (again) fail("{}:{}: {} is set twice", out.name, node.source().begin.line, dotted);
    out.places[dotted] = fmt::format("{}:{}", out.name, node.source().begin.line);
  }
}

}  // namespace

toml::table parse_toml(std::string_view text, const std::string& name) {
  try {
    return toml::parse(text, name);
  } catch (const toml::parse_error& error) {
    fail("{}:{}: {}", name, error.source().begin.line, error.description());
  }
}

nlohmann::json toml_to_json(const toml::node& node, const std::string& key, const std::string& name) {
  if (const auto* v = node.as_boolean()) return v->get();
  if (const auto* v = node.as_integer()) return v->get();
  if (const auto* v = node.as_floating_point()) return v->get();
  if (const auto* v = node.as_string()) return v->get();
  if (const auto* array = node.as_array()) {
    nlohmann::json list = nlohmann::json::array();
    for (const toml::node& item : *array) list.push_back(toml_to_json(item, key, name));
    return list;
  }
  fail("{}:{}: {} must be a number, text, true or false", name, node.source().begin.line, key);
}

WrittenSettings flatten_toml(const toml::table& table, const std::string& name) {
  WrittenSettings out;
  out.name = name;
  flatten(table, "", out);
  return out;
}

}  // namespace tearless
