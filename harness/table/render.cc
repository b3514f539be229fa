// Prints a Table in six formats. Text, Markdown, LaTeX and HTML print cell_text(); CSV and JSON have numbers in full
// precision, CSV with one line for each cell.
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <functional>
#include <numeric>
#include <regex>

#include "base/error.h"
#include "base/nearest.h"
#include "base/print.h"
#include "base/settings.h"
#include "base/utf8.h"
#include "harness/table/columns.h"
#include "harness/table/table.h"

namespace tearless::harness {
namespace {

using Line = std::vector<std::string>;

// --- common to all formats -----------------------------------------------------------------------------------------

/// A line of the header with the text of a cell in each of the columns that it spans.
std::vector<Line> header_lines(const Table& table) {
  std::vector<Line> lines;
  for (const std::vector<HeaderCell>& cells : header_of(table)) {
    Line& line = lines.emplace_back();
    for (const HeaderCell& cell : cells) line.insert(line.end(), cell.span, cell.text);
  }
  return lines;
}

Line body_line(const Table& table, const Table::Row& row) {
  Line line = row.labels;
  for (size_t i = 0; i < row.cells.size(); ++i) line.push_back(cell_text(table, table.columns[i], row.cells[i]));
  return line;
}

std::vector<Line> body_lines(const Table& table) {
  std::vector<Line> lines;
  for (const Table::Row& row : table.rows) lines.push_back(body_line(table, row));
  return lines;
}

using Escape = std::function<std::string(const std::string&)>;

std::string join_escaped(const Line& line, const char* separator, const Escape& escape) {
  std::vector<std::string> escaped;
  std::transform(line.begin(), line.end(), std::back_inserter(escaped), escape);
  return fmt::format("{}", fmt::join(escaped, separator));
}

/// Makes a text printable(), without line breaks and terminal escapes, and replaces in it every occurrence of the texts
/// in `with` (pairs of from, to) in one pass. Earlier pairs win.
std::string escaped(const std::string& raw, const std::vector<std::pair<std::string_view, std::string_view>>& with) {
  const std::string text = printable(raw);
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const auto it = std::find_if(with.begin(), with.end(), [&](const auto& pair) {
      return std::string_view(text).substr(at).starts_with(pair.first);
    });
    if (it == with.end()) {
      out += text[at++];
    } else {
      out += it->second;
      at += it->first.size();
    }
  }
  return out;
}

// --- text ----------------------------------------------------------------------------------------------------------

/// The number of characters before the decimal point of a leading number. Cells are padded so that the points of a
/// column align.
size_t whole_digits(const std::string& text) {
  const size_t start = text.starts_with('-') ? 1 : 0;
  size_t end = start;
  while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end]))) ++end;
  return end == start ? 0 : end;
}

void align_points(std::vector<Line>& body, size_t column) {
  size_t widest = 0;
  for (const Line& line : body) widest = std::max(widest, whole_digits(line[column]));
  for (Line& line : body) {
    const size_t digits = whole_digits(line[column]);
    if (digits > 0) line[column].insert(0, widest - digits, ' ');
  }
}

std::string padded_line(const Line& line, const std::vector<size_t>& widths) {
  std::string text;
  for (size_t i = 0; i < line.size(); ++i) {
    if (i > 0) text += "   ";
    text += line[i] + std::string(widths[i] - display_width(line[i]), ' ');
  }
  text.erase(text.find_last_not_of(' ') + 1);
  return text + "\n";
}

std::string render_text(const Table& table) {
  std::vector<Line> lines = header_lines(table);
  std::vector<Line> body = body_lines(table);
  for (size_t column = table.row_axes.size(); column < lines.front().size(); ++column) align_points(body, column);
  const auto first_of_body = std::ssize(lines);
  lines.insert(lines.end(), body.begin(), body.end());

  std::vector<size_t> widths(lines.front().size(), 0);
  for (Line& line : lines) {
    for (size_t i = 0; i < line.size(); ++i) {
      line[i] = printable(line[i]);
      widths[i] = std::max(widths[i], display_width(line[i]));
    }
  }
  const size_t total = std::accumulate(widths.begin(), widths.end(), 3 * (widths.size() - 1));
  std::string rule;
  for (size_t i = 0; i < total; ++i) rule += "─";

  std::string text = printable(table.title) + "\n\n";
  for (auto line = lines.begin(); line != lines.end(); ++line) {
    if (line - lines.begin() == first_of_body) text += rule + "\n";
    text += padded_line(*line, widths);
  }
  text += rule + "\n";
  for (const std::string& note : table.notes) text += printable(note) + "\n";
  return text;
}

// --- Markdown ------------------------------------------------------------------------------------------------------

std::string escape_markdown(const std::string& text) {
  return escaped(text, {{"\\", "\\\\"},
                        {"`", "\\`"},
                        {"|", "\\|"},
                        {"*", "\\*"},
                        {"_", "\\_"},
                        {"~", "\\~"},
                        {"$", "\\$"},
                        {"&", "&amp;"},
                        {"<", "&lt;"},
                        {"[", "\\["},
                        {"]", "\\]"}});
}

