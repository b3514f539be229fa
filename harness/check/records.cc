// Checks for programs: CSV and JSON, numbers in full precision.
#include <fmt/ranges.h>

#include "harness/check/check.h"

namespace tearless::harness {
namespace {

using nlohmann::json;

json number(const std::optional<double>& value) { return value ? json(*value) : json(); }

std::optional<double> low(const Check& check) {
  return check.finding.interval ? std::optional(check.finding.interval->first) : std::nullopt;
}
std::optional<double> high(const Check& check) {
  return check.finding.interval ? std::optional(check.finding.interval->second) : std::nullopt;
}

json place_of(const Check& check) {
  json place = json::object();
  for (const auto& [axis, label] : check.place) place[axis] = label;
  return place;
}

json caveats_in(const Check& check) {
  json words = json::array();
  for (const Caveat& caveat : check.caveats) words.push_back(caveat.word);
  return words;
}

struct Field {
  const char* name;
  json (*value)(const Check&);
};
// clang-format off
constexpr Field kFields[] = {
    {"grid",     [](const Check& c) { return json(c.grid); }},
    {"name",     [](const Check& c) { return json(c.name); }},
    {"text",     [](const Check& c) { return json(c.text.text); }},
    {"source",   [](const Check& c) { return json(c.source.text); }},
    {"kind",     [](const Check& c) { return json(c.kind); }},
    {"score",    [](const Check& c) { return json(c.score); }},
    {"limit",    [](const Check& c) { return json(c.limit); }},
    {"place",    place_of},
    {"verdict",  [](const Check& c) { return json(name_of(c.finding.verdict)); }},
    {"estimate", [](const Check& c) { return number(c.finding.estimate); }},
    {"low",      [](const Check& c) { return number(low(c)); }},
    {"high",     [](const Check& c) { return number(high(c)); }},
    {"n",        [](const Check& c) { return json(c.finding.n); }},
    {"level",    [](const Check& c) { return number(c.finding.level); }},
    {"look",     [](const Check& c) { return c.look ? json(c.look->number) : json(); }},
    {"looks",    [](const Check& c) { return c.look ? json(c.look->of) : json(); }},
    {"seeds",    [](const Check& c) { return c.look ? json(c.look->seeds) : json(); }},
    {"reason",   [](const Check& c) { return json(c.finding.reason); }},
    {"unit",     [](const Check& c) { return json(c.unit); }},
    {"caveats",  caveats_in},
    {"declared", [](const Check& c) { return json(c.declared_on); }},
    {"hash",     [](const Check& c) { return json(c.hash); }},
};
// clang-format on

/// A place as words of a command line, "axis=label axis=label".
std::string csv_value(const json& value) {
  if (!value.is_object()) return value_text(value);
  std::vector<std::string> words;
  for (const auto& [axis, label] : value.items()) words.push_back(axis + "=" + label.get<std::string>());
  return fmt::format("{}", fmt::join(words, ", "));
}

json records_of(const std::vector<Check>& checks) {
  json records = json::array();
  for (const Check& check : checks) {
    json record = json::object();
    for (const Field& field : kFields) record[field.name] = field.value(check);
    records.push_back(std::move(record));
  }
  return records;
}

void add_all(const json& from, json& to) { to.insert(to.end(), from.begin(), from.end()); }

json counts_object(const VerdictCounts& counts) {
  json object = json::object();
  for (size_t i = 0; i < counts.size(); ++i) object[name_of(static_cast<ClaimVerdict>(i))] = counts[i];
  return object;
}

}  // namespace

std::string render_csv(const std::vector<GridChecks>& all, Formulas formulas) {
  std::vector<std::string> header;
  for (const Field& field : kFields) header.emplace_back(field.name);
  std::string text = csv_header(header, formulas);
  for (const GridChecks& grid : all) {
    for (const auto* checks : {&grid.claims, &grid.cells}) {
      for (const Check& check : *checks) {
        std::vector<std::string> line;
        for (const Field& field : kFields) line.push_back(csv_value(field.value(check)));
        text += csv_line(line, formulas);
      }
    }
  }
  return text;
}

nlohmann::json json_of(const std::vector<GridChecks>& all) {
  json claims = json::array(), cells = json::array();
  for (const GridChecks& grid : all) {
    add_all(records_of(grid.claims), claims);
    add_all(records_of(grid.cells), cells);
  }
  const CheckCounts counts = counts_of(all);
  return {{"claims", std::move(claims)},
          {"cells", std::move(cells)},
          {"counts", {{"claims", counts_object(counts.claims)}, {"cells", counts_object(counts.cells)}}}};
}

}  // namespace tearless::harness
