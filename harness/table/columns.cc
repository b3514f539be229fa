#include "harness/table/columns.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/print.h"
#include "base/utf8.h"
#include "harness/table/table.h"

namespace tearless::harness {

void print_columns(std::vector<std::vector<std::string>> lines) {
  std::vector<size_t> widths;
  for (auto& line : lines) {
    widths.resize(std::max(widths.size(), line.size()));
    for (size_t i = 0; i < line.size(); ++i) {
      line[i] = printable(line[i]);
      widths[i] = std::max(widths[i], display_width(line[i]));
    }
  }
  for (const auto& line : lines) {
    std::string text;
    for (size_t i = 0; i < line.size(); ++i) {
      text += line[i] + std::string(widths[i] - display_width(line[i]) + 2, ' ');
    }
    print("{}\n", text.substr(0, text.find_last_not_of(' ') + 1));
  }
}

void print_csv(std::vector<std::vector<std::string>> lines) {
  if (!lines.empty()) lines.front() = distinct_names(std::move(lines.front()));
  for (auto& line : lines) {
    for (std::string& cell : line) cell = escape_csv(cell);
    fmt::print("{}\n", fmt::join(line, ","));
  }
}

std::string value_text(const nlohmann::json& value, int digits) {
  if (value.is_null()) return "";
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_number_float()) return value.dump();
  const auto number = value.get<double>();  // dump() prints inf as null
  return digits == 0 ? fmt::format("{}", number) : fmt::format("{:.{}g}", number, digits);
}

std::vector<std::string> distinct_names(std::vector<std::string> columns) {
  std::set<std::string> taken(columns.begin(), columns.end());
  std::set<std::string> seen;
  for (std::string& column : columns) {
    if (seen.insert(column).second) continue;
    int number = 2;
    while (taken.contains(fmt::format("{}:{}", column, number))) ++number;
    column = *taken.insert(fmt::format("{}:{}", column, number)).first;
  }
  return columns;
}

}  // namespace tearless::harness
