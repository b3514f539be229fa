// From rows of results to cells.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/cells/cell.h"
#include "harness/results/row.h"
#include "harness/views/arrangement.h"
#include "harness/views/layout.h"

namespace tearless::harness {

/// Over which points of the axes Arrangement::average (or select.over) the means of the cells are.
enum class Averages {
  kOfOne,      // each cell has one point alone, as of an axis that exists only where a condition holds: no mean
  kOfTheSame,  // all cells have the same points
  kOfOthers,   // some cells have other points
};

/// Seeds that were added when others of the same labels had results already, with the time (UTC): who looks and then
/// adds seeds until a difference shows finds one more often than a p says.
std::map<int64_t, std::string> seeds_added_later(const std::vector<Replicate>& runs);

/// "seeds 4, 5 were added on 2026-11-28, after results with 3 existed: the true level of a comparison at 5 % is up
/// to 8.6 %". `seeds`: all of a cell. "" if none was added.
std::string peeking_text(const std::map<int64_t, std::string>& added, size_t seeds);

/// The runs of the places of an arrangement. Borrows all that it is made of.
class Cells {
 public:
  /// `rows` are those of the runs that the grid does not exclude, each at most once, in any order; an absent run is
  /// missing in its cell.
  Cells(const Grid& grid, const Arrangement& arrangement, const CellRules& rules, const std::vector<Row>& rows);

  const Layout& layout() const { return layout_; }
  /// All runs of these places, in the order of `rows` but those of a place together.
  const std::vector<Replicate>& runs() const { return runs_; }
  Averages averages() const;

  /// The cell of a row and a column of the layout: of a score, or of a mean of scores (DefinedScore). `fail_score`:
  /// that fail_below is compared with.
  Cell at(size_t row, size_t column, const std::string& score, const std::string& fail_score) const;

 private:
  /// The runs of one place, by their coordinates on the axes `over`.
  using Candidates = std::map<Coordinates, std::vector<Replicate>>;
  using Place = std::pair<Coordinates, Coordinates>;
  struct Choice;

  size_t expected(const std::vector<Replicate>& replicates) const;
  Choice choose(const Candidates& candidates) const;
  Cell filled(const std::vector<Replicate>& replicates, const std::string& score, const std::string& fail_score) const;
  Cell of_one_score(const std::vector<Replicate>& replicates, const std::string& score, double factor,
                    const std::string& fail_score) const;

  const Grid& grid_;
  const Arrangement& arrangement_;
  const CellRules& rules_;
  std::vector<size_t> over_;  // the axes select.over, or `average`
  Layout layout_;
  std::vector<Replicate> runs_;
  std::map<Place, Candidates> places_;  // including those without any run
  std::set<Place> left_out_;            // with combinations that are excluded
};

}  // namespace tearless::harness
