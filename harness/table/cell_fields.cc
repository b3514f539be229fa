// The fields of a cell in CSV and JSON, and what they say of it.
#include <algorithm>
#include <iterator>

#include "harness/table/table.h"

namespace tearless::harness {
namespace {

using nlohmann::json;

json number(const std::optional<double>& value) { return value ? json(*value) : json(); }

/// What a cell is, in one word. The first that applies: a cell with runs to come is "missing" whatever the others did.
const char* state_of(const TableCell& one) {
  const Cell& cell = one.cell;
  if (cell.expected == 0) return cell.is_excluded ? "left_out" : one.published.empty() ? "not_in_grid" : "published";
  if (cell.missing() > 0) return "missing";
  if (cell.n() > 0) return "done";
  if (cell.count(Cell::End::kNotChosen) > 0) return "not_chosen";
  if (cell.diverged() > 0) return "diverged";
  if (cell.count(Cell::End::kFailed) > 0) return "failed";
  return cell.count(Cell::End::kBelow) > 0 ? "below" : "scoreless";
}

json by_seed(const std::vector<SeedValue>& values) {
  json object = json::object();
  for (const SeedValue& one : values) object[std::to_string(one.seed)] = one.value;
  return object;
}

// clang-format off
constexpr CellField kFields[] = {
    {"state",      [](const TableCell& c) { return json(state_of(c)); }, /*in_csv=*/false},
    {"mean",       [](const TableCell& c) { return number(c.cell.mean()); }},
    {"spread",     [](const TableCell& c) { return number(c.cell.spread()); }},
    {"n",          [](const TableCell& c) { return json(c.cell.n()); }},
    {"values",     [](const TableCell& c) { return by_seed(c.cell.values); }, /*in_csv=*/false},
    {"delta",      [](const TableCell& c) { return number(c.comparison.delta); }, /*in_csv=*/false},
    {"ratio",      [](const TableCell& c) { return number(c.comparison.ratio); }, /*in_csv=*/false},
    {"p",          [](const TableCell& c) { return number(c.comparison.p); }, /*in_csv=*/false},
    {"corrected_p", [](const TableCell& c) { return number(c.comparison.corrected_p); }, /*in_csv=*/false},
    {"bold",       [](const TableCell& c) { return json(c.is_bold); }, /*in_csv=*/false},
    {"repeats",    [](const TableCell& c) { return json(c.repeats); }, /*in_csv=*/false},
    {"expected",   [](const TableCell& c) { return json(c.cell.expected); }},
    {"diverged",   [](const TableCell& c) { return json(c.cell.diverged()); }},
    {"below",      [](const TableCell& c) { return json(c.cell.count(Cell::End::kBelow)); }},
    {"failed",     [](const TableCell& c) { return json(c.cell.count(Cell::End::kFailed)); }},
    {"scoreless",  [](const TableCell& c) { return json(c.cell.count(Cell::End::kScoreless)); }},
    {"missing",    [](const TableCell& c) { return json(c.cell.missing()); }},
    {"stale",      [](const TableCell& c) { return json(c.cell.origins.stale); }},
    {"mixed",      [](const TableCell& c) { return json(c.cell.origins.mixed()); }},
    {"chosen",     [](const TableCell& c) { return json(c.cell.chosen.labels); }},
    {"tied",       [](const TableCell& c) { return json(c.cell.chosen.is_tied); }, /*in_csv=*/false},
    {"published",  [](const TableCell& c) { return c.published_value(); }},
    {"difference", [](const TableCell& c) { return number(c.difference()); }},
    {"runs",       [](const TableCell& c) { return json(c.cell.runs); }},
    {"reason",     [](const TableCell& c) { return json(c.cell.chosen.reason); }, /*in_csv=*/true, &Table::has_choices},
    {"equivalent", [](const TableCell& c) { return json(c.comparison.is_equivalent); }, /*in_csv=*/true, &Table::has_limits},
};
// clang-format on

}  // namespace

nlohmann::json TableCell::published_value() const { return published.empty() ? json() : published.front().value; }

std::optional<double> TableCell::difference() const {
  const json theirs = published_value();
  const std::optional<double> ours = cell.mean();
  return ours && theirs.is_number() ? std::optional(*ours - theirs.get<double>()) : std::nullopt;
}

std::vector<CellField> cell_fields(const Table& table) {
  std::vector<CellField> fields;
  std::ranges::copy_if(kFields, std::back_inserter(fields),
                       [&](const CellField& one) { return !one.only_with || table.*one.only_with; });
  return fields;
}

}  // namespace tearless::harness
