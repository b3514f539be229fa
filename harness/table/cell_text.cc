#include <fmt/format.h>

#include "harness/table/table.h"

namespace tearless::harness {
namespace {

std::string fraction(int part, const Cell& cell, const char* what) {
  return part == 0 ? "" : fmt::format(", {}/{} {}", part, cell.expected, what);
}

/// The count of runs in the mean, and the counts of diverged and failed runs, in the shortest form that is complete.
std::string count_text(const Table& table, const Cell& cell) {
  const std::string bad = fraction(cell.diverged, cell, "div.") + fraction(cell.below, cell, "fail") +
                          fraction(cell.failed, cell, "failed");
  if (cell.scored == cell.expected) {
    return (table.show == TableSpec::Show::kMeanSpreadCount ? fmt::format(" (n={})", cell.scored) : "") + bad;
  }
  if (cell.missing() == 0 && !bad.empty()) return bad;
  return fmt::format(" ({}/{})", cell.scored, cell.expected) + bad;
}

std::string value_text(const Table& table, const Table::Column& column, const Cell& cell) {
  std::string text = fmt::format("{:.{}f}", *cell.mean, column.decimals);
  if (cell.spread && table.show != TableSpec::Show::kMean) {
    text += fmt::format(" ± {:.{}f}", *cell.spread, column.decimals);
  }
  if (cell.stale > 0) text += "*";
  if (cell.mixed > 0) text += "°";
  return text + count_text(table, cell);
}

/// The text of a cell without a mean.
std::string empty_text(const Table& table, const Cell& cell) {
  const auto all = [&](int part, const char* what) {
    return part == cell.expected ? fmt::format("{} ({}/{})", what, part, cell.expected) : "";
  };
  if (cell.expected == 0) return "left out";
  if (cell.scoreless == cell.expected) return "–";
  if (cell.diverged == cell.expected) return all(cell.diverged, "div.");
  if (cell.below == cell.expected) return all(cell.below, "fail");
  if (cell.failed == cell.expected) return all(cell.failed, "failed");
  return "–" + count_text(table, cell);
}

std::string published_text(const Table::Column& column, const Cell& cell) {
  if (cell.published.is_string()) {
    const auto word = cell.published.get<std::string>();
    return word.empty() ? "" : fmt::format(" [{}]", word);
  }
  if (!cell.published.is_number()) return "";
  const std::string number = fmt::format("{:.{}f}", cell.published.get<double>(), column.published_decimals);
  if (!cell.difference()) return fmt::format(" [{}]", number);
  return fmt::format(" [{}, {:+.{}f}]", number, *cell.difference(), column.decimals);
}

}  // namespace

std::optional<double> Cell::difference() const {
  if (!mean || !published.is_number()) return std::nullopt;
  return *mean - published.get<double>();
}

std::string cell_text(const Table& table, const Table::Column& column, const Cell& cell) {
  std::string text = cell.mean ? value_text(table, column, cell) : empty_text(table, cell);
  if (!cell.chosen.empty()) text += fmt::format(" @{}", cell.chosen);
  return text + published_text(column, cell);
}

}  // namespace tearless::harness
