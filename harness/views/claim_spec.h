// A view that is a claim about the cells of one of the grid's tables: the sections [[claim]] of a grid file.
//
//   [[claim]]
//   name   = "T4"
//   text   = "ScaleNorm is better than LayerNorm"
//   better = ["scale_norm", "layer_norm"]             # rows, columns, or { axis = label, … } of both
//
// The axes of the table that its cells leave open are its places: it has a verdict at each.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/claims/claim.h"
#include "harness/views/table_spec.h"
#include "harness/views/within.h"

namespace tearless::harness {

/// CellLabels by the names of their axes.
using CellLabels = std::map<std::string, std::string>;

/// Some of the places of a claim: all, none, or those with certain labels.
struct PlaceFilter {
  bool all = false;
  Where where = {};  // with labels: those

  bool has(const CellLabels& place) const { return where.labels.empty() ? all : where.has(place); }
};

struct ClaimSpec {
  static constexpr const char* kSection = "claim";
  static constexpr const char* kTitle = "text";
  static constexpr bool kHasDefaultTitle = false;

  std::string name;   // "T4"; "": none. Several claims may have it
  Name source;        // "Nguyen and Salazar 2019, 3.2"
  size_t table = 0;   // index into the views of the grid
  std::string score;  // "": the first of each column
  const ClaimKind* kind = nullptr;
  std::vector<CellLabels> cells;    // each names one cell at a place
  std::vector<std::string> scores;  // of each of the cells, where they are not of one score
  bool among_all = false;           // of `best`: the others are all that have other labels on these axes of the rows
  std::string curve;                // the metric of `stays_better`, of which the highest is best, or not
  std::string curve_location;
  bool lowest_is_best = false;
  std::string over;  // of a slope: the axis, whose labels are numbers
  Limits limits;
  std::optional<Within> matters;  // the difference that the claim is to show if it is there
  PlaceFilter where = {.all = true};
  PlaceFilter not_claimed;
  PlaceFilter paired = {.all = true};  // elsewhere by independent means
  std::vector<NamedScore> named;
  std::string hash = {};  // of what it says, without name and source
};

/// UserError with file and line for every mistake.
void read_view(TableReader& reader, const Grid& grid, const std::vector<View>& others, ClaimSpec& spec);

/// The number that the label of a point of a slope is; nullopt: it is none.
std::optional<double> number_of_label(const std::string& label);

}  // namespace tearless::harness
