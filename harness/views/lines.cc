#include "harness/views/lines.h"

#include <algorithm>

namespace tearless::harness {

const std::string* Lines::label_on(const std::string& axis, const Line& line) const {
  const auto own = std::ranges::find(axes, axis);
  return own == axes.end() ? nullptr : &line.labels[static_cast<size_t>(own - axes.begin())];
}

Lines lines_of(const Grid& grid, const std::vector<size_t>& axes, const std::vector<Coordinates>& layout) {
  Lines all{.axes = names_of_axes(grid, axes)};
  for (const Coordinates& line : layout) all.lines.push_back({labels_at(grid, axes, line)});
  return all;
}

}  // namespace tearless::harness
