#include "harness/grid/expand.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/nearest.h"
#include "base/spelling.h"
#include "harness/grid/computed.h"
#include "harness/grid/conditions.h"
#include "harness/grid/point_hash.h"

namespace tearless::harness {
namespace {

constexpr size_t kMaxRuns = 200'000;  // a plan takes about 5 kB for each run

const Exclusion* exclusion_of(const Grid& grid, const Combination& combination) {
  for (const Exclusion& exclusion : grid.excludes) {
    if (all_hold(grid, combination.index, exclusion.when)) return &exclusion;
  }
  return nullptr;
}

/// The first point of an axis from `point` on that stands beside those of the axes before it; the number of its points
/// if there is none. From 0 on there is one: complete_axes().
uint32_t standing_from(const Grid& grid, const std::vector<uint32_t>& index, size_t axis, uint32_t point) {
  const Axis& own = grid.axes[axis];
  const auto count = static_cast<uint32_t>(own.points.size());
  if (!own.is_conditional) return point;
  while (point < count && !stands(grid, index, axis, point)) ++point;
  return point;
}

std::vector<uint32_t> first_index(const Grid& grid) {
  std::vector<uint32_t> index(grid.axes.size());
  for (size_t axis = 0; axis < index.size(); ++axis) index[axis] = standing_from(grid, index, axis, 0);
  return index;
}

/// Advances to the next combination, the last axis fastest. False after the last combination.
bool advance(const Grid& grid, std::vector<uint32_t>& index) {
  for (size_t axis = index.size(); axis-- > 0;) {
    index[axis] = standing_from(grid, index, axis, index[axis] + 1);
    if (index[axis] == grid.axes[axis].points.size()) continue;
    for (size_t later = axis + 1; later < index.size(); ++later) index[later] = standing_from(grid, index, later, 0);
    return true;
  }
  return false;
}

std::vector<std::string> labels_of(const Axis& axis) {
  std::vector<std::string> labels;
  for (const AxisPoint& point : axis.points) labels.push_back(point.label);
  return labels;
}

int64_t parse_seed(const Grid& grid, const std::string& text, const std::string& option) {
  const auto seed =
      std::ranges::find_if(grid.seeds, [&](int64_t one) { return is_same_value(std::to_string(one), text); });
  if (seed == grid.seeds.end()) {
    fail("{}: {} has no seed {}; it has: {}", option, grid.file.string(), text, fmt::join(grid.seeds, ", "));
  }
  return *seed;
}

/// The words of a sentence that may be keys. One in quotes keeps them and so is no key: it may be a suggestion, as in
/// (did you mean "model.norm.kind"?).
std::set<std::string> words_of(const std::string& sentence) {
  std::set<std::string> words;
  std::string word;
  for (const char c : sentence + " ") {
    if (std::isalnum(static_cast<unsigned char>(c)) || std::string_view("_-.\"").find(c) != std::string_view::npos) {
      word += c;
      continue;
    }
    if (word.ends_with('.')) word.pop_back();  // of the sentence
    words.insert(std::exchange(word, ""));
  }
  return words;
}

}  // namespace

bool can_be_listed(const Grid& grid) {
  double most = 1;
  for (const Axis& axis : grid.axes) most *= static_cast<double>(axis.points.size());
  if (most <= static_cast<double>(kMaxCombinations)) return true;
  if (std::ranges::none_of(grid.axes, &Axis::is_conditional)) return false;
  std::vector<uint32_t> index = first_index(grid);
  int64_t points = 1;
  while (points <= kMaxCombinations && advance(grid, index)) ++points;
  return points <= kMaxCombinations;
}

void for_each_point(const Grid& grid, const CombinationVisitor& visit) {
  Combination combination{.index = first_index(grid), .seed = grid.seeds.front()};
  do {
    visit(combination, exclusion_of(grid, combination));
  } while (advance(grid, combination.index));
}

void for_each_cell(const Grid& grid, const CombinationVisitor& visit) {
  if (grid.sample && !grid.sample->drawn.empty()) {
    for (const std::vector<uint32_t>& index : grid.sample->drawn) visit({index, grid.seeds.front()}, nullptr);
    return;
  }
  const PointHash hash(grid);
  for_each_point(grid, [&](const Combination& cell, const Exclusion* excluded) {
    if (excluded || !grid.sample || hash(cell.index) <= grid.sample->highest) visit(cell, excluded);
  });
}

void for_each_combination(const Grid& grid, const CombinationVisitor& visit) {
  Combination seeded;
  for_each_cell(grid, [&](const Combination& cell, const Exclusion* excluded) {
    seeded.index = cell.index;
    for (const int64_t seed : grid.seeds) {
      seeded.seed = seed;
      visit(seeded, excluded);
    }
  });
}

std::string drawn_text(const Sample& sample) {
  if (sample.of == 0) {
    return fmt::format("{} of more than {} points, drawn at random with seed {}", sample.count, kMaxCombinations,
                       sample.seed);
  }
  return fmt::format("{} of {} points, drawn at random with seed {}", std::min(sample.count, sample.of), sample.of,
                     sample.seed);
}

std::vector<Combination> runs_of(const Grid& grid, const Only& only) {
  std::vector<Combination> runs;
  for_each_combination(grid, [&](const Combination& combination, const Exclusion* excluded) {
    if (excluded || !only.admits(grid, combination)) return;
    if (runs.size() == kMaxRuns) {
      fail(
          "{}: the grid asks for more than {} runs, the most that can be planned together; choose a part of it with "
          "--only",
          grid.file.string(), kMaxRuns);
    }
    runs.push_back(combination);
  });
  return runs;
}

Only::Only(const Grid& grid, const std::vector<std::string>& texts, const std::string& option) {
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos) fail("{} \"{}\" must have the form axis=label", option, text);
    const std::string name = text.substr(0, equals);
    const std::string label = text.substr(equals + 1);
    if (name == "seed") {
      seeds_.push_back(parse_seed(grid, label, option));
      continue;
    }
    const size_t axis = grid.axis_index(name, option);
    const std::vector<std::string> labels = labels_of(grid.axes[axis]);
    auto it = find_spelled(labels, label);
    if (it == labels.end() && label == "-") it = std::ranges::find(labels, kAbsentLabel);
    if (it == labels.end()) {
      fail("{}: the axis {} has no value \"{}\"{}; it has: {}", option, name, label, did_you_mean(label, labels),
           fmt::join(labels, ", "));
    }
    where_.labels[name].insert(*it);
  }
}

