#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/error.h"
#include "base/nearest.h"
#include "base/spelling.h"
#include "base/table_reader.h"
#include "base/utf8.h"
#include "base/words.h"
#include "harness/grid/computed.h"
#include "harness/grid/expand.h"
#include "harness/grid/grid.h"
#include "harness/grid/parsed_file.h"
#include "harness/grid/sections.h"

namespace tearless::harness {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int64_t kMaxSeeds = 10'000;
constexpr size_t kMaxName = 200;  // bytes of a grid file's name, which its sweeps' folders have too

fs::path folder_of(const fs::path& file) { return fs::absolute(file).lexically_normal().parent_path(); }

/// Sweeps are called by the name of their grid file, in folders, JSON and commands (selection/selectors.h).
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
  for (const Computed& one : grid.computed) all.emplace(one.key, &one.written);
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
  if (std::ssize(*list) > kMaxSeeds) fail("{}: the grid has more than {} seeds; split it", location, kMaxSeeds);
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

// --- the whole grid -------------------------------------------------------------------------------------------------

std::vector<std::string> load_tags(TableReader& reader) {
  std::vector<std::string> tags = reader.texts("tag");
  for (const std::string& tag : tags) require_tag(tag, reader.location("tag"));
  return tags;
}

std::string load_note(TableReader& reader) {
  std::string note = reader.text("note").value_or("");
  if (note.find('\n') != std::string::npos) fail("{}: a note is one line", reader.location("note"));
  return note;
}

/// Keys of other tools' sweep files, and what the same is called here.
void refuse_other_tools_keys(const toml::table& root, const TableReader& reader) {
  static const std::map<std::string_view, std::string_view> advice = {
      {"grid", "axes are written below [axis]"},
      {"parameters", "axes are written below [axis], settings that do not vary below [set]"},
      {"matrix", "axes are written below [axis]"},
      {"search_space", "axes are written below [axis]"},
      {"hyperparameters", "axes are written below [axis]"},
      {"fixed", "settings that do not vary are written below [set]"},
      {"defaults", "files of settings are named by base = [\"…\"]"},
      {"method", "every point of the product is trained; for some of them: sample = { count = 20, seed = 1 }"},
      {"random", "points are drawn by sample = { count = 20, seed = 1 }"},
      {"samples", "points are drawn by sample = { count = 20, seed = 1 }"},
      {"run_cap", "points are drawn by sample = { count = 20, seed = 1 }"},
      {"seed", "replicates are seeds = 3, or seeds = [1, 2, 3]"},
      {"command", "the training program is named by program = \"…\""},
      {"executable", "the training program is named by program = \"…\""}};
  for (const auto& [key, node] : root) {
    if (const auto found = advice.find(key.str()); found != advice.end())
      fail("{}: a grid has no \"{}\": {} (docs/grid_file.md)", reader.location(node), key.str(), found->second);
  }
}

bool is_text_or_texts(const toml::node& node) {
  const toml::array* list = node.as_array();
  return node.is_string() || (list && !list->empty() && list->is_homogeneous(toml::node_type::string));
}
bool is_count_or_counts(const toml::node& node) {
  const toml::array* list = node.as_array();
  return node.is_integer() || (list && !list->empty() && list->is_homogeneous(toml::node_type::integer));
}
bool is_sample(const toml::node& node) { return node.is_table() && node.as_table()->contains("count"); }

/// Reads `variables`. REQUIRES: grid.computed is complete.
void load_variables(TableReader& reader, Grid& grid) {
  const std::set<std::string> keys = keys_of(grid);
  for (const std::string& name : reader.texts("variables")) {
    if (name == grid.seed_key) fail("{}: {} is the seed, which every run has", reader.location("variables"), name);
    if (!keys.contains(name)) {
      fail("{}: variables: nothing sets {}{}; it is given values in [axis], [set] or [computed]",
           reader.location("variables"), name, did_you_mean(name, std::vector<std::string>(keys.begin(), keys.end())));
    }
    grid.variables.insert(name);
  }
}

/// In TOML a key belongs to the section above it: keys of the whole grid that stand below one would be its settings or
/// axes. What has another form is one.
void refuse_swallowed_keys(const toml::table& root, const TableReader& reader) {
  static const std::map<const char*, bool (*)(const toml::node&)> forms = {
      {"seeds", is_count_or_counts},  {"seed_key", is_text_or_texts}, {"base", is_text_or_texts},
      {"unset", is_text_or_texts},    {"grids", is_text_or_texts},    {"sample", is_sample},
      {"variables", is_text_or_texts}};
  for (const char* section : {"set", "axis"}) {
    const toml::table* table = root[section].as_table();
    for (const auto& [key, has_form] : forms) {
      if (!table || !table->contains(key) || !has_form(*table->get(key))) continue;
      fail("{}: {} stands below [{}] and would be a part of it; write it above the first [section]",
           reader.location(*table->get(key)), key, section);
    }
  }
}

/// Gives the name that `names` have for `word` to the labels that it spells otherwise ("1e-3", or "lr=1e-3" of one
/// axis, for 0.001) and that `names` do not have themselves. False if it spells none.
bool name_labels(const std::string& word, const Names& names, Grid& grid) {
  bool is_label = false;
  for (const Axis& axis : grid.axes) {
    const std::string begin = axis.name + "=";
    for (const AxisPoint& point : axis.points) {
      const bool is_of_axis = word.starts_with(begin) && is_same_value(word.substr(begin.size()), point.label);
      if (!is_of_axis && !is_same_value(word, point.label)) continue;
      const std::string label = is_of_axis ? begin + point.label : point.label;
      if (!names.contains(label)) grid.names[label] = names.at(word);
      is_label = true;
    }
  }
  return is_label;
}

/// Reads [names]. What is neither an axis nor a label must be a score, which a grid alone cannot tell.
void load_names(const toml::table* table, const std::string& file, Grid& grid) {
  std::set<std::string> known;
  for (const Axis& axis : grid.axes) {
    known.insert(axis.name);
    for (const AxisPoint& point : axis.points) known.insert({point.label, axis.name + "=" + point.label});
  }
  const Names of_bases = grid.names;
  for (const auto& [word, name] : of_bases) {
    if (!known.contains(word)) name_labels(word, of_bases, grid);
  }
  Names own;
  add_names(table, file, own);
  for (const auto& [word, name] : own) grid.names[word] = name;
  for (const auto& [word, name] : own) {
    if (!known.contains(word) && !name_labels(word, own, grid))
      grid.named.push_back({word, "names", TableReader(*table, "", file).location(word)});
  }
}

}  // namespace

