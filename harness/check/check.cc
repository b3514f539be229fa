#include "harness/check/check.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

namespace tearless::harness {
namespace {

CellLabels labels_of(const std::vector<std::string>& axes, const std::vector<std::string>& labels) {
  CellLabels of;
  for (size_t i = 0; i < axes.size(); ++i) of.emplace(axes[i], labels[i]);
  return of;
}

/// The cells of a claim in its table.
class CellFinder {
 public:
  CellFinder(const ClaimSpec& claim, const Table& table) : claim_(claim), table_(table) {
    for (const auto& [axis, label] : claim.cells.front()) fixed_.insert(axis);
    if (!claim.over.empty()) fixed_.insert(claim.over);
    const auto add = [&](const std::vector<std::string>& axes, const std::vector<std::string>& labels) {
      for (size_t i = 0; i < axes.size(); ++i) of_grid_.emplace(axes[i], labels[i]);
    };
    for (const Table::Row& row : table.rows) {
      if (!row.is_added) add(table.row_axes, row.labels);
    }
    for (const Table::Column& column : table.columns) {
      if (!column.is_added) add(table.column_axes, column.labels);
    }
  }

  /// All of them, whatever `where` says.
  std::vector<Place> places() const {
    std::vector<Place> rows, columns, all;
    const auto add = [](const Place& place, std::vector<Place>& to) {
      if (std::ranges::find(to, place) == to.end()) to.push_back(place);
    };
    for (const Table::Row& row : table_.rows) {
      if (!row.is_added || is_named(table_.row_axes, row.labels)) add(open_part(table_.row_axes, row.labels), rows);
    }
    for (const Table::Column& column : table_.columns) {
      if (!column.is_added || is_named(table_.column_axes, column.labels))
        add(open_part(table_.column_axes, column.labels), columns);
    }
    for (const Place& row : rows) {
      for (const Place& column : columns) {
        Place& place = all.emplace_back(row);
        place.insert(place.end(), column.begin(), column.end());
      }
    }
    return all;
  }

  struct Found {
    CellLabels labels;                      // that the claim fixes
    const Cell* cell = nullptr;             // null: the table has none
    const Table::Column* column = nullptr;  // of the cell
  };

  /// What the claim compares at a place.
  std::vector<Found> cells_at(const Place& place) const {
    std::vector<CellLabels> wanted = claim_.cells;
    if (claim_.among_all) add_others(wanted);
    if (!claim_.over.empty()) wanted = along_axis(wanted.front());
    std::vector<Found> found;
    for (const CellLabels& labels : wanted) {
      CellLabels all = labels;
      all.insert(place.begin(), place.end());
      const Found one = find(labels, all);
      // What is compared with all that there are is not there at every place.
      if ((claim_.among_all || !claim_.over.empty()) && !found.empty() && !has_runs(one)) continue;
      found.push_back(one);
    }
    return found;
  }

  static bool has_runs(const Found& found) { return found.cell && found.cell->expected > 0; }

 private:
  /// Lines that the grid file adds are places only where the claim speaks of them, by a label that no line of the grid
  /// has.
  bool is_named(const std::vector<std::string>& axes, const std::vector<std::string>& labels) const {
    for (size_t i = 0; i < axes.size(); ++i) {
      if (of_grid_.contains({axes[i], labels[i]})) continue;
      const auto where = claim_.where.labels.find(axes[i]);
      if (where != claim_.where.labels.end() && where->second.contains(labels[i])) return true;
      for (const CellLabels& cell : claim_.cells) {
        const auto label = cell.find(axes[i]);
        if (label != cell.end() && label->second == labels[i]) return true;
      }
    }
    return false;
  }

  Place open_part(const std::vector<std::string>& axes, const std::vector<std::string>& labels) const {
    Place place;
    for (size_t i = 0; i < axes.size(); ++i) {
      if (!fixed_.contains(axes[i])) place.emplace_back(axes[i], labels[i]);
    }
    return place;
  }

  /// Of the rows of the grid (of the columns, if the claim fixes no axis of rows) those with other labels.
  void add_others(std::vector<CellLabels>& wanted) const {
    const bool of_rows =
        std::ranges::any_of(table_.row_axes, [&](const std::string& axis) { return fixed_.contains(axis); });
    const auto add = [&](const std::vector<std::string>& axes, const std::vector<std::string>& labels) {
      CellLabels other = claim_.cells.front();
      for (size_t i = 0; i < axes.size(); ++i) {
        if (fixed_.contains(axes[i])) other[axes[i]] = labels[i];
      }
      if (std::ranges::find(wanted, other) == wanted.end()) wanted.push_back(std::move(other));
    };
    for (const Table::Row& row : table_.rows) {
      if (of_rows && !row.is_added) add(table_.row_axes, row.labels);
    }
    for (const Table::Column& column : table_.columns) {
      if (!of_rows && !column.is_added) add(table_.column_axes, column.labels);
    }
  }

