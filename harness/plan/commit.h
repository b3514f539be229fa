// Where a grid comes from: the commit of the git repository that holds its file, and what differs from that commit.
//
// Git may run what a repository's own configuration names. The repository may be a stranger's, so none of that runs: no
// hooks, no filters, no other diff programs, no transport. Git itself refuses repositories of another owner.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

namespace tearless::harness {

struct GridCommit {
  /// {"id", "tracked", "clean", "diff": {"sha256", "lines"}}. "tracked": whether the repository tracks the grid file.
  /// "clean": whether each file that it tracks is as in the commit; absent if git did not say. "diff": absent if it is
  /// clean, or the diff is too large to keep. Null: there is no repository or no commit, git ignores the file, or the
  /// grid is packaged with the program.
  nlohmann::json record = {};
  std::string diff = {};  // bytes; "" if the record has none
};

/// Never fails, and takes a few seconds at most.
GridCommit commit_holding(const std::filesystem::path& grid_file);

}  // namespace tearless::harness