/// Markdown allows one header line only, so the labels of a column are joined.
std::string render_markdown(const Table& table) {
  const std::vector<Line> lines = header_lines(table);
  Line header = lines.back();
  for (size_t level = lines.size() - 1; level-- > 0;) {
    for (size_t i = table.row_axes.size(); i < header.size(); ++i) {
      const std::string& above = lines[level][i];
      if (!above.empty()) header[i] = header[i].empty() ? above : above + ", " + header[i];
    }
  }
  std::string text = fmt::format("**{}**\n\n", escape_markdown(table.title));
  text += fmt::format("| {} |\n|", join_escaped(header, " | ", escape_markdown));
  for (size_t i = 0; i < header.size(); ++i) text += i < table.row_axes.size() ? " --- |" : " ---: |";
  text += "\n";
  for (const Line& line : body_lines(table))
    text += fmt::format("| {} |\n", join_escaped(line, " | ", escape_markdown));
  text += "\n";
  for (const std::string& note : table.notes) text += fmt::format("- {}\n", escape_markdown(note));
  return text;
}

// --- LaTeX ---------------------------------------------------------------------------------------------------------

std::string escape_latex(const std::string& text) {
  return escaped(text, {{"\\", "\\textbackslash{}"},
                        {"~", "\\textasciitilde{}"},
                        {"^", "\\textasciicircum{}"},
                        {"&", "\\&"},
                        {"%", "\\%"},
                        {"$", "\\$"},
                        {"#", "\\#"},
                        {"_", "\\_"},
                        {"{", "\\{"},
                        {"}", "\\}"},
                        {"*", "$^{*}$"},
                        {"[", "{[}"},  // directly after \\ a bracket would be read as its optional argument
                        {"]", "{]}"},
                        {"<", "\\textless{}"},
                        {">", "\\textgreater{}"},
                        {"|", "\\textbar{}"},
                        {"\"", "\\symbol{34}"},
                        {"`", "\\symbol{96}"},
                        {"--", "-{}-{}"},  // LaTeX sets two hyphens as a dash
                        {"±", "$\\pm$"},
                        {"≡", "$\\equiv$"},
                        {"→", "$\\rightarrow$"},
                        {"×", "$\\times$"},
                        {"−", "$-$"},
                        {"°", "$^\\circ$"},
                        {"–", "--"},
                        {"…", "\\dots{}"}});
}

// A cell with "2.5e-08" set as $2.5\times10^{-8}$.
std::string latex_cell(const std::string& text) {
  static const std::regex kNumber(R"((-?\b[0-9]+(?:\.[0-9]+)?)e(?:\+|(-))0*([0-9]+)\b)");
  return std::regex_replace(escape_latex(text), kNumber, R"($$$1\times10^{$2$3}$$)");
}

std::string render_latex(const Table& table) {
  std::string text = "% needs \\usepackage{booktabs}\n\\begin{table}\n\\centering\n";
  text += fmt::format("\\caption{{{}}}\n", escape_latex(table.title));
  text += fmt::format("\\begin{{tabular}}{{{}{}}}\n\\toprule\n", std::string(table.row_axes.size(), 'l'),
                      std::string(table.columns.size(), 'r'));
  const auto add = [&](const Line& line) { text += join_escaped(line, " & ", escape_latex) + " \\\\\n"; };
  for (const Line& line : header_lines(table)) add(line);
  text += "\\midrule\n";
  for (Line& line : body_lines(table)) {
    const auto cells = line.begin() + std::ssize(table.row_axes);
    std::transform(line.begin(), cells, line.begin(), escape_latex);
    std::transform(cells, line.end(), cells, latex_cell);
    text += fmt::format("{} \\\\\n", fmt::join(line, " & "));
  }
  text += "\\bottomrule\n\\end{tabular}\n";
  for (const std::string& note : table.notes) text += fmt::format("\\par\\footnotesize {}\n", escape_latex(note));
  return text + "\\end{table}\n";
}

// --- HTML ----------------------------------------------------------------------------------------------------------

std::string escape_html(const std::string& text) {
  return escaped(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}, {"'", "&#39;"}});
}

std::string render_html(const Table& table) {
  const size_t row_axes = table.row_axes.size();
  std::string text = fmt::format("<table>\n<caption>{}</caption>\n<thead>\n", escape_html(table.title));
  for (const Line& line : header_lines(table)) {
    text += fmt::format("<tr><th>{}</th></tr>\n", join_escaped(line, "</th><th>", escape_html));
  }
  text += "</thead>\n<tbody>\n";
  for (const Table::Row& row : table.rows) {
    const Line line = body_line(table, row);
    text += "<tr>";
    for (size_t i = 0; i < line.size(); ++i) {
      if (i < row_axes) {
        text += fmt::format("<th>{}</th>", escape_html(line[i]));
      } else {  // the tooltip of a cell lists its runs
        text += fmt::format("<td title=\"{}\">{}</td>", join_escaped(row.cells[i - row_axes].runs, " ", escape_html),
                            escape_html(line[i]));
      }
    }
    text += "</tr>\n";
  }
  text += "</tbody>\n</table>\n";
  for (const std::string& note : table.notes) text += fmt::format("<p>{}</p>\n", escape_html(note));
  return text;
}

