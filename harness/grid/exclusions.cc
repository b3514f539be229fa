#include "base/error.h"
#include "harness/grid/conditions.h"
#include "harness/grid/sections.h"

namespace tearless::harness {
namespace {

constexpr size_t kMaxExclusions = 1'000;

Exclusion load_exclusion(const toml::table& table, const Grid& grid) {
  TableReader reader(table, "[[exclude]]", grid.file.string());
  Exclusion exclusion{.when = {}, .why = reader.text("why").value_or(""), .location = reader.location()};
  exclusion.when = read_conditions(reader, grid);
  reader.refuse_leftovers();
  if (exclusion.when.empty()) {
    fail("{}: [[exclude]] needs when = {{ axis = value, … }}: which runs it leaves out", reader.location());
  }
  if (exclusion.why.empty()) fail("{}: [[exclude]] needs why = \"…\": plans and tables print it", reader.location());
  return exclusion;
}

void add(const std::vector<const toml::table*>& tables, Grid& grid) {
  if (tables.empty()) return;
  if (grid.excludes.size() + tables.size() > kMaxExclusions) {
    fail("{}:{}: the grid has more than {} exclusions; split it", grid.file.string(),
         tables.front()->source().begin.line, kMaxExclusions);
  }
  for (const toml::table* table : tables) grid.excludes.push_back(load_exclusion(*table, grid));
}

}  // namespace

void load_exclusions(const std::vector<const toml::table*>& tables, const std::vector<const toml::table*>& subgrids,
                     Grid& grid) {
  add(tables, grid);
  for (size_t i = 0; i < subgrids.size(); ++i) {
    const size_t first = grid.excludes.size();
    add(TableReader(*subgrids[i], "[[subgrid]]", grid.file.string()).tables("exclude"), grid);
    PointCondition own{.axis = 0, .points = std::vector<bool>(subgrids.size()), .key = kSubgridAxis, .values = {}};
    own.points[i] = true;
    for (size_t e = first; e < grid.excludes.size(); ++e) grid.excludes[e].when.push_back(own);
  }
}

}  // namespace tearless::harness
