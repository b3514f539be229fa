#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/nearest.h"
#include "base/utf8.h"
#include "harness/grid/expand.h"
#include "harness/grid/grid.h"
#include "harness/grid/sections.h"
#include "harness/grid/table_reader.h"

namespace tearless::harness {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int64_t kMaxCombinations = 10'000'000;  // a larger grid is a mistake
constexpr size_t kMaxAxes = 100;
constexpr int64_t kMaxSeeds = 10'000;
constexpr size_t kMaxExclusions = 1'000;
constexpr size_t kMaxViews = 100;
constexpr size_t kMaxName = 200;  // bytes of a grid file's name, which its sweeps' folders have too
constexpr int kMaxBases = 100;    // read for one file; files that each name two others grow exponentially

std::string label_of(const json& value) { return value.is_string() ? value.get<std::string>() : toml_value(value); }

fs::path folder_of(const fs::path& file) { return fs::absolute(file).lexically_normal().parent_path(); }

/// Sweeps are called by the name of their grid file, in folders, JSON and commands (store/selectors.h).
void require_plain_name(const fs::path& file) {
  const std::string path = fs::absolute(file).string(), name = file.stem().string();
  if (printable(path) == path && name.size() <= kMaxName && name.find('=') == std::string::npos &&
      name.find_first_of(".-") != 0) {
    return;
  }
  fail(
      "{}: its sweeps are called by this name, which must not begin with \".\" or \"-\", contain \"=\" or be longer "
      "than {} bytes; and it and its folders must be UTF-8 without control characters: rename it",
      path, kMaxName);
}

/// Bounds the number of items that are compared pairwise.
void refuse_too_many(size_t count, size_t most, const std::string& what, const std::string& location) {
  if (count > most) fail("{}: the grid has more than {} {}; split it", location, most, what);
}

void add_settings(const WrittenSettings& written, const fs::path& folder, Settings& settings) {
  for (const auto& [key, value] : written.values) {
    settings[key] = {value, folder.string(), written.location_of(key)};
  }
}

// --- base files ---------------------------------------------------------------------------------------------------

class BaseReader {
 public:
  /// Adds the settings of base files and, first, of the base files that they name. Later settings replace earlier ones.
  /// `names` are relative to the file `beside`.
  void add(const std::vector<std::string>& names, const fs::path& beside, const std::string& location,
           Settings& settings) {
    for (const std::string& name : names) {
      const fs::path file = (beside.parent_path() / name).lexically_normal();
      const fs::path canonical = canonical_of(file, location);
      if (std::find(open_.begin(), open_.end(), canonical) != open_.end()) {
        fail("{}: the base file {} includes itself through the base files it names", location, file.string());
      }
      if (++files_ > kMaxBases) {
        fail("{}: more than {} base files are read here; name each of them once", location, kMaxBases);
      }
      open_.push_back(canonical);
      toml::table root = parse_toml(read_toml_text(file), file.string());
      TableReader reader(root, "", file.string());
      add(reader.texts("base"), file, reader.location("base"), settings);
      root.erase("base");  // in place: a copied table would lose its line numbers
      add_settings(flatten_toml(root, file.string()), folder_of(file), settings);
      open_.pop_back();
    }
  }

 private:
  static fs::path canonical_of(const fs::path& file, const std::string& location) {
    std::error_code error;
    fs::path canonical = fs::canonical(file, error);
    if (error == std::errc::no_such_file_or_directory) {
      fail("{}: the base file {} does not exist (paths are relative to the file that names them)", location,
           file.string());
    }
    if (error) fail("{}: the base file {} cannot be read: {}", location, file.string(), error.message());
    return canonical;
  }

