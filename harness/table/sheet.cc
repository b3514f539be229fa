#include "harness/table/sheet.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace tearless::harness {
namespace {

using HeaderLine = std::vector<HeaderCell>;

// `ends`: where cells of the line above end; a cell below them ends there, too.
HeaderLine spanned(const std::vector<Name>& labels, std::vector<bool>& ends) {
  HeaderLine line;
  for (size_t column = 0; column < labels.size(); ++column) {
    if (column > 0 && line.back() == labels[column] && !ends[column]) {
      ++line.back().span;
    } else {
      line.push_back({labels[column]});
      ends[column] = true;
    }
  }
  return line;
}

std::vector<Name> names_of(const Table& table, const std::vector<std::string>& axes,
                           const std::vector<std::string>& labels) {
  std::vector<Name> names;
  for (size_t i = 0; i < axes.size(); ++i) names.push_back(name_of(table.names, axes[i], labels[i]));
  return names;
}

// Leaves out labels that the row above has, too: those of the outer axes, as long as they are all the same.
std::vector<Name> without_repeated(std::vector<Name> labels, const std::vector<Name>& above) {
  for (size_t i = 0; i + 1 < labels.size() && i < above.size() && labels[i] == above[i]; ++i) labels[i] = {};
  return labels;
}

struct Header {
  std::vector<HeaderLine> lines;
  std::optional<size_t> above;  // the line that has but the name of an axis, above its labels
};

Header make_header(const Table& table) {
  const size_t row_axes = table.row_axes.size();
  Header header;
  std::vector<HeaderLine>& lines = header.lines;
  const auto add = [&](const Name& name, const HeaderLine& cells) {
    HeaderLine& line = lines.emplace_back(row_axes);
    if (row_axes > 0) line.back() = {name};
    line.insert(line.end(), cells.begin(), cells.end());
  };
  std::vector<bool> ends(table.columns.size());
  for (size_t axis = 0; axis < table.column_axes.size(); ++axis) {
    std::vector<Name> labels;
    for (const Table::Column& column : table.columns)
      labels.push_back(name_of(table.names, table.column_axes[axis], column.labels[axis]));
    add(name_of(table.names, table.column_axes[axis]), spanned(labels, ends));
  }
  for (const Table::HeaderLine& line : table.header) {
    std::vector<bool> own_ends = ends;
    add(line.name, spanned(line.texts, own_ends));
  }
  if (table.several_scores || lines.empty()) {
    HeaderLine scores;
    for (const Table::Column& column : table.columns) scores.push_back({name_of(table.names, column.score)});
    add({}, scores);
  }
  // The names of the row axes are on the last line. What stands there goes above the columns, if it is the name of an
  // axis; the name of a line that the grid file adds stays, and the names of the row axes get a line of their own.
  if (row_axes > 0 && !lines.back()[row_axes - 1].text.empty()) {
    if (table.header.empty()) {
      HeaderLine above(row_axes);
      above.push_back({std::exchange(lines.back()[row_axes - 1], {}), table.columns.size()});
      header.above = lines.size() - 1;
      lines.insert(lines.end() - 1, above);
    } else if (std::ranges::any_of(table.row_axes,
                                   [&](const std::string& axis) { return !name_of(table.names, axis).text.empty(); })) {
      lines.emplace_back(row_axes + table.columns.size());
    } else {
      return header;
    }
  }
  for (size_t axis = 0; axis < row_axes; ++axis) lines.back()[axis] = {name_of(table.names, table.row_axes[axis])};
  return header;
}

}  // namespace

std::vector<HeaderLine> header_of(const Table& table) { return make_header(table).lines; }

std::vector<Name> one_a_column(const HeaderLine& line) {
  std::vector<Name> names;
  for (const HeaderCell& cell : line) names.insert(names.end(), cell.span, cell);
  return names;
}

Sheet sheet_of(const Table& table) {
  Header header = make_header(table);
  Sheet sheet{.title = table.title,
              .label = table.label,
              .width = table.width,
              .label_columns = table.row_axes.size(),
              .header = std::move(header.lines),
              .name_above = header.above,
              .first_added = table.column_axes.size(),
              .added = table.header.size(),
              .rows = {},
              .notes = table.notes};
  std::vector<Name> above;
  const Table::Row* previous = nullptr;
  for (const Table::Row& row : table.rows) {
    const std::vector<Name> labels = names_of(table, table.row_axes, row.labels);
    Sheet::Row& printed = sheet.rows.emplace_back();
    const bool continues = previous && previous->is_added == row.is_added;
    printed.labels = continues ? without_repeated(labels, above) : labels;
    const bool is_of_group = continues && (labels.size() < 2 || labels.front() == above.front());
    printed.begins_group = previous && !is_of_group;
    for (size_t i = 0; i < row.cells.size(); ++i) {
      const Table::Column& column = table.columns[i];
      printed.cells.push_back(cell_text(table, column, row.cells[i]));
      printed.measured.push_back(measured_text(table, column, row.cells[i]));
      printed.published.push_back(published_text(table, column, row.cells[i]));
      printed.runs.push_back(row.cells[i].runs);
    }
    above = labels;
    previous = &row;
  }
  return sheet;
}

}  // namespace tearless::harness
