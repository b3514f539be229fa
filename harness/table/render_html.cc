// HTML. The tooltip of a cell lists its runs.
#include <fmt/format.h>

#include "harness/table/formats.h"
#include "harness/table/html.h"

namespace tearless::harness {
namespace {

std::string html_header_line(const std::vector<HeaderCell>& line) {
  std::string text = "<tr>";
  for (const HeaderCell& cell : line) {
    const std::string span = cell.span > 1 ? fmt::format(" colspan=\"{}\"", cell.span) : "";
    text += fmt::format("<th{}>{}</th>", span, escape_html(cell.text));
  }
  return text + "</tr>\n";
}

}  // namespace

std::string escape_html(const std::string& text) {
  return escaped(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}, {"'", "&#39;"}});
}

std::string html_of(const Sheet& sheet, const HtmlCell& cell) {
  std::string text = fmt::format("<table>\n<caption>{}</caption>\n<thead>\n", escape_html(sheet.title.text));
  for (const HeaderLine& line : sheet.header) text += html_header_line(line.cells);
  text += "</thead>\n<tbody>\n";
  for (const Sheet::Row& row : sheet.rows) {
    text += "<tr>";
    for (const Name& label : row.labels) text += fmt::format("<th>{}</th>", escape_html(label.text));
    for (size_t i = 0; i < row.cells.size(); ++i) {
      const auto [bold, rest] = Sheet::bold_and_rest(row, i);
      text += cell(row, i, (bold.empty() ? "" : fmt::format("<b>{}</b>", escape_html(bold))) + escape_html(rest));
    }
    text += "</tr>\n";
  }
  return text + "</tbody>\n</table>\n";
}

std::string render_html(const Sheet& sheet) {
  std::string text = html_of(sheet, [](const Sheet::Row& row, size_t cell, const std::string& html) {
    return fmt::format("<td title=\"{}\">{}</td>", join_escaped(row.runs[cell], " ", escape_html), html);
  });
  for (const Name& note : sheet.notes) text += fmt::format("<p>{}</p>\n", escape_html(note.text));
  return text;
}

}  // namespace tearless::harness
