#include "harness/views/show.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <regex>

#include "base/error.h"
#include "base/nearest.h"

namespace tearless::harness {
namespace {

constexpr int kMaxDecimals = 9;

std::vector<std::string> names_of_statistics() {
  std::vector<std::string> names;
  for (const Statistic& one : statistics()) names.emplace_back(one.name);
  return names;
}

/// Reads what stands between { and }.
ShownPart part_of(const std::string& field, const std::string& location) {
  const size_t colon = field.find(':');
  const std::string name = field.substr(0, colon);
  ShownPart part{.statistic = find_statistic(name)};
  if (!part.statistic) {
    const std::vector<std::string> names = names_of_statistics();
    fail("{}: show has no statistic {{{}}}{}; they are: {}", location, name, did_you_mean(name, names),
         fmt::join(names, ", "));
  }
  if (colon == std::string::npos) return part;
  static const std::regex kFormat(R"((\+?)(?:\.([0-9])f)?)");
  std::smatch match;
  const std::string format = field.substr(colon + 1);
  if (part.statistic->kind == Statistic::Kind::kCount)
    fail("{}: show has {{{}}}: a count is written {{{}}}", location, field, name);
  if (format.empty() || !std::regex_match(format, match, kFormat)) {
    fail("{}: show has {{{}}}: a format is written as in {{{}:.2f}} or {{{}:+.2f}}, with at most {} digits", location,
         field, name, name, kMaxDecimals);
  }
  part.has_sign = match.length(1) > 0;
  if (match.length(2) > 0) part.decimals = match.str(2).front() - '0';
  return part;
}

}  // namespace

Show default_show() {
  return {.parts = {{.statistic = find_statistic("mean")}, {.before = " ± ", .statistic = find_statistic("std")}}};
}

Show read_show(const std::string& text, const std::string& location) {
  // Short for these. The first is of grids of before: a note says n now, and the cells that differ.
  if (text == "mean ± std (n)" || text == "mean ± std") return default_show();
  if (text == "mean") return {.parts = {default_show().parts.front()}};

  Show show;
  std::string between;
  for (size_t at = 0; at < text.size();) {
    const size_t open = text.find_first_of("{}", at), close = open == std::string::npos ? open : text.find('}', open);
    between += text.substr(at, open - at);
    if (open == std::string::npos) break;
    if (text[open] == '}' || close == std::string::npos)
      fail("{}: show = \"{}\" has a brace without the other; a statistic is written {{mean}}", location, text);
    ShownPart part = part_of(text.substr(open + 1, close - open - 1), location);
    part.before = std::move(between);
    at = close + 1;
    const size_t end = std::min(text.find_first_of(" \t{", at), text.size());
    size_t after = end;
    while (after > at && std::string_view(")]%").find(text[after - 1]) == std::string_view::npos) --after;
    part.after = text.substr(at, after - at);
    at = after;
    between.clear();
    show.parts.push_back(std::move(part));
  }
  if (show.parts.empty()) fail("{}: show = \"{}\" names no statistic; write one as in {{mean}}", location, text);
  show.parts.back().after += between;
  return show;
}

}  // namespace tearless::harness
