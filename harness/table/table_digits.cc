#include "harness/table/table_digits.h"

#include <algorithm>

#include "base/settings.h"
#include "harness/views/by_score.h"

namespace tearless::harness {
namespace {

/// The digits after the point of a published number. TOML drops trailing zeros: a printed 29.50 is read as 29.5, so
/// those of a score have as many as the one with the most.
size_t decimals_of(const PublishedNumber& number) {
  if (!number.value.is_number()) return 0;
  const std::string text = number.text.empty() ? toml_value(number.value) : number.text;
  const size_t point = text.find('.');
  if (point == std::string::npos || text.find('e') != std::string::npos ||
      (number.text.empty() && text.ends_with(".0")))
    return 0;
  const size_t end = text.find_first_not_of("0123456789", point + 1);
  return std::min(end, text.size()) - point - 1;
}

}  // namespace

Digits digits_of(const TableSpec& spec, const Table& table, const std::string& score) {
  if (const int* given = entry_of(spec.decimals, score)) return {.decimals = *given, .is_given = true};
  std::vector<double> means, spreads;
  for (const Table::Row& row : table.rows) {
    for (size_t i = 0; i < row.cells.size(); ++i) {
      const TableCell& one = row.cells[i];
      if (table.columns[i].score != score) continue;
      if (one.is_sum) continue;  // a mean over rows has a spread of its own
      if (const auto mean = one.cell.mean()) means.push_back(*mean);
      if (const auto spread = one.cell.spread()) spreads.push_back(*spread);
    }
  }
  return Digits::of(means, spreads);
}

int published_decimals(const Table& table, size_t column) {
  size_t decimals = 0;
  for (const Table::Row& row : table.rows) {
    for (size_t i = 0; i < row.cells.size(); ++i) {
      if (table.columns[i].score != table.columns[column].score) continue;
      if (row.cells[i].is_sum || table.columns[i].is_added) continue;  // computed, not of the source
      for (const PublishedNumber& number : row.cells[i].published) decimals = std::max(decimals, decimals_of(number));
    }
  }
  return static_cast<int>(decimals);
}

}  // namespace tearless::harness
