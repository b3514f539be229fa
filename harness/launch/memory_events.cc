#include "harness/launch/memory_events.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace tearless::harness {
namespace fs = std::filesystem;
namespace {

// A line of /proc/self/cgroup is "0::/user.slice/…" (v2) or "4:memory:/…" (v1).
fs::path events_file() {
  if (const char* named = std::getenv("TEARLESS_MEMORY_EVENTS")) return named;
  const fs::path mounted = "/sys/fs/cgroup";
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const size_t second_colon = line.find(':', line.find(':') + 1);
    if (second_colon == std::string::npos) continue;
    const std::string group = line.substr(second_colon + 1);
    if (line.starts_with("0::")) {
      const fs::path file = mounted.string() + group + "/memory.events";
      if (fs::exists(file)) return file;
    } else if (line.find(":memory:") != std::string::npos) {
      return mounted.string() + "/memory" + group + "/memory.oom_control";
    }
  }
  return {};
}

}  // namespace

int64_t memory_kills() {
  std::ifstream events(events_file());
  int64_t count = 0;
  for (std::string name; events >> name >> count;) {
    if (name == "oom_kill") return count;
  }
  return 0;
}

}  // namespace tearless::harness
