// A file that lists grids: the tables and figures of one paper, whose grids share runs.
//
//   title = "Transformers without Tears"
//   grids = ["twt_table2.toml", "twt_table3.toml"]
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace tearless::harness {

struct Paper {
  std::string title;
  std::filesystem::path file;                // as given
  std::vector<std::filesystem::path> grids;  // its parts, in the order of the file, each beside it or below
};

/// The list that a file is; nullopt for a file that is none: a grid, or one that cannot be read. UserError for a list
/// with a mistake: an unknown key, a grid that is missing, named twice, or itself a list.
std::optional<Paper> load_paper(const std::filesystem::path& file);

/// How people call a part of a paper: the name of its file, without the paper's name before it. "table2" is
/// twt_table2.toml of twt.toml.
std::string part_name(const Paper& paper, const std::filesystem::path& grid);

/// The grid files that a command is about: of a paper those with one of the names in `parts`, all of them without any;
/// the file itself if it is no paper. UserError for a name that no part has.
std::vector<std::filesystem::path> grids_in(const std::filesystem::path& file, const std::vector<std::string>& parts);

}  // namespace tearless::harness
