#include "harness/grid/paper.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "base/nearest.h"
#include "base/table_reader.h"
#include "base/toml.h"

namespace tearless::harness {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMaxGrids = 100;

/// Nullopt if the file is no list of grids.
std::optional<toml::table> list_in(const fs::path& file) {
  try {
    toml::table root = parse_toml(read_toml_text(file), file.string());
    if (root.contains("grids")) return root;
  } catch (const UserError&) {  // whoever reads it as a grid says what is wrong
  }
  return std::nullopt;
}

}  // namespace

std::optional<Paper> load_paper(const fs::path& file) {
  std::error_code unreachable;
  if (!fs::is_regular_file(file, unreachable)) return std::nullopt;
  const std::optional<toml::table> root = list_in(file);
  if (!root) return std::nullopt;
  TableReader reader(*root, "", file.string());
  Paper paper{.title = reader.text("title").value_or(file.stem().string()), .file = file, .grids = {}};
  const std::string location = reader.location("grids");
  for (const std::string& name : reader.texts("grids")) {
    const fs::path grid = (file.parent_path() / name).lexically_normal();
    if (!fs::is_regular_file(grid, unreachable)) {
      fail("{}: there is no grid file {} (paths are relative to the file that names them)", location, grid.string());
    }
    if (std::ranges::find(paper.grids, grid) != paper.grids.end()) fail("{}: {} is named twice", location, name);
    if (list_in(grid)) fail("{}: {} is a list of grids itself; name its grids here", location, name);
    for (const fs::path& other : paper.grids) {
      if (part_name(paper, other) == part_name(paper, grid))
        fail("{}: {} and {} have the same name, by which --part calls them; rename one", location, other.string(),
             grid.string());
    }
    paper.grids.push_back(grid);
  }
  reader.refuse_leftovers("; a file with `grids` lists grids and has no other section");
  if (paper.grids.empty()) fail("{}: grids names no grid file", location);
  if (paper.grids.size() > kMaxGrids) fail("{}: grids names more than {} files", location, kMaxGrids);
  return paper;
}

std::string part_name(const Paper& paper, const fs::path& grid) {
  const std::string name = grid.stem().string(), before = paper.file.stem().string() + "_";
  return name.starts_with(before) ? name.substr(before.size()) : name;
}

std::vector<fs::path> grids_in(const fs::path& file, const std::vector<std::string>& parts) {
  const std::optional<Paper> paper = load_paper(file);
  if (!paper) {
    if (!parts.empty())
      fail("--part {}: {} is one grid; a file with grids = […] has parts", parts.front(), file.string());
    return {file};
  }
  std::vector<std::string> names;
  for (const fs::path& grid : paper->grids) names.push_back(part_name(*paper, grid));
  const auto is_called = [&](size_t i, const std::string& part) {
    return names[i] == part || paper->grids[i].stem() == part || paper->grids[i].filename() == part;
  };
  std::vector<bool> wanted(names.size(), parts.empty());
  for (const std::string& part : parts) {
    bool is_there = false;
    for (size_t i = 0; i < names.size(); ++i) {
      if (is_called(i, part)) wanted[i] = is_there = true;
    }
    if (!is_there) {
      fail("--part {}: {} has no such part{}; it has {}", part, file.string(), did_you_mean(part, names),
           fmt::join(names, ", "));
    }
  }
  std::vector<fs::path> grids;
  for (size_t i = 0; i < names.size(); ++i) {
    if (wanted[i]) grids.push_back(paper->grids[i]);
  }
  return grids;
}

}  // namespace tearless::harness
