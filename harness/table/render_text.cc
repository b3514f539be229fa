// A table for a terminal, in columns of equal width. One that is wider than the terminal is printed in parts, each with
// the labels of the rows and as many columns as fit.
#include <algorithm>

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

/// In lines of at most `limit`; a command to type stays in one.
std::vector<std::string> lines_of(const Name& name, size_t limit) {
  const std::string text = printable(name.text);
  if (limit == 0) return {text};
  const size_t command = text.find(": tearless ");
  std::vector<std::string> lines = wrapped(text.substr(0, command == std::string::npos ? command : command + 1), limit);
  if (command == std::string::npos) return lines;
  const std::string rest = text.substr(command + 1);
  if (display_width(lines.back() + rest) > limit) {
    lines.push_back(rest.substr(1));
  } else {
    lines.back() += rest;
  }
  return lines;
}

using Line = std::vector<HeaderCell>;

constexpr size_t kIndent = 2;  // of labels that go on, so that it is seen where a row begins

/// A row in several lines, each text of at most `most` behind its indent.
std::vector<Line> broken(const Line& row, size_t labels, size_t most) {
  std::vector<Line> lines(1, Line(row.size()));
  for (size_t i = 0; i < row.size(); ++i) {
    const size_t indent = i < labels ? kIndent : 0;
    const std::vector<std::string> texts = wrapped(printable(row[i].text), most);
    while (lines.size() < texts.size()) lines.emplace_back(row.size());
    for (size_t k = 0; k < texts.size(); ++k) lines[k][i].text = std::string(k > 0 ? indent : 0, ' ') + texts[k];
  }
  return lines;
}

/// Breaks the lines of a sheet that may be, so that it fits.
void break_to(size_t limit, const Sheet& sheet, std::vector<Line>& lines) {
  constexpr double kLeast = 16;
  std::vector<double> widths(sheet.label_columns + sheet.columns());
  for (const Line& line : lines) {
    for (size_t i = 0; i < line.size(); ++i)
      widths[i] = std::max(widths[i], static_cast<double>(display_width(printable(line[i].text))));
  }
  const size_t gaps = kGap.size() * (widths.size() - 1) + kIndent * sheet.label_columns;
  const double room = static_cast<double>(limit) - static_cast<double>(gaps);
  const auto most = static_cast<size_t>(std::max(kLeast, share_of_wide(widths, room)));
  std::vector<Line> all(lines.begin(), lines.begin() + std::ssize(sheet.header));
  for (size_t i = sheet.header.size(); i < lines.size(); ++i) {
    const std::vector<Line> own = broken(lines[i], sheet.label_columns, most);
    all.insert(all.end(), own.begin(), own.end());
  }
  lines = std::move(all);
}

}  // namespace

std::string render_text(const Sheet& sheet, size_t limit) {
  std::vector<Line> lines;
  for (const HeaderLine& line : sheet.header) lines.push_back(line.cells);
  std::vector<size_t> widest(sheet.columns());  // of what is before the point
  for (const Sheet::Row& row : sheet.rows) {
    for (size_t i = 0; i < row.cells.size(); ++i) widest[i] = std::max(widest[i], lead_of(row.cells[i]).columns());
  }
  for (const Sheet::Row& row : sheet.rows) {
    Line& line = lines.emplace_back();
    for (const Name& label : row.labels) line.push_back({label});
    for (size_t i = 0; i < row.cells.size(); ++i) {
      const size_t columns = lead_of(row.cells[i]).columns();
      const auto [bold, rest] = Sheet::bold_and_rest(row, i);
      line.push_back({Name{std::string(columns > 0 ? widest[i] - columns : 0, ' ') + bold +
                           (bold.empty() ? "" : sheet.bold_in_text) + rest}});
    }
  }
  if (sheet.wraps && limit > 0) break_to(limit, sheet, lines);
  std::vector<size_t> widths(sheet.label_columns + sheet.columns());
  for (const auto& line : lines) {
    size_t column = 0;
    for (const HeaderCell& cell : line) {
      if (cell.span == 1) widths[column] = std::max(widths[column], display_width(printable(cell.text)));
      column += cell.span;
    }
  }

  std::string text;
  for (const std::string& line : lines_of(sheet.title, limit)) text += line + "\n";
  for (const std::vector<size_t>& columns : parts_of_columns(widths, sheet.label_columns, kGap.size(), limit)) {
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
  for (const Name& note : sheet.notes) {
    for (const std::string& line : lines_of(note, limit)) text += line + "\n";
  }
  if (!sheet.about_bold_in_text.empty()) text += sheet.about_bold_in_text + "\n";
  return text;
}

}  // namespace tearless::harness
