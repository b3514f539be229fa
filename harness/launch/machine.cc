#include "harness/launch/machine.h"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>

namespace tearless::harness {
namespace fs = std::filesystem;
namespace {

constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

// The limit in a group's file: a number, or "max" (v2) and a number beyond any machine (v1) without one.
int64_t limit_in(const fs::path& file) {
  std::ifstream in(file);
  int64_t bytes = 0;
  return in >> bytes ? bytes : kUnlimited;
}

// The least limit of the group and its parents. Within a container the path may name a group that is not mounted there;
// then the container's own group is at the root.
int64_t least_limit(const fs::path& root, const fs::path& group, const char* file) {
  int64_t least = limit_in(root / file);
  fs::path folder = root;
  for (const fs::path& part : group.relative_path()) {
    folder /= part;
    least = std::min(least, limit_in(folder / file));
  }
  return least;
}

}  // namespace

std::vector<int> cores_of_process() {
  // A machine may have more cores than cpu_set_t has bits; the kernel then refuses the smaller set.
  for (int most = CPU_SETSIZE; most <= 64 * CPU_SETSIZE; most *= 2) {
    cpu_set_t* set = CPU_ALLOC(static_cast<size_t>(most));
    const size_t size = CPU_ALLOC_SIZE(static_cast<size_t>(most));
    std::vector<int> cores;
    if (set && ::sched_getaffinity(0, size, set) == 0) {
      for (int core = 0; core < most; ++core) {
        if (CPU_ISSET_S(static_cast<size_t>(core), size, set)) cores.push_back(core);
      }
    }
    CPU_FREE(set);
    if (!cores.empty()) return cores;
  }
  return {0};
}

int64_t private_memory_of(const std::set<int64_t>& pids, const fs::path& proc) {
  int64_t bytes = 0;
  for (const int64_t pid : pids) {
    std::ifstream status(proc / std::to_string(pid) / "status");
    for (std::string line; std::getline(status, line);) {  // "RssAnon:	   65732 kB"
      std::istringstream words(line);
      std::string name;
      int64_t kilobytes = 0;
      if (words >> name >> kilobytes && (name == "RssAnon:" || name == "RssShmem:")) bytes += kilobytes * 1024;
    }
  }
  return bytes;
}

int64_t memory_of_process(const fs::path& proc, const fs::path& cgroups) {
  int64_t least = kUnlimited;
  std::ifstream info(proc / "meminfo");
  for (std::string line; std::getline(info, line);) {  // "MemTotal:       65739132 kB"
    std::istringstream words(line);
    std::string name;
    int64_t kilobytes = 0;
    if (words >> name >> kilobytes && name == "MemTotal:") least = kilobytes * 1024;
  }
  std::ifstream groups(proc / "self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // "0::/user.slice/…" (v2) or "4:memory:/…" (v1)
    const size_t second_colon = line.find(':', line.find(':') + 1);
    if (second_colon == std::string::npos) continue;
    const std::string group = line.substr(second_colon + 1);
    if (line.starts_with("0::")) {
      least = std::min(least, least_limit(cgroups, group, "memory.max"));
    } else if (line.find(":memory:") != std::string::npos) {
      least = std::min(least, least_limit(cgroups / "memory", group, "memory.limit_in_bytes"));
    }
  }
  return least == kUnlimited ? 0 : least;
}

}  // namespace tearless::harness
