#include "harness/table/formats.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "base/utf8.h"

namespace tearless::harness {

std::string escaped(const std::string& raw, const Replacements& with) {
  const std::string text = printable(raw);
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const auto it = std::find_if(with.begin(), with.end(), [&](const auto& pair) {
      return std::string_view(text).substr(at).starts_with(pair.first);
    });
    if (it == with.end()) {
      out += text[at++];
    } else {
      out += it->second;
      at += it->first.size();
    }
  }
  return out;
}

std::string join_escaped(const std::vector<std::string>& texts, const char* separator,
                         const std::function<std::string(const std::string&)>& escape) {
  std::vector<std::string> escaped;
  std::ranges::transform(texts, std::back_inserter(escaped), escape);
  return fmt::format("{}", fmt::join(escaped, separator));
}

/// What the wider columns may have each, if all are to have `room` together.
double share_of_wide(std::vector<double> widths, double room) {
  std::ranges::sort(widths, std::greater());
  while (widths.size() > 1 && widths.back() * static_cast<double>(widths.size()) < room) {
    room -= widths.back();
    widths.pop_back();
  }
  return room / static_cast<double>(widths.size());
}

Lead lead_of(const std::string& text) {
  std::string_view rest = text;
  const auto skip = [&](std::string_view what) {
    const bool is_there = rest.starts_with(what);
    if (is_there) rest.remove_prefix(what.size());
    return is_there;
  };
  Lead lead;
  lead.has_bracket = skip("[");
  lead.has_sign = skip("−") || skip("+");
  while (lead.digits < rest.size() && std::isdigit(static_cast<unsigned char>(rest[lead.digits]))) ++lead.digits;
  return lead.digits > 0 ? lead : Lead();
}

}  // namespace tearless::harness
