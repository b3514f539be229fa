// LaTeX: a float with a table of booktabs, in a size that fits its column or page, and the notes below it.
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <regex>

#include "base/utf8.h"
#include "harness/table/formats.h"
#include "harness/table/latex.h"

namespace tearless::harness {
namespace {

/// What a cell lacks of `widest` before its number; "" if it has none.
std::string missing_of(const std::string& text, const Lead& widest) {
  const Lead own = lead_of(text);
  if (own.digits == 0) return "";
  return std::string(widest.has_bracket && !own.has_bracket ? "[" : "") +
         (widest.has_sign && !own.has_sign ? "−" : "") + std::string(widest.digits - own.digits, '0');
}

/// All that cells of a column have before the point.
std::vector<Lead> widest_of(const Sheet& sheet, bool is_stacked) {
  std::vector<Lead> widest(sheet.columns());
  for (const Sheet::Row& row : sheet.rows) {
    for (size_t i = 0; i < row.cells.size(); ++i) {
      for (const std::string& text : {row.cells[i], is_stacked ? row.published[i] : ""}) {
        const Lead own = lead_of(text);
        widest[i].has_bracket |= own.has_bracket;
        widest[i].has_sign |= own.has_sign;
        widest[i].digits = std::max(widest[i].digits, own.digits);
      }
    }
  }
  return widest;
}

/// A cell with blanks as wide as what it lacks of `widest` before a number, so that the points of a column align. Its
/// first `bold` bytes are bold.
std::string latex_cell(const std::string& text, const Lead& widest, size_t bold) {
  const std::string missing = std::regex_replace(missing_of(text, widest), std::regex("−"), "$$-$$");
  return (missing.empty() ? "" : fmt::format("\\phantom{{{}}}", missing)) +
         (bold > 0 ? fmt::format("\\textbf{{{}}}", latex_text(text.substr(0, bold))) : "") +
         latex_text(text.substr(bold));
}

// --- size ------------------------------------------------------------------------------------------------------------

// In points. Columns and pages of common two-column styles are a little wider.
constexpr double kColumn = 219, kPage = 455, kDefaultGap = 6;

/// A size of the font with what is between two columns.
struct Size {
  const char* command;
  double em, gap;  // in points: em is twice the width of a digit of Computer Modern, whose small sizes are wider
};
constexpr Size kSizes[] = {{"\\small", 9.25, 5}, {"\\footnotesize", 8.5, 3}, {"\\scriptsize", 7.97, 2}};

/// About what a character takes, in em, as Computer Modern has it.
double width_of(std::string_view character) {
  constexpr std::string_view kNarrow = ".,:;[]il'!|/", kMiddling = "()- ftrjsI*";
  static const std::map<std::string_view, double> kOther = {
      {"→", 1},    {"±", 0.78}, {"−", 0.78}, {"×", 0.78}, {"≡", 0.78}, {"≈", 0.78}, {"Δ", 0.83},
      {"√", 0.83}, {"†", 0.36}, {"‡", 0.36}, {"°", 0.4},  {"–", 0.5},  {"…", 1}};
  if (const auto other = kOther.find(character); other != kOther.end()) return other->second;
  if (character.size() > 1) return display_width(character) > 1 ? 1 : 0.56;
  const char c = character.front();
  if (kNarrow.find(c) != std::string_view::npos) return 0.28;
  if (kMiddling.find(c) != std::string_view::npos) return 0.38;
  if (c == 'm' || c == 'w' || c == '+' || c == '%' || c == '&' || std::isupper(static_cast<unsigned char>(c)))
    return 0.78;
  return std::isdigit(static_cast<unsigned char>(c)) ? 0.5 : 0.53;
}

double width_of_text(const std::string& text) {
  const std::string shown = printable(text);
  double width = 0;
  for (size_t at = 0; at < shown.size();) {
    const size_t length = std::max<size_t>(utf8_length(std::string_view(shown).substr(at)), 1);
    width += width_of(std::string_view(shown).substr(at, length));
    at += length;
  }
  return width;
}

/// How the table is set. Published numbers are beside the measured ones, or on a line of their own below them.
struct Fit {
  bool is_page_wide = false;
  Size size = kSizes[0];
  bool is_stacked = false;
  double too_wide = 0;                // by how many points
  std::optional<double> widest = {};  // in points: texts of a column break there

