#include "harness/table/lines.h"

#include <cmath>

#include "harness/cells/weighted_sum.h"

namespace tearless::harness {

std::vector<Line> with_added(const std::vector<std::vector<Line>>& of_layout,
                             const std::vector<TableSpec::AddedLine>& added, const std::string& score,
                             const std::vector<std::string>& axes, Names& names) {
  std::vector<Line> lines;
  const auto add = [&](std::optional<size_t> before) {
    for (const TableSpec::AddedLine& line : added) {
      if (line.before != before) continue;
      std::vector<std::string> labels;
      for (size_t i = 0; i < line.labels.size(); ++i) {
        labels.push_back(line.labels[i].text);
        if (!line.labels[i].latex.empty()) names.emplace(axes[i] + "=" + line.labels[i].text, line.labels[i]);
      }
      lines.push_back({labels, line.sum, &line, line.score.empty() ? score : line.score});
    }
  };
  for (size_t i = 0; i < of_layout.size(); ++i) {
    add(i);
    lines.insert(lines.end(), of_layout[i].begin(), of_layout[i].end());
  }
  add(std::nullopt);
  return lines;
}

namespace {

/// Cells of the table → weight.
using TableTerms = std::vector<std::pair<const TableCell*, double>>;

/// The published numbers are summed as the runs' are, if all of the cells have one.
TableCell sum_of(const TableTerms& terms) {
  TableCell sum{.is_sum = true};
  Terms cells;
  Total published;
  bool all_published = true;
  for (const auto& [one, weight] : terms) {
    cells.emplace_back(&one->cell, weight);
    const nlohmann::json value = one->published_value();
    all_published &= value.is_number();
    if (value.is_number()) published.add(weight * value.get<double>());
  }
  sum.cell = weighted_sum(cells);
  if (all_published) sum.published.push_back({published.sum()});
  return sum;
}

/// Null: the row has none there.
const PublishedNumber* published_at(const TableSpec::AddedLine& row, size_t column, const std::string& score,
                                    const std::string& first_score) {
  const std::map<std::string, PublishedNumber>& by_score = row.published[column];
  auto found = by_score.find(score);
  if (found == by_score.end() && score == first_score) found = by_score.find("");
  return found == by_score.end() || found->second.value.is_null() ? nullptr : &found->second;
}

}  // namespace

TableCell cell_of(const Line& row, const Line& column, const Base& base) {
  static const TableCell kNone;
  TableTerms terms;
  const auto add = [&](const std::vector<std::pair<size_t, double>>& rows, double sign) {
    for (const auto& [r, row_weight] : rows) {
      for (const auto& [c, column_weight] : column.sum) {
        const auto found = base.find({r, c, column.score});
        terms.emplace_back(found == base.end() ? &kNone : &found->second, sign * row_weight * column_weight);
      }
    }
  };
  add(row.sum, 1);
  if (!row.added && !column.added) return *terms.front().first;
  if (column.added && column.added->baseline) {
    double weight = 0;  // of a difference of rows it is 0: the baseline is in both
    for (const auto& [r, row_weight] : row.sum) weight += row_weight;
    if (std::abs(weight) > 0.5) add({{*column.added->baseline, 1}}, -weight);
  }
  TableCell sum = sum_of(terms);
  sum.is_difference = (row.added && row.added->is_difference) || (column.added && column.added->is_difference);
  return sum;
}

TableCell published_cell(const Line& row, const Line& column, const std::vector<std::string>& first_scores,
                         const Base& base) {
  std::vector<TableCell> cells(column.sum.size());
  TableTerms terms;
  for (size_t i = 0; i < cells.size(); ++i) {
    const auto& [c, weight] = column.sum[i];
    if (const auto* number = published_at(*row.added, c, column.score, first_scores[c])) cells[i].published = {*number};
    terms.emplace_back(&cells[i], weight);
  }
  if (!column.added) return cells.front();
  for (const auto& [c, weight] : column.added->baseline ? column.sum : decltype(column.sum)()) {
    const auto found = base.find({*column.added->baseline, c, column.score});
    if (found != base.end()) terms.emplace_back(&found->second, -weight);
  }
  TableCell sum = sum_of(terms);
  sum.is_sum = false;  // nothing was measured
  sum.is_difference = column.added->is_difference;
  return sum;
}

}  // namespace tearless::harness
