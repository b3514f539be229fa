// The views of a grid: the ways to show the results of its runs. A new kind of view is a file like table_spec.h, which
// has its struct, the name of its sections in a grid file and read_view(), an alternative of ViewSpec, and a word of
// kViewSections (grid/grid.h).
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "harness/grid/grid.h"
#include "harness/views/claim_spec.h"
#include "harness/views/figure_spec.h"
#include "harness/views/table_spec.h"

namespace tearless::harness {

/// In this order: claims are about the tables.
using ViewSpec = std::variant<TableSpec, FigureSpec, ClaimSpec>;

struct View {
  Name title;  // no other view of its kind has its text
  ViewSpec spec;

  const TableSpec& table() const { return std::get<TableSpec>(spec); }  ///< REQUIRES: it is a table
};

/// The views that a grid's file has, each kind in the order of the file; a table of all axes if it has none. UserError
/// with file and line for every mistake in their sections.
std::vector<View> views_of(const Grid& grid);

}  // namespace tearless::harness
