// The fields of a cell in CSV and JSON, and what they say of it.
#include <algorithm>

#include "harness/runs/attempt_files.h"
#include "harness/statistics/stats.h"
#include "harness/table/table.h"

namespace tearless::harness {
namespace {

using nlohmann::json;

json number(const std::optional<double>& value) { return value ? json(*value) : json(); }

/// What a cell is, in one word. The first that applies: a cell with runs to come is "missing" whatever the others did.
const char* state_of(const Cell& cell) {
  if (cell.expected == 0) return cell.excluded ? "left_out" : cell.published.empty() ? "not_in_grid" : "published";
  if (cell.missing() > 0) return "missing";
  if (cell.n() > 0) return "done";
  if (cell.diverged > 0) return "diverged";
  if (cell.failed > 0) return "failed";
  return cell.below > 0 ? "below" : "scoreless";
}

json by_seed(const std::vector<SeedValue>& values) {
  json object = json::object();
  for (const SeedValue& one : values) object[std::to_string(one.seed)] = one.value;
  return object;
}

// clang-format off
constexpr CellField kFields[] = {
    {"state",      [](const Cell& c) { return json(state_of(c)); }, /*in_csv=*/false},
    {"mean",       [](const Cell& c) { return number(c.mean()); }},
    {"spread",     [](const Cell& c) { return number(c.spread()); }},
    {"n",          [](const Cell& c) { return json(c.n()); }},
    {"values",     [](const Cell& c) { return by_seed(c.values); }, /*in_csv=*/false},
    {"delta",      [](const Cell& c) { return number(c.delta); }, /*in_csv=*/false},
    {"ratio",      [](const Cell& c) { return number(c.ratio); }, /*in_csv=*/false},
    {"p",          [](const Cell& c) { return number(c.p); }, /*in_csv=*/false},
    {"corrected_p", [](const Cell& c) { return number(c.corrected_p); }, /*in_csv=*/false},
    {"bold",       [](const Cell& c) { return json(c.is_bold); }, /*in_csv=*/false},
    {"repeats",    [](const Cell& c) { return json(c.repeats); }, /*in_csv=*/false},
    {"expected",   [](const Cell& c) { return json(c.expected); }},
    {"diverged",   [](const Cell& c) { return json(c.diverged); }},
    {"below",      [](const Cell& c) { return json(c.below); }},
    {"failed",     [](const Cell& c) { return json(c.failed); }},
    {"scoreless",  [](const Cell& c) { return json(c.scoreless); }},
    {"missing",    [](const Cell& c) { return json(c.missing()); }},
    {"stale",      [](const Cell& c) { return json(c.stale); }},
    {"mixed",      [](const Cell& c) { return json(c.mixed()); }},
    {"chosen",     [](const Cell& c) { return json(c.chosen); }},
    {"tied",       [](const Cell& c) { return json(c.tied); }, /*in_csv=*/false},
    {"published",  [](const Cell& c) { return c.published_value(); }},
    {"difference", [](const Cell& c) { return number(c.difference()); }},
    {"runs",       [](const Cell& c) { return json(c.runs); }},
};
// clang-format on

}  // namespace

int Cell::mixed() const {
  size_t kinds = std::max({kinds_in(trained_on), trained_by.size(), kinds_in(measured_on)});
  for (const auto& [derivation, machines] : derived_on) kinds = std::max(kinds, kinds_in(machines));
  return kinds > 1 ? static_cast<int>(kinds) : 0;
}

std::optional<double> Cell::mean() const { return harness::mean(numbers_of(values)); }
std::optional<double> Cell::spread() const { return sample_deviation(numbers_of(values)); }

nlohmann::json Cell::published_value() const { return published.empty() ? json() : published.front().value; }

std::optional<double> Cell::difference() const {
  const json theirs = published_value();
  const std::optional<double> ours = mean();
  return ours && theirs.is_number() ? std::optional(*ours - theirs.get<double>()) : std::nullopt;
}

std::span<const CellField> cell_fields() { return kFields; }

}  // namespace tearless::harness
