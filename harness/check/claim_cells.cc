#include "harness/check/claim_cells.h"

#include <algorithm>
#include <tuple>

namespace tearless::harness {
namespace {

/// In the order in which they come, each once.
template <class T>
class Once {
 public:
  void add(T item) {
    if (seen_.insert(item).second) items_.push_back(std::move(item));
  }
  const std::vector<T>& items() const { return items_; }

 private:
  std::set<T> seen_;
  std::vector<T> items_;
};

}  // namespace

bool share_runs(const std::vector<ClaimCell>& cells) {
  std::set<std::string> seen;
  for (const ClaimCell& one : cells) {
    for (const std::string& run : one.cell ? one.cell->runs : std::vector<std::string>()) {
      if (!seen.insert(run).second) return true;
    }
  }
  return false;
}

ClaimCells::ClaimCells(const ClaimSpec& claim, const Table& table)
    : claim_(claim), table_(table), rows_{.axes = table.row_axes}, columns_{.axes = table.column_axes} {
  for (const auto& [axis, label] : claim.cells.front()) fixed_.insert(axis);
  if (!claim.over.empty()) fixed_.insert(claim.over);
  for (const Table::Row& row : table.rows) {
    row_index_.emplace(row.labels, rows_.lines.size());
    rows_.lines.push_back({row.labels, row.is_added});
  }
  for (const Table::Column& column : table.columns) {
    column_index_[column.score].emplace(column.labels, columns_.lines.size());
    if (claim.score.empty() || column.score == claim.score)
      column_index_[""].emplace(column.labels, columns_.lines.size());
    columns_.lines.push_back({column.labels, column.is_added});
  }
  for (const Lines* of : {&rows_, &columns_}) {
    for (const Lines::Line& line : of->lines) {
      for (size_t i = 0; !line.is_added && i < of->axes.size(); ++i) of_grid_.emplace(of->axes[i], line.labels[i]);
    }
  }
  wanted_ = wanted();
}

std::vector<Place> ClaimCells::places() const {
  Once<Place> rows, columns;
  for (const auto& [of, parts] : {std::pair(&rows_, &rows), std::pair(&columns_, &columns)}) {
    for (const Lines::Line& line : of->lines) {
      if (!line.is_added || is_named(*of, line)) parts->add(open_part(*of, line));
    }
  }
  std::vector<Place> all;
  for (const Place& row : rows.items()) {
    for (const Place& column : columns.items()) {
      Place& place = all.emplace_back(row);
      place.insert(place.end(), column.begin(), column.end());
    }
  }
  return all;
}

std::vector<ClaimCell> ClaimCells::at(const Place& place) const {
  std::vector<ClaimCell> found;
  for (size_t i = 0; i < wanted_.size(); ++i) {
    CellLabels all = wanted_[i];
    all.insert(place.begin(), place.end());
    const ClaimCell one = find(wanted_[i], all, claim_.scores.empty() ? "" : claim_.scores[i]);
    const bool is_named = claim_.over.empty() && (i == 0 || !claim_.among_all);
    if (is_named || one.has_runs()) found.push_back(one);
  }
  return found;
}

/// Lines that the grid file adds are places only where the claim speaks of them, by a label that no line of the grid
/// has.
bool ClaimCells::is_named(const Lines& of, const Lines::Line& line) const {
  for (size_t i = 0; i < of.axes.size(); ++i) {
    const auto& [axis, label] = std::tie(of.axes[i], line.labels[i]);
    if (of_grid_.contains({axis, label})) continue;
    if (claim_.where.where.labels.contains(axis) && claim_.where.where.has(axis, label)) return true;
    for (const CellLabels& cell : claim_.cells) {
      const auto own = cell.find(axis);
      if (own != cell.end() && own->second == label) return true;
    }
  }
  return false;
}

Place ClaimCells::open_part(const Lines& of, const Lines::Line& line) const {
  Place place;
  for (size_t i = 0; i < of.axes.size(); ++i) {
    if (!fixed_.contains(of.axes[i])) place.emplace_back(of.axes[i], line.labels[i]);
  }
  return place;
}

/// The claim's own cells; for a slope those along its axis; for `best` of all then those of the rows of the grid (of
/// the columns, if the claim fixes no axis of rows) with other labels.
std::vector<CellLabels> ClaimCells::wanted() const {
  if (claim_.over.empty() && !claim_.among_all) return claim_.cells;
  Once<CellLabels> wanted;
  std::set<std::string> along = {claim_.over};
  if (claim_.over.empty()) {
    for (const CellLabels& cell : claim_.cells) wanted.add(cell);
    along = fixed_;
  }
  const auto has_axis = [&](const Lines& of) {
    return std::ranges::any_of(of.axes, [&](const std::string& axis) { return along.contains(axis); });
  };
  const Lines& of = has_axis(rows_) ? rows_ : columns_;
  for (const Lines::Line& line : of.lines) {
    if (line.is_added) continue;
    CellLabels other = claim_.cells.front();
    for (size_t i = 0; i < of.axes.size(); ++i) {
      if (along.contains(of.axes[i])) other[of.axes[i]] = line.labels[i];
    }
    wanted.add(std::move(other));
  }
  return wanted.items();
}

ClaimCell ClaimCells::find(const CellLabels& fixed, const CellLabels& all, const std::string& score) const {
  const auto at = [&](const Lines& of, const Index& index) {
    std::vector<std::string> own;
    for (const std::string& axis : of.axes) {
      const auto label = all.find(axis);
      if (label == all.end()) return index.end();
      own.push_back(label->second);
    }
    return index.find(own);
  };
  const auto columns = column_index_.find(score);
  if (columns == column_index_.end()) return {.labels = fixed};
  const auto row = at(rows_, row_index_), column = at(columns_, columns->second);
  if (row == row_index_.end() || column == columns->second.end()) return {.labels = fixed};
  return {fixed, &table_.rows[row->second].cells[column->second].cell, &table_.columns[column->second]};
}

}  // namespace tearless::harness
