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

Computed load_one(const std::string& key, const json& value, const std::string& location,
                  const std::set<std::string>& keys, const Grid& grid) {
  if (!value.is_string()) {
    fail("{}: [computed] {} must be an expression in quotes, such as \"4 * model.d_model\"; a value belongs in [set]",
         location, key);
  }
  if (key == grid.seed_key) fail("{}: {} is set by seeds and cannot be computed", location, key);
  const auto base = grid.base.find(key);
  if (base != grid.base.end() && base->second.location.starts_with("--set ")) {
    fail("{}: [computed] sets it (at {}); set what it is calculated from", base->second.location, location);
  }
  for (const Axis& axis : grid.axes) {
    for (const AxisPoint& point : axis.points) {
      if (!point.set.contains(key) && std::ranges::find(point.unset, key) == point.unset.end()) continue;
      fail("{}: {} is computed, and the axis {} sets it, too (at {}); remove one of the two", location, key, axis.name,
           point.location);
    }
  }
  const auto text = value.get<std::string>();
  return {.key = key, .expression = read_expression(text, key, text, location, keys), .written = {value, "", location}};
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

/// The value as the target's type has it: whole if the base has a whole number there.
json typed(const Grid& grid, const Computed& one, const json& value) {
  const auto base = grid.base.find(one.key);
  if (base == grid.base.end()) return value;
  const json& own = base->second.value;
  if (own.is_number() != value.is_number() || (!own.is_number() && own.type() != value.type()))
    fail("it is {}, and the setting is {} (at {})", toml_value(value), toml_value(own), base->second.location);
  if (own.is_number_float()) return value.get<double>();
  if (!own.is_number() || value.is_number_integer()) return value;
  constexpr double kMaxExact = 9007199254740992;  // 2^53
  const auto number = value.get<double>();
  if (number != std::floor(number) || std::abs(number) > kMaxExact) {
    fail("it is {}, and the setting is a whole number (at {}); use round(), floor() or ceil()", toml_value(value),
         base->second.location);
  }
  return static_cast<int64_t>(number);
}

json evaluate(const Grid& grid, const Computed& one, const std::function<json(const std::string&)>& value_of) {
  try {
    return typed(grid, one, one.expression.value([&](const std::string& name) {
      json value = value_of(name);
      if (value.is_null()) fail("this run has no {}; [set] may have a value for those without", name);
      return value;
    }));
  } catch (const UserError& error) {
    fail("{}: {} = \"{}\": {}", one.written.location, one.key, one.written.value.get<std::string>(), error.what());
  }
}

}  // namespace

std::set<std::string> keys_of(const Grid& grid) {
  std::set<std::string> keys = {grid.seed_key};
  for (const auto& [key, setting] : grid.base) keys.insert(key);
  for (const Axis& axis : grid.axes) {
    for (const AxisPoint& point : axis.points) {
      for (const auto& [key, setting] : point.set) keys.insert(key);
    }
  }
  for (const Computed& one : grid.computed) keys.insert(one.key);
  return keys;
}

Expression read_expression(const std::string& text, const std::string& key, const std::string& written,
                           const std::string& location, const std::set<std::string>& keys) {
  const auto is_key = [&](const std::string& word) {
    if (keys.contains(word)) return true;
    std::vector<std::string> quoted;  // a text that is nearly one of these is a mistyped key
    std::ranges::copy_if(keys, std::back_inserter(quoted), [](const auto& one) { return one.find('-') != one.npos; });
    if (const std::string neighbour = did_you_mean(word, quoted); !neighbour.empty())
      fail("the grid sets no {}{}", word, neighbour);
    return false;
  };
  const auto parsed = [&] {
    try {
      return Expression(text, is_key);
    } catch (const UserError& error) {
      fail("{}: {} = \"{}\": {}", location, key, written, error.what());
    }
  };
  Expression expression = parsed();
  for (const std::string& name : expression.names()) {
    if (keys.contains(name)) continue;
    const auto longer = keys.lower_bound(name + "-");
    if (longer != keys.end() && longer->starts_with(name + "-"))
      fail("{}: {} needs {}; a name with \"-\" is put in quotes: '{}'", location, key, name, *longer);
    fail("{}: {} needs {}, which the grid does not set{}; write its value in [set], or a text in quotes: '{}'",
         location, key, name, did_you_mean(name, std::vector<std::string>(keys.begin(), keys.end())), name);
  }
  return expression;
}

void load_computed(const toml::table* table, const std::string& file, Grid& grid) {
  if (!table) return;
  const WrittenSettings written = flatten_toml(*table, file);
  if (written.values.size() > kMaxComputed) {
    fail("{}: [computed] has more than {} settings; split the grid", file, kMaxComputed);
  }
  std::set<std::string> keys = keys_of(grid);
  for (const auto& [key, value] : written.values) keys.insert(key);
  std::vector<Computed> all;
  for (const auto& [key, value] : written.values)
    all.push_back(load_one(key, value, written.location_of(key), keys, grid));
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

void add_computed(const Grid& grid, json::object_t& settings, std::map<std::string, std::string>& folders) {
  for (const Computed& one : grid.computed) {
    settings[one.key] = evaluate(grid, one, [&](const std::string& name) {
      const auto it = settings.find(name);
      return it == settings.end() ? json() : it->second;
    });
    folders.erase(one.key);  // a path starts where the setting does that it begins with
    const std::string* first = one.expression.first_name();
    if (const auto it = first ? folders.find(*first) : folders.end(); it != folders.end())
      folders[one.key] = it->second;
  }
}

}  // namespace tearless::harness