  double room() const { return is_page_wide ? kPage : kColumn; }
};

/// In em.
std::vector<double> widths_of(const Sheet& sheet, bool is_stacked) {
  std::vector<double> widths(sheet.label_columns + sheet.columns());
  const auto add = [&](size_t column, const std::string& text) {
    widths[column] = std::max(widths[column], width_of_text(text));
  };
  for (const HeaderLine& line : sheet.header) {
    size_t column = 0;
    for (const HeaderCell& cell : line.cells) {
      if (cell.span == 1) add(column, cell.text);
      column += cell.span;
    }
  }
  const std::vector<Lead> widest = widest_of(sheet, is_stacked);
  for (const Sheet::Row& row : sheet.rows) {
    for (size_t i = 0; i < row.labels.size(); ++i) add(i, row.labels[i].text);
    for (size_t i = 0; i < row.cells.size(); ++i) {
      const auto add_cell = [&](const std::string& text) {
        add(sheet.label_columns + i, missing_of(text, widest[i]) + text);
      };
      add_cell(is_stacked ? row.measured[i] : row.cells[i]);
      if (is_stacked) add_cell(row.published[i]);
    }
  }
  return widths;
}

double width_of(const std::vector<double>& widths, const Size& size) {
  return size.em * std::accumulate(widths.begin(), widths.end(), 0.0) +
         2 * size.gap * static_cast<double>(widths.size() - 1);
}

/// Breaks texts, so that the sheet fits. False: the columns would be too narrow.
bool breaks(const Sheet& sheet, Fit& fit) {
  constexpr double kLeast = 40;
  std::vector<double> widths = widths_of(sheet, fit.is_stacked);
  for (double& width : widths) width *= fit.size.em;
  fit.widest = share_of_wide(widths, fit.room() - 2 * fit.size.gap * static_cast<double>(widths.size() - 1));
  return *fit.widest >= kLeast;
}

/// The first of these that fits: a column in one of the two larger sizes, a page in them, and with published numbers
/// below measured ones a page in any. A width that the grid file asks for is taken. What none fits breaks its lines, if
/// it may.
Fit fit_of(const Sheet& sheet) {
  std::vector<Fit> choices;
  using Width = TableSpec::Width;
  const auto add = [&](bool page, bool stacked) {
    if (sheet.width == (page ? Width::kColumn : Width::kPage)) return;
    for (const Size& size : kSizes) choices.push_back({page, size, stacked});
    if (!stacked) choices.pop_back();  // not in the smallest
  };
  add(/*page=*/false, /*stacked=*/false);
  if (sheet.width == Width::kColumn) add(false, true);
  add(true, false);
  add(true, true);
  for (Fit& fit : choices) {
    const double width = width_of(widths_of(sheet, fit.is_stacked), fit.size);
    fit.too_wide = std::max(0.0, width - fit.room());
    if (fit.too_wide > 0) continue;
    // What room is left goes between the columns, up to LaTeX's own distance.
    const double room = fit.room() - width;
    const auto gaps = static_cast<double>(2 * std::max<size_t>(sheet.label_columns + sheet.columns(), 2) - 2);
    fit.size.gap = std::floor(std::min(kDefaultGap, fit.size.gap + room / gaps));
    return fit;
  }
  Fit broken = {sheet.width != Width::kColumn, kSizes[1]};
  return sheet.wraps && breaks(sheet, broken) ? broken : choices.back();
}

/// "l", or of texts that break a paragraph.
std::string column_types(const Sheet& sheet, const Fit& fit) {
  std::string types;
  for (const double width : widths_of(sheet, fit.is_stacked)) {
    types += fit.widest && width * fit.size.em > *fit.widest
                 ? fmt::format(">{{\\raggedright\\arraybackslash}}p{{{:.0f}pt}}", std::floor(*fit.widest))
                 : "l";
  }
  return types;
}

// --- lines -----------------------------------------------------------------------------------------------------------

/// A line of the header, with rules below what spans several columns.
std::string latex_header_line(const std::vector<HeaderCell>& line) {
  std::vector<std::string> cells;
  std::string rules;
  size_t column = 1;
  for (const HeaderCell& cell : line) {
    const bool is_wide = cell.span > 1 && !cell.text.empty();
    if (is_wide) {
      cells.push_back(fmt::format("\\multicolumn{{{}}}{{c}}{{{}}}", cell.span, latex_of(cell)));
      rules += fmt::format(" \\cmidrule(lr){{{}-{}}}", column, column + cell.span - 1);
    } else {
      cells.push_back(latex_of(cell));
      cells.resize(cells.size() + cell.span - 1);
    }
    column += cell.span;
  }
  return fmt::format("{} \\\\{}\n", fmt::join(cells, " & "), rules);
}

/// `bold`: Sheet::Row::bold of these texts.
std::string body_line(const std::vector<Name>& labels, const std::vector<std::string>& texts,
                      const std::vector<Lead>& widest, const std::vector<size_t>& bold = {}) {
  std::vector<std::string> cells;
  std::ranges::transform(labels, std::back_inserter(cells), latex_of);
  for (size_t i = 0; i < texts.size(); ++i) {
    cells.push_back(latex_cell(texts[i], widest[i], i < bold.size() ? bold[i] : 0));
  }
  return fmt::format("{} \\\\", fmt::join(cells, " & "));
}

std::string body_lines(const Sheet::Row& row, const std::vector<Lead>& widest, bool is_stacked) {
  const std::string space = row.begins_group ? "\\addlinespace\n" : "";
  const auto has_text = [](const std::string& text) { return !text.empty(); };
  if (!is_stacked || std::ranges::none_of(row.published, has_text))
    return space + body_line(row.labels, row.cells, widest, row.bold) + "\n";
  if (std::ranges::none_of(row.measured, has_text)) return space + body_line(row.labels, row.published, widest) + "\n";
  return space + body_line(row.labels, row.measured, widest, row.bold) + "\n" +
         body_line(std::vector<Name>(row.labels.size()), row.published, widest) + "[2pt]\n";
}

/// "" if it is not.
std::string why_too_wide(const Sheet& sheet, const Fit& fit) {
  if (fit.too_wide <= 0) return "";
  return fmt::format("about {:.0f} points wider than a {}: {}", fit.too_wide, fit.is_page_wide ? "page" : "column",
                     sheet.wraps ? "choose fewer places" : "show fewer columns, or rows as columns");
}

}  // namespace

std::string latex_text(const std::string& text) {
  static const std::regex kNumber(R"((?:\$(-)\$)?(\b[0-9]+(?:\.[0-9]+)?)e(?:\+|(-))0*([0-9]+)\b)");
  return std::regex_replace(escape_latex(text), kNumber, R"($$$1$2\times10^{$3$4}$$)");
}

std::string too_wide_in_latex(const Sheet& sheet) {
  const std::string why = why_too_wide(sheet, fit_of(sheet));
  return why.empty() ? "" : fmt::format("in LaTeX the table \"{}\" is {}", sheet.title.text, why);
}

std::string render_latex(const Sheet& sheet) {
  const Fit fit = fit_of(sheet);
  const char* environment = fit.is_page_wide ? "table*" : "table";
  std::string text = fmt::format("% needs \\usepackage{{{}booktabs}}\n", fit.widest ? "array," : "");
  if (const std::string why = why_too_wide(sheet, fit); !why.empty()) text += "% " + why + "\n";
  text += fmt::format("\\begin{{{}}}\n\\centering\n\\caption{{{}}}\n", environment, latex_of(sheet.title));
  if (!sheet.label.empty()) text += fmt::format("\\label{{{}}}\n", sheet.label);
  text += "\\vspace{3pt}\n";  // article's own style has none below a caption
  text += fmt::format("{}\n\\setlength{{\\tabcolsep}}{{{:.0f}pt}}\n", fit.size.command, fit.size.gap);
  text += fmt::format("\\begin{{tabular}}{{@{{}}{}@{{}}}}\n\\toprule\n", column_types(sheet, fit));
  for (const HeaderLine& line : sheet.header) text += latex_header_line(line.cells);
  text += "\\midrule\n";
  const std::vector<Lead> widest = widest_of(sheet, fit.is_stacked);
  for (const Sheet::Row& row : sheet.rows) text += body_lines(row, widest, fit.is_stacked);
  text += "\\bottomrule\n\\end{tabular}\n";
  if (!sheet.notes.empty()) {
    text += "\\par\\vspace{3pt}\n\\begin{minipage}{\\linewidth}\\raggedright\\footnotesize\n";
    for (const Name& note : sheet.notes) text += latex_of(note) + "\\par\n";
    text += "\\end{minipage}\n";
  }
  return text + fmt::format("\\end{{{}}}\n", environment);
}

}  // namespace tearless::harness
