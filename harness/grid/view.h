// The views of a grid: the ways to show the results of its runs. A new kind of view is a file like table_spec.h, which
// has its struct, the name of its sections in a grid file and read_view(), and an alternative of ViewSpec.
#pragma once

#include <string>
#include <variant>

#include "harness/grid/claim_spec.h"
#include "harness/grid/figure_spec.h"
#include "harness/grid/table_spec.h"

namespace tearless::harness {

/// In this order: claims are about the tables.
using ViewSpec = std::variant<TableSpec, FigureSpec, ClaimSpec>;

struct View {
  std::string title;  // no other view of its kind has it
  ViewSpec spec;

  const TableSpec& table() const { return std::get<TableSpec>(spec); }  ///< REQUIRES: it is a table
};

}  // namespace tearless::harness
