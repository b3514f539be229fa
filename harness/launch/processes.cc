#include "harness/launch/processes.h"

#include <fcntl.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "base/numbers.h"
#include "base/utf8.h"

namespace tearless::harness {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMaxCommand = 100;  // columns

std::vector<int64_t> all_processes(const fs::path& proc) {
  std::vector<int64_t> pids;
  std::error_code gone;
  for (const auto& entry : fs::directory_iterator(proc, gone)) {
    const std::string name = entry.path().filename();
    if (const auto pid = number_of<int64_t>(name)) pids.push_back(*pid);
  }
  std::sort(pids.begin(), pids.end());
  return pids;
}

bool is_open_for_writing(const fs::path& proc, int64_t pid, const std::string& descriptor) {
  std::ifstream info(proc / std::to_string(pid) / "fdinfo" / descriptor);
  for (std::string line; std::getline(info, line);) {  // "flags:	02100002", octal
    if (line.starts_with("flags:")) return (std::stoul(line.substr(6), nullptr, 8) & O_ACCMODE) != O_RDONLY;
  }
  return false;
}

}  // namespace

ProcessTree::ProcessTree(const fs::path& proc) {
  for (const int64_t pid : all_processes(proc)) {
    std::ifstream in(proc / std::to_string(pid) /
                     "stat");  // "42 (name) S 1 …": the name may contain spaces, parentheses
    std::string line;
    std::getline(in, line);
    const size_t after_name = line.rfind(')');
    if (after_name == std::string::npos) continue;  // it has ended meanwhile
    std::istringstream words(line.substr(after_name + 1));
    char state = 0;
    int64_t parent = 0;
    if (words >> state >> parent && state != 'Z' && state != 'X') children_.emplace(parent, pid);
  }
}

std::set<int64_t> ProcessTree::below(int64_t pid) const {
  std::set<int64_t> found;
  std::vector<int64_t> parents = {pid};
  while (!parents.empty()) {
    const auto [first, last] = children_.equal_range(parents.back());
    parents.pop_back();
    for (auto child = first; child != last; ++child) {
      if (found.insert(child->second).second) parents.push_back(child->second);
    }
  }
  return found;
}

std::vector<int64_t> writers_of(const fs::path& file, const fs::path& proc) {
  std::vector<int64_t> pids;
  struct stat wanted {};
  if (::stat(file.c_str(), &wanted) != 0) return pids;
  for (const int64_t pid : all_processes(proc)) {
    std::error_code not_ours;
    for (const auto& entry : fs::directory_iterator(proc / std::to_string(pid) / "fd", not_ours)) {
      struct stat open {};
      if (::stat(entry.path().c_str(), &open) != 0) continue;
      if (open.st_dev != wanted.st_dev || open.st_ino != wanted.st_ino) continue;
      if (!is_open_for_writing(proc, pid, entry.path().filename())) continue;
      pids.push_back(pid);
      break;
    }
  }
  return pids;
}

std::string command_of(int64_t pid, const fs::path& proc) {
  std::ifstream in(proc / std::to_string(pid) / "cmdline", std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), {}};  // words, each with a zero after it
  while (!text.empty() && text.back() == '\0') text.pop_back();
  std::replace(text.begin(), text.end(), '\0', ' ');
  if (text.empty()) std::getline(std::ifstream(proc / std::to_string(pid) / "comm"), text);
  return fitted(printable(text), kMaxCommand);
}

std::string names_of(const std::vector<int64_t>& pids) {
  std::vector<std::string> names;
  for (const int64_t pid : pids) {
    const std::string command = command_of(pid);
    if (!command.empty()) names.push_back(fmt::format("{} ({})", pid, command));
  }
  if (names.empty()) return "";
  return fmt::format("{} {}", names.size() == 1 ? "process" : "processes", fmt::join(names, ", "));
}

}  // namespace tearless::harness
