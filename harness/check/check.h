// What `tearless check-table` finds: the verdict of each claim at each of its places, and of each cell whose published
// number has a tolerance. Pure, as tables are.
//
//   ClaimSpec, Table --check_grid()--> Check --sheets_of()--> Sheet --render()--> text, Markdown, LaTeX, HTML
//                                        └────render_csv(), json_of()──────────> CSV, JSON
#pragma once

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "harness/claims/claim.h"
#include "harness/folders/looks.h"
#include "harness/results/result_set.h"
#include "harness/table/sheet.h"
#include "harness/table/table.h"

namespace tearless::harness {

/// Axis, label: what tells a place of a claim from the others, in the order of the table's axes.
using Place = std::vector<std::pair<std::string, std::string>>;

/// What limits what a verdict says.
struct Caveat {
  std::string word;  // "stale"
  std::string why;
};

/// A look at a claim that was taken while its sweep was trained.
struct RecordedLook {
  LookTaken taken;
  std::string changed = {};  // the run that has another result since, or none; "": all have that which it saw
};

/// At which look of the sweep a verdict stands.
struct AtLook {
  size_t number = 0, of = 0;  // from 1
  size_t seeds = 0;           // that it took
};

struct Check {
  std::string grid = {};  // its title
  std::string name = {};  // of the claim; of a cell: ""
  Name text = {};         // of a cell: its labels
  Name source = {};
  std::string score = {};
  size_t claim = 0;       // of a claim: its index among the grid's views
  std::string kind = {};  // "better"; of a cell: "tolerance"
  ClaimKind::Form form = ClaimKind::Form::kDifference;
  std::string limit = {};  // "within 0.3 bleu", "prediction of 1 run, at most 0.5"; "": it has none, or is a distance
  std::string unit = {};   // of the estimate: "bleu"; "": it has none
  Place place = {};
  size_t rank = 0;       // of the place among those of the table
  Finding finding = {};  // of a cell: measured minus published, and how far that may be from 0 on both sides
  bool is_paired = true;
  std::optional<AtLook> look = {};            // of a claim; unset: the grid has no looks
  std::vector<std::string> runs = {};         // of the cells of a claim
  std::string hash = {};                      // ClaimSpec::hash
  std::string declared_on = {};               // "2026-11-28"; "": not known, or not submitted yet
  std::string declared = {};                  // "declared on 2026-11-28, after 3 of its 12 results existed"; "": before
  std::vector<Caveat> caveats = {};           // of the cells
  std::string shown = {};                     // estimate and interval, with the table's digits; of a cell the latter
  std::string meaning = {};                   // of the kind
  std::string measured = {}, published = {};  // of a cell
};

/// Of one grid.
struct GridChecks {
  std::string title;
  Names names;
  ClaimTests tests;
  std::vector<Check> claims, cells;
};

/// The tables of `views`, in their order (fill()); empty ones where a view is no table.
std::vector<Table> tables_of(const Grid& grid, const std::vector<View>& views, const std::vector<Row>& rows);

/// `tables`: tables_of() the rows of `results`. Of a grid with looks the first of them that decides stands; one that
/// was recorded is not taken again, whatever its runs have now.
GridChecks check_grid(const Grid& grid, const std::vector<View>& views, const std::vector<Table>& tables,
                      const ResultSet& results, const std::vector<RecordedLook>& recorded = {});

/// The looks at one claim at one place, up to the first that decides or lacks runs: a verdict of each.
using ClaimLooks = std::vector<Check>;
/// REQUIRES: the grid has looks.
std::vector<ClaimLooks> looks_at_claims(const Grid& grid, const std::vector<View>& views, const ResultSet& results,
                                        const std::vector<RecordedLook>& recorded);

bool is_of(const LookTaken& taken, const Check& check);

/// How many have each verdict.
using VerdictCounts = std::array<size_t, kVerdicts>;
struct CheckCounts {
  VerdictCounts claims = {}, cells = {};

  size_t of(ClaimVerdict verdict) const;  ///< of both
};
CheckCounts counts_of(const std::vector<GridChecks>& all);

/// "5", or "5 and 4" of two cells; "": of no values.
std::string count_text(const Finding& finding);
/// "cannot tell: +0.48 (−0.69 … +1.64)"; a claim without a number has its reason there.
std::string cell_text(const Check& check, bool has_unit, bool has_count);

/// Claims with the same axes of places in one matrix, the cells outside of their tolerance, and the counts.
std::vector<Sheet> sheets_of(const std::vector<GridChecks>& all);

/// A record for each claim and place, and for each cell with a tolerance.
std::string render_csv(const std::vector<GridChecks>& all, Formulas formulas);
nlohmann::json json_of(const std::vector<GridChecks>& all);

}  // namespace tearless::harness
