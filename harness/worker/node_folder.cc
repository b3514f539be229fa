#include "harness/worker/node_folder.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/error.h"
#include "base/files.h"
#include "base/network_disk.h"
#include "base/sys.h"

namespace tearless::harness {
namespace fs = std::filesystem;
namespace {

bool is_private(const fs::path& folder) {
  struct stat info {};
  return ::lstat(folder.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == ::geteuid() &&
         (info.st_mode & 077) == 0;
}

}  // namespace

fs::path node_folder() {
  if (const char* named = std::getenv("TEARLESS_NODE_DIR"); named && *named) {
    make_folders(named);
    return fs::absolute(named);
  }
  const char* temporary = std::getenv("TMPDIR");
  for (const char* disk : {temporary ? temporary : "", "/tmp", "/dev/shm"}) {
    std::error_code absent;
    if (*disk == '\0' || !fs::is_directory(disk, absent) || is_on_network(disk)) continue;
    const fs::path folder = fs::path(disk) / fmt::format("tearless-{}", ::geteuid());
    if (sys::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) continue;
    if (is_private(folder)) return folder;
  }
  fail(
      "neither $TMPDIR, /tmp nor /dev/shm is a disk of this machine in which a private folder can be made; name one "
      "with TEARLESS_NODE_DIR");
}

}  // namespace tearless::harness
