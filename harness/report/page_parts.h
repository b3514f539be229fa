// Parts of pages of results: for reports, and for the pages of `tearless serve`.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "harness/check/check.h"
#include "harness/figure/figure.h"
#include "harness/grid/names.h"
#include "harness/report/report.h"
#include "harness/table/table.h"

namespace tearless::harness {

/// <name>html</name>, and the same of a text.
std::string element(const char* name, const std::string& html);
std::string text_in(const char* name, const std::string& text);

/// A text of several lines, made printable.
std::string preformatted(const std::string& text);

/// A section with a heading; what a click opens.
std::string section(const char* id, const char* title, const std::string& html);
std::string details(const std::string& summary, const std::string& html);

/// A table of texts, or of HTML.
struct HtmlTable {
  std::string id = {};
  std::vector<std::string> header = {};
  std::vector<std::vector<std::string>> rows = {};  // HTML; the first cell is a heading

  /// A column without a text is left out.
  std::string html() const;
};

std::string facts_table(const Facts& facts);

/// `html` as what leads to these runs, which have a number in a cell, by their ids; `html` alone if nothing does.
using CellLink =
    std::function<std::string(const std::vector<std::string>& runs, const std::string& score, const std::string& html)>;

/// "" where there is none.
std::string html_of_tables(const std::vector<Table>& tables, const CellLink& link);
std::string html_of_claims(const GridChecks& checks, const CellLink& link);
std::string html_of_figures(const std::vector<Figure>& figures);

}  // namespace tearless::harness
