// CSV as `tearless` prints it, read back.
#pragma once

#include <string>
#include <vector>

namespace tearless::test {

/// The lines of a CSV text as cells, without their quotes.
std::vector<std::vector<std::string>> csv_cells(const std::string& csv);

}  // namespace tearless::test