  std::vector<fs::path> open_;  // canonical paths of the files being read, outermost first
  int files_ = 0;
};

void add_bases(const std::vector<std::string>& names, const fs::path& beside, const std::string& location,
               Settings& settings) {
  BaseReader().add(names, beside, location, settings);
}

// --- axes ---------------------------------------------------------------------------------------------------------

/// Adds the settings of `set`. In Grid::merged, `folders` names those folders from which relative paths start that are
/// not the grid's.
void add_set(TableReader& reader, const Grid& grid, Settings& settings) {
  const toml::table* set = reader.table("set");
  if (!set) return;
  add_settings(flatten_toml(*set, reader.file()), grid.folder, settings);
  if (!reader.has("folders")) return;  // a person does not write it
  TableReader folders(*reader.table("folders"), "folders", reader.file());
  for (auto& [key, setting] : settings) {
    if (const auto folder = folders.text(key)) setting.folder = (grid.folder / *folder).lexically_normal();
  }
  folders.refuse_leftovers();
}

/// `"model.placement" = ["post", "pre"]`
Axis value_axis(const std::string& key, const toml::array& values, const Grid& grid) {
  const std::string file = grid.file.string();
  Axis axis{.name = key, .points = {}, .location = fmt::format("{}:{}", file, values.source().begin.line)};
  for (const toml::node& node : values) {
    const std::string location = fmt::format("{}:{}", file, node.source().begin.line);
    if (node.is_array()) fail("{}: a value of the axis {} must be a number, text, true or false", location, key);
    const json value = toml_to_json(node, key, file);
    axis.points.push_back({label_of(value), {{key, {value, grid.folder.string(), location}}}, location});
  }
  return axis;
}

/// `[[axis.NAME]]  label = "…"  base = "…"  set = { … }`
AxisPoint bundle_point(const std::string& name, const toml::table& table, const Grid& grid) {
  TableReader reader(table, fmt::format("[[axis.{}]]", name), grid.file.string());
  const std::optional<std::string> label = reader.text("label");
  if (!label) fail("{}: [[axis.{}]] needs a label", reader.location(), name);
  AxisPoint point{.label = *label, .set = {}, .location = reader.location()};
  add_bases(reader.texts("base"), grid.file, reader.location("base"), point.set);
  add_set(reader, grid, point.set);
  reader.refuse_leftovers();
  return point;
}

void refuse_repeated_labels(const Axis& axis) {
  std::map<std::string, std::string> first;
  for (const AxisPoint& point : axis.points) {
    const auto [it, is_new] = first.emplace(point.label, point.location);
    if (!is_new)
      fail("{}: the axis {} has \"{}\" twice (first at {})", point.location, axis.name, point.label, it->second);
  }
}

void add_axis(const std::string& name, const toml::array& values, Grid& grid) {
  const std::string location = fmt::format("{}:{}", grid.file.string(), values.source().begin.line);
  if (name == grid.seed_key || name == "seed") {
    fail("{}: {} cannot be an axis; write the replicates as seeds = 3 or seeds = [1, 2, 3]", location, name);
  }
  if (values.empty()) fail("{}: the axis {} has no values", location, name);
  refuse_too_many(grid.axes.size() + 1, kMaxAxes, "axes", location);
  for (const Axis& other : grid.axes) {
    if (other.name == name) fail("{}: the axis {} is defined twice (first at {})", location, name, other.location);
  }
  Axis axis;
  if (values.front().is_table()) {
    axis = {.name = name, .points = {}, .location = location};
    for (const toml::node& item : values) {
      if (!item.is_table()) fail("{}: the axis {} mixes values and bundles", location, name);
      axis.points.push_back(bundle_point(name, *item.as_table(), grid));
    }
  } else {
    axis = value_axis(name, values, grid);
  }
  refuse_repeated_labels(axis);
  grid.axes.push_back(std::move(axis));
}

/// Adds axes in the order of the file. An unquoted dotted key is parsed as nested tables and means the same as a quoted
/// one.
void add_axes(const toml::table& table, const std::string& prefix, Grid& grid) {
  for (const auto& [key, node] : in_written_order(table)) {
    if (const toml::table* inner = node->as_table()) {
      add_axes(*inner, prefix + key + ".", grid);
    } else if (const toml::array* values = node->as_array()) {
      add_axis(prefix + key, *values, grid);
    } else {
      fail("{}:{}: the axis {} must be a list of values, or [[axis.{}]] bundles", grid.file.string(),
           node->source().begin.line, prefix + key, prefix + key);
    }
  }
}

/// At most one axis may set a key: two would overwrite each other.
void refuse_shared_keys(const Grid& grid) {
  std::map<std::string, const Axis*> owner;
  for (const Axis& axis : grid.axes) {
    for (const AxisPoint& point : axis.points) {
      for (const auto& [key, setting] : point.set) {
        const Axis* first = owner.emplace(key, &axis).first->second;
        if (first != &axis) fail("{}: {} is already set by the axis {}", setting.location, key, first->name);
        if (key == grid.seed_key) fail("{}: {} is set by seeds, no axis can set it", setting.location, key);
      }
    }
  }
}

/// JSON, in which a training program gets its settings, has no inf and no nan.
void refuse_infinite(const json& value, const std::string& key, const std::string& location) {
  if (value.is_array()) {
    for (const json& item : value) refuse_infinite(item, key, location);
  } else if (value.is_number_float() && !std::isfinite(value.get<double>())) {
    fail(
        "{}: {} is {}, which JSON cannot hold: the training program would not get it; write a finite number, or leave "
        "the "
        "key out",
        location, key, std::isnan(value.get<double>()) ? "nan" : "inf");
  }
}
void refuse_infinite(const Settings& settings) {
  for (const auto& [key, setting] : settings) refuse_infinite(setting.value, key, setting.location);
}
void refuse_infinite(const Grid& grid) {
  refuse_infinite(grid.base);
  for (const Axis& axis : grid.axes) {
    for (const AxisPoint& point : axis.points) refuse_infinite(point.set);
  }
  for (const Derivation& derivation : grid.derivations) refuse_infinite(derivation.set);
}

/// `a = 1` and `a.b = 2` are a setting and a table of one name: no run can have both.
void refuse_keys_below_keys(const Grid& grid) {
  std::map<std::string_view, const Setting*> all;
  for (const auto& [key, setting] : grid.base) all.emplace(key, &setting);
  for (const Axis& axis : grid.axes) {
    for (const AxisPoint& point : axis.points) {
      for (const auto& [key, setting] : point.set) all.emplace(key, &setting);
    }
  }
  for (const auto& [key, setting] : all) {
    const std::string table = std::string(key) + ".";
    const auto below = all.lower_bound(table);
    if (below == all.end() || !below->first.starts_with(table)) continue;
    fail("{}: {} is set, and {} is a setting below it (at {}); remove one of the two", setting->location, key,
         below->first, below->second->location);
  }
}

// --- seeds ----------------------------------------------------------------------------------------------------------

std::vector<int64_t> load_seeds(TableReader& reader, const Grid& grid) {
  const toml::node* node = reader.any("seeds");
  const std::string location = reader.location("seeds");
  std::vector<int64_t> seeds;
  if (!node) {
    const auto base = grid.base.find(grid.seed_key);
    const bool given = base != grid.base.end() && base->second.value.is_number_integer();
    return {given ? base->second.value.get<int64_t>() : 1};
  }
  if (const auto* count = node->as_integer()) {
    if (count->get() < 1 || count->get() > kMaxSeeds)
      fail("{}: seeds = {} must be between 1 and {}", location, count->get(), kMaxSeeds);
    for (int64_t seed = 1; seed <= count->get(); ++seed) seeds.push_back(seed);
    return seeds;
  }
  const toml::array* list = node->as_array();
  if (!list || list->empty())
    fail("{}: seeds must be a count, as in seeds = 3, or a list, as in seeds = [1, 2, 3]", location);
  refuse_too_many(list->size(), kMaxSeeds, "seeds", location);
  for (const toml::node& item : *list) {
    const auto* seed = item.as_integer();
    if (!seed) fail("{}: a seed must be a whole number", reader.location(item));
    if (std::find(seeds.begin(), seeds.end(), seed->get()) != seeds.end()) {
      fail("{}: the seed {} is listed twice", reader.location(item), seed->get());
    }
    seeds.push_back(seed->get());
  }
  return seeds;
}

// --- exclusions -----------------------------------------------------------------------------------------------------

const json* value_at(const Grid& grid, const AxisPoint& point, const std::string& key) {
  if (const auto it = point.set.find(key); it != point.set.end()) return &it->second.value;
  const auto it = grid.base.find(key);
  return it == grid.base.end() ? nullptr : &it->second.value;
}

/// The axis that a condition refers to: the one called `key`, or the one that sets `key`.
size_t conditioned_axis(const Grid& grid, const std::string& key, const std::string& location) {
  std::set<std::string> names;
  for (size_t i = 0; i < grid.axes.size(); ++i) {
    if (grid.axes[i].name == key) return i;
    names.insert(grid.axes[i].name);
    for (const AxisPoint& point : grid.axes[i].points) {
      if (point.set.contains(key)) return i;
      for (const auto& [name, setting] : point.set) names.insert(name);
    }
  }
  if (grid.base.contains(key))
    fail("{}: {} is the same in every run; `when` can only name what an axis changes", location, key);
  fail("{}: no axis is called {} or sets it{}", location, key,
       did_you_mean(key, std::vector<std::string>(names.begin(), names.end())));
}

Exclusion::Condition load_condition(const Grid& grid, const std::string& key, const json& wanted,
                                    const std::string& location) {
  const size_t index = conditioned_axis(grid, key, location);
  const Axis& axis = grid.axes[index];
  std::vector<bool> holds;
  std::vector<std::string> there;  // the axis's values, for the message
  for (const AxisPoint& point : axis.points) {
    const json* value = value_at(grid, point, key);
    const bool by_label = axis.name == key && point.label == label_of(wanted);
    holds.push_back(by_label || (value && *value == wanted));
    const std::string label = axis.name == key ? point.label : value ? label_of(*value) : "";
    if (!label.empty() && std::find(there.begin(), there.end(), label) == there.end()) there.push_back(label);
  }
  if (std::find(holds.begin(), holds.end(), true) == holds.end()) {
    fail("{}: {} = {} is not a value of the axis {}{}; it has: {}", location, key, toml_value(wanted), axis.name,
         did_you_mean(label_of(wanted), there), fmt::join(there, ", "));
  }
  return {index, holds};
}

/// True if some combination matches the exclusion. Only conditions on the same axis can contradict each other.
bool can_hold(const Grid& grid, const Exclusion& exclusion) {
  for (size_t axis = 0; axis < grid.axes.size(); ++axis) {
    bool some = false;
    for (size_t point = 0; point < grid.axes[axis].points.size(); ++point) {
      some |= std::all_of(exclusion.when.begin(), exclusion.when.end(),
                          [&](const auto& c) { return c.axis != axis || c.holds[point]; });
    }
    if (!some) return false;
  }
  return true;
}

Exclusion load_exclusion(const toml::table& table, const Grid& grid) {
  TableReader reader(table, "[[exclude]]", grid.file.string());
  Exclusion exclusion{.when = {}, .why = reader.text("why").value_or(""), .location = reader.location()};
  const toml::table* when = reader.table("when");
  reader.refuse_leftovers();
  if (!when || when->empty()) {
    fail("{}: [[exclude]] needs when = {{ axis = value, … }}: which runs it leaves out", reader.location());
  }
  if (exclusion.why.empty()) fail("{}: [[exclude]] needs why = \"…\": plans and tables print it", reader.location());
  const WrittenSettings conditions = flatten_toml(*when, grid.file.string());
  for (const auto& [key, value] : conditions.values) {
    exclusion.when.push_back(load_condition(grid, key, value, conditions.location_of(key)));
  }
  if (!can_hold(grid, exclusion)) fail("{}: this exclusion matches no run", exclusion.location);
  return exclusion;
}

// --- the whole grid -------------------------------------------------------------------------------------------------

void refuse_senseless_size(const Grid& grid) {
  double combinations = static_cast<double>(grid.seeds.size());
  for (const Axis& axis : grid.axes) combinations *= static_cast<double>(axis.points.size());
  if (combinations > kMaxCombinations) {
    fail("{}: the grid has {:.3g} combinations; {} is the most: remove values from its axes, or split it",
         grid.file.string(), combinations, kMaxCombinations);
  }
}

void refuse_empty(const Grid& grid) {
  bool some = false;
  for_each_cell(grid, [&](const Combination&, const Exclusion* excluded) { some |= !excluded; });
  if (!some) fail("{}: the grid is empty: its exclusions leave out every run", grid.file.string());
}

// The grids of sweeps that an earlier build submitted have sections [decoding.NAME].
void rename_old_section(toml::table& root, const fs::path& file) {
  constexpr const char* kOldName = "decoding";
  toml::table* const old = root[kOldName].as_table();
  if (!old) return;
  if (!root.contains("submitted")) {
    fail("{}: [{}.NAME] is called [{}.NAME] now", TableReader(root, "", file.string()).location(kOldName), kOldName,
         kDerivedLabel);
  }
  root.insert(kDerivedLabel, std::move(*old));
  root.erase(kOldName);
}

}  // namespace