  std::vector<CellLabels> along_axis(const CellLabels& cell) const {
    std::vector<CellLabels> points;
    const auto add = [&](const std::vector<std::string>& axes, const std::vector<std::string>& labels) {
      const auto axis = std::ranges::find(axes, claim_.over);
      if (axis == axes.end()) return;
      CellLabels point = cell;
      point[claim_.over] = labels[static_cast<size_t>(axis - axes.begin())];
      if (std::ranges::find(points, point) == points.end()) points.push_back(std::move(point));
    };
    for (const Table::Row& row : table_.rows) {
      if (!row.is_added) add(table_.row_axes, row.labels);
    }
    for (const Table::Column& column : table_.columns) {
      if (!column.is_added) add(table_.column_axes, column.labels);
    }
    return points;
  }

  Found find(const CellLabels& labels, const CellLabels& all) const {
    const auto agrees = [&](const std::vector<std::string>& axes, const std::vector<std::string>& own) {
      return std::ranges::all_of(labels_of(axes, own), [&](const auto& entry) {
        const auto label = all.find(entry.first);
        return label != all.end() && label->second == entry.second;
      });
    };
    for (const Table::Row& row : table_.rows) {
      if (!agrees(table_.row_axes, row.labels)) continue;
      for (size_t i = 0; i < table_.columns.size(); ++i) {
        const Table::Column& column = table_.columns[i];
        if ((claim_.score.empty() || column.score == claim_.score) && agrees(table_.column_axes, column.labels))
          return {labels, &row.cells[i], &column};
      }
    }
    return {.labels = labels};
  }

