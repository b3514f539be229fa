// Texts and sheets as HTML, in the format html and in reports alike.
#pragma once

#include <functional>
#include <string>

#include "harness/table/sheet.h"

namespace tearless::harness {

/// A text on one line as HTML, and as the value of an attribute in double quotes.
std::string escape_html(const std::string& text);

/// A cell of a sheet as <td>: `html` is its text, a bold part in <b>.
using HtmlCell = std::function<std::string(const Sheet::Row& row, size_t cell, const std::string& html)>;

/// The table alone, without the notes.
std::string html_of(const Sheet& sheet, const HtmlCell& cell);

}  // namespace tearless::harness
