#include "harness/runs/workspace.h"

#include <cstdlib>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/network_disk.h"

namespace tearless::harness {
namespace fs = std::filesystem;
namespace {

fs::path index_of(const fs::path& root) {
  if (!is_on_network(root)) return root;
  const char* const state = std::getenv("XDG_STATE_HOME");
  const char* const home = std::getenv("HOME");
  if (!state && !home)
    fail("{} is on a network disk, and its index needs a local one: set XDG_STATE_HOME", root.string());
  const std::string place = fs::weakly_canonical(fs::absolute(root)).string();
  return (state ? fs::path(state) : fs::path(home) / ".local/state") / "tearless" / sha256(place).substr(0, 16);
}

}  // namespace

Workspace::Workspace(fs::path root) : root_(std::move(root)), index_(index_of(root_)) {}

void Workspace::require_inside(const fs::path& folder) const {
  std::error_code loop;  // then `place` is empty
  const fs::path root = fs::canonical(root_), place = fs::weakly_canonical(fs::absolute(folder), loop);
  if (std::mismatch(root.begin(), root.end(), place.begin(), place.end()).first == root.end()) return;
  fail(
      "{} is a symbolic link out of the workspace, or lies behind one, and tearless deletes nothing there ({}); put a "
      "folder in place of the link",
      folder.string(), place.string());
}

}  // namespace tearless::harness
