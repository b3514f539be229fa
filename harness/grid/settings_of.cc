// The settings that a section of a grid file brings: base files, `unset`, `set`, and those of the command line.
#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/nearest.h"
#include "harness/grid/sections.h"

namespace tearless::harness {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxBases = 100;  // read for one section; files that each name two others grow exponentially

void add_settings(const WrittenSettings& written, const fs::path& folder, bool is_of_base_file, Settings& settings) {
  for (const auto& [key, value] : written.values) {
    settings[key] = {value, folder.string(), written.location_of(key), is_of_base_file};
  }
}

class BaseReader {
 public:
  /// Adds the settings of base files and, first, of the base files that they name. Later settings replace earlier ones.
  /// `names` are relative to the file `beside`.
  void add(const std::vector<std::string>& names, const fs::path& beside, const std::string& location,
           Settings& settings, Names& in_print) {
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
      add(reader.texts("base"), file, reader.location("base"), settings, in_print);
      root.erase("base");  // in place: a copied table would lose its line numbers
      add_names(reader.table("names"), file.string(), in_print);
      root.erase("names");
      add_settings(flatten_toml(root, file.string()), fs::absolute(file).lexically_normal().parent_path(), true,
                   settings);
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

/// A setting, or all settings of a table.
bool is_or_is_below(const std::string& key, const std::string& name) {
  return key == name || key.starts_with(name + ".");
}

std::vector<std::string> names_of(const Settings& settings) {
  std::vector<std::string> names;
  for (const auto& [key, setting] : settings) names.push_back(key);
  return names;
}

void add_unset(TableReader& reader, const Settings* below, Settings& settings, std::vector<std::string>* unset) {
  for (const std::string& name : reader.texts("unset")) {
    bool is_there = std::erase_if(settings, [&](const auto& one) { return is_or_is_below(one.first, name); }) > 0;
    for (const auto& [key, setting] : below ? *below : Settings()) {
      if (!is_or_is_below(key, name)) continue;
      is_there = true;
      unset->push_back(key);
    }
    if (!is_there) {
      fail("{}: unset: {} is not set by a base{}; there is nothing to leave out", reader.location("unset"), name,
           did_you_mean(name, names_of(below ? *below : settings)));
    }
  }
}

void add_set(TableReader& reader, const Grid& grid, Settings& settings) {
  const toml::table* set = reader.table("set");
  if (!set) return;
  const WrittenSettings written = flatten_toml(*set, reader.file());
  for (const std::string& name : reader.texts("unset")) {
    for (const auto& [key, value] : written.values) {
      if (key == name) fail("{}: {} is set, and unset, too; remove one of the two", written.location_of(key), key);
    }
  }
  add_settings(written, grid.folder, false, settings);
  if (!reader.has("folders")) return;  // a person does not write it
  TableReader folders(*reader.table("folders"), "folders", reader.file());
  for (auto& [key, setting] : settings) {
    if (const auto folder = folders.text(key)) setting.folder = (grid.folder / *folder).lexically_normal();
  }
  folders.refuse_leftovers();
}

/// Of the words of a grid file those that no training program calls a table of its settings.
bool is_section(std::string_view word) {
  return word == "set" || word == "axis" || word == "subgrid" || word == "computed" || word == "derived" ||
         word == "policy";
}

/// `text` as TOML reads it. What is no TOML is text: --set model.placement=pre.
nlohmann::json option_value(const std::string& key, const std::string& text, const std::string& location) {
  const bool is_text = text.find_first_of("\"'[{\n") == std::string::npos;
  if (is_text && text.find('#') != std::string::npos) return text;  // no comment
  try {
    const toml::table parsed = toml::parse("value = " + text);
    const toml::node& value = *parsed.get("value");
    if (parsed.size() == 1 && !value.is_table() &&
        !(is_text && (value.is_date() || value.is_time() || value.is_date_time())))
      return toml_to_json(value, key, location);
  } catch (const toml::parse_error&) {
    if (is_text) return text;
  }
  if (is_text) return text;
  fail("{}={}: the value is neither a number, true, false, a text nor a list of them, as TOML writes them", location,
       text);
}

}  // namespace

void add_names(const toml::table* table, const std::string& file, Names& names) {
  if (!table) return;
  for (const auto& [word, node] : *table) {
    const std::string key(word.str());
    names[key] = read_name(node, fmt::format("names.{}", key), TableReader(*table, "", file).location(node));
  }
}

void read_settings(TableReader& reader, Grid& grid, const Settings* below, Settings& settings,
                   std::vector<std::string>* unset) {
  BaseReader().add(reader.texts("base"), grid.file, reader.location("base"), settings, grid.names);
  add_unset(reader, below, settings, unset);
  add_set(reader, grid, settings);
}

void add_set_options(const std::vector<std::string>& options, const std::string& seed_key,
                     const std::vector<std::string>& words, Settings& settings) {
  for (const std::string& option : options) {
    const size_t equals = option.find('=');
    if (equals == 0 || equals == std::string::npos || equals + 1 == option.size()) {
      fail("--set \"{}\" must have the form key=value, as in --set train.max_epochs=10", option);
    }
    const std::string key = option.substr(0, equals), location = "--set " + key;
    if (key == seed_key) fail("{}: the seeds are those of the grid file; --only seed=N chooses some of them", location);
    const std::string table = key.substr(0, key.find('.'));
    if (std::ranges::find(words, key) != words.end() || key == "grids" || is_section(table))
      fail("{}: it sets settings of the runs; `{}` is written in the grid file", location, key);
    settings[key] = {option_value(key, option.substr(equals + 1), location), fs::current_path().string(), location};
  }
}

}  // namespace tearless::harness
