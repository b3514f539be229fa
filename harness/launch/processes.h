// The processes of this machine, as /proc shows them: which descend from which, and which have a file open.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace tearless::harness {

/// Who is whose child, at one instant. Zombies are not among them: they have ended.
class ProcessTree {
 public:
  explicit ProcessTree(const std::filesystem::path& proc = "/proc");

  /// The children of a process, their children, and so on; not the process itself.
  std::set<int64_t> below(int64_t pid) const;

 private:
  std::multimap<int64_t, int64_t> children_;  // pid → those that it is the parent of
};

/// The processes that have `file` open for writing, as far as we may see that. In ascending order.
std::vector<int64_t> writers_of(const std::filesystem::path& file, const std::filesystem::path& proc = "/proc");

/// The command line of a process, cut to a readable length; of one without, its name. "" if it has ended.
std::string command_of(int64_t pid, const std::filesystem::path& proc = "/proc");

/// "process 42 (sleep 25)", "processes 42 (sleep 25), 43 (tee log)"; those that have ended are left out. "" for none.
std::string names_of(const std::vector<int64_t>& pids);

}  // namespace tearless::harness
