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

}  // namespace tearless::harness
