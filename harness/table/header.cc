#include "harness/table/table.h"

namespace tearless::harness {
namespace {

using HeaderLine = std::vector<HeaderCell>;

// `ends`: where cells of the line above end; a cell below them ends there, too.
HeaderLine labels_of(const Table& table, size_t axis, std::vector<bool>& ends) {
  HeaderLine line;
  for (size_t column = 0; column < table.columns.size(); ++column) {
    const std::string& label = table.columns[column].labels[axis];
    if (column > 0 && line.back().text == label && !ends[column]) {
      ++line.back().span;
    } else {
      line.push_back({label});
      ends[column] = true;
    }
  }
  return line;
}

}  // namespace

std::vector<HeaderLine> header_of(const Table& table) {
  const size_t row_axes = table.row_axes.size();
  std::vector<HeaderLine> lines;
  const auto add = [&](const std::string& name, const HeaderLine& cells) {
    HeaderLine& line = lines.emplace_back(row_axes);
    if (row_axes > 0) line.back().text = name;
    line.insert(line.end(), cells.begin(), cells.end());
  };
  std::vector<bool> ends(table.columns.size());
  for (size_t axis = 0; axis < table.column_axes.size(); ++axis) {
    add(table.column_axes[axis], labels_of(table, axis, ends));
  }
  if (table.several_scores || lines.empty()) {
    HeaderLine scores;
    for (const Table::Column& column : table.columns) scores.push_back({column.score});
    add("", scores);
  }
  // The names of the row axes go onto the last line if its first cells are empty, else onto another line.
  const bool is_taken = row_axes > 0 && !lines.back()[row_axes - 1].text.empty();
  if (is_taken) lines.emplace_back(row_axes + table.columns.size());
  for (size_t axis = 0; axis < row_axes; ++axis) lines.back()[axis].text = table.row_axes[axis];
  return lines;
}

}  // namespace tearless::harness
