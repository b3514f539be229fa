#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/nearest.h"
#include "base/table_reader.h"
#include "base/words.h"
#include "harness/grid/conditions.h"
#include "harness/grid/sections.h"

namespace tearless::harness {
namespace {

constexpr size_t kMaxDerivations = 100;
constexpr auto kSetsOfACorpus = std::to_array<std::string_view>({"train", "dev", "test"});
constexpr std::string_view kPrefix = "derived.";  // of the settings, as the training program knows them

/// The names are parts of names of scores and files. test.bleu is a score of a trained run.
void require_usable_name(const std::string& name, const std::string& section, const std::string& location) {
  if (!is_plain_name(name))
    fail("{}: [{}.{}]: the name must be letters, digits, \"_\" and \"-\"", location, section, name);
  if (std::ranges::find(kSetsOfACorpus, name) != kSetsOfACorpus.end()) {
    fail("{}: [{}.{}]: scores and sets of every run have this name; choose another", location, section, name);
  }
}

struct TestSet {
  Setting source, reference;
};

std::map<std::string, TestSet> load_test_sets(const toml::table* tables, const Grid& grid, const std::string& file) {
  std::map<std::string, TestSet> sets;
  if (!tables) return sets;
  TableReader sections(*tables, "[test]", file);
  for (const auto& [name, node] : in_written_order(*tables)) {
    const toml::table* table = sections.table(name);
    require_usable_name(name, "test", sections.location(name));
    TableReader reader(*table, fmt::format("[test.{}]", name), file);
    const auto path = [&, &name = name](const char* key) {
      const auto text = reader.text(key);
      if (!text) fail("{}: [test.{}] needs source and reference, two files", reader.location(), name);
      return Setting{*text, grid.folder.string(), reader.location(key)};
    };
    sets.emplace(name, TestSet{path("source"), path("reference")});
    reader.refuse_leftovers();
  }
  return sets;
}

Derivation load_derivation(const std::string& name, const toml::table& table,
                           const std::map<std::string, TestSet>& sets, const Grid& grid, const std::string& file) {
  const std::string section = fmt::format("[derived.{}]", name);
  TableReader reader(table, section, file);
  Derivation derivation{.name = name,
                        .set = {},
                        .outputs = reader.text("outputs").value_or(""),
                        .when = {},
                        .location = reader.location()};
  derivation.when = read_conditions(reader, grid);
  const auto add = [&](const std::string& key, Setting setting) {
    derivation.set[std::string(kPrefix) + key] = std::move(setting);
  };
  const WrittenSettings written = flatten_toml(table, file);
  for (const auto& [key, value] : written.values) {
    if (key == "outputs" || key.starts_with("when.")) continue;
    for (const char* given : {"of", "name", "source", "reference"}) {
      if (key == given)
        fail("{}: {} cannot set {}; files of a test set are named in [test.NAME]", written.location_of(key), section,
             key);
    }
    add(key, {value, grid.folder.string(), written.location_of(key)});
  }
  add("name", {name, grid.folder.string(), derivation.location});
  if (!derivation.set.contains("derived.kind")) add("kind", {"decode", grid.folder.string(), derivation.location});
  const auto set = derivation.set.find("derived.set");
  if (set == derivation.set.end() || !set->second.value.is_string()) return derivation;
  const auto wanted = set->second.value.get<std::string>();
  if (const auto own = sets.find(wanted); own != sets.end()) {
    add("source", own->second.source);
    add("reference", own->second.reference);
  } else if (std::ranges::find(kSetsOfACorpus, wanted) == kSetsOfACorpus.end() && derivation.outputs.empty()) {
    std::vector<std::string> known(kSetsOfACorpus.begin(), kSetsOfACorpus.end());
    for (const auto& [one, files] : sets) known.push_back(one);
    fail("{}: there is no set \"{}\"{}; there are {}: a section [test.{}] would name its files", set->second.location,
         wanted, did_you_mean(wanted, known), fmt::join(known, ", "), wanted);
  }
  return derivation;
}

}  // namespace

void load_derivations(const toml::table* derivations, const toml::table* tests, const std::string& file, Grid& grid) {
  for (const Axis& axis : grid.axes) {
    if (axis.name == kDerivedLabel) {
      fail("{}: an axis cannot be called {}, which labels the runs of [derived.NAME]; choose another name",
           axis.location, axis.name);
    }
  }
  const std::map<std::string, TestSet> sets = load_test_sets(tests, grid, file);
  if (!derivations) return;
  TableReader sections(*derivations, "[derived]", file);
  if (derivations->size() > kMaxDerivations) {
    fail("{}: the grid has more than {} sections [derived.NAME]; split it", sections.location(), kMaxDerivations);
  }
  std::vector<std::string> names;
  for (const auto& [name, node] : in_written_order(*derivations)) {
    const toml::table* table = sections.table(name);
    require_usable_name(name, kDerivedLabel, sections.location(name));
    grid.derivations.push_back(load_derivation(name, *table, sets, grid, file));
    names.push_back(name);
  }
  for (const Derivation& derivation : grid.derivations) {
    if (derivation.outputs.empty()) continue;
    const auto of = std::find(names.begin(), names.end(), derivation.outputs);
    if (of == names.end()) {
      fail("{}: [derived.{}]: there is no [derived.{}]{}", derivation.location, derivation.name, derivation.outputs,
           did_you_mean(derivation.outputs, names));
    }
    if (!grid.derivations[static_cast<size_t>(of - names.begin())].outputs.empty()) {
      fail("{}: [derived.{}]: outputs = \"{}\" scores outputs itself, and has none", derivation.location,
           derivation.name, derivation.outputs);
    }
  }
  // What has the outputs comes before what scores them.
  std::stable_partition(grid.derivations.begin(), grid.derivations.end(),
                        [](const Derivation& derivation) { return derivation.outputs.empty(); });
}

}  // namespace tearless::harness
