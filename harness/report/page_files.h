// The files of a page of results, which the program has inside.
#pragma once

#include <string>

namespace tearless::harness {

/// page.css, behind the style of dygraphs where the build has it.
std::string page_style();

/// dygraphs where the build has it, else "".
std::string dygraphs_script();

/// chart.js: draws curves as SVG, or by dygraphs where the page has it.
const char* chart_script();

}  // namespace tearless::harness