void require_tag(const std::string& tag, const std::string& location) {
  const bool has_space = std::ranges::any_of(tag, [](unsigned char c) { return std::isspace(c) || c == ','; });
  if (tag.empty() || has_space || printable(tag) != tag)
    fail("{}: a tag is a word without spaces and commas, and \"{}\" is none", location, printable(tag));
}

std::string Grid::words() const { return shell_word(file.string()) + option_words("--set", set_options); }

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

namespace {

// Takes from a layout the base files that are not here. Then the grid begins with what `submitted` has of its own.
void replace_missing_bases(toml::table& root, const fs::path& file, const Grid& submitted, Grid& grid) {
  const auto is_missing = [&](const toml::node& name) {
    return name.is_string() && !fs::exists(file.parent_path() / name.value_or(std::string()));
  };
  toml::array* const bases = root["base"].as_array();
  const bool is_one = root.contains("base") && is_missing(*root.get("base"));
  if (!is_one && !(bases && std::ranges::any_of(*bases, is_missing))) return;
  if (is_one) {
    root.erase("base");
  } else {
    for (size_t i = bases->size(); i-- > 0;) {
      if (is_missing((*bases)[i])) bases->erase(bases->begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  grid.base = submitted.base;
  grid.names = submitted.names;
}

Grid parse(std::string_view text, const fs::path& file, const std::vector<std::string>& set, const Grid* submitted);

}  // namespace

Grid load_grid(const fs::path& file, const std::vector<std::string>& set) {
  require_plain_name(file);
  return parse(read_toml_text(file), file, set, nullptr);
}

Grid load_layout(const fs::path& file, const Grid& submitted) {
  require_plain_name(file);
  return parse(read_toml_text(file), file, {}, &submitted);
}

Grid parse_grid(std::string_view text, const fs::path& file, const std::vector<std::string>& set) {
  return parse(text, file, set, nullptr);
}

namespace {

Grid parse(std::string_view text, const fs::path& file, const std::vector<std::string>& set, const Grid* submitted) {
  auto parsed = std::make_shared<ParsedFile>(ParsedFile{parse_toml(text, file.string()), file.string()});
  const toml::table& root = parsed->root;
  Grid grid;
  grid.parsed = parsed;
  if (submitted) replace_missing_bases(parsed->root, file, *submitted, grid);
  TableReader reader(root, "", file.string());
  grid.file = file;
  grid.folder = folder_of(file);
  fs::path submitted_file = file;
  if (reader.has("submitted")) {
    TableReader submitted(*reader.table("submitted"), "[submitted]", file.string());
    submitted_file = submitted.text("file").value_or(file);
    grid.folder = submitted.text("folder").value_or(grid.folder);
    grid.set_options = submitted.texts("set");
    submitted.refuse_leftovers();
  }
  grid.title = reader.text("title").value_or(file.stem().string());
  grid.tags = load_tags(reader);
  grid.note = load_note(reader);
  grid.seed_key = reader.text("seed_key").value_or(grid.seed_key);
  if (const auto program = reader.text("program")) grid.program = (grid.folder / *program).lexically_normal();

  read_settings(reader, grid, nullptr, grid.base, nullptr);
  grid.set_options.insert(grid.set_options.end(), set.begin(), set.end());
  grid.seeds = load_seeds(reader, grid);
  const toml::table *axes = reader.table("axis"), *computed = reader.table("computed");
  const std::vector<const toml::table*> subgrids = reader.tables("subgrid"), excludes = reader.tables("exclude");
  const toml::table* sample = reader.table("sample");
  reader.texts("variables");
  for (const char* section : kViewSections) reader.tables(section);
  const toml::table *names = reader.table("names"), *scores = reader.table("score");
  const toml::table *derivations = reader.table(kDerivedLabel), *tests = reader.table("test");
  grid.policy = load_policy(reader.table("policy"), file.string());
  grid.claims = load_claim_tests(reader.table("claims"), file.string(), grid.seeds.size());
  if (grid.claims.looks.size() > 0 && reader.tables("claim").empty())
    fail("{}: looks: the grid has no [[claim]] that they could decide", grid.claims.location);
  const std::string settings_are_no_grid =
      fmt::format("; if these are settings of a run, a grid names them with base = \"{}\" and varies some under [axis]",
                  file.filename().string());
  if (root.contains("grids"))
    fail("{}: this file lists grids, and one grid is wanted here; name one of them", reader.location("grids"));
  refuse_other_tools_keys(root, reader);
  add_set_options(set, grid.seed_key, reader.known(), grid.base);
  reader.refuse_leftovers(axes ? "" : settings_are_no_grid);
  if (!reader.has("submitted")) refuse_swallowed_keys(root, reader);

  if ((!axes || axes->empty()) && subgrids.empty()) {
    fail(
        "{}: the grid is empty: it has no axis; write [axis] and below it a setting with its values, "
        "as in \"model.placement\" = [\"post\", \"pre\"]",
        file.string());
  }
  load_subgrids(subgrids, grid);
  if (axes) load_axes(*axes, std::nullopt, grid);
  load_axes_of_subgrids(subgrids, grid);
  complete_axes(grid, reader.has("seeds"));
  load_computed(computed, file.string(), grid);
  load_variables(reader, grid);
  refuse_keys_below_keys(grid);
  load_derivations(derivations, tests, file.string(), grid);
  if (!reader.has("submitted")) refuse_infinite(grid);  // earlier builds took it for null
  load_exclusions(excludes, subgrids, grid);
  load_sample(sample, file.string(), grid);
  count_and_draw(grid);
  load_names(names, file.string(), grid);
  if (reader.has("submitted")) grid.named.clear();  // they have the names of base files, too
  grid.defined_scores = read_defined_scores(scores, file.string());
  grid.file = submitted_file;  // until here it names the file of the locations
  grid.merged = merged_text(grid, root);
  return grid;
}

}  // namespace
}  // namespace tearless::harness
