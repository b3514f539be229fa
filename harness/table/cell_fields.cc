// The fields of a cell. A new statistic is a function in stats.h and a row here.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/table/table.h"

namespace tearless::harness {
namespace {

using nlohmann::json;

json number(const std::optional<double>& value) { return value ? json(*value) : json(); }

/// What a cell is, in one word. The first that applies: a cell with runs to come is "missing" whatever the others did.
const char* state_of(const Cell& cell) {
  if (cell.expected == 0) return cell.excluded ? "left_out" : "not_in_grid";
  if (cell.missing() > 0) return "missing";
  if (cell.n() > 0) return "done";
  if (cell.diverged > 0) return "diverged";
  if (cell.failed > 0) return "failed";
  return cell.below > 0 ? "below" : "scoreless";
}

// --- parts of the text ---------------------------------------------------------------------------------------------

// How all runs of a cell without a mean ended, if they ended alike. "" for other cells.
std::string common_end(const Cell& cell) {
  if (cell.mean) return "";
  if (cell.expected == 0) return cell.excluded ? "left out" : " ";
  if (cell.scoreless == cell.expected) return "–";
  const auto all = [&](int runs, const char* what) { return fmt::format("{} ({}/{})", what, runs, cell.expected); };
  if (cell.diverged == cell.expected) return all(cell.diverged, "div.");
  if (cell.below == cell.expected) return all(cell.below, "fail");
  if (cell.failed == cell.expected) return all(cell.failed, "failed");
  return "";
}

// What decides whether the mean and its difference are written with an exponent: a mean that is nearly 0 beside its
// spread is 0.00.
double scale_of(const Cell& cell) { return std::max(std::abs(*cell.mean), cell.spread.value_or(0)); }

std::string mean_text(const Table&, const Table::Column& column, const Cell& cell) {
  if (cell.mean) return number_text(*cell.mean, scale_of(cell), column.digits);
  const std::string end = common_end(cell);
  return end.empty() ? "–" : end;
}

// With the marks of stale and mixed runs, which belong to the numbers.
std::string spread_text(const Table& table, const Table::Column& column, const Cell& cell) {
  const bool is_shown = cell.spread && table.show != TableSpec::Show::kMean;
  return (is_shown ? " ± " + number_text(*cell.spread, column.digits) : "") + (cell.stale > 0 ? "*" : "") +
         (cell.mixed > 0 ? "°" : "");
}

bool has_bad_runs(const Cell& cell) { return cell.diverged + cell.below + cell.failed + cell.scoreless > 0; }

// In the shortest form that is complete: " (n=3)", " (2/3)", or nothing where the counts of the bad runs say it.
std::string count_text(const Table& table, const Table::Column&, const Cell& cell) {
  if (!common_end(cell).empty()) return "";
  if (cell.n() == cell.expected) {
    return table.show == TableSpec::Show::kMeanSpreadCount ? fmt::format(" (n={})", cell.n()) : "";
  }
  if (cell.missing() == 0 && has_bad_runs(cell)) return "";
  return fmt::format(" ({}/{})", cell.n(), cell.expected);
}

std::string repeats_text(const Table&, const Table::Column&, const Cell& cell) { return cell.repeats ? " ≡" : ""; }

std::string part_text(int runs, const Cell& cell, const char* what) {
  return runs == 0 || !common_end(cell).empty() ? "" : fmt::format(", {}/{} {}", runs, cell.expected, what);
}
std::string diverged_text(const Table&, const Table::Column&, const Cell& cell) {
  return part_text(cell.diverged, cell, "div.");
}
std::string below_text(const Table&, const Table::Column&, const Cell& cell) {
  return part_text(cell.below, cell, "fail");
}
std::string failed_text(const Table&, const Table::Column&, const Cell& cell) {
  return part_text(cell.failed, cell, "failed");
}
std::string scoreless_text(const Table&, const Table::Column&, const Cell& cell) {
  return part_text(cell.scoreless, cell, "no score");
}

std::string chosen_text(const Table&, const Table::Column&, const Cell& cell) {
  return cell.chosen.empty() ? "" : fmt::format(" @{}{}", cell.chosen, cell.tied ? " (tied)" : "");
}

// As in the source: TOML drops the zeros at its end.
std::string published_number(double value, int decimals) {
  const std::string shortest = value_text(value);
  if (shortest.find('e') != std::string::npos) return shortest;
  return number_text(value, {.decimals = decimals, .is_given = true});
}

std::string published_text(const Table&, const Table::Column& column, const Cell& cell) {
  if (cell.published.is_string()) {
    const auto word = cell.published.get<std::string>();
    return word.empty() ? "" : fmt::format(" [{}]", word);
  }
  if (!cell.published.is_number()) return "";
  const std::string number = published_number(cell.published.get<double>(), column.published_decimals);
  if (!cell.difference()) return fmt::format(" [{}]", number);
  return fmt::format(" [{}, {}]", number, signed_text(*cell.difference(), scale_of(cell), column.digits));
}

// clang-format off
constexpr CellField kFields[] = {
    {"state",      [](const Cell& c) { return json(state_of(c)); }, /*in_csv=*/false},
    {"mean",       [](const Cell& c) { return number(c.mean); }, true, mean_text},
    {"spread",     [](const Cell& c) { return number(c.spread); }, true, spread_text},
    {"n",          [](const Cell& c) { return json(c.n()); }, true, count_text},
    {"repeats",    [](const Cell& c) { return json(c.repeats); }, /*in_csv=*/false, repeats_text},
    {"expected",   [](const Cell& c) { return json(c.expected); }},
    {"diverged",   [](const Cell& c) { return json(c.diverged); }, true, diverged_text},
    {"below",      [](const Cell& c) { return json(c.below); }, true, below_text},
    {"failed",     [](const Cell& c) { return json(c.failed); }, true, failed_text},
    {"scoreless",  [](const Cell& c) { return json(c.scoreless); }, true, scoreless_text},
    {"missing",    [](const Cell& c) { return json(c.missing()); }},
    {"stale",      [](const Cell& c) { return json(c.stale); }},
    {"mixed",      [](const Cell& c) { return json(c.mixed); }},
    {"chosen",     [](const Cell& c) { return json(c.chosen); }, true, chosen_text},
    {"tied",       [](const Cell& c) { return json(c.tied); }, /*in_csv=*/false},
    {"published",  [](const Cell& c) { return c.published; }, true, published_text},
    {"difference", [](const Cell& c) { return number(c.difference()); }},
    {"runs",       [](const Cell& c) { return json(c.runs); }},
};
// clang-format on

}  // namespace

std::optional<double> Cell::difference() const {
  if (!mean || !published.is_number()) return std::nullopt;
  return *mean - published.get<double>();
}

std::span<const CellField> cell_fields() { return kFields; }

std::string cell_text(const Table& table, const Table::Column& column, const Cell& cell) {
  std::string text;
  for (const CellField& field : kFields) {
    if (field.text) text += field.text(table, column, cell);
  }
  return text;
}

}  // namespace tearless::harness
