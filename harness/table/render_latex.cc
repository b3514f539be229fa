// LaTeX: a float with a table of booktabs, in a size that fits its column or page, and the notes below it.
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <regex>

#include "base/utf8.h"
#include "harness/table/formats.h"

namespace tearless::harness {
namespace {

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
                        {"√", "$\\surd$"},
                        {"λ", "$\\lambda$"},
                        {"α", "$\\alpha$"},
                        {"β", "$\\beta$"},
                        {"Δ", "$\\Delta$"},
                        {"≥", "$\\geq$"},
                        {"≤", "$\\leq$"},
                        {"≈", "$\\approx$"},
                        {"†", "$^{\\dagger}$"},
                        {"‡", "$^{\\ddagger}$"},
                        {"°", "$^\\circ$"},
                        {"–", "--"},
                        {"…", "\\dots{}"}});
}

std::string latex_of(const Name& name) { return name.latex.empty() ? escape_latex(name.text) : name.latex; }

/// A cell with "2.5e-08" set as $2.5\times10^{-8}$, and blanks as wide as digits before a number, so that the points of
/// a column align.
std::string latex_cell(const std::string& text, size_t widest) {
  static const std::regex kNumber(R"((?:\$(-)\$)?(\b[0-9]+(?:\.[0-9]+)?)e(?:\+|(-))0*([0-9]+)\b)");
  const size_t digits = whole_digits(text);
  const size_t missing = digits > 0 ? widest - digits : 0;
  return (missing > 0 ? fmt::format("\\phantom{{{}}}", std::string(missing, '0')) : "") +
         std::regex_replace(escape_latex(text), kNumber, R"($$$1$2\times10^{$3$4}$$)");
}

// --- size ------------------------------------------------------------------------------------------------------------

// In points. Columns and pages of common two-column styles are a little wider.
constexpr double kColumn = 219, kPage = 455;

/// A size of the font with what is between two columns.
struct Size {
  const char* command;
  double font, gap;  // in points
};
constexpr Size kSizes[] = {{"\\small", 9, 5}, {"\\footnotesize", 8, 3}, {"\\scriptsize", 7, 2}};

/// About what a text takes of the size of its font. Digits are half as wide as high.
double width_of(const std::string& text) {
  const auto capitals = std::ranges::count_if(text, [](unsigned char c) { return std::isupper(c); });
  const auto narrow = std::ranges::count_if(text, [](char c) { return std::string_view(".,()[]il ").find(c) != std::string_view::npos; });
  const bool has_sign = text.find("±") != std::string::npos;
  return 0.5 * static_cast<double>(display_width(text)) + 0.22 * static_cast<double>(capitals) -
         0.2 * static_cast<double>(narrow) + (has_sign ? 0.4 : 0);
}

double width_of(const Sheet& sheet, const Size& size) {
  std::vector<double> widths(sheet.label_columns + sheet.columns());
  for (const auto& line : sheet.header) {
    size_t column = 0;
    for (const HeaderCell& cell : line) {
      if (cell.span == 1) widths[column] = std::max(widths[column], width_of(cell.text));
      column += cell.span;
    }
  }
  for (const Sheet::Row& row : sheet.rows) {
    for (size_t i = 0; i < row.labels.size(); ++i) widths[i] = std::max(widths[i], width_of(row.labels[i].text));
    for (size_t i = 0; i < row.cells.size(); ++i) {
      double& width = widths[sheet.label_columns + i];
      width = std::max(width, width_of(row.cells[i]));
    }
  }
  return size.font * std::accumulate(widths.begin(), widths.end(), 0.0) +
         2 * size.gap * static_cast<double>(widths.size() - 1);
}

struct Fit {
  bool is_page_wide = false;
  Size size = kSizes[0];
  double too_wide = 0;  // by how many points
};

/// A column in one of the two larger sizes, else a page in any. A width that the grid file asks for is taken.
Fit fit_of(const Sheet& sheet) {
  for (const bool page : {false, true}) {
    if (sheet.width == TableSpec::Width::kColumn && page) continue;
    if (sheet.width == TableSpec::Width::kPage && !page) continue;
    const bool has_choice = sheet.width == TableSpec::Width::kAsNeeded && !page;
    for (const Size& size : kSizes) {
      if (has_choice && &size == &kSizes[2]) continue;
      if (width_of(sheet, size) <= (page ? kPage : kColumn)) return {page, size};
    }
  }
  const bool page = sheet.width != TableSpec::Width::kColumn;
  return {page, kSizes[2], width_of(sheet, kSizes[2]) - (page ? kPage : kColumn)};
}

// --- lines -----------------------------------------------------------------------------------------------------------

/// A line of the header, with rules below what spans several columns.
std::string header_line(const std::vector<HeaderCell>& line) {
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

std::string body_line(const Sheet::Row& row, const std::vector<size_t>& widest) {
  std::vector<std::string> cells;
  std::ranges::transform(row.labels, std::back_inserter(cells), latex_of);
  for (size_t i = 0; i < row.cells.size(); ++i) cells.push_back(latex_cell(row.cells[i], widest[i]));
  return fmt::format("{}{} \\\\\n", row.begins_group ? "\\addlinespace\n" : "", fmt::join(cells, " & "));
}

}  // namespace

std::string render_latex(const Sheet& sheet) {
  const Fit fit = fit_of(sheet);
  const char* environment = fit.is_page_wide ? "table*" : "table";
  std::string text = "% needs \\usepackage{booktabs}\n";
  if (fit.too_wide > 0) {
    text += fmt::format("% about {:.0f} points wider than a {}: show fewer columns, or rows as columns\n", fit.too_wide,
                        fit.is_page_wide ? "page" : "column");
  }
  text += fmt::format("\\begin{{{}}}\n\\centering\n\\caption{{{}}}\n", environment, escape_latex(sheet.title));
  if (!sheet.label.empty()) text += fmt::format("\\label{{{}}}\n", sheet.label);
  text += fmt::format("{}\n\\setlength{{\\tabcolsep}}{{{:.0f}pt}}\n", fit.size.command, fit.size.gap);
  text += fmt::format("\\begin{{tabular}}{{@{{}}{}@{{}}}}\n\\toprule\n",
                      std::string(sheet.label_columns + sheet.columns(), 'l'));
  for (const auto& line : sheet.header) text += header_line(line);
  text += "\\midrule\n";
  const std::vector<size_t> widest = widest_digits(sheet);
  for (const Sheet::Row& row : sheet.rows) text += body_line(row, widest);
  text += "\\bottomrule\n\\end{tabular}\n";
  if (!sheet.notes.empty()) {
    text += "\\par\\vspace{3pt}\n\\begin{minipage}{\\linewidth}\\raggedright\\footnotesize\n";
    for (const std::string& note : sheet.notes) text += escape_latex(note) + "\\par\n";
    text += "\\end{minipage}\n";
  }
  return text + fmt::format("\\end{{{}}}\n", environment);
}

}  // namespace tearless::harness
