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

/// What sets `key` in the run of a row; null if nothing does.
const Setting* setting_of(const Grid& grid, const Row& row, const std::string& key) {
  const auto in = [&](const Settings& settings) {
    const auto found = settings.find(key);
    return found == settings.end() ? nullptr : &found->second;
  };
  const Setting* last = in(grid.base);
  for (const Axis& axis : grid.axes) {
    const auto point = std::ranges::find(axis.points, label_on(row.run.coordinates, axis.name), &AxisPoint::label);
    if (point == axis.points.end()) continue;
    if (std::ranges::find(point->unset, key) != point->unset.end()) last = nullptr;
    if (const Setting* own = in(point->set)) last = own;
  }
  const auto computed = std::ranges::find(grid.computed, key, &Computed::key);
  return computed == grid.computed.end() ? last : &computed->written;
}

/// Whether a base file sets it, and `decider`, if anything sets that, is set elsewhere.
bool is_overridden(const Setting& setting, const Setting* decider) {
  const auto file_of = [](const Setting& one) { return one.location.substr(0, one.location.rfind(':')); };
  return setting.is_of_base_file && !(decider && file_of(*decider) == file_of(setting));
}

/// The settings that none of the runs needs that have them, but for keys that `axes` change.
void add_unused(const Grid& grid, const std::set<std::string>& axes, const std::vector<Row>& rows,
                std::vector<NoEffect>& all) {
  std::set<std::string> keys;
  for (const Row& row : rows) {
    if (!row.is_trained() || !row.refusal.empty()) continue;
    for (const auto& [key, why] : row.run.unused) keys.insert(key);
  }
  for (const std::string& key : keys) {
    if (axes.contains(key)) continue;
    std::map<std::string, Found> found;  // by location
    std::set<std::string> used;          // locations
    for (const Row& row : rows) {
      const Setting* const setting = row.is_trained() && row.refusal.empty() ? setting_of(grid, row, key) : nullptr;
      if (!setting) continue;
      const auto why = row.run.unused.find(key);
      const std::string by = why == row.run.unused.end() ? "" : why->second.substr(0, why->second.find(" = "));
      if (why == row.run.unused.end() || is_overridden(*setting, setting_of(grid, row, by))) {
        used.insert(setting->location);
        continue;
      }
      Found& one = found[setting->location];
      one.rows.insert(&row);
      one.runs.insert(row.run.id);
      if (!why->second.empty()) one.because.insert(why->second);
    }
    for (const auto& [location, one] : found) {
      if (used.contains(location)) continue;
      all.push_back({.axis = fmt::format("{} ({})", key, location),
                     .labels = {},
                     .rows = std::ssize(one.rows),
                     .runs = std::ssize(one.runs),
                     .because = {one.because.begin(), one.because.end()}});
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
  std::set<std::string> keys_of_axes;
  for (const Axis& axis : grid.axes) {
    Found found;
    const std::set<std::string> keys = keys_of(axis);
    for (const auto& [run, equal] : by_run) add_equal(axis, keys, equal, found);
    if (found.rows.empty()) continue;
    keys_of_axes.insert(keys.begin(), keys.end());
    NoEffect& one = all.emplace_back(NoEffect{.axis = axis.name,
                                              .labels = {},
                                              .rows = std::ssize(found.rows),
                                              .runs = std::ssize(found.runs),
                                              .because = {found.because.begin(), found.because.end()}});
    for (const AxisPoint& point : axis.points) {
      if (found.labels.contains(point.label)) one.labels.push_back(point.label);
    }
  }
  add_unused(grid, keys_of_axes, rows, all);
  for (const Derivation& derivation : grid.derivations) add_unused(derivation, rows, all);
  return all;
}

std::vector<NoEffect> without_effect(const std::vector<View>& views) {
  const bool has_claims =
      std::ranges::any_of(views, [](const View& view) { return std::holds_alternative<ClaimSpec>(view.spec); });
  std::vector<NoEffect> all;
  const auto add = [&](const std::vector<IdleKey>& keys) {
    for (const IdleKey& one : keys) {
      if (one.unless_claims && has_claims) continue;
      NoEffect& added = all.emplace_back();
      added.axis = one.key;
      if (!one.because.empty()) added.because = {one.because};
    }
  };
  for (const View& view : views) {
    if (const auto* table = std::get_if<TableSpec>(&view.spec)) add(table->idle);
    if (const auto* figure = std::get_if<FigureSpec>(&view.spec)) add(figure->idle);
  }
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
