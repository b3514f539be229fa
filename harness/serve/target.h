// What a request asks for: "/run/0c95df280f397769?page=2".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tearless::harness {

struct Target {
  std::string path;                                             // decoded; begins with /
  std::vector<std::pair<std::string, std::string>> query = {};  // in their order, decoded

  /// The first value of that name; "" if there is none.
  std::string value(std::string_view name) const;
  std::vector<std::string> values(std::string_view name) const;
  /// What follows `prefix` in the path; nullopt if it does not begin so, or nothing follows.
  std::optional<std::string> after(std::string_view prefix) const;

  bool operator==(const Target&) const = default;
};

/// Nullopt for what no page of ours links to: another form than a path, a segment "." or "..", an encoded slash,
/// control characters, bytes that are not UTF-8, or a damaged escape.
std::optional<Target> parse_target(std::string_view text);

/// A text as a part of a path or a value of a query.
std::string encoded(std::string_view text);

}  // namespace tearless::harness
