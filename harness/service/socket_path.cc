#include "harness/service/socket_path.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "base/hash.h"
#include "base/sys.h"

namespace tearless::harness {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMaxFolderLength = 60;  // bytes, so that the socket's name fits behind it

// Whoever may rename files in the folder could put a socket of his own there.
bool is_private(const fs::path& folder) {
  struct stat info {};
  return ::lstat(folder.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == ::geteuid() &&
         (info.st_mode & 077) == 0;
}

fs::path private_folder() {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  if (runtime && std::strlen(runtime) < kMaxFolderLength && is_private(runtime)) return runtime;
  const fs::path folder = fmt::format("/tmp/tearless-{}", ::geteuid());
  if (sys::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    fail("cannot make {}: {}; set XDG_RUNTIME_DIR to a folder of your own", folder.string(), std::strerror(errno));
  }
  if (!is_private(folder)) {
    fail("{} belongs to another user or lets others in; remove it, or set XDG_RUNTIME_DIR to a folder of your own",
         folder.string());
  }
  return folder;
}

}  // namespace

fs::path socket_path(const Workspace& workspace) {
  const std::string place = fs::weakly_canonical(fs::absolute(workspace.root())).string();
  return private_folder() / fmt::format("tearless-{}.sock", sha256(place).substr(0, 16));
}

}  // namespace tearless::harness
