// CSV: one line for each cell, numbers in full precision.
#include <fmt/ranges.h>

#include <algorithm>

#include "harness/table/formats.h"

namespace tearless::harness {
namespace {

using Values = std::vector<std::string>;

std::string csv_value(const nlohmann::json& value) {
  if (value.is_array()) return fmt::format("{}", fmt::join(value.get<Values>(), " "));
  return value_text(value);
}

}  // namespace

std::string render_csv(const Table& table, Formulas formulas) {
  // The columns of every table keep their names; an axis that is called as one of them gets another, as in `runs
  // --csv`.
  Values header = {"score"};
  std::vector<CellField> fields = cell_fields(table);
  std::erase_if(fields, [](const CellField& field) { return !field.in_csv; });
  for (const CellField& field : fields) header.emplace_back(field.name);
  const auto of_every_table = std::ssize(header);
  header.insert(header.end(), table.row_axes.begin(), table.row_axes.end());
  header.insert(header.end(), table.column_axes.begin(), table.column_axes.end());
  header = distinct_names(std::move(header));
  std::rotate(header.begin(), header.begin() + of_every_table, header.end());
  std::string text = csv_header(std::move(header), formulas);
  for (const Table::Row& row : table.rows) {
    for (size_t i = 0; i < row.cells.size(); ++i) {
      Values line = row.labels;
      line.insert(line.end(), table.columns[i].labels.begin(), table.columns[i].labels.end());
      line.push_back(table.columns[i].score);
      for (const CellField& field : fields) line.push_back(csv_value(field.value(row.cells[i])));
      text += csv_line(line, formulas);
    }
  }
  return text;
}

}  // namespace tearless::harness
