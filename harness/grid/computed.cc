#include "harness/grid/computed.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <span>

#include "base/error.h"
#include "base/nearest.h"
#include "base/table_reader.h"

namespace tearless::harness {
namespace {

using nlohmann::json;

constexpr size_t kMaxComputed = 1'000;  // each may need the next: the depth of a recursion

const Computed* find(const Grid& grid, const std::string& key) {
  const auto found = std::ranges::find(grid.computed, key, &Computed::key);
  return found == grid.computed.end() ? nullptr : &*found;
}

/// The keys that runs of the grid may have, computed ones apart.
std::set<std::string> keys_of(const Grid& grid) {
  std::set<std::string> keys = {grid.seed_key};
  for (const auto& [key, setting] : grid.base) keys.insert(key);
  for (const Axis& axis : grid.axes) {
    for (const AxisPoint& point : axis.points) {
      for (const auto& [key, setting] : point.set) keys.insert(key);
    }
  }
  return keys;
}

Computed load_one(const std::string& key, const json& value, const std::string& location, const Grid& grid) {
  if (!value.is_string()) {
    fail("{}: [computed] {} must be an expression in quotes, such as \"4 * model.d_model\"; a value belongs in [set]",
         location, key);
  }
  if (key == grid.seed_key) fail("{}: {} is set by seeds and cannot be computed", location, key);
  const auto base = grid.base.find(key);
  if (base != grid.base.end() && base->second.location.starts_with("--set ")) {
    fail("{}: [computed] sets it (at {}); set what it is calculated from", base->second.location, location);
  }
  if (base != grid.base.end() && !base->second.value.is_number()) {
    fail("{}: [computed] {} would be a number, and is {} at {}", location, key, toml_value(base->second.value),
         base->second.location);
  }
  for (const Axis& axis : grid.axes) {
    for (const AxisPoint& point : axis.points) {
      if (!point.set.contains(key) && std::ranges::find(point.unset, key) == point.unset.end()) continue;
      fail("{}: {} is computed, and the axis {} sets it, too (at {}); remove one of the two", location, key, axis.name,
           point.location);
    }
  }
  const auto text = value.get<std::string>();
  try {
    return {.key = key, .expression = Expression(text), .written = {value, "", location}};
  } catch (const UserError& error) {
    fail("{}: {} = \"{}\": {}", location, key, text, error.what());
  }
}

/// `keys`: those that runs of the grid may have.
void require_known_names(const Computed& one, const std::set<std::string>& keys, const Grid& grid) {
  for (const std::string& name : one.expression.names()) {
    if (!keys.contains(name)) {
      const auto longer = keys.lower_bound(name + "-");
      if (longer != keys.end() && longer->starts_with(name + "-"))
        fail("{}: {} needs {}; a name with \"-\" is put in quotes: '{}'", one.written.location, one.key, name, *longer);
      fail("{}: {} needs {}, which the grid does not set{}; write its value in [set]", one.written.location, one.key,
           name, did_you_mean(name, std::vector<std::string>(keys.begin(), keys.end())));
    }
    const auto base = grid.base.find(name);
    if (base != grid.base.end() && !base->second.value.is_number()) {
      fail("{}: {} needs {}, which is no number but {} (at {})", one.written.location, one.key, name,
           toml_value(base->second.value), base->second.location);
    }
  }
}

/// Adds `one` to `sorted` after those that it needs. `open`: those that need it, outermost first.
void add_sorted(const Computed& one, const std::vector<Computed>& all, std::vector<std::string>& open,
                std::vector<Computed>& sorted) {
  if (std::ranges::find(sorted, one.key, &Computed::key) != sorted.end()) return;
  const auto again = std::ranges::find(open, one.key);
  if (again != open.end()) {
    fail("{}: computed settings need each other: {} needs {}", one.written.location,
         fmt::join(std::span(again, open.end()), " needs "), one.key);
  }
  open.push_back(one.key);
  for (const std::string& name : one.expression.names()) {
    const auto needed = std::ranges::find(all, name, &Computed::key);
    if (needed != all.end()) add_sorted(*needed, all, open, sorted);
  }
  open.pop_back();
  sorted.push_back(one);
}

/// The number as the target's type has it: whole if the base has a whole number there.
json typed(const Grid& grid, const Computed& one, const Number& number) {
  const auto base = grid.base.find(one.key);
  const auto* whole = std::get_if<int64_t>(&number);
  if (base == grid.base.end()) return whole ? json(*whole) : json(std::get<double>(number));
  if (base->second.value.is_number_float())
    return whole ? json(static_cast<double>(*whole)) : json(std::get<double>(number));
  if (whole) return *whole;
  constexpr double kMaxExact = 9007199254740992;  // 2^53
  const double value = std::get<double>(number);
  if (value != std::floor(value) || std::abs(value) > kMaxExact) {
    fail("it is {}, and the setting is a whole number (at {}); use round(), floor() or ceil()", toml_value(json(value)),
         base->second.location);
  }
  return static_cast<int64_t>(value);
}

json evaluate(const Grid& grid, const Computed& one, const std::function<json(const std::string&)>& value_of) {
  try {
    return typed(grid, one, one.expression.value([&](const std::string& name) -> Number {
      const json value = value_of(name);
      if (value.is_null()) fail("this run has no {}", name);
      if (!value.is_number()) fail("{} is no number but {}", name, toml_value(value));
      if (value.is_number_integer()) return value.get<int64_t>();
      return value.get<double>();
    }));
  } catch (const UserError& error) {
    fail("{}: {} = \"{}\": {}", one.written.location, one.key, one.written.value.get<std::string>(), error.what());
  }
}

}  // namespace

void load_computed(const toml::table* table, const std::string& file, Grid& grid) {
  if (!table) return;
  const WrittenSettings written = flatten_toml(*table, file);
  if (written.values.size() > kMaxComputed) {
    fail("{}: [computed] has more than {} settings; split the grid", file, kMaxComputed);
  }
  std::vector<Computed> all;
  for (const auto& [key, value] : written.values) all.push_back(load_one(key, value, written.location_of(key), grid));
  std::set<std::string> keys = keys_of(grid);
  for (const Computed& one : all) keys.insert(one.key);
  for (const Computed& one : all) require_known_names(one, keys, grid);
  std::vector<std::string> open;
  std::vector<Computed> sorted;
  for (const Computed& one : all) add_sorted(one, all, open, sorted);
  grid.computed = std::move(sorted);
}

bool is_computed(const Grid& grid, const std::string& key) { return find(grid, key) != nullptr; }

bool needs_seed(const Grid& grid, const std::string& key) {
  std::set<std::string> needing = {grid.seed_key};
  for (const Computed& one : grid.computed) {  // each after those that it needs
    if (std::ranges::any_of(one.expression.names(), [&](const auto& name) { return needing.contains(name); }))
      needing.insert(one.key);
  }
  return key != grid.seed_key && needing.contains(key);
}

json computed_value(const Grid& grid, PointIndex index, const std::string& key) {
  json::object_t known;
  const std::function<json(const std::string&)> value = [&](const std::string& name) {
    const Computed* one = find(grid, name);
    if (!one) return value_of(grid, index, name);
    if (const auto it = known.find(name); it != known.end()) return it->second;
    return known[name] = evaluate(grid, *one, value);
  };
  return value(key);
}

void add_computed(const Grid& grid, json::object_t& settings) {
  for (const Computed& one : grid.computed) {
    settings[one.key] = evaluate(grid, one, [&](const std::string& name) {
      const auto it = settings.find(name);
      return it == settings.end() ? json() : it->second;
    });
  }
}

}  // namespace tearless::harness
