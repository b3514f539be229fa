#include "base/toml.h"

#include <algorithm>

#include "base/files.h"
#include "base/toml_advice.h"
#include "base/words.h"

namespace tearless {
namespace {

constexpr uint64_t kMaxBytes = 4 << 20;  // a parsed value takes about a hundred times the memory of its text
constexpr int64_t kMaxDots = 100;        // a line

/// toml++ frees nested tables recursively. It limits how deep brackets are nested, but not the parts of a dotted key,
/// which are at most one more than its line has dots.
void refuse_deep_keys(std::string_view text, const std::string& name) {
  int64_t line = 0;
  for (const std::string_view content : split_lines(text)) {
    ++line;
    if (std::count(content.begin(), content.end(), '.') > kMaxDots) {
      fail("{}:{}: the line has more than {} dots; write keys of fewer parts, or a list in several lines", name, line,
           kMaxDots);
    }
  }
}

void flatten(const toml::table& table, const std::string& prefix, std::map<std::string, int64_t>& lines,
             WrittenSettings& out) {
  for (const auto& [key, node] : table) {
    const std::string dotted = prefix + std::string(key.str());
    if (const auto* inner = node.as_table()) {
      if (inner->empty() && inner->is_inline()) {
        fail("{}:{}: {} = {{}} sets nothing; leave the key out", out.name, node.source().begin.line, dotted);
      }
      flatten(*inner, dotted + ".", lines, out);
      continue;
    }
    const int64_t line = node.source().begin.line;
    if (const auto [other, is_new] = lines.emplace(dotted, line); !is_new) {  // tables are sorted, not as written
      fail("{}:{}: {} is defined twice (first at {}:{}); remove one of the two", out.name,
           std::max(line, other->second), dotted, out.name, std::min(line, other->second));
    }
    out.values.emplace(dotted, toml_to_json(node, dotted, out.name));
    out.locations[dotted] = fmt::format("{}:{}", out.name, line);
  }
}

}  // namespace

std::string read_toml_text(const std::filesystem::path& file) { return read_regular_file(file, kMaxBytes); }

toml::table parse_toml(std::string_view text, const std::string& name) {
  refuse_deep_keys(text, name);
  try {
    return toml::parse(text, name);
  } catch (const toml::parse_error& error) {
    const auto line = static_cast<int64_t>(error.source().begin.line);
    const std::string said(error.description());
    const bool is_too_deep = said.find("nested value depth") != std::string::npos;
    const std::string advice = is_too_deep ? "" : advice_on(text, line);
    fail("{}:{}: {}", name, line, advice.empty() ? said : advice);
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
  std::map<std::string, int64_t> lines;  // dotted key → line
  flatten(table, "", lines, out);
  return out;
}

}  // namespace tearless
