#include "base/toml_advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <vector>

#include "base/words.h"

namespace tearless {
namespace {

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

// The parts of a line that are neither in quotes nor in a comment: each "=", and what stands between spaces, commas and
// brackets.
std::vector<std::string_view> bare_parts(std::string_view line) {
  constexpr std::string_view kBetween = " \t\r,[]{}=\"'#";
  std::vector<std::string_view> parts;
  while (!line.empty() && line.front() != '#') {
    size_t length = line.find_first_of(kBetween);
    if (line.front() == '"' || line.front() == '\'') {
      const size_t close = line.find(line.front(), 1);
      length = close == std::string_view::npos ? line.size() : close + 1;
    } else if (length != 0) {
      parts.push_back(line.substr(0, length));
    } else if (++length; line.front() == '=') {
      parts.push_back(line.substr(0, 1));
    }
    line.remove_prefix(std::min(length, line.size()));
  }
  return parts;
}

}  // namespace

std::string advice_on(std::string_view text, int64_t number) {
  const std::vector<std::string_view> lines = split_lines(text);
  if (number < 1 || number > std::ssize(lines)) return "";
  const std::string_view line = lines[static_cast<size_t>(number - 1)];
  const std::vector<std::string_view> parts = bare_parts(line);
  const bool has_equals = std::ranges::find(parts, "=") != parts.end();
  const std::string_view first = parts.empty() ? "" : parts.front();
  const bool is_yaml = first.ends_with(':') || first == "-" || first == "---" || (parts.size() > 1 && parts[1] == ":");
  if (first.starts_with("//")) return "a comment begins with #";
  if (has_equals && std::ranges::count(line, '{') == std::ranges::count(line, '}') + 1)
    return "an inline table { … } is one line; write it in one, or as a [section] of its own";
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

}  // namespace tearless
