#include "harness/console/columns.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <set>
#include <string_view>
#include <utility>

#include "base/print.h"
#include "base/utf8.h"

namespace tearless::harness {
namespace {

constexpr size_t kGap = 2;  // between columns

std::vector<size_t> widths_of(const std::vector<std::vector<std::string>>& lines) {
  std::vector<size_t> widths;
  for (const auto& line : lines) {
    widths.resize(std::max(widths.size(), line.size()));
    for (size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], display_width(printable(line[i])));
  }
  return widths;
}

bool is_number(const std::string& text) {
  char* end = nullptr;
  std::strtod(text.c_str(), &end);
  return !text.empty() && end == text.c_str() + text.size();
}

std::string csv_cell(const std::string& text, Formulas formulas) {
  const bool is_formula = !text.empty() && std::string_view("=+-@").find(text.front()) != std::string_view::npos;
  std::string cell = printable(text);
  if (formulas == Formulas::kMadeText && is_formula && !is_number(text)) cell.insert(0, 1, '\'');
  if (cell.find_first_of(",;\"") == std::string::npos) return cell;
  std::string quoted = "\"";
  for (const char c : cell) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + '"';
}

}  // namespace

size_t width_of(const std::vector<std::vector<std::string>>& lines) {
  const std::vector<size_t> widths = widths_of(lines);
  return std::accumulate(widths.begin(), widths.end(), widths.empty() ? 0 : kGap * (widths.size() - 1));
}

std::vector<std::vector<size_t>> parts_of_columns(const std::vector<size_t>& widths, size_t labels, size_t gap,
                                                  size_t limit) {
  std::vector<size_t> first(labels);
  std::iota(first.begin(), first.end(), 0);
  std::vector<std::vector<size_t>> parts = {first};
  for (size_t column = labels; column < widths.size(); ++column) {
    size_t width = widths[column];
    for (const size_t before : parts.back()) width += widths[before] + gap;
    if (limit > 0 && parts.back().size() > labels && width > limit) parts.push_back(first);
    parts.back().push_back(column);
  }
  return parts;
}

std::string text_of_columns(std::vector<std::vector<std::string>> lines, size_t limit) {
  std::string all;
  for (auto& line : lines) std::ranges::transform(line, line.begin(), [](const auto& cell) { return printable(cell); });
  const std::vector<size_t> widths = widths_of(lines);
  bool is_first = true;
  for (const std::vector<size_t>& columns : parts_of_columns(widths, std::min<size_t>(1, widths.size()), kGap, limit)) {
    if (!std::exchange(is_first, false)) all += "\n";
    for (const auto& line : lines) {
      std::string text;
      for (const size_t i : columns) {
        if (i < line.size()) text += line[i] + std::string(widths[i] - display_width(line[i]) + kGap, ' ');
      }
      all += text.substr(0, text.find_last_not_of(' ') + 1) + "\n";
    }
  }
  return all;
}

void print_columns(std::vector<std::vector<std::string>> lines, size_t limit) {
  fmt::print("{}", text_of_columns(std::move(lines), limit));
}

std::string csv_line(const std::vector<std::string>& cells, Formulas formulas) {
  std::string line;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) line += ',';
    line += csv_cell(cells[i], formulas);
  }
  return line + "\n";
}

std::string csv_header(std::vector<std::string> names, Formulas formulas) {
  return csv_line(distinct_names(std::move(names)), formulas);
}

void print_csv(const std::vector<std::vector<std::string>>& lines, Formulas formulas) {
  for (size_t i = 0; i < lines.size(); ++i) {
    fmt::print("{}", i == 0 ? csv_header(lines[i], formulas) : csv_line(lines[i], formulas));
  }
}

std::string value_text(const nlohmann::json& value, int digits) {
  if (value.is_null()) return "";
  if (value.is_string()) return value.get<std::string>();
  if (value.is_array()) {
    std::vector<std::string> items;
    for (const nlohmann::json& item : value) items.push_back(value_text(item, digits));
    return fmt::format("{}", fmt::join(items, ", "));
  }
  if (!value.is_number_float()) return value.dump();
  const auto number = value.get<double>();  // dump() prints inf as null
  constexpr double kLarge = 1e15;           // from here on not every digit is known
  if (std::trunc(number) == number && std::abs(number) < kLarge) return fmt::format("{:.0f}", number + 0.0);  // no -0
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
