// A table for a terminal, in columns of equal width. One that is wider than the terminal is printed in parts, each with
// the labels of the rows and as many columns as fit.
#include <algorithm>
#include <numeric>

#include "base/utf8.h"
#include "harness/table/formats.h"

namespace tearless::harness {
namespace {

constexpr std::string_view kGap = "   ";

/// Appends a text at a column of the screen, with blanks before it.
void put(const std::string& text, size_t at, std::string& line) {
  line += std::string(at - std::min(at, display_width(line)), ' ') + text;
}

size_t width_of(const std::vector<size_t>& columns, const std::vector<size_t>& widths) {
  size_t width = 0;
  for (const size_t i : columns) width += widths[i] + (width > 0 || i != columns.front() ? kGap.size() : 0);
  return width;
}

/// The columns of each part: those of the labels, and others as long as they fit, at least one.
std::vector<std::vector<size_t>> parts_of(const std::vector<size_t>& widths, size_t labels, size_t limit) {
  std::vector<size_t> first(labels);
  std::iota(first.begin(), first.end(), 0);
  std::vector<std::vector<size_t>> parts = {first};
  for (size_t column = labels; column < widths.size(); ++column) {
    std::vector<size_t> wider = parts.back();
    wider.push_back(column);
    if (limit > 0 && parts.back().size() > labels && width_of(wider, widths) > limit) {
      parts.push_back(first);
      parts.back().push_back(column);
    } else {
      parts.back() = std::move(wider);
    }
  }
  return parts;
}

/// One part: some of the columns of all lines.
class Part {
 public:
  Part(std::vector<size_t> columns, std::vector<size_t> widths)
      : columns_(std::move(columns)), widths_(std::move(widths)) {}

  size_t width() const { return width_of(columns_, widths_); }

  /// Makes room for texts that span several columns.
  void widen_for(const std::vector<HeaderCell>& line) {
    for_each_cell(line, [&](const HeaderCell& cell, const std::vector<size_t>& own) {
      const size_t needed = display_width(printable(cell.text)), there = width_of(own, widths_);
      if (needed > there) widths_[own.back()] += needed - there;
    });
  }

  std::string text_of(const std::vector<HeaderCell>& line) const {
    std::string text;
    for_each_cell(line, [&](const HeaderCell& cell, const std::vector<size_t>& own) {
      const auto before = std::ranges::find(columns_, own.front());
      const std::vector<size_t> left(columns_.begin(), before);
      put(printable(cell.text), left.empty() ? 0 : width_of(left, widths_) + kGap.size(), text);
    });
    text.erase(text.find_last_not_of(' ') + 1);
    return text + "\n";
  }

 private:
  /// Calls `visit` with each cell that has columns of this part, and these.
  template <class F>
  void for_each_cell(const std::vector<HeaderCell>& line, const F& visit) const {
    size_t column = 0;
    for (const HeaderCell& cell : line) {
      std::vector<size_t> own;
      for (const size_t end = column + cell.span; column < end; ++column) {
        if (std::ranges::find(columns_, column) != columns_.end()) own.push_back(column);
      }
      if (!own.empty()) visit(cell, own);
    }
  }

  std::vector<size_t> columns_, widths_;
};

}  // namespace

std::string render_text(const Sheet& sheet, size_t limit) {
  std::vector<std::vector<HeaderCell>> lines;
  for (const HeaderLine& line : sheet.header) lines.push_back(line.cells);
  const std::vector<size_t> widest = widest_digits(sheet);
  for (const Sheet::Row& row : sheet.rows) {
    std::vector<HeaderCell>& line = lines.emplace_back();
    for (const Name& label : row.labels) line.push_back({label});
    for (size_t i = 0; i < row.cells.size(); ++i) {
      const size_t digits = whole_digits(row.cells[i]);
      const auto [bold, rest] = Sheet::bold_and_rest(row, i);
      line.push_back({Name{std::string(digits > 0 ? widest[i] - digits : 0, ' ') + bold +
                           (bold.empty() ? "" : sheet.bold_in_text) + rest}});
    }
  }
  std::vector<size_t> widths(sheet.label_columns + sheet.columns());
  for (const auto& line : lines) {
    size_t column = 0;
    for (const HeaderCell& cell : line) {
      if (cell.span == 1) widths[column] = std::max(widths[column], display_width(printable(cell.text)));
      column += cell.span;
    }
  }

  std::string text = printable(sheet.title) + "\n";
  for (const std::vector<size_t>& columns : parts_of(widths, sheet.label_columns, limit)) {
    Part part(columns, widths);
    for (const HeaderLine& line : sheet.header) part.widen_for(line.cells);
    std::string rule;
    for (size_t i = 0; i < part.width(); ++i) rule += "─";
    text += "\n";
    for (size_t i = 0; i < lines.size(); ++i) {
      if (i == sheet.header.size()) text += rule + "\n";
      text += part.text_of(lines[i]);
    }
    text += rule + "\n";
  }
  for (const std::string& note : sheet.notes) text += printable(note) + "\n";
  if (!sheet.about_bold_in_text.empty()) text += sheet.about_bold_in_text + "\n";
  return text;
}

}  // namespace tearless::harness
