#include "harness/views/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "harness/views/views.h"

namespace tearless::harness::layout_test {
namespace {

Layout layout_of_table(const std::string& text) {
  const Grid grid = parse_grid(text, "grid.toml");
  return layout_of(grid, views_of(grid).front().table().arrangement);
}

TEST(Layout, DropsRowsAndColumnsThatExclusionsEmpty) {
  const Layout layout = layout_of_table(R"(
[axis]
norm = ["none", "layer"]
placement = ["post", "pre"]
depth = [2, 4]
[[exclude]]
when = { norm = "none", placement = "post" }
why = "w"
[table]
rows = ["norm", "placement"]
)");
  EXPECT_THAT(layout.rows, testing::ElementsAre(Coordinates{0, 1}, Coordinates{1, 0}, Coordinates{1, 1}));
  EXPECT_THAT(layout.columns, testing::ElementsAre(Coordinates{0}, Coordinates{1}));
}

TEST(Layout, HasARowForEachPointOfASubgrid) {
  const Layout layout = layout_of_table(R"(
[axis]
depth = [6, 12]
[[subgrid]]
label = "sgd"
[subgrid.axis]
momentum = [0.5, 0.9]
[[subgrid]]
label = "adam"
)");
  EXPECT_THAT(layout.rows, testing::SizeIs(6));
}

}  // namespace
}  // namespace tearless::harness::layout_test
