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

size_t whole_digits(const std::string& text) {
  const std::string_view sign = text.starts_with("−") ? "−" : text.starts_with('+') ? "+" : "";
  const size_t start = sign.size();
  size_t end = start;
  while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end]))) ++end;
  return end == start ? 0 : end - start + (sign.empty() ? 0 : 1);
}

std::vector<size_t> widest_digits(const Sheet& sheet) {
  std::vector<size_t> widest(sheet.columns());
  for (const Sheet::Row& row : sheet.rows) {
    for (size_t i = 0; i < row.cells.size(); ++i) widest[i] = std::max(widest[i], whole_digits(row.cells[i]));
  }
  return widest;
}

}  // namespace tearless::harness
