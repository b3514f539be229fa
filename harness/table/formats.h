// The formats of tables, one a file, and what several of them need. Internal to harness/table.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/table/sheet.h"

namespace tearless::harness {

/// `width` as of render().
std::string render_text(const Sheet& sheet, size_t width);
std::string render_markdown(const Sheet& sheet);
std::string render_latex(const Sheet& sheet);
std::string render_html(const Sheet& sheet);
std::string render_csv(const Table& table, Formulas formulas);
nlohmann::json json_of(const Table& table);

/// A text with the escapes of a format. In LaTeX "2.5e-08" is $2.5\times10^{-8}$.
std::string markdown_text(const std::string& text);
std::string latex_text(const std::string& text);

/// Pairs of from, to.
using Replacements = std::vector<std::pair<std::string_view, std::string_view>>;

/// Makes a text printable(), without line breaks and terminal escapes, and replaces in it every occurrence of the texts
/// in `with` in one pass. Earlier pairs win.
std::string escaped(const std::string& raw, const Replacements& with);

/// The texts with `escape`, and between them `separator`.
std::string join_escaped(const std::vector<std::string>& texts, const char* separator,
                         const std::function<std::string(const std::string&)>& escape);

/// What the wider columns may have each, if all are to have `room` together.
double share_of_wide(std::vector<double> widths, double room);

/// What a cell has before the decimal point of a number at its beginning: nothing, or digits, and what is before these.
/// Cells are padded so that the points of a column align.
struct Lead {
  bool has_bracket = false, has_sign = false;
  size_t digits = 0;

  size_t columns() const { return digits + (has_sign ? 1 : 0) + (has_bracket ? 1 : 0); }
};
Lead lead_of(const std::string& text);

}  // namespace tearless::harness
