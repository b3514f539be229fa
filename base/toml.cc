#include "base/toml.h"

#include <algorithm>

#include "base/files.h"

namespace tearless {
namespace {

constexpr uint64_t kMostBytes = 4 << 20;  // a parsed value takes about a hundred times the memory of its text
constexpr int kMostNested = 32;           // levels; the files of this project have four

/// The position after the string that begins at `begin`. For an unclosed one-line string, the end of its line: the
/// parser reports the error.
size_t end_of_string(std::string_view text, size_t begin) {
  const char quote = text[begin];
  const std::string three(3, quote);
  const bool many_lines = text.substr(begin, 3) == three;
  size_t at = begin + (many_lines ? 3 : 1);
  while (at < text.size()) {
    if (quote == '"' && text[at] == '\\') {
      at += 2;
    } else if (many_lines && text.substr(at, 3) == three) {
      const size_t after = std::min(text.find_first_not_of(quote, at), text.size());
      return std::min(after, at + 5);  // TOML allows two more quotes directly before the closing three
    } else if (!many_lines && (text[at] == quote || text[at] == '\n')) {
      return text[at] == quote ? at + 1 : at;
    } else {
      ++at;
    }
  }
  return text.size();
}

/// toml++ parses, and frees its tables, recursively: one level for each open bracket and for each part of a dotted key.
void refuse_deep_nesting(std::string_view text, const std::string& name) {
  int64_t line = 1;
  int brackets = 0;
  int parts = 1;  // of the current dotted key
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    size_t next = at + 1;
    if (c == '"' || c == '\'') {
      next = end_of_string(text, at);
    } else if (c == '#') {
      next = std::min(text.find('\n', at), text.size());
    } else if (c == '.') {
      ++parts;
    } else if (std::string_view("=,[]{}\n").find(c) != std::string_view::npos) {
      parts = 1;
      if (c == '[' || c == '{') ++brackets;
      if (c == ']' || c == '}') brackets = std::max(brackets - 1, 0);
    }
    if (brackets > kMostNested || parts > kMostNested) {
      fail("{}:{}: {} are nested more than {} deep; write fewer levels", name, line,
           parts > kMostNested ? "the parts of a dotted key" : "lists or tables", kMostNested);
    }
    next = std::min(next, text.size());
    line += std::count(text.begin() + static_cast<ptrdiff_t>(at), text.begin() + static_cast<ptrdiff_t>(next), '\n');
    at = next;
  }
}

void flatten(const toml::table& table, const std::string& prefix, WrittenSettings& out) {
  for (const auto& [key, node] : table) {
    const std::string dotted = prefix + std::string(key.str());
    if (const auto* inner = node.as_table()) {
      flatten(*inner, dotted + ".", out);
      continue;
    }
    const bool again = !out.values.emplace(dotted, toml_to_json(node, dotted, out.name)).second;
    if (again) fail("{}:{}: {} is set twice", out.name, node.source().begin.line, dotted);
    out.locations[dotted] = fmt::format("{}:{}", out.name, node.source().begin.line);
  }
}

}  // namespace

std::string read_toml_text(const std::filesystem::path& file) { return read_regular_file(file, kMostBytes); }

toml::table parse_toml(std::string_view text, const std::string& name) {
  refuse_deep_nesting(text, name);
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
