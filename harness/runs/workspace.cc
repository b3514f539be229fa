#include "harness/runs/workspace.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/network_disk.h"
#include "base/print.h"
#include "base/sealed_json.h"
#include "base/words.h"

namespace tearless::harness {
namespace fs = std::filesystem;
namespace {

// The index that a service of this machine has claimed, whatever HOME and XDG_STATE_HOME were then (su, containers):
// elsewhere another service would find another lock. Nullopt if none was, or it is gone.
std::optional<fs::path> claimed_index(const fs::path& root) {
  const nlohmann::json claim = read_sealed(root / kIndexClaim).value_or(nlohmann::json::object());
  const auto text_of = [&](const char* key) {
    const auto member = claim.find(key);
    return member != claim.end() && member->is_string() ? member->get<std::string>() : "";
  };
  if (text_of("machine") != this_machine()) return std::nullopt;
  const fs::path index = text_of("index");
  std::error_code closed;  // to this user: who opens it says so
  const bool is_there = fs::exists(index, closed);
  return !index.empty() && (is_there || closed) ? std::optional(index) : std::nullopt;
}

fs::path index_of(const fs::path& root) {
  if (!is_on_network(root)) return root;
  if (const auto claimed = claimed_index(root)) return *claimed;
  const char* const state = std::getenv("XDG_STATE_HOME");
  const char* const home = std::getenv("HOME");
  if (!state && !home)
    fail("{} is on a network disk, and its index needs a local one: set XDG_STATE_HOME", root.string());
  const std::string place = fs::weakly_canonical(fs::absolute(root)).string();
  return (state ? fs::path(state) : fs::path(home) / ".local/state") / "tearless" / sha256(place).substr(0, 16);
}

constexpr const char* kFolder = "results";

bool belongs_to_user(const fs::path& folder) {
  struct stat status {};
  return ::stat(folder.c_str(), &status) == 0 && status.st_uid == ::geteuid();
}

fs::path place_of(const fs::path& root) {
  std::error_code unknown;
  const fs::path found = fs::weakly_canonical(root, unknown);
  return unknown ? root : found;
}

}  // namespace

std::string this_machine() {
  char name[256] = "";
  ::gethostname(name, sizeof name - 1);
  return name;
}

Workspace::Workspace(fs::path root) : root_(std::move(root)), index_(index_of(root_)) {}

bool is_workspace(const fs::path& root) {
  std::error_code absent;
  return fs::exists(root / "tearless.db", absent) || fs::is_directory(root / "sweeps", absent);
}

fs::path default_workspace() {
  if (const char* const named = std::getenv("TEARLESS_WORKSPACE"); named && *named) return named;
  std::error_code unknown;
  const fs::path here = fs::current_path(unknown);
  for (fs::path folder = here; !folder.empty(); folder = folder.parent_path()) {
    const fs::path found = folder / kFolder;
    if (is_workspace(found) && belongs_to_user(found)) return folder == here ? kFolder : found;
    if (folder == folder.root_path()) break;
  }
  return kFolder;
}

std::optional<fs::path> archive_of(const fs::path& root) {
  std::error_code absent;
  if (!fs::is_regular_file(root / kArchiveName, absent)) return std::nullopt;
  return read_file(root / kArchiveName);
}

std::string workspace_option(const fs::path& root) {
  if (const auto archive = archive_of(root)) return " --workspace " + shell_word(archive->string());
  if (place_of(root) == place_of(default_workspace())) return "";
  return " --workspace " + shell_word(root.string());
}

void announce_if_new(const Workspace& workspace) {
  if (is_workspace(workspace.root())) return;
  notice(fmt::format("a new workspace: {} (--workspace names another)", fs::absolute(workspace.root()).string()));
}

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
