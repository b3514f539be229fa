#include "harness/grid/defined_score.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/nearest.h"
#include "harness/grid/sections.h"

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

/// of = [several scores of runs], take = "mean".
void read_mean(TableReader& reader, const toml::table& all, DefinedScore& score) {
  const std::string location = reader.location("of");
  score.mean_of = reader.texts("of");
  if (reader.text("take") != "mean")
    fail("{}: of several scores take = \"mean\" alone is known",
         reader.has("take") ? reader.location("take") : location);
  const std::set<std::string> distinct(score.mean_of.begin(), score.mean_of.end());
  if (score.mean_of.size() < 2 || distinct.size() < score.mean_of.size())
    fail("{}: of must name two scores or more, each once, as in [\"test.bleu\", \"dev.bleu\"]", location);
  for (const std::string& part : score.mean_of) {
    if (part.empty() || is_pattern(part))
      fail("{}: of: a mean is of scores that are named one by one, and \"{}\" is no name of one", location, part);
    if (all.contains(part))
      fail("{}: of: {} is a score of this file; a mean is of scores that the runs have", location, part);
  }
}

void read_limits(TableReader& reader, DefinedScore& score) {
  CurveLimits& limits = score.limits;
  limits.from = reader.number("from").value_or(limits.from);
  limits.to = reader.number("to").value_or(limits.to);
  if (!(limits.from < limits.to)) fail("{}: from must be below to", reader.location("from"));
  limits.last = reader.number("last").value_or(limits.last);
  if (!(limits.last > 0 && limits.last <= 1))
    fail("{}: last must be a share above 0 and at most 1: 0.1 is the last tenth", reader.location("last"));
  if (reader.has("last") && (reader.has("from") || reader.has("to")))
    fail("{}: last and from or to exclude each other", reader.location("last"));
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

/// of = a curve, take = a measure of it.
void read_curve(TableReader& reader, DefinedScore& score) {
  score.of = reader.text("of").value_or("");
  const std::string take = reader.text("take").value_or("");
  if (score.of.empty() || take.empty()) {
    fail(
        "{}: it needs `of` (a metric, scores of layers as in \"g.decoder.*.ffn\", or a list of scores) and `take` "
        "(what is measured)",
        reader.location());
  }
  if (std::ranges::count(score.of, '*') > 1)
    fail("{}: of = \"{}\" has more than one *, which stands for the layer", reader.location("of"), score.of);
  score.measure = &measure_called(take, reader.location("take"));
  read_limits(reader, score);
}

}  // namespace

std::vector<DefinedScore> read_defined_scores(const toml::table* table, const std::string& file) {
  std::vector<DefinedScore> scores;
  for (const auto& [name, node] : table ? in_written_order(*table) : decltype(in_written_order(*table))()) {
    const toml::table* section = node->as_table();
    if (!section) {
      fail("{}: a score that the grid defines is a section: [score.NAME] with of and take",
           TableReader(*table, "[score]", file).location(*node));
    }
    TableReader reader(*section, "[score." + name + "]", file);
    DefinedScore& score = scores.emplace_back(DefinedScore{.name = name, .location = reader.location()});
    const toml::node* of = section->get("of");
    if (of && of->is_array()) {
      read_mean(reader, *table, score);
    } else {
      read_curve(reader, score);
    }
    reader.refuse_leftovers();
  }
  return scores;
}

std::vector<std::string> parts_of(const std::vector<DefinedScore>& defined, const std::string& score) {
  const auto own = std::ranges::find(defined, score, &DefinedScore::name);
  return own == defined.end() || own->is_of_curve() ? std::vector{score} : own->mean_of;
}

}  // namespace tearless::harness
