#include "harness/store/workspace_format.h"

#include <array>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/sealed_json.h"

namespace tearless::harness {
namespace fs = std::filesystem;
namespace {

constexpr size_t kVersionAt = 60;  // of user_version in SQLite's header, four bytes, the highest first

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

}  // namespace

void require_this_format(const Workspace& workspace) {
  const int database = format_of_database(workspace.database());
  if (database == kWorkspaceFormat) return;
  bool has_sweeps = false;
  for (const std::string& id : folders_in(workspace.sweeps())) {
    const auto about = read_sealed(workspace.sweep(id) / "sweep.json");
    if (!about) continue;
    has_sweeps = true;
    if (const int found = about->value("format", 0); found != kWorkspaceFormat) refuse(workspace, found);
  }
  if (database != 0 && !has_sweeps) refuse(workspace, database);
}

}  // namespace tearless::harness
