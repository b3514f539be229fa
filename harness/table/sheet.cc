#include "harness/table/sheet.h"

#include <algorithm>
#include <array>
#include <utility>

namespace tearless::harness {
namespace {

using HeaderCells = std::vector<HeaderCell>;
using Kind = HeaderLine::Kind;

// `ends`: where cells of the line above end; a cell below them ends there, too.
HeaderCells spanned(const std::vector<Name>& labels, std::vector<bool>& ends) {
  HeaderCells line;
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

std::vector<HeaderLine> header_of(const Table& table) {
  const size_t row_axes = table.row_axes.size();
  std::vector<HeaderLine> lines;
  const auto add = [&](Kind kind, const Name& name, const HeaderCells& cells) {
    HeaderCells& line = lines.emplace_back(HeaderLine{kind, HeaderCells(row_axes)}).cells;
    if (row_axes > 0) line.back() = {name};
    line.insert(line.end(), cells.begin(), cells.end());
  };
  std::vector<bool> ends(table.columns.size());
  for (size_t axis = 0; axis < table.column_axes.size(); ++axis) {
    std::vector<Name> labels;
    for (const Table::Column& column : table.columns)
      labels.push_back(name_of(table.names, table.column_axes[axis], column.labels[axis]));
    add(Kind::kLabels, name_of(table.names, table.column_axes[axis]), spanned(labels, ends));
  }
  for (const Table::HeaderLine& line : table.header) {
    std::vector<bool> own_ends = ends;
    add(Kind::kAdded, line.name, spanned(line.texts, own_ends));
  }
  if (table.several_scores || lines.empty()) {
    HeaderCells scores;
    for (const Table::Column& column : table.columns) scores.push_back({name_of(table.names, column.score)});
    add(Kind::kLabels, {}, scores);
  }
  // The names of the row axes are on the last line. What stands there goes above the columns, if it is the name of an
  // axis; the name of a line that the grid file adds stays, and the names of the row axes get a line of their own.
  std::vector<Name> names;
  for (const std::string& axis : table.row_axes) names.push_back(name_of(table.names, axis));
  if (row_axes > 0 && !lines.back().cells[row_axes - 1].text.empty()) {
    if (table.header.empty()) {
      HeaderCells above(row_axes);
      above.push_back({std::exchange(lines.back().cells[row_axes - 1], {}), table.columns.size()});
      lines.insert(lines.end() - 1, {Kind::kAxisName, above});
    } else {
      if (std::ranges::all_of(names, [](const Name& name) { return name.text.empty(); })) return lines;
      lines.push_back({Kind::kLabels, HeaderCells(row_axes + table.columns.size())});
    }
  }
  for (size_t axis = 0; axis < row_axes; ++axis) lines.back().cells[axis] = {names[axis]};
  return lines;
}

}  // namespace

std::vector<Name> HeaderLine::one_a_column() const {
  std::vector<Name> names;
  for (const HeaderCell& cell : cells) names.insert(names.end(), cell.span, cell);
  return names;
}

std::pair<std::string, std::string> Sheet::bold_and_rest(const Row& row, size_t cell) {
  const std::string& text = row.cells[cell];
  const size_t bold = cell < row.bold.size() ? row.bold[cell] : 0;
  return {text.substr(0, bold), text.substr(bold)};
}

void end_sentences(std::vector<Name>& notes) {
  const auto end = [](std::string& text) {
    const bool has_end =
        std::ranges::any_of(std::array{".", "!", "?", "…"}, [&](const char* mark) { return text.ends_with(mark); });
    if (!text.empty() && !has_end) text += '.';
  };
  for (Name& note : notes) {
    if (note.text.find(": tearless ") != std::string::npos) continue;
    end(note.text);
    end(note.latex);
  }
}

Sheet sheet_of(const Table& table) {
  Sheet sheet{.title = table.title,
              .label = table.label,
              .width = table.width,
              .label_columns = table.row_axes.size(),
              .header = header_of(table),
              .rows = {},
              .notes = table.notes};
  const auto has_bold = [](const Table::Row& row) { return std::ranges::any_of(row.cells, &TableCell::is_bold); };
  if (std::ranges::any_of(table.rows, has_bold)) {
    sheet.bold_in_text = " ●";
    sheet.about_bold_in_text = "●: bold in other formats";
  }
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
      printed.measured.push_back(measured_text(table, column, row.cells[i]));
      printed.published.push_back(published_text(table, column, row.cells[i]));
      printed.cells.push_back(beside(printed.measured.back(), printed.published.back()));
      printed.bold.push_back(row.cells[i].is_bold ? printed.measured.back().size() : 0);
      printed.runs.push_back(row.cells[i].cell.runs);
    }
    above = labels;
    previous = &row;
  }
  return sheet;
}

}  // namespace tearless::harness