  const ClaimSpec& claim_;
  const Table& table_;
  std::set<std::string> fixed_;                            // axes
  std::set<std::pair<std::string, std::string>> of_grid_;  // axis, label
};

using Found = CellFinder::Found;

CellSample sample_of(const Found& found, const ClaimSpec& claim, const Table& table) {
  CellSample sample;
  std::vector<std::string> names;
  for (const auto* axes : {&table.row_axes, &table.column_axes}) {
    for (const std::string& axis : *axes) {
      const auto label = found.labels.find(axis);
      if (label != found.labels.end()) names.push_back(name_of(table.names, axis, label->second).text);
    }
  }
  sample.name = fmt::format("{}", fmt::join(names, ", "));
  if (!claim.over.empty()) sample.at = number_of_label(found.labels.at(claim.over)).value_or(0);
  if (!found.cell) return sample;
  const Cell& cell = *found.cell;
  sample.values = cell.values;
  sample.runs = static_cast<size_t>(cell.expected);
  sample.failed = static_cast<size_t>(cell.below + cell.diverged - cell.diverged_scored);
  sample.missing = static_cast<size_t>(cell.missing() + cell.failed + cell.scoreless);
  return sample;
}

/// Whether some of the cells are made of the same runs: these are no independent samples.
bool share_runs(const std::vector<Found>& cells) {
  std::set<std::string> seen;
  for (const Found& one : cells) {
    for (const std::string& run : one.cell ? one.cell->runs : std::vector<std::string>()) {
      if (!seen.insert(run).second) return true;
    }
  }
  return false;
}

// --- numbers ---------------------------------------------------------------------------------------------------------

/// Those of the column, or two significant ones of the interval's width where that is narrower; and more where an end
/// of the interval that is not 0 would be printed as 0.
Digits digits_of(const Finding& finding, ClaimKind::Form form, const Table::Column& column) {
  using Form = ClaimKind::Form;
  Digits digits{.decimals = form == Form::kShare ? 2 : 3};
  if (form == Form::kDifference) digits = column.digits;
  if (!finding.interval || (form != Form::kDifference && form != Form::kSlope)) return digits;
  const auto [low, high] = *finding.interval;
  const double centre = (low + high) / 2, half = (high - low) / 2;
  const Digits own = Digits::of({&centre, 1}, {&half, 1});
  if (form == Form::kSlope) digits = own;
  if (half > 0 && !digits.is_given) digits.decimals = std::max(digits.decimals, own.decimals);
  const auto is_lost = [&](double end) {
    return end != 0 && number_text(end, 1, digits).find_first_of("123456789") == std::string::npos;
  };
  constexpr int kMore = 3;
  for (int i = 0; i < kMore && (is_lost(low) || is_lost(high)); ++i) ++digits.decimals;
  return digits;
}

std::string numbers_text(const Finding& finding, ClaimKind::Form form, const Table::Column& column) {
  if (!finding.estimate) return "";
  const Digits digits = digits_of(finding, form, column);
  const auto [low, high] = finding.interval.value_or(Interval{*finding.estimate, *finding.estimate});
  const double scale = std::max({std::abs(low), std::abs(high), std::abs(*finding.estimate)});
  const bool has_sign = form == ClaimKind::Form::kDifference || form == ClaimKind::Form::kSlope;
  const auto text = [&](double value) {
    return with_minus(has_sign ? signed_text(value, scale, digits) : number_text(value, scale, digits));
  };
  const std::string estimate = text(*finding.estimate);
  return finding.interval ? fmt::format("{} ({} … {})", estimate, text(low), text(high)) : estimate;
}

/// "within 0.3 bleu"; "" for kinds without a limit.
std::string limit_text(const ClaimSpec& claim, const std::string& score) {
  const Limits& limits = claim.limits;
  const unsigned keys = claim.kind->keys;
  if (keys & ClaimKind::kWithin) {
    return limits.is_percent ? fmt::format("within {} %", limits.within)
                             : fmt::format("within {} {}", limits.within, score.substr(score.rfind('.') + 1));
  }
  if (keys & ClaimKind::kBetween) return fmt::format("between {} and {}", limits.between.first, limits.between.second);
  if (keys & ClaimKind::kR2) return fmt::format("R² ≥ {}", limits.r2);
  return "";
}

// --- claims and cells ------------------------------------------------------------------------------------------------

void check_claim(const Grid& grid, const View& view, const Table& table, std::vector<Check>& checks) {
  const auto& claim = std::get<ClaimSpec>(view.spec);
  const CellFinder finder(claim, table);
  size_t rank = 0;
  for (const Place& place : finder.places()) {
    ++rank;
    const CellLabels labels(place.begin(), place.end());
    if (!claim.where.has(labels)) continue;
    const std::vector<Found> cells = finder.cells_at(place);
    const auto first = std::ranges::find_if(cells, CellFinder::has_runs);
    if (first == cells.end()) continue;
    Check& check = checks.emplace_back(Check{.grid = grid.title,
                                             .name = claim.name,
                                             .text = view.title,
                                             .source = claim.source,
                                             .score = first->column->score,
                                             .kind = std::string(claim.kind->name),
                                             .place = place,
                                             .rank = rank,
                                             .meaning = std::string(claim.kind->meaning)});
    std::vector<CellSample> samples;
    for (const Found& one : cells) samples.push_back(sample_of(one, claim, table));
    check.is_paired = claim.paired.has(labels) || share_runs(cells);
    check.finding = check_claim(
        *claim.kind, samples,
        {.limits = claim.limits, .is_paired = check.is_paired, .highest_is_best = first->column->highest_is_best});
    check.form = claim.kind->form;
    check.limit = limit_text(claim, check.score);
    if (claim.not_claimed.has(labels)) check.finding.verdict = ClaimVerdict::kNotClaimed;
    check.shown = numbers_text(check.finding, claim.kind->form, *first->column);
  }
}

void check_cells(const Grid& grid, const Table& table, std::vector<Check>& checks) {
  for (const Table::Row& row : table.rows) {
    for (size_t i = 0; i < row.cells.size(); ++i) {
      const Cell& cell = row.cells[i];
      const Table::Column& column = table.columns[i];
      if (cell.published.empty() || !cell.published.front().tolerance || !cell.published_value().is_number()) continue;
      const double tolerance = *cell.published.front().tolerance;
      std::vector<std::string> labels;
      for (size_t axis = 0; axis < row.labels.size(); ++axis)
        labels.push_back(name_of(table.names, table.row_axes[axis], row.labels[axis]).text);
      for (size_t axis = 0; axis < column.labels.size(); ++axis)
        labels.push_back(name_of(table.names, table.column_axes[axis], column.labels[axis]).text);
      Check& check = checks.emplace_back(Check{.grid = grid.title, .score = column.score, .kind = "tolerance"});
      check.text = fmt::format("{}: {}", table.title, fmt::join(labels, ", "));
      check.measured = measured_text(table, column, cell);
      check.published = published_text(table, column, cell);
      check.finding = {.verdict = ClaimVerdict::kNotTested,
                       .estimate = cell.difference(),
                       .interval = Interval{-tolerance, tolerance},
                       .n = {cell.values.size()}};
      for (const auto& [axis, label] : labels_of(table.row_axes, row.labels)) check.place.emplace_back(axis, label);
      for (const auto& [axis, label] : labels_of(table.column_axes, column.labels))
        check.place.emplace_back(axis, label);
      if (!check.finding.estimate || cell.missing() + cell.failed > 0) continue;
      const bool is_within = std::abs(*check.finding.estimate) <= tolerance;
      check.finding.verdict = is_within ? ClaimVerdict::kHeld : ClaimVerdict::kContradicted;
    }
  }
}

}  // namespace

GridChecks check_grid(const Grid& grid, const std::vector<Table>& tables) {
  GridChecks checks{.title = grid.title, .names = grid.names, .claims = {}, .cells = {}};
  for (size_t i = 0; i < grid.views.size(); ++i) {
    if (const auto* claim = std::get_if<ClaimSpec>(&grid.views[i].spec)) {
      check_claim(grid, grid.views[i], tables[claim->table], checks.claims);
    } else {
      check_cells(grid, tables[i], checks.cells);
    }
  }
  return checks;
}

VerdictCounts counts_of(const std::vector<Check>& checks) {
  VerdictCounts counts{};
  for (const Check& check : checks) ++counts[static_cast<size_t>(check.finding.verdict)];
  return counts;
}

}  // namespace tearless::harness
