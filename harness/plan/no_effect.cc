#include "harness/plan/no_effect.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/words.h"

namespace tearless::harness {
namespace {

using Labels = std::vector<std::pair<std::string, std::string>>;

Labels without(const Labels& labels, const std::string& axis) {
  Labels others;
  std::ranges::copy_if(labels, std::back_inserter(others), [&](const auto& one) { return one.first != axis; });
  return others;
}

/// The keys that an axis changes.
std::set<std::string> keys_of(const Axis& axis) {
  std::set<std::string> keys;
  for (const AxisPoint& point : axis.points) {
    for (const auto& [key, setting] : point.set) keys.insert(key);
    keys.insert(point.unset.begin(), point.unset.end());
  }
  return keys;
}

struct Found {
  std::set<std::string> labels, runs;
  std::set<const Row*> rows;
  std::set<std::string> because;
};

/// Adds what one axis leaves equal among rows that are one run.
void add_equal(const Axis& axis, const std::set<std::string>& keys, const std::vector<const Row*>& rows, Found& found) {
  std::map<Labels, std::vector<const Row*>> by_others;
  for (const Row* row : rows) by_others[without(row->run.coordinates, axis.name)].push_back(row);
  for (const auto& [others, equal] : by_others) {
    if (equal.size() < 2) continue;
    for (const Row* row : equal) {
      found.rows.insert(row);
      found.runs.insert(row->run.id);
      found.labels.insert(label_on(row->run.coordinates, axis.name));
      for (const auto& [key, why] : row->run.unused) {
        if (keys.contains(key) && !why.empty()) found.because.insert(why);
      }
    }
  }
}

/// The settings of a derivation that none of its runs needs.
void add_unused(const Derivation& derivation, const std::vector<Row>& rows, std::vector<NoEffect>& all) {
  for (const auto& [key, setting] : derivation.set) {
    Found found;
    bool is_used = false;
    for (const Row& row : rows) {
      if (row.derivation != derivation.name || !row.refusal.empty()) continue;
      const auto why = row.run.unused.find(key);
      is_used |= why == row.run.unused.end();
      if (is_used) break;
      found.rows.insert(&row);
      found.runs.insert(row.run.id);
      if (!why->second.empty()) found.because.insert(why->second);
    }
    if (is_used || found.rows.empty()) continue;
    all.push_back({.axis = fmt::format("{}.{} {}", kDerivedLabel, derivation.name, key.substr(key.find('.') + 1)),
                   .labels = {},
                   .rows = std::ssize(found.rows),
                   .runs = std::ssize(found.runs),
                   .because = {found.because.begin(), found.because.end()}});
  }
}

}  // namespace

std::vector<NoEffect> without_effect(const Grid& grid, const std::vector<Row>& rows) {
  std::map<std::tuple<std::string, int64_t>, std::vector<const Row*>> by_run;
  for (const Row& row : rows) {
    if (row.is_trained() && row.refusal.empty()) by_run[{row.run.id, row.run.seed}].push_back(&row);
  }
  std::erase_if(by_run, [](const auto& run) { return run.second.size() < 2; });
  std::vector<NoEffect> all;
  for (const Axis& axis : grid.axes) {
    Found found;
    const std::set<std::string> keys = keys_of(axis);
    for (const auto& [run, equal] : by_run) add_equal(axis, keys, equal, found);
    if (found.rows.empty()) continue;
    NoEffect& one = all.emplace_back(NoEffect{.axis = axis.name,
                                              .labels = {},
                                              .rows = std::ssize(found.rows),
                                              .runs = std::ssize(found.runs),
                                              .because = {found.because.begin(), found.because.end()}});
    for (const AxisPoint& point : axis.points) {
      if (found.labels.contains(point.label)) one.labels.push_back(point.label);
    }
  }
  for (const Derivation& derivation : grid.derivations) add_unused(derivation, rows, all);
  return all;
}

std::string text_of(const NoEffect& one) {
  constexpr size_t kMaxShown = 6;
  const std::string why =
      one.because.empty() ? "" : fmt::format("; {} switches it off", some_of(one.because, kMaxShown, " or "));
  if (one.labels.empty()) return one.axis + why;
  return fmt::format("{} ({}): {} rows are {}{}", one.axis, some_of(one.labels, kMaxShown, ", "), one.rows,
                     counted(one.runs, "run"), why);
}

}  // namespace tearless::harness
