#include "harness/report/page_parts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "base/utf8.h"
#include "harness/table/html.h"
#include "harness/table/sheet.h"

namespace tearless::harness {
namespace {

std::string wide(const std::string& table) { return fmt::format("<div class=\"wide\">{}</div>\n", table); }

std::string notes_list(const std::vector<Name>& notes) {
  std::string html;
  for (const Name& note : notes) html += text_in("li", note.text) + "\n";
  return html.empty() ? "" : fmt::format("<ul class=\"notes\">\n{}</ul>\n", html);
}

std::string class_of(ClaimVerdict verdict) {
  std::string name = name_of(verdict);
  std::ranges::replace(name, ' ', '-');
  return name;
}

/// Of a cell that begins with a verdict.
std::string class_of_cell(const std::string& text) {
  for (int i = 0; i < kVerdicts; ++i) {
    const auto verdict = static_cast<ClaimVerdict>(i);
    if (text.starts_with(name_of(verdict))) return fmt::format(" class=\"{}\"", class_of(verdict));
  }
  return "";
}

}  // namespace

std::string element(const char* name, const std::string& html) { return fmt::format("<{0}>{1}</{0}>", name, html); }
std::string text_in(const char* name, const std::string& text) { return element(name, escape_html(text)); }

/// A text of several lines. Beside `&` and `<` nothing has a meaning there.
std::string preformatted(const std::string& text) {
  std::string html;
  for (const char c : printable_lines(text)) html += c == '&' ? "&amp;" : c == '<' ? "&lt;" : std::string(1, c);
  return fmt::format("<pre>{}</pre>\n", html);
}

std::string section(const char* id, const char* title, const std::string& html) {
  return fmt::format("<section id=\"{}\">\n<h2>{}</h2>\n{}</section>\n", id, title, html);
}

std::string details(const std::string& summary, const std::string& html) {
  return fmt::format("<details>\n<summary>{}</summary>\n{}</details>\n", escape_html(summary), html);
}

std::string HtmlTable::html() const {
  const size_t columns = rows.empty() ? header.size() : rows.front().size();
  std::vector<size_t> shown;
  for (size_t i = 0; i < columns; ++i) {
    if (i == 0 || std::ranges::any_of(rows, [&](const auto& row) { return !row[i].empty(); })) shown.push_back(i);
  }
  std::string text = fmt::format("<table{}>", id.empty() ? "" : fmt::format(" id=\"{}\"", id));
  if (!header.empty()) {
    text += "<thead><tr>";
    for (const size_t i : shown) text += fmt::format("<th scope=\"col\">{}</th>", escape_html(header[i]));
    text += "</tr></thead>\n";
  }
  text += "<tbody>\n";
  for (const std::vector<std::string>& row : rows) {
    text += "<tr>";
    for (const size_t i : shown)
      text += i == 0 ? fmt::format("<th scope=\"row\">{}</th>", row[i]) : element("td", row[i]);
    text += "</tr>\n";
  }
  return wide(text + "</tbody></table>");
}

std::string facts_table(const Facts& facts) {
  HtmlTable table;
  for (const auto& [term, text] : facts) table.rows.push_back({escape_html(term), escape_html(text)});
  return table.html();
}

namespace {

std::string each_claim(const GridChecks& checks, const CellLink& link) {
  HtmlTable table{
      .header = {"Claim", "Place", "Verdict", "Look", "Seeds", "Estimate (interval)", "Kind", "Why", "Source"}};
  for (const Check& check : checks.claims) {
    std::vector<std::string> place, why;
    for (const auto& [axis, label] : check.place) place.push_back(fmt::format("{} = {}", axis, label));
    if (!check.finding.reason.empty()) why.push_back(check.finding.reason);
    if (!check.declared.empty()) why.push_back(check.declared);
    for (const Caveat& caveat : check.caveats) why.push_back(fmt::format("{}: {}", caveat.word, caveat.why));
    const std::string text = check.name.empty() ? check.text.text : check.name + " " + check.text.text;
    const std::string look = check.look ? fmt::format("{} of {}", check.look->number, check.look->of) : "";
    table.rows.push_back(
        {link(check.runs, check.score, escape_html(text)), escape_html(fmt::format("{}", fmt::join(place, ", "))),
         name_of(check.finding.verdict), look, fmt::format("{}", fmt::join(check.finding.n, " and ")),
         escape_html(check.unit.empty() || check.shown.empty() ? check.shown : check.shown + " " + check.unit),
         escape_html(check.limit.empty() ? check.kind : fmt::format("{} ({})", check.kind, check.limit)),
         escape_html(fmt::format("{}", fmt::join(why, "; "))), escape_html(check.source.text)});
  }
  return table.rows.empty() ? "" : details("Each claim", table.html());
}

}  // namespace

std::string html_of_tables(const std::vector<Table>& tables, const CellLink& link) {
  std::string html;
  for (const Table& table : tables) {
    const Sheet sheet = sheet_of(table);
    html += wide(html_of(sheet, [&](const Sheet::Row& row, size_t cell, const std::string& text) {
      return element("td", link(row.runs[cell], table.columns[cell].score, text));
    }));
    html += notes_list(sheet.notes);
  }
  return html;
}

std::string html_of_claims(const GridChecks& checks, const CellLink& link) {
  if (checks.claims.empty() && checks.cells.empty()) return "";
  std::string html;
  for (const Sheet& sheet : sheets_of({checks})) {
    html += wide(html_of(sheet, [](const Sheet::Row& row, size_t cell, const std::string& text) {
      return fmt::format("<td{}>{}</td>", class_of_cell(row.cells[cell]), text);
    }));
    html += notes_list(sheet.notes);
  }
  if (!checks.tests.looks.empty())
    html +=
        "<p>A look is a test that was planned after so many seeds. A claim that is decided is not tested again: "
        "its numbers may be of fewer seeds than those of the tables.</p>\n";
  return html + each_claim(checks, link);
}

std::string html_of_figures(const std::vector<Figure>& figures) {
  constexpr std::string_view kBegins = "<svg ";
  std::string html;
  for (const Figure& figure : figures) {
    html += fmt::format("<figure>{}role=\"img\" aria-label=\"{}\" {}</figure>\n", kBegins,
                        escape_html(figure.title.text), render_svg(figure).substr(kBegins.size()));
  }
  return html;
}

}  // namespace tearless::harness
