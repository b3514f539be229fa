#include "base/toml.h"

#include <algorithm>

#include "base/files.h"
#include "base/words.h"

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

// --- second definitions --------------------------------------------------------------------------------------------

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t begin = std::min(text.find_first_not_of(kSpace), text.size());
  return text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin);
}

/// What a line defines, as it is written: "a.b" of `a.b = 1`, `[a.b]` and `[[a.b]]`.
struct Definition {
  std::string key;
  bool is_header;
};

Definition definition_in(std::string_view line) {
  line = trimmed(line);
  const bool is_header = line.starts_with('[');
  while (line.starts_with('[')) line.remove_prefix(1);
  return {std::string(trimmed(line.substr(0, line.find(is_header ? ']' : '=')))), is_header};
}

const toml::table* as_table(const toml::node& node) {
  const toml::array* array = node.as_array();
  return array && !array->empty() ? array->back().as_table() : node.as_table();
}

/// The table that has `key`, of `table` and the tables in it; null if there is none.
const toml::table* table_with(const std::string& key, const toml::table& table) {
  if (table.contains(key)) return &table;
  for (const auto& [name, node] : table) {
    const toml::table* inner = as_table(node);
    if (const toml::table* found = inner ? table_with(key, *inner) : nullptr) return found;
  }
  return nullptr;
}

/// The line on which the text `before` defines what the next line defines again; nothing if it is none, or within a
/// value.
std::optional<int64_t> first_line(const std::string& before, const Definition& again) {
  const std::string probe = "the table of the next line";
  toml::table root, path;
  try {
    root = toml::parse(fmt::format("{}\"{}\" = 0\n", before, probe));
    path = toml::parse(again.key + " = 0");
  } catch (const toml::parse_error&) {
    return std::nullopt;
  }
  if (path.empty()) return std::nullopt;  // a comment
  const toml::table* at = again.is_header ? &root : table_with(probe, root);
  for (const toml::table* rest = &path; at && rest;) {
    const auto part = rest->begin();
    const toml::node* found = at->get(part->first.str());
    if (!found) return std::nullopt;
    rest = part->second.as_table();
    at = as_table(*found);
    if (!rest || !at) return found->source().begin.line;
  }
  return std::nullopt;
}

[[noreturn]] void fail_for_second(const std::string& key, const std::string& name, int64_t line,
                                  std::optional<int64_t> first) {
  fail("{}:{}: {} is defined twice{}; remove one of the two, or merge them if they are tables", name, line, key,
       first ? fmt::format(" (first at {}:{})", name, *first) : "");
}

/// Throws the sentence for a definition that toml++ refuses as the second of its key; returns if `error` is another.
void refuse_second_definition(std::string_view text, const std::string& name, const toml::parse_error& error) {
  const std::string_view what = error.description();
  if (what.find("cannot redefine existing ") == std::string_view::npos) return;
  const std::vector<std::string_view> lines = split_lines(text);
  const int64_t reported = error.source().begin.line;
  for (const int64_t line : {reported, reported - 1}) {  // of some headers toml++ reports the line after them
    if (line < 1 || line > static_cast<int64_t>(lines.size())) continue;
    const std::string_view statement = lines[static_cast<size_t>(line - 1)];
    const std::string before(text.substr(0, static_cast<size_t>(statement.data() - text.data())));
    const Definition again = definition_in(statement);
    if (const auto first = first_line(before, again)) fail_for_second(again.key, name, line, first);
  }
  const size_t quote = what.find('\'');
  const std::string_view key = what.substr(quote + 1, what.rfind('\'') - quote - 1);
  fail_for_second(quote == std::string_view::npos ? "a key" : std::string(key), name, reported, std::nullopt);
}

void flatten(const toml::table& table, const std::string& prefix, std::map<std::string, int64_t>& lines,
             WrittenSettings& out) {
  for (const auto& [key, node] : table) {
    const std::string dotted = prefix + std::string(key.str());
    if (const auto* inner = node.as_table()) {
      flatten(*inner, dotted + ".", lines, out);
      continue;
    }
    const int64_t line = node.source().begin.line;
    if (const auto [other, is_new] = lines.emplace(dotted, line); !is_new) {  // tables are sorted, not as written
      fail_for_second(dotted, out.name, std::max(line, other->second), std::min(line, other->second));
    }
    out.values.emplace(dotted, toml_to_json(node, dotted, out.name));
    out.locations[dotted] = fmt::format("{}:{}", out.name, line);
  }
}

}  // namespace

std::string read_toml_text(const std::filesystem::path& file) { return read_regular_file(file, kMostBytes); }

toml::table parse_toml(std::string_view text, const std::string& name) {
  refuse_deep_nesting(text, name);
  try {
    return toml::parse(text, name);
  } catch (const toml::parse_error& error) {
    refuse_second_definition(text, name, error);
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
  std::map<std::string, int64_t> lines;  // dotted key → line
  flatten(table, "", lines, out);
  return out;
}

}  // namespace tearless
