#include "harness/grid/range.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/table_reader.h"

namespace tearless::harness {
namespace {

using nlohmann::json;

constexpr int64_t kMaxValues = 10'000;
constexpr int64_t kMaxExact = int64_t{1} << 53;

double rounded(double value, int digits) {
  return std::strtod(fmt::format("{:.{}e}", value, digits - 1).c_str(), nullptr);
}

/// How other tools call the keys of a range.
std::string own_name(const std::string& key) {
  static const std::map<std::string, std::string, std::less<>> names = {
      {"min", "from"}, {"start", "from"},  {"low", "from"},     {"lower", "from"}, {"max", "to"},
      {"stop", "to"},  {"end", "to"},      {"high", "to"},      {"upper", "to"},   {"num", "count"},
      {"n", "count"},  {"steps", "count"}, {"points", "count"}, {"q", "step"},     {"from", "from"},
      {"to", "to"},    {"count", "count"}, {"step", "step"}};
  const auto found = names.find(key);
  return found == names.end() ? "" : found->second;
}

/// A range as a person means it who wrote the table in another tool's words.
std::string suggestion(const toml::table& table) {
  std::map<std::string, std::string> parts = {{"from", "1e-4"}, {"to", "1e-2"}};
  bool is_log = false;
  for (const auto& [key, node] : in_written_order(table)) {
    const std::string own = own_name(key);
    if (!own.empty() && node->is_number()) parts[own] = toml_value(toml_to_json(*node, key, ""));
    if (const auto* text = node->as_string()) is_log |= text->get().find("log") != std::string::npos;
  }
  if (!parts.contains("step")) parts.emplace("count", "5");
  std::string text = fmt::format("from = {}, to = {}", parts["from"], parts["to"]);
  text += parts.contains("count") ? ", count = " + parts["count"] : ", step = " + parts["step"];
  return "{ " + text + (is_log ? ", scale = \"log\"" : "") + " }";
}

bool is_whole(const json& number) {
  return number.is_number_integer() && std::abs(number.get<double>()) <= static_cast<double>(kMaxExact);
}

std::vector<json> with_step(const json& from, const json& to, const json& step, const std::string& what) {
  const double first = from.get<double>(), distance = to.get<double>() - first, each = step.get<double>();
  if (each == 0 || (distance > 0) != (each > 0)) {
    if (distance != 0)
      fail("{}: steps of {} do not lead from {} to {}", what, toml_value(step), toml_value(from), toml_value(to));
  }
  // A last step that misses `to` by rounding alone reaches it.
  const double steps = each == 0 ? 0 : std::floor(distance / each + 1e-9);
  if (steps >= kMaxValues) fail("{}: it has more than {} values", what, kMaxValues);
  std::vector<json> values;
  for (int64_t i = 0; i <= static_cast<int64_t>(steps); ++i) {
    if (is_whole(from) && is_whole(step)) {
      values.emplace_back(from.get<int64_t>() + i * step.get<int64_t>());
    } else {
      values.emplace_back(rounded(first + static_cast<double>(i) * each, 12));
    }
  }
  return values;
}

std::vector<json> with_count(const json& from, const json& to, int64_t count, bool is_log, bool has_whole,
                             const std::string& what) {
  const double first = from.get<double>(), last = to.get<double>();
  if (count < 1 || count > kMaxValues) fail("{}: count must be from 1 to {}", what, kMaxValues);
  if (count == 1) fail("{}: a range of one value; write [{}]", what, toml_value(from));
  if (is_log && (first <= 0 || last <= 0)) fail("{}: scale = \"log\" needs values above 0", what);
  std::vector<json> values;
  bool all_whole = is_whole(from) && is_whole(to);
  for (int64_t i = 0; i < count; ++i) {
    const double part = static_cast<double>(i) / static_cast<double>(count - 1);
    double value =
        is_log ? std::exp(std::log(first) + part * (std::log(last) - std::log(first))) : first + part * (last - first);
    value = i == 0 ? first : i == count - 1 ? last : value;
    const double nearest = std::round(value);
    // Of a logarithmic range by rounding alone.
    const bool is_near = has_whole || std::abs(value - nearest) <= 1e-12 * std::abs(value);
    all_whole &= is_near;
    const bool is_end = i == 0 || i == count - 1;
    values.emplace_back(is_end ? value : is_near ? nearest : rounded(value, 6));
  }
  if (all_whole) {
    for (json& value : values) value = static_cast<int64_t>(value.get<double>());
  }
  return values;
}

}  // namespace

bool is_range(const toml::table& table) {
  return !table.empty() && std::none_of(table.begin(), table.end(), [](const auto& entry) {
    return entry.second.is_table() || entry.second.is_array();
  });
}

std::vector<json> range_of(const std::string& axis, const toml::table& table, const std::string& file) {
  const std::string what = fmt::format("{}:{}: the range of {}", file, table.source().begin.line, axis);
  std::optional<json> from, to, step;
  std::optional<int64_t> count;
  bool is_log = false, has_whole = false;
  const std::string type = table["type"].value<std::string>().value_or("");
  const bool is_of_seml = type == "uniform" || type == "loguniform";
  for (const auto& [key, node] : in_written_order(table)) {
    const bool is_finite = node->is_number() && std::isfinite(*node->value<double>());
    const auto number = [&, &key = key, &node = node]() -> json {
      if (!is_finite) fail("{}: {} must be a finite number", what, key);
      return toml_to_json(*node, key, file);
    };
    if (key == "from" || (is_of_seml && key == "min")) {
      from = number();
    } else if (key == "to" || (is_of_seml && key == "max")) {
      to = number();
    } else if (is_of_seml && key == "type") {
      is_log = type == "loguniform";
    } else if (key == "step") {
      step = number();
    } else if (key == "count" || (is_of_seml && key == "num")) {
      if (!node->is_integer()) fail("{}: count must be a whole number", what);
      count = node->as_integer()->get();
    } else if (key == "scale") {
      const std::string scale = node->value<std::string>().value_or("");
      if (scale != "log" && scale != "linear") fail("{}: scale must be \"linear\" or \"log\"", what);
      is_log = scale == "log";
    } else if (key == "whole") {
      if (!node->is_boolean()) fail("{}: whole must be true: all values are whole numbers", what);
      has_whole = node->as_boolean()->get();
    } else if (key == "value") {
      fail("{}: it has one value; a setting that does not vary is written below [set]", what);
    } else {
      fail("{}: unknown key \"{}\"; an axis is a list of values, or a range such as {} = {}", what, key, axis,
           suggestion(table));
    }
  }
  if (!from || !to || (step.has_value() == count.has_value()) || (step && is_log))
    fail("{} needs from, to and either count or step, as in {}", what, suggestion(table));
  if (has_whole && !(count && is_whole(*from) && is_whole(*to)))
    fail("{}: whole = true rounds what is between two whole numbers, from and to, of which there are count", what);
  std::vector<json> values =
      step ? with_step(*from, *to, *step, what) : with_count(*from, *to, *count, is_log, has_whole, what);
  for (size_t i = 1; i < values.size(); ++i) {
    if (values[i] != values[i - 1]) continue;
    fail("{}: it has {} twice; from and to are too near for {} values", what, toml_value(values[i]), values.size());
  }
  return values;
}

}  // namespace tearless::harness