// --- CSV -----------------------------------------------------------------------------------------------------------

std::string csv_value(const nlohmann::json& value) {
  if (value.is_array()) return fmt::format("{}", fmt::join(value.get<Line>(), " "));
  return value_text(value);
}

std::string render_csv(const Table& table, Formulas formulas) {
  // The columns of every table keep their names; an axis that is called as one of them gets another, as in `runs
  // --csv`.
  Line header = {"score"};
  for (const CellField& field : cell_fields()) {
    if (field.in_csv) header.emplace_back(field.name);
  }
  const auto of_every_table = std::ssize(header);
  header.insert(header.end(), table.row_axes.begin(), table.row_axes.end());
  header.insert(header.end(), table.column_axes.begin(), table.column_axes.end());
  header = distinct_names(std::move(header));
  std::ranges::rotate(header, header.begin() + of_every_table);
  std::string text = csv_header(std::move(header), formulas);
  for (const Table::Row& row : table.rows) {
    for (size_t i = 0; i < row.cells.size(); ++i) {
      Line line = row.labels;
      line.insert(line.end(), table.columns[i].labels.begin(), table.columns[i].labels.end());
      line.push_back(table.columns[i].score);
      for (const CellField& field : cell_fields()) {
        if (field.in_csv) line.push_back(csv_value(field.value(row.cells[i])));
      }
      text += csv_line(line, formulas);
    }
  }
  return text;
}

// --- JSON ----------------------------------------------------------------------------------------------------------

using nlohmann::json;

/// The labels of a row or a column by the names of their axes.
json json_labels(const std::vector<std::string>& axes, const Line& labels) {
  json object = json::object();
  for (size_t i = 0; i < axes.size(); ++i) object[axes[i]] = labels[i];
  return object;
}

json json_cell(const Cell& cell) {
  json object = json::object();
  for (const CellField& field : cell_fields()) object[field.name] = field.value(cell);
  return object;
}

json json_table(const Table& table) {
  json columns = json::array();
  for (const Table::Column& column : table.columns) {
    columns.push_back({{"labels", json_labels(table.column_axes, column.labels)}, {"score", column.score}});
  }
  json rows = json::array();
  for (const Table::Row& row : table.rows) {
    json cells = json::array();
    std::transform(row.cells.begin(), row.cells.end(), std::back_inserter(cells), json_cell);
    rows.push_back({{"labels", json_labels(table.row_axes, row.labels)}, {"cells", std::move(cells)}});
  }
  return {{"title", table.title},          {"row_axes", table.row_axes}, {"column_axes", table.column_axes},
          {"columns", std::move(columns)}, {"rows", std::move(rows)},    {"notes", table.notes}};
}

std::string render_json(const Table& table) { return json_text(json_table(table)); }

struct Form {
  const char* name;
  std::string (*render)(const Table&);      // null: render_csv()
  std::array<std::string_view, 2> endings;  // of file names
};
// In the order of TableFormat.
constexpr Form kForms[] = {
    {"text", render_text, {".txt", ""}}, {"markdown", render_markdown, {".md", ".markdown"}},
    {"latex", render_latex, {".tex"}},   {"html", render_html, {".html", ".htm"}},
    {"csv", nullptr, {".csv"}},          {"json", render_json, {".json"}},
};

}  // namespace

TableFormat table_format(const std::string& name) {
  std::vector<std::string> names;
  for (size_t i = 0; i < std::size(kForms); ++i) {
    if (name == kForms[i].name) return static_cast<TableFormat>(i);
    names.push_back(kForms[i].name);
  }
  fail("--format {} is not known{}; it must be one of: {}", name, did_you_mean(name, names), fmt::join(names, ", "));
}

TableFormat table_format_of(const std::filesystem::path& file) {
  const std::string ending = file.extension().string();
  std::vector<std::string_view> known;
  for (size_t i = 0; i < std::size(kForms); ++i) {
    for (const std::string_view of_form : kForms[i].endings) {
      if (ending == of_form) return static_cast<TableFormat>(i);
      if (!of_form.empty()) known.push_back(of_form);
    }
  }
  fail("--out {}: the ending {} stands for no format of tables; choose one of {}, or add --format", file.string(),
       ending, fmt::join(known, ", "));
}

std::string render(const Table& table, TableFormat format, Formulas formulas) {
  if (format == TableFormat::kCsv) return render_csv(table, formulas);
  return kForms[static_cast<size_t>(format)].render(table);
}

std::string render(const std::vector<Table>& tables, TableFormat format, Formulas formulas) {
  if (format == TableFormat::kJson && tables.size() > 1) {
    json all = json::array();
    std::transform(tables.begin(), tables.end(), std::back_inserter(all), json_table);
    return json_text(all);
  }
  std::string text;
  for (const Table& table : tables) {
    if (!text.empty()) text += '\n';
    text += render(table, format, formulas);
  }
  return text;
}

}  // namespace tearless::harness
