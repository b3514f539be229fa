// JSON: every cell with all of its fields, numbers in full precision.
#include "harness/table/formats.h"

namespace tearless::harness {
namespace {

using nlohmann::json;

/// The labels of a row or a column by the names of their axes.
json json_labels(const std::vector<std::string>& axes, const std::vector<std::string>& labels) {
  json object = json::object();
  for (size_t i = 0; i < axes.size(); ++i) object[axes[i]] = labels[i];
  return object;
}

json json_cell(const TableCell& cell, const std::vector<CellField>& fields) {
  json object = json::object();
  for (const CellField& field : fields) object[field.name] = field.value(cell);
  return object;
}

}  // namespace

nlohmann::json json_of(const Table& table) {
  json columns = json::array();
  for (const Table::Column& column : table.columns) {
    columns.push_back({{"labels", json_labels(table.column_axes, column.labels)},
                       {"score", column.score},
                       {"added", column.is_added}});
  }
  const std::vector<CellField> fields = cell_fields(table);
  json rows = json::array();
  for (const Table::Row& row : table.rows) {
    json cells = json::array();
    for (const TableCell& cell : row.cells) cells.push_back(json_cell(cell, fields));
    rows.push_back(
        {{"labels", json_labels(table.row_axes, row.labels)}, {"cells", std::move(cells)}, {"added", row.is_added}});
  }
  json notes = json::array();
  for (const Name& note : table.notes) notes.push_back(note.text);
  return {{"title", table.title.text},     {"row_axes", table.row_axes}, {"column_axes", table.column_axes},
          {"columns", std::move(columns)}, {"rows", std::move(rows)},    {"notes", std::move(notes)}};
}

}  // namespace tearless::harness
