#include "harness/store/workspace_format.h"

#include <array>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/sealed_json.h"
#include "base/words.h"

namespace tearless::harness {
namespace fs = std::filesystem;
namespace {

constexpr size_t kVersionAt = 60;  // of user_version in SQLite's header, four bytes, the highest first

std::string fresh_id() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/uuid") >> id;
  return id;
}

/// The user_version of a database; 0 if the file is missing or is no database.
int format_of_database(const fs::path& file) {
  std::array<char, kVersionAt + 4> header{};
  std::ifstream in(file, std::ios::binary);
  if (!in.read(header.data(), header.size())) return 0;
  if (!std::string_view(header.data(), header.size()).starts_with("SQLite format 3")) return 0;
  uint32_t version = 0;
  for (size_t at = kVersionAt; at < header.size(); ++at) version = version << 8 | static_cast<uint8_t>(header[at]);
  return static_cast<int>(version);
}

[[noreturn]] void refuse(const Workspace& workspace, int found) {
  fail(
      "{} is a workspace of {} build of tearless, and was left as it is; use that build, or begin another workspace: "
      "--workspace FOLDER",
      workspace.root().string(), found < kWorkspaceFormat ? "an earlier" : "a later");
}

// --- the index of a workspace on a network disk ----------------------------------------------------------------------

fs::path claim_at_root(const Workspace& workspace) { return workspace.root() / kIndexClaim; }
fs::path claim_at_index(const fs::path& index) { return index / "workspace.json"; }

bool is_there(const fs::path& file) {
  std::error_code unreachable;
  return fs::exists(file, unreachable);
}

std::string id_in(const std::optional<nlohmann::json>& claim) { return claim ? claim->value("id", "") : ""; }

void require_own_index(const Workspace& workspace) {
  const std::string root = workspace.root().string(), file = claim_at_root(workspace).string();
  const auto of_root = read_sealed(claim_at_root(workspace));
  if (is_there(claim_at_root(workspace)) && !of_root) {
    fail("{} is damaged; delete it, and the index of {} is rebuilt", file, root);
  }
  if (of_root && of_root->value("machine", "") != this_machine()) {
    fail(
        "{} is used from the machine {}, which has its index; use tearless there, or to use it from here, stop that "
        "service and take it over: tearless daemon --take-over --workspace {}",
        root, of_root->value("machine", ""), shell_word(root));
  }
  if (!workspace.is_apart()) return;
  if (is_there(workspace.root() / "tearless.db")) {
    fail(
        "{} is on a network disk, and {}/tearless.db is the index of the machine whose disk that is; use tearless "
        "there, or to use it from here, stop that service and delete this file: the index is rebuilt",
        root, root);
  }
  if (is_there(workspace.database()) &&
      (!of_root || id_in(of_root) != id_in(read_sealed(claim_at_index(workspace.index()))))) {
    fail("{} is the index of another workspace, which was at {} before; delete that folder, and the index is rebuilt",
         workspace.index().string(), root);
  }
}

}  // namespace

bool is_own_index(const Workspace& workspace) {
  const std::string claimed = id_in(read_sealed(claim_at_root(workspace)));
  return !claimed.empty() && claimed == id_in(read_sealed(claim_at_index(workspace.index())));
}

std::string machine_of_index(const Workspace& workspace) {
  const auto claim = read_sealed(claim_at_root(workspace));
  return claim ? claim->value("machine", "") : "";
}

void claim_index(const Workspace& workspace) {
  if (!workspace.is_apart() || is_own_index(workspace)) return;
  make_folders(workspace.root());
  const std::string id = fresh_id();
  write_atomically(claim_at_index(workspace.index()),
                   sealed({{"id", id}, {"root", fs::absolute(workspace.root()).string()}}));
  write_atomically(claim_at_root(workspace),
                   sealed({{"id", id}, {"machine", this_machine()}, {"index", workspace.index().string()}}));
}

// The claim goes last: until then the other machine has the workspace.
void give_up_index(const Workspace& workspace) {
  const fs::path database = workspace.database();
  for (const char* suffix : {"-wal", "-shm", ""}) remove_file(database.string() + suffix);
  remove_file(claim_at_index(workspace.index()));
  remove_file(claim_at_root(workspace));
}

fs::path root_of_index(const fs::path& index) {
  const auto claim = read_sealed(claim_at_index(index));
  return claim ? fs::path(claim->value("root", "")) : index;
}

bool has_earlier_database(const Workspace& workspace) {
  const int format = format_of_database(workspace.database());
  return format >= kWorkspaceFormat && format < kDatabaseFormat;
}

void require_usable(const Workspace& workspace) {
  require_own_index(workspace);
  const int database = format_of_database(workspace.database());
  if (database == kDatabaseFormat) return;
  bool has_sweeps = false;
  for (const std::string& id : folders_in(workspace.sweeps())) {
    const auto about = read_sealed(workspace.sweep(id) / "sweep.json");
    if (!about) continue;
    has_sweeps = true;
    if (const int found = about->value("format", 0); found != kWorkspaceFormat) refuse(workspace, found);
  }
  if (database != 0 && !has_sweeps && !has_earlier_database(workspace)) refuse(workspace, database);
}

}  // namespace tearless::harness