bool derives(const Grid& grid, const Derivation& derivation, const Combination& combination) {
  return all_hold(grid, combination.index, derivation.when) &&
         (derivation.outputs.empty() || derives(grid, grid.derivation(derivation.outputs), combination));
}

bool Only::admits_seed(int64_t seed) const {
  return seeds_.empty() || std::find(seeds_.begin(), seeds_.end(), seed) != seeds_.end();
}

bool Only::admits(const Grid& grid, const Combination& combination) const {
  return admits_seed(combination.seed) && where_.has_point(grid, combination.index);
}

bool Only::admits(const std::vector<std::pair<std::string, std::string>>& labels, int64_t seed) const {
  return admits_seed(seed) && where_.has(labels);
}

RunSpec materialise(const Grid& grid, const Combination& combination, const Derivation* derivation) {
  RunSpec spec{.folder = grid.folder.string()};
  const auto add = [&spec](const Settings& settings) {
    for (const auto& [key, setting] : settings) {
      spec.settings[key] = setting.value;
      if (setting.may_be_path()) spec.folders[key] = setting.folder;
    }
  };
  add(grid.base);
  for (size_t axis = 0; axis < grid.axes.size(); ++axis) {
    const AxisPoint& point = grid.axes[axis].points[combination.index[axis]];
    for (const std::string& key : point.unset) {
      spec.settings.erase(key);
      spec.folders.erase(key);
    }
    add(point.set);
  }
  spec.settings[grid.seed_key] = combination.seed;
  spec.folders.erase(grid.seed_key);
  try {
    add_computed(grid, spec.settings, spec.folders);
  } catch (const UserError& error) {
    fail("{} (in the run {})", error.what(), describe_combination(grid, combination));
  }
  for (const std::string& variable : grid.variables) {
    spec.settings.erase(variable);
    spec.folders.erase(variable);
  }
  const auto derive = [&](const Derivation& one) {
    auto& settings = spec.derived.emplace_back();
    for (const auto& [key, setting] : one.set) settings[key] = setting.value;
  };
  if (derivation && !derivation->outputs.empty()) derive(grid.derivation(derivation->outputs));
  if (derivation) derive(*derivation);
  return spec;
}

std::string describe_cell(const Grid& grid, const Combination& combination) {
  std::vector<std::string> parts;
  for (size_t axis = 0; axis < grid.axes.size(); ++axis) {
    parts.push_back(fmt::format("{}={}", grid.axes[axis].name, grid.axes[axis].points[combination.index[axis]].label));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string describe_combination(const Grid& grid, const Combination& combination) {
  return fmt::format("{}, seed {}", describe_cell(grid, combination), combination.seed);
}

const std::string* refused_location(const Grid& grid, const Combination& combination, const std::string& key,
                                    const std::string& sentence) {
  const std::set<std::string> named = words_of(sentence);
  for (const Computed& one : grid.computed) {
    if (one.key == key) return &one.written.location;
  }
  const std::string* varied = nullptr;
  for (size_t axis = 0; axis < grid.axes.size(); ++axis) {
    const AxisPoint& point = grid.axes[axis].points[combination.index[axis]];
    for (const auto& [name, setting] : point.set) {
      if (name == key) return &setting.location;
      if (!varied && named.contains(name)) varied = &setting.location;
    }
    for (const std::string& name : point.unset) {
      if (name == key) return &point.location;
      if (!varied && named.contains(name)) varied = &point.location;
    }
  }
  if (varied) return varied;
  const auto it = grid.base.find(key);
  return it == grid.base.end() || key == grid.seed_key ? nullptr : &it->second.location;
}

}  // namespace tearless::harness
