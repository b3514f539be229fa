// HTML. The tooltip of a cell lists its runs.
#include <fmt/format.h>

#include "harness/table/formats.h"

namespace tearless::harness {
namespace {

std::string html_header_line(const std::vector<HeaderCell>& line) {
  std::string text = "<tr>";
  for (const HeaderCell& cell : line) {
    const std::string span = cell.span > 1 ? fmt::format(" colspan=\"{}\"", cell.span) : "";
    text += fmt::format("<th{}>{}</th>", span, html_text(cell.text));
  }
  return text + "</tr>\n";
}

}  // namespace

std::string html_text(const std::string& text) {
  return escaped(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}, {"'", "&#39;"}});
}

std::string render_html(const Sheet& sheet) {
  std::string text = fmt::format("<table>\n<caption>{}</caption>\n<thead>\n", html_text(sheet.title.text));
  for (const HeaderLine& line : sheet.header) text += html_header_line(line.cells);
  text += "</thead>\n<tbody>\n";
  for (const Sheet::Row& row : sheet.rows) {
    text += "<tr>";
    for (const Name& label : row.labels) text += fmt::format("<th>{}</th>", html_text(label.text));
    for (size_t i = 0; i < row.cells.size(); ++i) {
      const auto [bold, rest] = Sheet::bold_and_rest(row, i);
      text += fmt::format("<td title=\"{}\">{}{}</td>", join_escaped(row.runs[i], " ", html_text),
                          bold.empty() ? "" : fmt::format("<b>{}</b>", html_text(bold)), html_text(rest));
    }
    text += "</tr>\n";
  }
  text += "</tbody>\n</table>\n";
  for (const Name& note : sheet.notes) text += fmt::format("<p>{}</p>\n", html_text(note.text));
  return text;
}

}  // namespace tearless::harness
