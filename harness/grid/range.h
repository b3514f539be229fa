// A range of values: { from = 1, to = 12, step = 2 }, { from = 1e-4, to = 1e-2, count = 5, scale = "log" }. Internal to
// harness/grid.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/toml.h"

namespace tearless::harness {

/// True for a table that can be nothing but a range, right or wrong: one without lists and tables.
bool is_range(const toml::table& table);

/// The values of a range, from the first to the last.
///   - `step`: from, from + step …, as far as `to`, which is among them if a step reaches it. Whole if from and step
///     are.
///   - `count`: that many, from and to among them, at equal distances, or at equal ratios with scale = "log". Whole if
///     from and to are and all distances, or with whole = true, which rounds; others are rounded to 6 significant
///     digits, so that labels stay short.
/// SEML's { type = "loguniform", min = 1e-4, max = 1e-2, num = 5 }, or "uniform", is the same with `count`.
/// UserError for a range with a mistake, one of other tools' keys, and one that has a value twice.
std::vector<nlohmann::json> range_of(const std::string& axis, const toml::table& table, const std::string& file);

}  // namespace tearless::harness
