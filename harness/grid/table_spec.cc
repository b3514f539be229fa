#include "harness/grid/table_spec.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/nearest.h"
#include "harness/grid/layout.h"
#include "harness/grid/table_reader.h"

namespace tearless::harness {
namespace {

std::vector<size_t> axes_named(TableReader& reader, const std::string& key, const Grid& grid) {
  std::vector<size_t> axes;
  for (const std::string& name : reader.texts(key)) axes.push_back(grid.axis_index(name, reader.location(key)));
  return axes;
}

TableSpec::Select load_select(const toml::table& table, const std::string& file, const Grid& grid, TableSpec& spec) {
  TableReader reader(table, "select", file);
  TableSpec::Select select;
  select.over = axes_named(reader, "over", grid);
  select.by = reader.text("by").value_or("");
  select.highest = reader.choice("best", {"highest", "lowest"}, 0) == 0;
  reader.refuse_leftovers();
  if (select.over.empty() || select.by.empty()) {
    fail("{}: select needs `over` (the axes to choose on) and `by` (the score that chooses)", reader.location());
  }
  spec.named.push_back({select.by, "select.by", reader.location("by")});
  return select;
}

/// Checks that each axis is in at most one of rows, columns and select.over, and places the axes that are in none:
///   1. no rows and no columns given: the first of them becomes the row axis, the others column axes; all become row
///      axes with sub-grids and in a sample, where most places of such a table would be empty;
///   2. only rows (or only columns) given: they become column (or row) axes;
///   3. both given: UserError.
void place_axes(TableReader& reader, const Grid& grid, TableSpec& spec) {
  std::vector<std::string> stands(grid.axes.size());
  const auto mark = [&](const std::vector<size_t>& axes, const std::string& where) {
    for (const size_t axis : axes) {
      if (!stands[axis].empty()) {
        fail("{}: the axis {} is in both {} and {}; it can be in one of them, once", reader.location(),
             grid.axes[axis].name, stands[axis], where);
      }
      stands[axis] = where;
    }
  };
  mark(spec.rows, "rows");
  mark(spec.columns, "columns");
  if (spec.select) mark(spec.select->over, "select.over");

  const bool no_rows = spec.rows.empty();
  const bool no_columns = spec.columns.empty();
  const bool is_product = grid.axes.front().name != kSubgridAxis && !grid.sample;
  for (size_t axis = 0; axis < grid.axes.size(); ++axis) {
    if (!stands[axis].empty()) continue;
    if (no_rows && (spec.rows.empty() || !no_columns || !is_product)) {
      spec.rows.push_back(axis);
    } else if (no_columns) {
      spec.columns.push_back(axis);
    } else {
      fail("{}: the axis {} is neither in rows nor in columns", reader.location(), grid.axes[axis].name);
    }
  }
}

void load_cell(const toml::table& table, const std::string& file, TableSpec& spec) {
  TableReader reader(table, "cell", file);
  if (const auto score = reader.text("score")) {
    if (!spec.scores.empty()) fail("{}: write either cell.score or scores, not both", reader.location("score"));
    spec.scores = {*score};
    spec.named.push_back({*score, "cell.score", reader.location("score")});
  }
  spec.show = static_cast<TableSpec::Show>(reader.choice("show", {"mean ± std (n)", "mean ± std", "mean"}, 0));
  reader.refuse_leftovers();
}

// A key of which the value is for all scores, or a table of score (or pattern) = value. `add` reads one value.
template <class Add>
void load_by_score(const toml::node& node, const std::string& key, const TableReader& reader, TableSpec& spec,
                   const Add& add) {
  if (const auto* by_score = node.as_table()) {
    for (const auto& [score, value] : *by_score) {
      add(std::string(score.str()), value);
      spec.named.push_back({std::string(score.str()), key, reader.location(value)});
    }
  } else {
    add("*", node);
  }
}

void load_decimals(const toml::node& node, const TableReader& reader, TableSpec& spec) {
  load_by_score(node, "decimals", reader, spec, [&](const std::string& score, const toml::node& value) {
    const auto decimals = value.value_exact<int64_t>();
    if (!decimals || *decimals < 0 || *decimals > 9) {
      fail("{}: decimals must be a whole number from 0 to 9, or a table of score = number", reader.location(value));
    }
    spec.decimals[score] = static_cast<int>(*decimals);
  });
}

void load_factors(const toml::node& node, const TableReader& reader, TableSpec& spec) {
  constexpr double kLeast = 1e-9, kMost = 1e9;
  const auto is_pattern = [](const std::string& name) { return name.find('*') != std::string::npos; };
  load_by_score(node, "factor", reader, spec, [&](const std::string& score, const toml::node& value) {
    const std::optional<double> factor = value.is_number() ? value.value<double>() : std::nullopt;
    if (!factor || !(*factor >= kLeast && *factor <= kMost)) {
      fail("{}: factor must be a number from 1e-9 to 1e9, such as 100 for percent, or a table of score = number",
           reader.location(value));
    }
    const bool is_open = spec.scores.empty() || is_pattern(score) || std::ranges::any_of(spec.scores, is_pattern);
    if (!is_open && std::ranges::find(spec.scores, score) == spec.scores.end()) {
      fail("{}: factor of {}{}, which the table does not show; its scores are {}", reader.location(value), score,
           did_you_mean(score, spec.scores), fmt::join(spec.scores, ", "));
    }
    spec.factors[score] = *factor;
  });
}

nlohmann::json published_value(const toml::node& node, const TableReader& reader) {
  if (const auto number = node.value<double>(); number && node.is_number() && std::isfinite(*number)) return *number;
  if (const auto* text = node.as_string()) return text->get();
  fail("{}: a published value must be a number or a text (\"\" where the source has none)", reader.location(node));
}

TableSpec::Published load_published(const toml::table& table, const std::string& file, const Grid& grid,
                                    TableSpec& spec) {
  TableReader reader(table, "published", file);
  TableSpec::Published published;
  published.source = reader.text("source").value_or("");
  if (published.source.empty())
    fail("{}: published needs its source, as in source = \"…, Table 3\"", reader.location());
  const std::optional<std::string> score = reader.text("score");
  if (score) spec.named.push_back({*score, "published.score", reader.location("score")});
  published.score = score.value_or(spec.scores.empty() ? "" : spec.scores.front());
  const toml::array* rows = reader.list("values");
  if (!rows) fail("{}: published needs values = [[…], …], one list for each row of the table", reader.location());
  reader.refuse_leftovers();

  const Layout layout = layout_of(grid, spec);
  if (rows->size() != layout.rows.size()) {
    fail("{}: published values have {} rows where the table has {}", reader.location("values"), rows->size(),
         layout.rows.size());
  }
  for (const toml::node& row : *rows) {
    const toml::array* columns = row.as_array();
    if (!columns || columns->size() != layout.columns.size()) {
      fail("{}: a row of published values must be a list of {} (the table's columns)", reader.location(row),
           layout.columns.size());
    }
    std::vector<nlohmann::json>& values = published.values.emplace_back();
    for (const toml::node& value : *columns) values.push_back(published_value(value, reader));
  }
  return published;
}

}  // namespace

void read_view(TableReader& reader, const Grid& grid, TableSpec& spec) {
  const std::string& file = reader.file();
  spec.scores = reader.texts("scores");
  for (const std::string& score : spec.scores) spec.named.push_back({score, "scores", reader.location("scores")});
  if (const auto* cell = reader.table("cell")) load_cell(*cell, file, spec);
  if (const auto* decimals = reader.any("decimals")) load_decimals(*decimals, reader, spec);
  if (const auto* factors = reader.any("factor")) load_factors(*factors, reader, spec);
  spec.fail_below = reader.number("fail_below");
  spec.count_diverged = reader.choice("diverged", {"excluded", "counted"}, 0) == 1;
  spec.rows = axes_named(reader, "rows", grid);
  spec.columns = axes_named(reader, "columns", grid);
  if (const auto* select = reader.table("select")) spec.select = load_select(*select, file, grid, spec);
  place_axes(reader, grid, spec);
  if (const auto* published = reader.table("published")) spec.published = load_published(*published, file, grid, spec);
}

}  // namespace tearless::harness
