#include "base/network_disk.h"

#include <linux/magic.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>

namespace tearless {
namespace fs = std::filesystem;
namespace {

constexpr uint32_t kLustre = 0x0BD00BD0, kCifs = 0xFF534D42, kSmb2 = 0xFE534D42, kCeph = 0x00C36400, kGpfs = 0x47504653,
                   kBeeGfs = 0x19830326;
constexpr auto kNetworks = std::to_array<uint32_t>({NFS_SUPER_MAGIC, SMB_SUPER_MAGIC, AFS_SUPER_MAGIC, CODA_SUPER_MAGIC,
                                                    kLustre, kCifs, kSmb2, kCeph, kGpfs, kBeeGfs});

bool is_named(const fs::path& folder) {
  const char* names = std::getenv("TEARLESS_NETWORK_DISKS");
  std::istringstream list(names ? names : "");
  for (std::string name; std::getline(list, name, ':');) {
    const fs::path from = fs::path(name).lexically_relative(folder);
    if (!name.empty() &&
        std::all_of(from.begin(), from.end(), [](const fs::path& part) { return part == ".." || part == "."; }))
      return true;
  }
  return false;
}

}  // namespace

bool is_on_network(const fs::path& folder) {
  std::error_code unreachable;
  const fs::path place = fs::weakly_canonical(fs::absolute(folder, unreachable), unreachable);
  if (unreachable) return false;  // whoever uses it says why
  if (is_named(place)) return true;
  struct statfs info {};
  for (fs::path above = place; ::statfs(above.c_str(), &info) != 0; above = above.parent_path()) {
    if (above == above.parent_path()) return false;
  }
  return std::find(kNetworks.begin(), kNetworks.end(), static_cast<uint32_t>(info.f_type)) != kNetworks.end();
}

}  // namespace tearless
