#include "harness/results/row.h"

#include <map>
#include <tuple>
#include <utility>

#include "base/run_directory.h"
#include "base/settings.h"
#include "harness/grid/grid.h"
#include "harness/runs/measured.h"

namespace tearless::harness {

bool Row::counts(bool count_diverged) const {
  return result.state == RunState::kDone ||
         (count_diverged && result.state == RunState::kDiverged && !result.scores.empty());
}

std::optional<double> Row::number(const std::string& score) const {
  const std::map<std::string, double>& numbers = is_measured(score) ? result.measured : result.scores;
  const auto found = numbers.find(score);
  return found == numbers.end() ? std::nullopt : std::optional(found->second);
}

std::string derivation_of(const Run& run) {
  if (const std::string& name = label_on(run.coordinates, kDerivedLabel); !name.empty()) return name;
  if (derived_from(run.settings).empty()) return "";
  const auto settings = parse_toml_settings(run.settings, "run " + run.id).values;
  const auto name = settings.find("derived.name");
  return name != settings.end() && name->second.is_string() ? name->second.get<std::string>() : run.id;
}

const Row& Replicate::row_of(const std::string& score) const {
  for (const Row* row : derived) {
    if (score.starts_with(row->derivation + ".")) return *row;
  }
  return *trained;
}

std::vector<SeedValue> values_of(const std::vector<Replicate>& replicates, const std::string& score,
                                 bool count_diverged) {
  std::vector<SeedValue> values;
  for (const Replicate& replicate : replicates) {
    const Row& row = replicate.row_of(score);
    const std::optional<double> value = row.number(score);
    if (row.counts(count_diverged) && value) values.push_back({row.run.seed, *value});
  }
  return values;
}

std::vector<Replicate> Group::replicates() const {
  std::vector<Replicate> found;
  std::map<std::tuple<std::string, std::string, int64_t>, size_t> places;  // sweep, trained run, seed → in `found`
  const auto place_of = [](const Row& row) { return std::tuple(row.sweep_id(), row.trained, row.run.seed); };
  for (const Row* row : rows) {
    if (!row->is_trained()) continue;
    places.emplace(place_of(*row), found.size());
    found.push_back({.trained = row});
  }
  for (const Row* row : rows) {
    if (row->is_trained()) continue;
    const auto of = places.find(place_of(*row));
    if (of != places.end()) found[of->second].derived.push_back(row);
  }
  return found;
}

std::vector<Group> group(const std::vector<Row>& rows, const std::function<RowKey(const Row&)>& key_of) {
  std::vector<Group> groups;
  std::map<RowKey, size_t> places;
  for (const Row& row : rows) {
    RowKey key = key_of(row);
    const auto [place, is_new] = places.emplace(key, groups.size());
    if (is_new) groups.push_back({.key = std::move(key), .rows = {}});
    groups[place->second].rows.push_back(&row);
  }
  return groups;
}

std::vector<Group> group(const std::vector<Row>& rows, const std::vector<std::string>& axes) {
  return group(rows, [&](const Row& row) {
    RowKey key;
    for (const std::string& axis : axes) key.push_back(label_on(row.run.coordinates, axis));
    return key;
  });
}

}  // namespace tearless::harness
