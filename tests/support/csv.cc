#include "tests/support/csv.h"

#include <string_view>

#include "base/words.h"

namespace tearless::test {

std::vector<std::vector<std::string>> csv_cells(const std::string& csv) {
  std::vector<std::vector<std::string>> lines;
  for (const std::string_view line : split_lines(csv)) {
    std::vector<std::string>& cells = lines.emplace_back(1);
    bool is_quoted = false;
    for (const char c : line) {
      if (c == '"') {
        is_quoted = !is_quoted;
      } else if (c == ',' && !is_quoted) {
        cells.emplace_back();
      } else {
        cells.back() += c;
      }
    }
  }
  return lines;
}

}  // namespace tearless::test
