#include "harness/serve/target.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"

namespace tearless::harness {
namespace {

bool is_plain(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_' || c == '.';
}

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char low = static_cast<char>(c | 0x20);
  return low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
}

std::optional<std::string> decoded(std::string_view text, bool is_query) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '%') {
      const int high = i + 2 < text.size() ? digit_of(text[i + 1]) : -1, low = high < 0 ? -1 : digit_of(text[i + 2]);
      if (low < 0) return std::nullopt;
      c = static_cast<char>(16 * high + low);
      if (c == '/' && !is_query) return std::nullopt;
      i += 2;
    } else if (c == '+' && is_query) {
      c = ' ';
    }
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return std::nullopt;
    out += c;
  }
  return valid_utf8(out) ? std::optional(out) : std::nullopt;
}

bool has_dots(std::string_view path) {
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view segment = path.substr(begin, end - begin);
    if (segment == "." || segment == "..") return true;
    begin = end + 1;
  }
  return false;
}

}  // namespace

std::string Target::value(std::string_view name) const {
  const auto found = std::ranges::find(query, name, &std::pair<std::string, std::string>::first);
  return found == query.end() ? "" : found->second;
}

std::vector<std::string> Target::values(std::string_view name) const {
  std::vector<std::string> all;
  for (const auto& [key, value] : query) {
    if (key == name) all.push_back(value);
  }
  return all;
}

std::optional<std::string> Target::after(std::string_view prefix) const {
  if (!path.starts_with(prefix) || path.size() == prefix.size()) return std::nullopt;
  return path.substr(prefix.size());
}

std::optional<Target> parse_target(std::string_view text) {
  if (!text.starts_with('/')) return std::nullopt;
  const size_t mark = std::min(text.find('?'), text.size());
  std::optional<std::string> path = decoded(text.substr(0, mark), /*is_query=*/false);
  if (!path || has_dots(*path)) return std::nullopt;
  Target target{.path = std::move(*path)};
  for (size_t begin = mark + 1; begin < text.size();) {
    const size_t end = std::min(text.find('&', begin), text.size());
    const std::string_view pair = text.substr(begin, end - begin);
    const size_t equals = std::min(pair.find('='), pair.size());
    const auto key = decoded(pair.substr(0, equals), /*is_query=*/true);
    const auto value = decoded(pair.substr(std::min(equals + 1, pair.size())), /*is_query=*/true);
    if (!key || !value) return std::nullopt;
    target.query.emplace_back(*key, *value);
    begin = end + 1;
  }
  return target;
}

std::string encoded(std::string_view text) {
  std::string out;
  for (const char c : text) {
    out +=
        is_plain(c) ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned>(static_cast<unsigned char>(c)));
  }
  return out;
}

}  // namespace tearless::harness
