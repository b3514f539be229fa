#include "harness/grid/curve_score.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/nearest.h"
#include "harness/grid/table_reader.h"

namespace tearless::harness {
namespace {

const CurveMeasure& measure_called(const std::string& name, const std::string& location) {
  std::vector<std::string> names;
  for (const CurveMeasure& measure : curve_measures()) {
    if (measure.name == name) return measure;
    names.emplace_back(measure.name);
  }
  fail("{}: take = \"{}\" is not known{}; it is one of: {}", location, name, did_you_mean(name, names),
       fmt::join(names, ", "));
}

void read_limits(TableReader& reader, CurveScore& score) {
  CurveLimits& limits = score.limits;
  limits.from = reader.number("from").value_or(limits.from);
  limits.to = reader.number("to").value_or(limits.to);
  if (!(limits.from < limits.to)) fail("{}: from must be below to", reader.location("from"));
  const unsigned keys = score.measure->keys;
  if (keys & CurveMeasure::kValue) {
    if (!reader.has("value")) fail("{}: {} needs value = a number", reader.location(), score.measure->name);
    limits.value = *reader.number("value");
    if (!std::isfinite(limits.value)) fail("{}: value must be a number", reader.location("value"));
  }
  if (keys & CurveMeasure::kWindow) {
    constexpr double kMost = 1e6;
    const double window = reader.number("window").value_or(limits.window);
    if (!(window >= 1 && window <= kMost) || window != std::floor(window))
      fail("{}: window must be a whole number from 1 to 1000000", reader.location("window"));
    limits.window = static_cast<int>(window);
  }
}

}  // namespace

std::vector<CurveScore> read_curve_scores(const toml::table* table, const std::string& file) {
  std::vector<CurveScore> scores;
  for (const auto& [name, node] : table ? in_written_order(*table) : decltype(in_written_order(*table))()) {
    const toml::table* section = node->as_table();
    if (!section) {
      fail("{}: a score of a curve is a section: [score.NAME] with of and take",
           TableReader(*table, "[score]", file).location(*node));
    }
    TableReader reader(*section, "[score." + name + "]", file);
    CurveScore score;
    score.name = name;
    score.location = reader.location();
    score.of = reader.text("of").value_or("");
    const std::string take = reader.text("take").value_or("");
    if (score.of.empty() || take.empty()) {
      fail("{}: it needs `of` (a metric, or scores of layers as in \"g.decoder.*.ffn\") and `take` (what is measured)",
           reader.location());
    }
    if (std::ranges::count(score.of, '*') > 1)
      fail("{}: of = \"{}\" has more than one *, which stands for the layer", reader.location("of"), score.of);
    score.measure = &measure_called(take, reader.location("take"));
    read_limits(reader, score);
    reader.refuse_leftovers();
    scores.push_back(std::move(score));
  }
  return scores;
}

}  // namespace tearless::harness
