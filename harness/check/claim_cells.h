// The cells that a claim is about, in its table. Internal to harness/check.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/check/check.h"
#include "harness/views/claim_spec.h"
#include "harness/views/lines.h"

namespace tearless::harness {

struct ClaimCell {
  CellLabels labels;                      // that the claim fixes
  const Cell* cell = nullptr;             // null: the table has none
  const Table::Column* column = nullptr;  // of the cell

  bool has_runs() const { return cell && cell->expected > 0; }
};

/// Whether some of the cells are made of the same runs: these are no independent samples.
bool share_runs(const std::vector<ClaimCell>& cells);

/// Borrows the claim and its table.
class ClaimCells {
 public:
  ClaimCells(const ClaimSpec& claim, const Table& table);

  /// All places of the claim, whatever `where` says: the labels that its cells leave open.
  std::vector<Place> places() const;

  /// What the claim compares at a place. Cells that it does not name itself are those with runs.
  std::vector<ClaimCell> at(const Place& place) const;

 private:
  using Index = std::map<std::vector<std::string>, size_t>;  // labels → the first line with these

  bool is_named(const Lines& of, const Lines::Line& line) const;
  Place open_part(const Lines& of, const Lines::Line& line) const;
  std::vector<CellLabels> wanted() const;
  ClaimCell find(const CellLabels& fixed, const CellLabels& all, const std::string& score) const;

  const ClaimSpec& claim_;
  const Table& table_;
  Lines rows_, columns_;
  std::set<std::string> fixed_;                            // axes
  std::set<std::pair<std::string, std::string>> of_grid_;  // axis, label
  Index row_index_;
  std::map<std::string, Index> column_index_;  // by score; "": that of the claim
  std::vector<CellLabels> wanted_;             // what it compares at each place
};

}  // namespace tearless::harness
