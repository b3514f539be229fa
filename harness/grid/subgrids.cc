// Sub-grids, [[subgrid]]: several grids in one. The union of their combinations is the grid. They are the points of its
// first axis; an axis that one of them lacks is absent there.
#include "base/error.h"
#include "harness/grid/sections.h"

namespace tearless::harness {

void load_subgrids(const std::vector<const toml::table*>& tables, Grid& grid) {
  if (tables.empty()) return;
  const std::string file = grid.file.string();
  Axis axis{.name = kSubgridAxis, .points = {}, .location = TableReader(*tables.front(), "", file).location()};
  for (const toml::table* table : tables) {
    TableReader reader(*table, "[[subgrid]]", file);
    const std::optional<std::string> label = reader.text("label");
    if (!label)
      fail("{}: a sub-grid is written [[subgrid]] and needs a label below that, by which tables call it",
           reader.location());
    for (const AxisPoint& other : axis.points) {
      if (other.label == *label)
        fail("{}: two sub-grids have the label \"{}\" (first at {})", reader.location(), *label, other.location);
    }
    AxisPoint point{.label = *label, .set = {}, .unset = {}, .when = {}, .location = reader.location()};
    read_settings(reader, grid, &grid.base, point.set, &point.unset);
    reader.table("axis");
    reader.tables("exclude");
    for (const char* of_all : {"seeds", "sample"}) {
      if (!reader.has(of_all)) continue;
      fail(
          "{}: {} is of the whole grid: a sub-grid that needs its own is a grid file of its own; what it alone varies "
          "is an axis below it, or one with when = {{ subgrid = {} }}",
          reader.location(of_all), of_all, toml_value(*label));
    }
    reader.refuse_leftovers();
    axis.points.push_back(std::move(point));
  }
  grid.axes.push_back(std::move(axis));
}

void load_axes_of_subgrids(const std::vector<const toml::table*>& tables, Grid& grid) {
  for (size_t i = 0; i < tables.size(); ++i) {
    if (const toml::table* axes = (*tables[i])["axis"].as_table()) load_axes(*axes, i, grid);
  }
}

}  // namespace tearless::harness
