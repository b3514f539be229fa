#include "harness/report/page_files.h"

#include <algorithm>

#include "harness/report/chart_js.h"
#include "harness/report/dygraph_css.h"
#include "harness/report/dygraph_js.h"
#include "harness/report/page_css.h"

namespace tearless::harness {
namespace {

/// Without the line that names a file for debuggers.
std::string without_source_map(std::string text) {
  return text.substr(0, std::min(text.find("\n//# sourceMappingURL"), text.find("\n/*# sourceMappingURL")));
}

}  // namespace

std::string page_style() { return without_source_map(kDygraphsStyle) + "\n" + kPageStyle; }
std::string dygraphs_script() { return without_source_map(kDygraphsScript); }
const char* chart_script() { return kChartScript; }

}  // namespace tearless::harness