int64_t Grid::size() const {
  auto combinations = static_cast<int64_t>(seeds.size());
  for (const Axis& axis : axes) combinations *= static_cast<int64_t>(axis.points.size());
  return combinations;
}

const Derivation& Grid::derivation(const std::string& name) const {
  return *std::find_if(derivations.begin(), derivations.end(), [&](const Derivation& one) { return one.name == name; });
}

size_t Grid::axis_index(const std::string& name, const std::string& location) const {
  std::vector<std::string> names;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i].name == name) return i;
    names.push_back(axes[i].name);
  }
  fail("{}: the grid has no axis {}{}; it has: {}", location, name, did_you_mean(name, names), fmt::join(names, ", "));
}

Grid load_grid(const fs::path& file) {
  require_plain_name(file);
  return parse_grid(read_toml_text(file), file);
}

Grid parse_grid(std::string_view text, const fs::path& file) {
  toml::table root = parse_toml(text, file.string());
  rename_old_section(root, file);
  TableReader reader(root, "", file.string());
  Grid grid;
  grid.file = file;
  grid.folder = folder_of(file);
  fs::path submitted_file = file;
  if (reader.has("submitted")) {
    TableReader submitted(*reader.table("submitted"), "[submitted]", file.string());
    submitted_file = submitted.text("file").value_or(file);
    grid.folder = submitted.text("folder").value_or(grid.folder);
    submitted.refuse_leftovers();
  }
  grid.title = reader.text("title").value_or(file.stem().string());
  grid.seed_key = reader.text("seed_key").value_or(grid.seed_key);
  if (const auto program = reader.text("program")) grid.program = (grid.folder / *program).lexically_normal();

  add_bases(reader.texts("base"), file, reader.location("base"), grid.base);
  add_set(reader, grid, grid.base);
  grid.seeds = load_seeds(reader, grid);
  const toml::table* axes = reader.table("axis");
  const std::vector<const toml::table*> excludes = reader.tables("exclude");
  const ViewSections views = view_sections(reader);
  const toml::table *derivations = reader.table(kDerivedLabel), *tests = reader.table("test");
  grid.policy = load_policy(reader.table("policy"), file.string());
  const std::string settings_are_no_grid =
      fmt::format("; if these are settings of a run, a grid names them with base = \"{}\" and varies some under [axis]",
                  file.filename().string());
  reader.refuse_leftovers(axes ? "" : settings_are_no_grid);

  if (!axes || axes->empty()) {
    fail(
        "{}: the grid is empty: it has no axis; write [axis] and below it a setting with its values, "
        "as in \"model.placement\" = [\"post\", \"pre\"]",
        file.string());
  }
  add_axes(*axes, "", grid);
  refuse_shared_keys(grid);
  refuse_keys_below_keys(grid);
  load_derivations(derivations, tests, file.string(), grid);
  if (!reader.has("submitted")) refuse_infinite(grid);  // earlier builds took it for null
  refuse_senseless_size(grid);
  refuse_too_many(excludes.size(), kMaxExclusions, "exclusions", reader.location("exclude"));
  for (const toml::table* exclude : excludes) grid.excludes.push_back(load_exclusion(*exclude, grid));
  refuse_empty(grid);
  for (const auto& [kind, sections] : views) {
    refuse_too_many(sections.size(), kMaxViews, kind + "s", reader.location(kind));
  }
  load_views(views, file.string(), grid);
  grid.file = submitted_file;  // until here it names the file of the locations
  grid.merged = merged_text(grid, root);
  return grid;
}

}  // namespace tearless::harness
