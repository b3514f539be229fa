#include "base/toml.h"

#include <algorithm>
#include <cctype>
#include <map>

#include <fmt/format.h>

#include "base/files.h"
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

// --- what people write that is no TOML -------------------------------------------------------------------------------

bool is_word(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](unsigned char c) {
    return std::isalnum(c) || std::string_view("_+-./~").find(static_cast<char>(c)) != std::string_view::npos;
  });
}

// What to write in place of a value without quotes; "" if it is TOML.
std::string advice_on_value(std::string_view value) {
  static const std::map<std::string_view, std::string_view> kOthers = {
      {"null", ""},       {"Null", ""},       {"NULL", ""},     {"None", ""},    {"none", ""},    {"nil", ""},
      {"~", ""},          {"True", "true"},   {"TRUE", "true"}, {"yes", "true"}, {"Yes", "true"}, {"on", "true"},
      {"False", "false"}, {"FALSE", "false"}, {"no", "false"},  {"No", "false"}, {"off", "false"}};
  if (const auto other = kOthers.find(value); other != kOthers.end()) {
    return other->second.empty() ? fmt::format("{} is no value in TOML; leave the key out", value)
                                 : fmt::format("{} is no value in TOML; write {}", value, other->second);
  }
  const std::string_view sign = value.substr(0, value.find_first_not_of("+-"));
  const std::string_view digits = value.substr(std::min(sign.size(), value.size()));
  const auto all_digits = [](std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
  };
  const size_t point = digits.find('.');
  const std::string_view before = digits.substr(0, point);
  const std::string_view after = point == std::string_view::npos ? "" : digits.substr(point + 1);
  if (before.empty() && !after.empty() && std::isdigit(static_cast<unsigned char>(after.front()))) {
    return fmt::format("{} is no number in TOML; write {}0{}", value, sign, digits);
  }
  if (point != std::string_view::npos && all_digits(before) && (after.empty() || after.front() == 'e')) {
    return fmt::format("{} is no number in TOML; write {}{}.0{}", value, sign, before, after);
  }
  if (point == std::string_view::npos && all_digits(digits) && digits.size() > 1 && digits.front() == '0') {
    const std::string_view rest = digits.substr(std::min(digits.find_first_not_of('0'), digits.size() - 1));
    return fmt::format("{} is no number in TOML; write {}{}", value, sign, rest);
  }
  const bool is_known = value == "true" || value == "false" || value == "inf" || value == "nan";
  const bool begins_as_word = std::isalpha(static_cast<unsigned char>(value.front())) || value.front() == '/' ||
                              value.front() == '.' || value.front() == '_';
  if (is_word(value) && !is_known && begins_as_word) {
    return fmt::format("a text needs quotes: \"{}\"", value);
  }
  return "";
}

// The parts of a line that are neither in quotes nor in a comment, each up to a comma, bracket or space.
std::vector<std::string_view> bare_parts(std::string_view line) {
  std::vector<std::string_view> parts;
  size_t begin = 0;
  const auto end_at = [&](size_t end) {
    if (end > begin) parts.push_back(line.substr(begin, end - begin));
    begin = end + 1;
  };
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '"' || c == '\'') {
      end_at(i);
      const size_t close = line.find(c, i + 1);
      if (close == std::string_view::npos) return parts;
      begin = (i = close) + 1;
    } else if (c == '#') {
      break;
    } else if (std::string_view(" \t\r,[]{}=").find(c) != std::string_view::npos) {
      end_at(i);
      if (c == '=') parts.emplace_back("=");
    }
    if (i + 1 == line.size()) end_at(i + 1);
  }
  if (begin < line.size() && line[begin] != '#' && line.find('#', begin) != std::string_view::npos) {
    end_at(line.find('#', begin));
  }
  return parts;
}

// One sentence on a line that is no TOML; "" if it is of no kind that is known here.
std::string advice_on(std::string_view text, int64_t number) {
  const std::vector<std::string_view> lines = split_lines(text);
  if (number < 1 || number > std::ssize(lines)) return "";
  const std::string_view line = lines[static_cast<size_t>(number - 1)];
  const std::vector<std::string_view> parts = bare_parts(line);
  const bool has_equals = std::ranges::find(parts, "=") != parts.end();
  const std::string_view first = parts.empty() ? "" : parts.front();
  const bool is_yaml = first.ends_with(':') || first == "-" || first == "---" || (parts.size() > 1 && parts[1] == ":");
  if (!has_equals && is_yaml) {
    return "this is YAML; a grid is TOML, with lines such as key = value and [section]";
  }
  const size_t begin = line.find_first_not_of(" \t");
  if (!has_equals && begin != std::string_view::npos && line[begin] == '[') return "";  // the name of a section
  for (size_t i = 0; i < parts.size(); ++i) {
    const bool is_key = has_equals && (parts[i] == "=" || (i + 1 < parts.size() && parts[i + 1] == "="));
    if (const std::string advice = is_key ? "" : advice_on_value(parts[i]); !advice.empty()) return advice;
  }
  return "";
}

}  // namespace

std::string read_toml_text(const std::filesystem::path& file) { return read_regular_file(file, kMaxBytes); }

toml::table parse_toml(std::string_view text, const std::string& name) {
  refuse_deep_keys(text, name);
  try {
    return toml::parse(text, name);
  } catch (const toml::parse_error& error) {
    const auto line = static_cast<int64_t>(error.source().begin.line);
    const std::string advice = advice_on(text, line);
    fail("{}:{}: {}", name, line, advice.empty() ? std::string(error.description()) : advice);
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
